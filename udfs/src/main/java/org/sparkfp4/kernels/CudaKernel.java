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
    NativeResult result = new NativeResult();
    run(result, (context, scratch) -> CudaBinding.amax(
        context, scratch, NativeKernel.code(type), addresses, elements, result.value(), result.where()));
    return result.value()[0];
  }

  @Override
  public void encode(Nvfp4Recipe recipe, BlockSearch search, ElementType type, long[] addresses, long[] rows, long cols,
      float amax, long packed, long scales, ErrorSums[] sums) {
    long[] blocks = Segments.blocks(addresses, rows, cols, sums);
    if (Nvfp4.isZero(amax)) {
      Segments.encodeZero(recipe, blocks, packed, scales, memory::fill);
      return;
    }

    NativeResult result = new NativeResult(sums);
    run(result, (context, scratch) -> CudaBinding.encode(
        context, scratch, NativeKernel.code(recipe), NativeKernel.code(search), search.importance(),
        NativeKernel.code(type), addresses, rows, cols, search.search().globalScale(recipe, amax, type), packed, scales,
        result.totals(), result.value(), result.where()));
    result.setSums();
  }

  @Override
  public float encodeUnit(Nvfp4Recipe recipe, BlockSearch search, ElementType type, long[] addresses, long[] rows,
      long cols, long packed, long scales, ErrorSums[] sums) {
    Segments.blocks(addresses, rows, cols, sums);
    NativeResult result = new NativeResult(sums);
    run(result, (context, scratch) -> CudaBinding.encodeUnit(
        context, scratch, NativeKernel.code(recipe), NativeKernel.code(search), search.importance(),
        NativeKernel.code(type), addresses, rows, cols, packed, scales, result.totals(), result.value(),
        result.where()));
    result.setSums();
    return result.value()[0];
  }

  @Override
  public float amax(WeightScheme scheme, long[] codes, long[] scales, long[] rows, long cols) {
    Segments.check(codes, scales, rows);
    Segments.blocks(codes, rows, cols, null);
    NativeResult result = new NativeResult();
    run(result, (context, scratch) -> CudaBinding.quantizedAmax(
        context, scratch, NativeKernel.code(scheme.codes()), NativeKernel.code(scheme.scales()), scheme.blockRows(),
        scheme.blockCols(), codes, scales, rows, cols, result.value(), result.where()));
    return result.value()[0];
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

    NativeResult result = new NativeResult(sums);
    run(result, (context, scratch) -> CudaBinding.quantizedEncode(
        context, scratch, NativeKernel.code(recipe), NativeKernel.code(search), search.importance(),
        NativeKernel.code(scheme.codes()), NativeKernel.code(scheme.scales()), scheme.blockRows(), scheme.blockCols(),
        codes, scales, rows, cols, search.search().globalScale(recipe, amax, ElementType.F32), packed, scalesOut,
        result.totals(), result.value(), result.where()));
    result.setSums();
  }

  @Override
  public float encodeUnit(Nvfp4Recipe recipe, BlockSearch search, WeightScheme scheme, long[] codes, long[] scales,
      long[] rows, long cols, long packed, long scalesOut, ErrorSums[] sums) {
    Segments.check(codes, scales, rows);
    Segments.blocks(codes, rows, cols, sums);
    NativeResult result = new NativeResult(sums);
    run(result, (context, scratch) -> CudaBinding.quantizedEncodeUnit(
        context, scratch, NativeKernel.code(recipe), NativeKernel.code(search), search.importance(),
        NativeKernel.code(scheme.codes()), NativeKernel.code(scheme.scales()), scheme.blockRows(), scheme.blockCols(),
        codes, scales, rows, cols, packed, scalesOut, result.totals(), result.value(), result.where()));
    result.setSums();
    return result.value()[0];
  }

  @Override
  public int largestExponent(long[] scales, long[] counts) {
    Segments.check(scales, counts);
    NativeResult result = new NativeResult();
    run(result, (context, scratch) -> CudaBinding.largestExponent(
        context, scratch, scales, counts, result.value(), result.where()));
    return (int) result.where()[0];
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

    NativeResult result = new NativeResult(sums);
    int status = memory.run((context, scratch) -> CudaBinding.castMxfp4(
        context, scratch, NativeKernel.code(recipe), codes, scales, rows, cols, kmax, packed, scalesOut,
        result.totals(), result.value(), result.where()));
    if (status == NativeBinding.INVALID) {
      // All other arguments have been checked.
      throw Mxfp4.aboveLargest(kmax);
    }

    CudaStatus.check(status, result);
    result.setSums();
    return result.where()[0];
  }

  @Override
  public void dequantizeToBf16(WeightScheme scheme, long codes, long scales, long rows, long cols, long out) {
    Segments.checkTensor(codes, scales, rows, cols);
    NativeResult result = new NativeResult();
    run(result, (context, scratch) -> CudaBinding.dequantizeToBf16(
        context, scratch, NativeKernel.code(scheme.codes()), NativeKernel.code(scheme.scales()), scheme.blockRows(),
        scheme.blockCols(), codes, scales, rows, cols, out, result.value(), result.where()));
  }

  private void run(NativeResult result, CudaMemory.Call call) {
    CudaStatus.check(memory.run(call), result);
  }
}
