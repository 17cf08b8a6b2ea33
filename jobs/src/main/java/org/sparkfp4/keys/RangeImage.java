package org.sparkfp4.keys;

import java.io.Closeable;
import java.io.IOException;
import java.util.BitSet;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.sparkfp4.formats.Fp8DsMla;
import org.sparkfp4.formats.KeyForm;
import org.sparkfp4.formats.NonFiniteRowException;
import org.sparkfp4.formats.RmsNorm;
import org.sparkfp4.kernels.KeyKernel;
import org.sparkfp4.kernels.KeyPages;
import org.sparkfp4.output.BadSourceException;
import org.sparkfp4.output.StagedFile;

/** The bytes of a range while it is made: zeros where no token is. */
final class RangeImage implements Closeable {
  /** Tokens that are given to a kernel at once. */
  static final int BATCH = 16384;

  private final KeyPlan plan;
  private final CacheTensor tensor;
  private final KeyKernel kernel;
  private final ArrowBuf bytes;
  private final ArrowBuf slots;
  private final ArrowBuf latents;
  private final KeyPages pages;
  private final long firstSlot;
  private final int capacity;
  private final BitSet taken = new BitSet();
  private final KeyForm form;

  /** A token's place in a batch. */
  interface TokenName {
    /** What messages call the token at a place of the batch. */
    String of(long place);
  }

  RangeImage(KeyPlan plan, CacheRange range, KeyKernel kernel, BufferAllocator allocator) {
    this.plan = plan;
    this.tensor = plan.tensors().get(range.tensor());
    this.kernel = kernel;
    boolean isPaged = tensor.kind().isPaged();
    int pageTokens = isPaged ? plan.options().pageTokens() : 1;
    this.firstSlot = range.first() * pageTokens;
    this.capacity = Math.multiplyExact(range.count(), pageTokens);
    this.form = tensor.kind() == CacheTensor.Kind.KEYS ? tensor.keyForm(plan.options()) : null;
    this.bytes = allocator.buffer(range.count() * tensor.unitBytes());
    this.slots = allocator.buffer((long) BATCH * Long.BYTES);
    this.latents = tensor.kind() == CacheTensor.Kind.LATENTS
        ? allocator.buffer((long) BATCH * Fp8DsMla.LATENT * tensor.type().bytes())
        : allocator.getEmpty();
    if (isPaged) {
      bytes.setZero(0, bytes.capacity());
    }

    this.pages = new KeyPages(bytes.memoryAddress(), range.count(), pageTokens, tensor.unitBytes());
  }

  /** The first slot, or row, of the range. */
  long firstSlot() {
    return firstSlot;
  }

  /** Slots, or rows, of the range. */
  int capacity() {
    return capacity;
  }

  boolean holds(long slot) {
    return slot >= firstSlot && slot < firstSlot + capacity;
  }

  /** Whether the slot, one of the range's, was free until now. */
  boolean take(long slot) {
    int place = (int) (slot - firstSlot);
    boolean free = !taken.get(place);
    taken.set(place);
    return free;
  }

  /** Sets the slot of a place in the batch; negative for none. */
  void slot(int place, long slot) {
    slots.setLong((long) place * Long.BYTES, slot < 0 ? -1 : slot - firstSlot);
  }

  /**
   * Inserts a batch of tokens, whose slots have been set.
   *
   * @param data address of their rows
   * @param rope address of the rotary parts, or 0
   */
  void insert(long data, long rope, int count, TokenName names) {
    try {
      if (form != null) {
        kernel.insert(form, tensor.type(), data, count, slots.memoryAddress(), count, pages);
      } else {
        RmsNorm norm = tensor.rmsNorm(plan.options());
        kernel.insertLatents(norm, plan.options().roundNormToBf16(), tensor.type(), data, rope, count,
            latents.memoryAddress(), slots.memoryAddress(), count, pages);
      }
    } catch (NonFiniteRowException e) {
      throw refusal(e, names);
    }
  }

  /** Normalises a batch of the range's rows, the first of which is its row {@code first}. */
  void normalise(long data, long first, int count, TokenName names) {
    try {
      kernel.normalise(tensor.rmsNorm(plan.options()), tensor.type(), data, count,
          bytes.memoryAddress() + first * tensor.unitBytes());
    } catch (NonFiniteRowException e) {
      throw refusal(e, names);
    }
  }

  /** Fills the first rows of the range with -1, "no token". */
  void fill(int count) {
    bytes.setOne(0L, count * tensor.unitBytes());
  }

  /** Takes rows as they are, the first of which is the range's row {@code first}. */
  void copy(ArrowBuf rows, long first, int count) {
    bytes.setBytes(first * tensor.unitBytes(), rows, 0, count * tensor.unitBytes());
  }

  private BadSourceException refusal(NonFiniteRowException e, TokenName names) {
    String sources = tensor.rope() == null ? sourceName() : sourceName() + " or " + tensor.rope().name();
    String where = tensor.data() == null ? plan.input() : "file " + tensor.data().path();
    return new BadSourceException("Invalid value in " + sources + ": " + names.of(e.row()) + ", element " + e.element()
        + " is " + e.value() + (e.isNormalised() ? " once it is normalised" : "") + ", in " + where
        + "; there is no code for it. Repair the source and start again with --overwrite");
  }

  /** What messages call the tensor that rows come from. */
  String sourceName() {
    return tensor.data() == null ? tensor.layer() : tensor.data().name();
  }

  void write(StagedFile file) throws IOException {
    file.write(bytes.nioBuffer(0, Math.toIntExact(bytes.capacity() == 0 ? 0 : pages.count() * tensor.unitBytes())));
  }

  @Override
  public void close() {
    bytes.close();
    slots.close();
    latents.close();
  }
}
