package org.sparkfp4.output;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;

/**
 * The files of one task: of the output, or parts that wait in the run's own folder until a file is put together of them.
 */
public final class TaskFiles {
  private static final int PIECE = 1 << 20;

  private final Storage storage;
  private final StagingFolder staging;
  private final Path folder;
  private final String run;
  private final long task;

  /** @param task the task's attempt, of which no other has the same */
  public TaskFiles(TaskOutput output, Configuration conf, long task) throws IOException {
    this.folder = new Path(output.folder());
    this.storage = Storage.of(folder, conf, output.commit());
    this.staging = new StagingFolder(storage.fs(), folder);
    this.run = output.run();
    this.task = task;
  }

  /**
   * Begins a file of the output.
   *
   * @param number of its record
   */
  public StagedFile begin(int number, String name) throws IOException {
    return begin(number, new Path(folder, name));
  }

  /** Begins a part, likewise. */
  public StagedFile beginPart(int number, String name) throws IOException {
    return begin(number, new Path(staging.parts(), name));
  }

  private StagedFile begin(int number, Path path) throws IOException {
    return new StagedFile(storage, staging.attempt(run, number, task), path);
  }

  /** Takes bytes as they are read. */
  @FunctionalInterface
  public interface Pieces {
    /** {@code piece} is valid until this returns. */
    void take(ByteBuffer piece) throws IOException;
  }

  /** Reads a part that another task finished, front to back. */
  public void readPart(String name, long length, Pieces pieces) throws IOException {
    byte[] piece = new byte[PIECE];
    try (FSDataInputStream in = storage.fs().open(new Path(staging.parts(), name))) {
      for (long left = length; left > 0; ) {
        int count = (int) Math.min(PIECE, left);
        in.readFully(piece, 0, count);
        pieces.take(ByteBuffer.wrap(piece, 0, count));
        left -= count;
      }
    }
  }

  /** What such a part has from a byte on. */
  public byte[] restOfPart(String name, long from) throws IOException {
    try (FSDataInputStream in = storage.fs().open(new Path(staging.parts(), name))) {
      in.seek(from);
      return in.readAllBytes();
    }
  }

  /**
   * Gives a file its name and leaves its record, with which a later run takes it for finished.
   *
   * @param number of the record
   * @param fingerprint the plan's
   */
  public ShardRecord finish(StagedFile file, int number, String fingerprint) throws IOException {
    return finish(file, number, fingerprint, List.of(), List.of(), null);
  }

  /**
   * The same with more to record.
   *
   * @param layers how exact each quantized layer is
   * @param source what was read for the file
   * @param rounded what a conversion could not keep; null of other runs
   */
  public ShardRecord finish(StagedFile file, int number, String fingerprint, List<LayerError> layers,
      List<SourcePiece> source, RoundedScales rounded) throws IOException {
    String sha256 = file.finish();
    ShardRecord record =
        new ShardRecord(number, file.name(), file.length(), sha256, fingerprint, layers, source, rounded);
    staging.write(record);
    return record;
  }
}
