package org.sparkfp4.kernels;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Fp8DsMla;
import org.sparkfp4.formats.IndexQuery;
import org.sparkfp4.formats.KeyForm;
import org.sparkfp4.formats.KeyPage;
import org.sparkfp4.formats.LayerNorm;
import org.sparkfp4.formats.NonFiniteRowException;
import org.sparkfp4.formats.RmsNorm;
import org.sparkfp4.formats.ScaleRule;
import org.sparkfp4.formats.SlotMapping;

/** A tier of a native library. The library says which row is bad; what is bad in it is asked of the reference. */
final class NativeKeyKernel implements KeyKernel {
  private final KeyCalls calls;
  private final KeyKernel reference = new JavaKeyKernel();

  NativeKeyKernel(KeyCalls calls) {
    this.calls = calls;
  }

  @Override
  public String tier() {
    return calls.tier();
  }

  @Override
  public void quantize(ScaleRule rule, ElementType type, long data, long rows, int cols, long packed, long scales) {
    KeyArguments.checkRows(rows, cols);
    long[] bad = new long[1];
    int status = calls.quantize(
        rule.ordinal(), NativeKernel.code(type), data, rows, cols, packed, scales, bad);
    check(status, bad[0], () -> reference.quantize(
        rule, type, data + bad[0] * cols * type.bytes(), 1, cols, packed, scales));
  }

  @Override
  public void insert(KeyForm form, ElementType type, long keys, long tokens, long slots, long slotCount,
      KeyPages pages) {
    KeyArguments.checkRows(tokens, form.dim());
    pages.require(new KeyPage(pages.tokens(), form.dim()).bytes());
    int used = SlotMapping.check(JavaKeyKernel.longs(slots, slotCount), tokens, pages.slots());
    LayerNorm norm = form.norm();
    long[] bad = new long[1];
    int status = calls.insert(form.rule().ordinal(), form.dim(), norm == null ? null : norm.weight(),
        norm == null ? null : norm.bias(), norm == null ? 0 : norm.eps(), form.roundToBf16(), form.hadamard(),
        NativeKernel.code(type), keys, used, slots, pages, bad);
    check(status, bad[0], () -> inLonePage(new KeyPage(1, form.dim()).bytes(), 0, (slot, page) -> reference.insert(
        form, type, keys + bad[0] * form.dim() * type.bytes(), 1, slot, 1, page)));
  }

  @Override
  public void quantizeQuery(ScaleRule rule, ElementType type, long query, ElementType weightType, long weights,
      float weightScale, long tokens, int heads, int paddedHeads, long packed, long scales, long weightsOut) {
    IndexQuery.requireHeads(heads, paddedHeads);
    KeyArguments.checkRows(Math.multiplyExact(tokens, (long) paddedHeads), IndexQuery.DIM);
    long[] bad = new long[1];
    int status = calls.query(rule.ordinal(), NativeKernel.code(type), query, NativeKernel.code(weightType), weights,
        weightScale, tokens, heads, paddedHeads, packed, scales, weightsOut, bad);
    check(status, bad[0], () -> reference.quantize(
        rule, type, query + bad[0] * IndexQuery.DIM * type.bytes(), 1, IndexQuery.DIM, packed, scales));
  }

  @Override
  public void normalise(RmsNorm norm, ElementType type, long data, long rows, long out) {
    int cols = norm.weight().length;
    KeyArguments.checkRows(rows, cols);
    long[] bad = new long[1];
    int status = calls.normalise(NativeKernel.code(type), data, rows, norm.weight(), norm.eps(), out, bad);
    check(status, bad[0], () -> reference.normalise(norm, type, data + bad[0] * cols * type.bytes(), 1, out));
  }

  @Override
  public void insertLatents(RmsNorm norm, boolean roundToBf16, ElementType type, long latents, long rope, long tokens,
      long latentsOut, long slots, long slotCount, KeyPages pages) {
    KeyArguments.checkLatents(norm, tokens, pages);
    int used = SlotMapping.check(JavaKeyKernel.longs(slots, slotCount), tokens, pages.slots());
    long[] bad = new long[1];
    int status = calls.latents(NativeKernel.code(type), latents, rope, tokens, norm.weight(), norm.eps(),
        roundToBf16, latentsOut, slots, used, pages, bad);
    int latentBytes = norm.weight().length * type.bytes();
    // a latent that goes nowhere is normalised all the same
    long place = bad[0] < used ? Math.min(0, MemoryUtil.getLong(slots + bad[0] * Long.BYTES)) : 0;
    check(status, bad[0], () -> inLonePage(Fp8DsMla.BYTES, place, (slot, page) -> reference.insertLatents(
        norm, roundToBf16, type, latents + bad[0] * latentBytes, rope + bad[0] * Fp8DsMla.ROPE * type.bytes(), 1,
        latentsOut, slot, bad[0] < used ? 1 : 0, page)));
  }

  private interface PageCall {
    void run(long slot, KeyPages page);
  }

  /** Gives the reference a cache of one token, with its slot: it takes no cache of 2 GiB and more. */
  private static void inLonePage(int bytes, long place, PageCall call) {
    ByteBuffer room = ByteBuffer.allocateDirect(Long.BYTES + bytes).order(ByteOrder.LITTLE_ENDIAN).putLong(0, place);
    long slot = MemoryUtil.getByteBufferAddress(room);
    try {
      call.run(slot, new KeyPages(slot + Long.BYTES, 1, 1, bytes));
    } finally {
      Reference.reachabilityFence(room);
    }
  }

  private void check(int status, long badRow, Runnable reference) {
    switch (status) {
      case NativeBinding.OK -> { }
      case NativeBinding.NON_FINITE -> {
        try {
          reference.run();
        } catch (NonFiniteRowException e) {
          throw e.at(badRow);
        }

        throw new IllegalStateException("Cannot say what is not finite in row " + badRow + ": the reference takes it");
      }
      default -> throw calls.failure(status);
    }
  }
}
