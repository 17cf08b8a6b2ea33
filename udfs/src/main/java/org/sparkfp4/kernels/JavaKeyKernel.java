package org.sparkfp4.kernels;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Fp8DsMla;
import org.sparkfp4.formats.IndexQuery;
import org.sparkfp4.formats.KeyCache;
import org.sparkfp4.formats.KeyForm;
import org.sparkfp4.formats.KeyPage;
import org.sparkfp4.formats.Mxfp4Codec;
import org.sparkfp4.formats.RmsNorm;
import org.sparkfp4.formats.ScaleRule;

/** The reference on native memory, less than 2 GiB of each tensor a call. */
final class JavaKeyKernel implements KeyKernel {
  @Override
  public String tier() {
    return "java";
  }

  @Override
  public void quantize(ScaleRule rule, ElementType type, long data, long rows, int cols, long packed, long scales) {
    KeyArguments.checkRows(rows, cols);
    Mxfp4Codec.encode(rule, type, buffer(data, rows * cols * type.bytes()), rows, cols, buffer(packed, rows * cols / 2),
        buffer(scales, rows * (cols / Mxfp4Codec.BLOCK)));
  }

  @Override
  public void insert(KeyForm form, ElementType type, long keys, long tokens, long slots, long slotCount,
      KeyPages pages) {
    KeyPage page = new KeyPage(pages.tokens(), form.dim());
    pages.require(page.bytes());
    KeyArguments.checkRows(tokens, form.dim());
    KeyCache.insert(form, type, buffer(keys, tokens * form.dim() * type.bytes()), tokens, longs(slots, slotCount),
        buffer(pages.address(), pages.bytes(page.bytes())), pages.count(), page, pages.stride());
  }

  @Override
  public void quantizeQuery(ScaleRule rule, ElementType type, long query, ElementType weightType, long weights,
      float weightScale, long tokens, int heads, int paddedHeads, long packed, long scales, long weightsOut) {
    IndexQuery.requireHeads(heads, paddedHeads);
    long out = Math.multiplyExact(tokens, (long) paddedHeads);
    KeyArguments.checkRows(out, IndexQuery.DIM);
    long rows = tokens * heads;
    IndexQuery.encode(rule, type, buffer(query, rows * IndexQuery.DIM * type.bytes()), weightType,
        buffer(weights, rows * weightType.bytes()), weightScale, tokens, heads, paddedHeads,
        buffer(packed, out * (IndexQuery.DIM / 2)), buffer(scales, out * Integer.BYTES),
        buffer(weightsOut, out * Float.BYTES));
  }

  @Override
  public void normalise(RmsNorm norm, ElementType type, long data, long rows, long out) {
    int cols = norm.weight().length;
    KeyArguments.checkRows(rows, cols);
    long bytes = rows * cols * type.bytes();
    norm.apply(type, buffer(data, bytes), rows, buffer(out, bytes));
  }

  @Override
  public void insertLatents(RmsNorm norm, boolean roundToBf16, ElementType type, long latents, long rope, long tokens,
      long latentsOut, long slots, long slotCount, KeyPages pages) {
    KeyArguments.checkLatents(norm, tokens, pages);
    long bytes = tokens * Fp8DsMla.LATENT * type.bytes();
    Fp8DsMla.insert(norm, roundToBf16, type, buffer(latents, bytes), buffer(rope, tokens * Fp8DsMla.ROPE * type.bytes()),
        tokens, buffer(latentsOut, bytes), longs(slots, slotCount),
        buffer(pages.address(), pages.bytes((long) pages.tokens() * Fp8DsMla.BYTES)), pages.count(), pages.tokens(),
        pages.stride());
  }

  static LongBuffer longs(long address, long count) {
    return buffer(address, Math.multiplyExact(count, (long) Long.BYTES)).order(ByteOrder.LITTLE_ENDIAN)
        .asLongBuffer();
  }

  private static ByteBuffer buffer(long address, long bytes) {
    if (bytes == 0) {
      return ByteBuffer.allocate(0);
    }

    if (bytes > Integer.MAX_VALUE) {
      throw new IllegalArgumentException(
          "Cannot take " + bytes + " bytes of one tensor at once in Java: at most " + Integer.MAX_VALUE);
    }

    return MemoryUtil.directBuffer(address, (int) bytes);
  }
}
