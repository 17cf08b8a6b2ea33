package org.sparkfp4.keys;

import java.io.IOException;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.kernels.KeyKernels;
import org.sparkfp4.output.BadSourceException;
import org.sparkfp4.output.StagedFile;
import org.sparkfp4.output.TaskFiles;
import org.sparkfp4.output.TaskOutput;
import org.sparkfp4.output.WritingTask;
import scala.collection.Iterator;

/** Writes the range whose number is the partition's, from rows (range INT, slot BIGINT, key) in any order. */
final class TableRangeTask extends WritingTask<KeyPlan, InternalRow> {
  private static final int RANGE = 0;
  private static final int SLOT = 1;
  private static final int KEY = 2;

  private final KernelChoice kernels;
  private final boolean isBinary;

  /** @param isBinary whether keys are BINARY; else ARRAY of FLOAT */
  TableRangeTask(Broadcast<KeyPlan> plan, Broadcast<SerializableConfiguration> conf, TaskOutput output,
      KernelChoice kernels, boolean isBinary) {
    super(plan, conf, output);
    this.kernels = kernels;
    this.isBinary = isBinary;
  }

  @Override
  protected void write(TaskContext context, Iterator<InternalRow> rows, TaskFiles output) throws IOException {
    CacheRange range = plan().ranges().get(context.partitionId());
    CacheTensor tensor = plan().tensors().get(range.tensor());
    int keyBytes = tensor.dim() * tensor.type().bytes();
    try (BufferAllocator allocator = ArrowUtils.rootAllocator().newChildAllocator("keys", 0, Long.MAX_VALUE);
        RangeImage image = new RangeImage(plan(), range, KeyKernels.chosen(kernels), allocator);
        ArrowBuf keys = allocator.buffer((long) RangeImage.BATCH * keyBytes);
        StagedFile file = output.beginPart(range.id(), range.file())) {
      long[] slots = new long[RangeImage.BATCH];
      int count = 0;
      while (rows.hasNext()) {
        InternalRow row = rows.next();
        if (row.getInt(RANGE) != range.id()) {
          throw new IllegalStateException(
              "Cannot write range " + range.id() + ": its partition has a row of range " + row.getInt(RANGE));
        }

        slots[count] = row.getLong(SLOT);
        if (!image.take(slots[count])) {
          throw FileRangeTask.duplicate(
              tensor.layer(), slots[count], "a row", "another row", "table " + plan().input());
        }

        image.slot(count, slots[count]);
        copy(row, keys, (long) count * keyBytes, keyBytes, tensor, slots[count]);
        if (++count == RangeImage.BATCH) {
          insert(image, keys, slots, count);
          count = 0;
        }
      }

      insert(image, keys, slots, count);
      image.write(file);
      output.finish(file, range.id(), plan().fingerprint());
    }
  }

  private void copy(InternalRow row, ArrowBuf keys, long at, int keyBytes, CacheTensor tensor, long slot) {
    if (isBinary) {
      byte[] key = row.getBinary(KEY);
      requireBytes(key.length, keyBytes, tensor, slot);
      keys.setBytes(at, key);
    } else {
      ArrayData values = row.getArray(KEY);
      for (int i = 0; i < values.numElements(); i++) {
        if (values.isNullAt(i)) {
          throw new BadSourceException("Invalid key in " + tensor.layer() + ": that of slot " + slot
              + " has a null at " + i + ", in table " + plan().input() + ", which has changed since it was planned");
        }
      }

      float[] key = values.toFloatArray();
      requireBytes(key.length * Float.BYTES, keyBytes, tensor, slot);
      for (int i = 0; i < key.length; i++) {
        keys.setFloat(at + (long) i * Float.BYTES, key[i]);
      }
    }
  }

  private static void requireBytes(int bytes, int expected, CacheTensor tensor, long slot) {
    if (bytes != expected) {
      throw new BadSourceException("Invalid key in " + tensor.layer() + ": that of slot " + slot + " has " + bytes
          + " bytes, others have " + expected);
    }
  }

  private static void insert(RangeImage image, ArrowBuf keys, long[] slots, int count) {
    if (count > 0) {
      image.insert(keys.memoryAddress(), 0, count, place -> "the key of slot " + slots[(int) place]);
    }
  }
}
