package org.sparkfp4.keys;

import java.io.IOException;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.kernels.KeyKernels;
import org.sparkfp4.output.BadSourceException;
import org.sparkfp4.output.StagedFile;
import org.sparkfp4.output.TaskFiles;
import org.sparkfp4.output.TaskOutput;
import org.sparkfp4.output.WritingTask;
import org.sparkfp4.source.FileRanges;
import scala.collection.Iterator;

/** Writes a range whose rows are in files: pages are gathered by the slot map, rows are read as they follow. */
final class FileRangeTask extends WritingTask<KeyPlan, Integer> {
  /** Rows that are read although they go elsewhere, rather than reading twice. */
  private static final int MAX_GAP = 16;

  private final KernelChoice kernels;
  private final String read;

  /** @param read how local files are read: mmap or pread */
  FileRangeTask(Broadcast<KeyPlan> plan, Broadcast<SerializableConfiguration> conf, TaskOutput output,
      KernelChoice kernels, String read) {
    super(plan, conf, output);
    this.kernels = kernels;
    this.read = read;
  }

  @Override
  protected void write(TaskContext context, Iterator<Integer> ids, TaskFiles output) throws IOException {
    while (ids.hasNext()) {
      CacheRange range = plan().ranges().get(ids.next());
      CacheTensor tensor = plan().tensors().get(range.tensor());
      try (BufferAllocator allocator = ArrowUtils.rootAllocator().newChildAllocator("keys", 0, Long.MAX_VALUE);
          FileRanges files = new FileRanges(plan().files(), read, conf());
          RangeImage image = new RangeImage(plan(), range, KeyKernels.chosen(kernels), allocator);
          StagedFile file = output.beginPart(range.id(), range.file())) {
        switch (tensor.kind()) {
          case ROWS -> readRows(tensor, image, files, allocator);
          case TOPK -> fillRows(tensor, image, files, allocator);
          default -> gather(tensor, image, files, allocator);
        }

        files.requireUnchanged();
        image.write(file);
        output.finish(file, range.id(), plan().fingerprint());
      }
    }
  }

  private static void readRows(CacheTensor tensor, RangeImage image, FileRanges files, BufferAllocator allocator)
      throws IOException {
    for (int first = 0; first < image.capacity(); first += RangeImage.BATCH) {
      int count = Math.min(RangeImage.BATCH, image.capacity() - first);
      long token = image.firstSlot() + first;
      try (ArrowBuf rows = rows(files, allocator, tensor.data(), token, count)) {
        image.normalise(rows.memoryAddress(), first, count, place -> "token " + (token + place));
      }
    }
  }

  /** The rows of tokens are filled; those behind them are the source's. */
  private static void fillRows(CacheTensor tensor, RangeImage image, FileRanges files, BufferAllocator allocator)
      throws IOException {
    int filled = (int) Math.max(0, Math.min(image.capacity(), tensor.tokens() - image.firstSlot()));
    image.fill(filled);
    KeyTensor source = tensor.data();
    for (int first = filled; first < image.capacity(); first += RangeImage.BATCH) {
      int count = Math.min(RangeImage.BATCH, image.capacity() - first);
      long offset = source.offset() + (image.firstSlot() + first) * tensor.unitBytes();
      try (ArrowBuf rows = files.read(allocator, source.file(), offset, count * tensor.unitBytes())) {
        image.copy(rows, first, count);
      }
    }
  }

  private static ArrowBuf rows(FileRanges files, BufferAllocator allocator, KeyTensor tensor, long first, int count)
      throws IOException {
    long rowBytes = (long) tensor.cols() * tensor.elements().bytes();
    return files.read(allocator, tensor.file(), tensor.offset() + first * rowBytes, count * rowBytes);
  }

  private static void gather(CacheTensor tensor, RangeImage image, FileRanges files, BufferAllocator allocator)
      throws IOException {
    SlottedTokens tokens = SlottedTokens.of(tensor, image, files, allocator);
    int next = 0;
    while (next < tokens.count()) {
      long first = tokens.token(next);
      int size = 0;
      while (next < tokens.count() && size < RangeImage.BATCH
          && tokens.token(next) - first < RangeImage.BATCH && tokens.token(next) - first - size <= MAX_GAP) {
        while (first + size < tokens.token(next)) {
          image.slot(size++, -1);
        }

        image.slot(size++, tokens.slot(next++));
      }

      insert(tensor, image, files, allocator, first, size);
    }
  }

  private static void insert(CacheTensor tensor, RangeImage image, FileRanges files, BufferAllocator allocator,
      long first, int count) throws IOException {
    try (ArrowBuf data = rows(files, allocator, tensor.data(), first, count);
        ArrowBuf rope = tensor.rope() == null ? allocator.getEmpty()
            : rows(files, allocator, tensor.rope(), first, count)) {
      image.insert(data.memoryAddress(), rope.memoryAddress(), count, place -> "token " + (first + place));
    }
  }

  /** The error of a slot that two tokens have; where: file or table. */
  static BadSourceException duplicate(String name, long slot, String token, String other, String where) {
    return new BadSourceException("Invalid slot in " + name + ": " + slot + " of " + token + ", " + other
        + " has it already, in " + where + "; a slot holds one token. Give one of them another slot, or a negative one "
        + "to leave it out, and start again with --overwrite");
  }
}
