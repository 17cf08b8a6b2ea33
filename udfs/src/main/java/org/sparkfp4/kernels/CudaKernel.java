package org.sparkfp4.kernels;

import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.WeightScheme;

/**
 * The kernels of the CUDA library. What they cannot do is an error and never done by the CPU.
 *
 * <p>On host memory any thread may call; on device memory only the one whose current device it is.
 */
final class CudaKernel implements Nvfp4Kernel {
  private final CudaMemory memory;

  CudaKernel(CudaMemory memory) {
    this.memory = memory;
  }

  /** What a call finds beside its bytes: an amax or a value that is refused, an exponent, a count or a position. */
  private record Found(float[] value, long[] where) {
    Found() {
      this(new float[1], new long[2]);
    }
  }

  @Override
  public String tier() {
    return "cuda";
  }

  @Override
  public ArrowBuf results(BufferAllocator allocator, long bytes) {
    return memory.results(allocator, bytes);
  }

  @Override
  public float amax(ElementType type, long[] addresses, long[] elements) {
    Segments.check(addresses, elements);
    Found found = new Found();
    run(found, (context, scratch) -> CudaBinding.amax(
        context, scratch, NativeKernel.code(type), addresses, elements, found.value, found.where));
    return found.value[0];
  }

  @Override
  public void encode(Nvfp4Recipe recipe, BlockSearch search, ElementType type, long[] addresses, long[] rows, long cols,
      float amax, long packed, long scales, ErrorSums[] sums) {
    long[] blocks = Segments.blocks(addresses, rows, cols, sums);
    if (Nvfp4.isZero(amax)) {
      Segments.encodeZero(recipe, blocks, packed, scales, memory::fill);
      return;
    }

    double[] totals = totals(sums);
    Found found = new Found();
    run(found, (context, scratch) -> CudaBinding.encode(
        context, scratch, NativeKernel.code(recipe), NativeKernel.code(search), search.importance(),
        NativeKernel.code(type), addresses, rows, cols, search.search().globalScale(recipe, amax, type), packed, scales,
        totals, found.value, found.where));
    NativeKernel.set(sums, totals);
  }

  @Override
  public float encodeUnit(Nvfp4Recipe recipe, BlockSearch search, ElementType type, long[] addresses, long[] rows,
      long cols, long packed, long scales, ErrorSums[] sums) {
    Segments.blocks(addresses, rows, cols, sums);
    double[] totals = totals(sums);
    Found found = new Found();
    run(found, (context, scratch) -> CudaBinding.encodeUnit(
        context, scratch, NativeKernel.code(recipe), NativeKernel.code(search), search.importance(),
        NativeKernel.code(type), addresses, rows, cols, packed, scales, totals, found.value, found.where));
    NativeKernel.set(sums, totals);
    return found.value[0];
  }

  @Override
  public float amax(WeightScheme scheme, long[] codes, long[] scales, long[] rows, long cols) {
    Segments.check(codes, scales, rows);
    Segments.blocks(codes, rows, cols, null);
    Found found = new Found();
    run(found, (context, scratch) -> CudaBinding.quantizedAmax(
        context, scratch, NativeKernel.code(scheme.codes()), NativeKernel.code(scheme.scales()), scheme.blockRows(),
        scheme.blockCols(), codes, scales, rows, cols, found.value, found.where));
    return found.value[0];
  }

  @Override
  public void encode(Nvfp4Recipe recipe, BlockSearch search, WeightScheme scheme, long[] codes, long[] scales,
      long[] rows, long cols, float amax, long packed, long scalesOut, ErrorSums[] sums) {
    Segments.check(codes, scales, rows);
    long[] blocks = Segments.blocks(codes, rows, cols, sums);
    if (Nvfp4.isZero(amax)) {
      Segments.encodeZero(recipe, blocks, packed, scalesOut, memory::fill);
      return;
    }

    double[] totals = totals(sums);
    Found found = new Found();
    run(found, (context, scratch) -> CudaBinding.quantizedEncode(
        context, scratch, NativeKernel.code(recipe), NativeKernel.code(search), search.importance(),
        NativeKernel.code(scheme.codes()), NativeKernel.code(scheme.scales()), scheme.blockRows(), scheme.blockCols(),
        codes, scales, rows, cols, search.search().globalScale(recipe, amax, ElementType.F32), packed, scalesOut, totals,
        found.value, found.where));
    NativeKernel.set(sums, totals);
  }

  @Override
  public float encodeUnit(Nvfp4Recipe recipe, BlockSearch search, WeightScheme scheme, long[] codes, long[] scales,
      long[] rows, long cols, long packed, long scalesOut, ErrorSums[] sums) {
    Segments.check(codes, scales, rows);
    Segments.blocks(codes, rows, cols, sums);
    double[] totals = totals(sums);
    Found found = new Found();
    run(found, (context, scratch) -> CudaBinding.quantizedEncodeUnit(
        context, scratch, NativeKernel.code(recipe), NativeKernel.code(search), search.importance(),
        NativeKernel.code(scheme.codes()), NativeKernel.code(scheme.scales()), scheme.blockRows(), scheme.blockCols(),
        codes, scales, rows, cols, packed, scalesOut, totals, found.value, found.where));
    NativeKernel.set(sums, totals);
    return found.value[0];
  }

  @Override
  public int largestExponent(long[] scales, long[] counts) {
    Segments.check(scales, counts);
    Found found = new Found();
    run(found, (context, scratch) -> CudaBinding.largestExponent(
        context, scratch, scales, counts, found.value, found.where));
    return (int) found.where[0];
  }

  @Override
  public long castMxfp4(Nvfp4Recipe recipe, long[] codes, long[] scales, long[] rows, long cols, int kmax, long packed,
      long scalesOut, ErrorSums[] sums) {
    Segments.check(codes, scales, rows);
    long[] blocks = Segments.mxfp4Blocks(codes, rows, cols, sums);
    if (Nvfp4.isZero(Mxfp4.amax(kmax))) {
      Segments.checkExponents(this, scales, blocks, kmax);
      Segments.encodeZero(recipe, blocks, packed, scalesOut, memory::fill);
      return 0;
    }

    double[] totals = totals(sums);
    Found found = new Found();
    int status = memory.run((context, scratch) -> CudaBinding.castMxfp4(
        context, scratch, NativeKernel.code(recipe), codes, scales, rows, cols, kmax, packed, scalesOut, totals,
        found.value, found.where));
    if (status == NativeBinding.INVALID) {
      // All other arguments have been checked.
      throw Mxfp4.aboveLargest(kmax);
    }

    CudaStatus.check(status, found.value, found.where);
    NativeKernel.set(sums, totals);
    return found.where[0];
  }

  @Override
  public void dequantizeToBf16(WeightScheme scheme, long codes, long scales, long rows, long cols, long out) {
    Segments.checkTensor(codes, scales, rows, cols);
    Found found = new Found();
    run(found, (context, scratch) -> CudaBinding.dequantizeToBf16(
        context, scratch, NativeKernel.code(scheme.codes()), NativeKernel.code(scheme.scales()), scheme.blockRows(),
        scheme.blockCols(), codes, scales, rows, cols, out, found.value, found.where));
  }

  private void run(Found found, CudaMemory.Call call) {
    CudaStatus.check(memory.run(call), found.value, found.where);
  }

  private static double[] totals(ErrorSums[] sums) {
    return sums == null ? null : new double[2 * sums.length];
  }
}
