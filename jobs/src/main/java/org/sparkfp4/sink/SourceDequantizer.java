package org.sparkfp4.sink;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.SourceScheme;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.kernels.Nvfp4Kernel;
import org.sparkfp4.kernels.Nvfp4Kernels;
import org.sparkfp4.output.BadSourceException;
import org.sparkfp4.output.ShardOutput;
import org.sparkfp4.output.SourceFiles;
import org.sparkfp4.plan.ShardItem;
import org.sparkfp4.safetensors.DType;

/**
 * Writes weights that the source stores quantized and the output does not, in BF16: one fp32 product, rounded to
 * nearest even. A weight is read by pieces of whole rows, so its memory does not grow with the weight.
 */
final class SourceDequantizer {
  private static final long PIECE = 4 << 20;

  private final SourceFiles files;
  private final String input;
  private final KernelChoice kernels;
  private final NativeBytes codes = new NativeBytes();
  private final NativeBytes scales = new NativeBytes();
  private final NativeBytes result = new NativeBytes();

  /** {@code input} is the source's folder, for messages; {@code kernels} are those of the run. */
  SourceDequantizer(SourceFiles files, String input, KernelChoice kernels) {
    this.files = files;
    this.input = input;
    this.kernels = kernels.onHost();
  }

  /**
   * Writes a weight.
   *
   * @throws BadSourceException if a weight is not finite, naming it
   */
  void write(ShardItem.Dequantized item, ShardOutput out) throws IOException {
    Nvfp4Kernel kernel = Nvfp4Kernels.chosen(kernels);
    SourceScheme scheme = SourceScheme.parse(item.scheme());
    long rows = item.weight().rows();
    long cols = item.weight().cols();
    long block = scheme.blockRows();
    long step = Math.max(block, PIECE / Math.max(1, DType.BF16.bytes(cols)) / block * block);
    for (long row = 0; row < rows; row += step) {
      long n = Math.min(step, rows - row);
      ByteBuffer bf16 = result.of(DType.BF16.bytes(Math.multiplyExact(n, cols)));
      try {
        kernel.dequantizeToBf16(
            scheme.stored(),
            read(item.weight(), scheme.dataBytes(row, cols), scheme.dataBytes(n, cols), codes),
            read(item.scale(), scheme.scaleOffset(row, cols), scheme.scaleBytes(n, cols), scales),
            n, cols, MemoryUtil.getByteBufferAddress(bf16));
      } catch (NonFiniteException e) {
        throw new BadSourceException(
            NonFiniteText.of(item.weight(), item.scale(), scheme, row * cols + e.index(), e.value(), input));
      }

      out.write(bf16);
    }
  }

  private long read(LocatedTensor tensor, long from, long length, NativeBytes into) throws IOException {
    ByteBuffer buffer = into.of(length);
    byte[] bytes = new byte[Math.toIntExact(length)];
    files.read(tensor, from, bytes, bytes.length);
    buffer.put(0, bytes);
    return MemoryUtil.getByteBufferAddress(buffer);
  }

  /** Native memory that is used again from piece to piece. */
  private static final class NativeBytes {
    private ByteBuffer memory = ByteBuffer.allocateDirect(0);

    ByteBuffer of(long length) {
      if (memory.capacity() < length) {
        memory = ByteBuffer.allocateDirect(Math.toIntExact(length));
      }

      return memory.clear().limit(Math.toIntExact(length));
    }
  }
}
