package org.sparkfp4.jobs.synthetic;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.CheckpointIndex;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.safetensors.DType;

/** A checkpoint with random weights and the names, the shapes and the files of a published one. */
public final class SyntheticCheckpoint {
  private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  private final SyntheticFamily family;
  private final ModelShape shape;
  private final DType dtype;
  private final long seed;
  private final List<SyntheticTensor> tensors;
  private final List<SyntheticShard> shards;

  /**
   * Lays the checkpoint out; nothing is written yet.
   *
   * @param dtype element type of the weights: BF16, F16 or F32
   * @param seed the same seed gives the same bytes, whatever runs the job
   * @param shardLimit largest data section of a shard, in bytes
   */
  public SyntheticCheckpoint(SyntheticFamily family, ModelShape shape, DType dtype, long seed, long shardLimit) {
    this.family = family;
    this.shape = shape;
    this.dtype = dtype;
    this.seed = seed;
    this.tensors = SyntheticTensors.of(family, shape, dtype);
    this.shards = SyntheticShard.pack(tensors, shardLimit);
  }

  /** Bytes of all tensors. */
  public long dataBytes() {
    return shards.stream().mapToLong(SyntheticShard::dataBytes).sum();
  }

  public int tensorCount() {
    return tensors.size();
  }

  public int shardCount() {
    return shards.size();
  }

  /**
   * Writes the checkpoint, one task a shard, its index last.
   *
   * @throws IOException when the folder exists and is not empty
   */
  public void write(SparkSession spark, Path folder) throws IOException {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    Configuration configuration = context.hadoopConfiguration();
    FileSystem files = RawFileSystem.of(folder, configuration);
    Path target = files.makeQualified(folder);
    requireEmpty(files, target);
    files.mkdirs(target);

    context.parallelize(shards, shards.size())
        .foreach(new ShardGenerator(target.toString(), seed, new SerializableConfiguration(configuration)));
    writeJson(files, new Path(target, Checkpoint.CONFIG), SyntheticConfig.of(family, shape, dtype));
    writeJson(files, new Path(target, "generation_config.json"),
        JsonNodeFactory.instance.objectNode().put("do_sample", true).put("temperature", 0.7));
    writeJson(files, new Path(target, "tokenizer.json"), tokenizer());
    writeJson(files, new Path(target, CheckpointIndex.NAME), index());
  }

  private static void requireEmpty(FileSystem files, Path folder) throws IOException {
    try {
      if (files.listStatus(folder).length > 0) {
        throw new IOException("Cannot write to " + folder + ": it is not empty. Remove it or name another --output.");
      }
    } catch (FileNotFoundException e) {
      // as it should be
    }
  }

  private ObjectNode index() {
    Map<String, String> files = new LinkedHashMap<>();
    shards.forEach(shard -> shard.tensors().forEach(tensor -> files.put(tensor.name(), shard.file())));
    return new CheckpointIndex(files).json(dataBytes());
  }

  /** A tokenizer of single bytes: small, and a file that a copy must carry over. */
  private static ObjectNode tokenizer() {
    ObjectNode tokenizer = JsonNodeFactory.instance.objectNode().put("version", "1.0");
    ObjectNode words = tokenizer.putObject("model").put("type", "WordLevel").put("unk_token", "0").putObject("vocab");
    for (int i = 0; i < 256; i++) {
      words.put(Integer.toString(i), i);
    }

    return tokenizer;
  }

  private static void writeJson(FileSystem files, Path file, ObjectNode content) throws IOException {
    try (OutputStream out = files.create(file, true)) {
      out.write(JSON.writeValueAsBytes(content));
    }
  }
}
