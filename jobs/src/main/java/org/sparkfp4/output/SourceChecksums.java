package org.sparkfp4.output;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.zip.CRC32C;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.UnchangedFile;

/**
 * The CRC-32C of every source file, put together from those of the pieces that tasks read for their shards. What no
 * shard needed, such as headers, and what was not read in the order of the file is read by a job of its own.
 */
public final class SourceChecksums {
  /** Bytes that one task of the job reads at most. */
  private static final long PIECE = 1L << 28;

  private final SparkSession spark;
  private final String input;
  private final List<SourceFile> sources;

  /**
   * @param input the source's folder
   * @param sources its files, as planned
   */
  public SourceChecksums(SparkSession spark, String input, List<SourceFile> sources) {
    this.spark = spark;
    this.input = input;
    this.sources = List.copyOf(sources);
  }

  /**
   * What was found.
   *
   * @param checksums by file, as eight hexadecimal digits
   * @param bytesRead bytes that had to be read for them alone
   */
  public record Found(Map<String, String> checksums, long bytesRead) {}

  /** Puts the checksums together from the records of all shards. */
  public Found find(List<ShardRecord> records) {
    Map<String, List<SourcePiece>> known = SourcePieces
        .joined(records.stream().flatMap(record -> record.source().stream()).toList())
        .stream()
        .collect(Collectors.groupingBy(SourcePiece::file));
    List<SourcePiece> pieces = new ArrayList<>();
    List<Gap> gaps = new ArrayList<>();
    for (SourceFile file : sources) {
      split(file, known.getOrDefault(file.name(), List.of()), pieces, gaps);
    }

    pieces.addAll(read(gaps));
    Map<String, String> checksums = new TreeMap<>();
    SourcePieces.joined(pieces)
        .forEach(whole -> checksums.put(whole.file(), String.format("%08x", whole.crc32c())));
    return new Found(checksums, gaps.stream().mapToLong(Gap::length).sum());
  }

  /** Parts a file into pieces that are known and gaps between them. */
  private static void split(SourceFile file, List<SourcePiece> known, List<SourcePiece> pieces, List<Gap> gaps) {
    long end = 0;
    for (SourcePiece piece : known) {
      // one that begins inside another, as when two weights share a scale, is left out: its rest is a gap
      if (piece.offset() >= end && piece.end() <= file.length()) {
        addGaps(file, end, piece.offset(), gaps);
        pieces.add(piece);
        end = piece.end();
      }
    }

    addGaps(file, end, file.length(), gaps);
  }

  private static void addGaps(SourceFile file, long begin, long end, List<Gap> gaps) {
    for (long from = begin; from < end; from += PIECE) {
      gaps.add(new Gap(file, from, Math.min(PIECE, end - from)));
    }
  }

  private List<SourcePiece> read(List<Gap> gaps) {
    if (gaps.isEmpty()) {
      return List.of();
    }

    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    int tasks = Math.min(gaps.size(), 4 * context.defaultParallelism());
    Configuration conf = spark.sessionState().newHadoopConf();
    return context.parallelize(gaps, tasks)
        .map(new GapReader(input, new SerializableConfiguration(conf)))
        .collect();
  }

  /** Bytes of a file that no task summed. */
  private record Gap(SourceFile file, long offset, long length) implements Serializable {}

  private record GapReader(String input, SerializableConfiguration conf) implements Function<Gap, SourcePiece> {
    @Override
    public SourcePiece call(Gap gap) throws IOException {
      Path path = ChildPath.of(new Path(input), gap.file().name());
      FileSystem fs = RawFileSystem.of(path, conf.value());
      UnchangedFile.require(fs, path, gap.file().length(), gap.file().modified());
      CRC32C crc = new CRC32C();
      byte[] bytes = new byte[1 << 20];
      try (FSDataInputStream in = fs.open(path)) {
        for (long done = 0; done < gap.length(); ) {
          int count = (int) Math.min(bytes.length, gap.length() - done);
          in.readFully(gap.offset() + done, bytes, 0, count);
          crc.update(bytes, 0, count);
          done += count;
        }
      }

      return new SourcePiece(gap.file().name(), gap.offset(), gap.length(), (int) crc.getValue());
    }
  }
}
