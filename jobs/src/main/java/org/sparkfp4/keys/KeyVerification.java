package org.sparkfp4.keys;

import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Mxfp4Codec;
import org.sparkfp4.formats.ScaleRule;
import org.sparkfp4.safetensors.FileRanges;
import org.sparkfp4.safetensors.SlabFile;

/** Holds a cache against the keys that it was made from: bytes by the reference, and what an indexer makes of them. */
public final class KeyVerification {
  private final SparkSession spark;
  private final List<String> inputs;
  private final String cache;
  private final Settings settings;

  /**
   * What is compared.
   *
   * @param maxKeys of a layer, the first that have a slot
   * @param queries drawn at random, standard normal, with the magnitudes of such numbers for the heads' weights
   * @param heads of a query
   * @param topk how many tokens the largest logits choose
   */
  public record Settings(int maxKeys, int queries, int heads, int topk) implements Serializable {}

  /** @param inputs the safetensors files, or folders of them, that the cache was made from */
  public KeyVerification(SparkSession spark, List<String> inputs, String cache, Settings settings) {
    this.spark = spark;
    this.inputs = inputs;
    this.cache = cache;
    this.settings = settings;
  }

  /**
   * Compares all layers, one a task.
   *
   * @throws InvalidKeysException if the input has not the cache's layers
   */
  public List<LayerVerification> run() throws IOException {
    Configuration conf = spark.sessionState().newHadoopConf();
    KeyInputs files = KeyInputs.open(conf, inputs);
    List<Comparison> comparisons = new ArrayList<>();
    for (CachedLayer layer : CachedKeys.layers(conf, cache)) {
      KeyTensor keys = files.find(layer.name() + KeyPlanner.KEYS);
      if (keys == null) {
        throw new InvalidKeysException("Invalid input: " + String.join(", ", inputs) + " has no " + layer.name()
            + KeyPlanner.KEYS + ", which " + cache + " has");
      }

      keys.requireMatrix(-1, layer.page().dim());
      CacheTensor tensor = new KeyPlanner(conf, files, options(layer)).keysOf(layer.name());
      comparisons.add(new Comparison(layer, tensor, options(layer), files.files(), settings,
          new SerializableConfiguration(conf)));
    }

    return JavaSparkContext.fromSparkContext(spark.sparkContext())
        .parallelize(comparisons, comparisons.size())
        .map(Comparison::run)
        .collect();
  }

  /** How the cache says it was made. */
  private static KeyOptions options(CachedLayer layer) {
    var metadata = new TreeMap<>(layer.metadata());
    String eps = metadata.getOrDefault("ln_eps", "");
    return new KeyOptions(layer.page().tokens(), layer.pages(), eps.isEmpty() ? null : Float.valueOf(eps),
        Boolean.parseBoolean(metadata.get("ln_round_bf16")), Boolean.parseBoolean(metadata.get("hadamard")),
        ScaleRule.of(metadata.getOrDefault("scale_rule", ScaleRule.CEIL.text())), metadata.getOrDefault("model", ""));
  }

  /** The work of a task. */
  private record Comparison(CachedLayer layer, CacheTensor tensor, KeyOptions options, List<SlabFile> files,
      Settings settings, SerializableConfiguration conf) implements Serializable {
    LayerVerification run() throws IOException {
      SampledKeys sample = sample();
      int dim = layer.page().dim();
      int count = sample.count();
      Random random = new Random(layer.name().hashCode());
      double product = 0;
      double squares = 0;
      double overlap = 0;
      for (int i = 0; i < settings.queries(); i++) {
        float[][] query = new float[settings.heads()][dim];
        float[][] coded = new float[settings.heads()][];
        float[] weights = new float[settings.heads()];
        for (int head = 0; head < query.length; head++) {
          weights[head] = (float) Math.abs(random.nextGaussian());
          for (int d = 0; d < dim; d++) {
            query[head][d] = (float) random.nextGaussian();
          }

          coded[head] = roundTrip(query[head]);
        }

        float[] original = IndexerLogits.of(query, weights, sample.originals());
        float[] cached = IndexerLogits.of(coded, weights, sample.cached());
        for (int key = 0; key < count; key++) {
          product += (double) original[key] * cached[key];
          squares += (double) original[key] * original[key] + (double) cached[key] * cached[key];
        }

        overlap += IndexerLogits.overlap(original, cached, settings.topk());
      }

      return new LayerVerification(layer.name(), count, sample.differing(), sample.relativeError(),
          squares == 0 ? 0 : 1 - 2 * product / squares, overlap / settings.queries(),
          Math.min(settings.topk(), count), CacheChecksums.damage(layer, conf.value()));
    }

    private static float[] roundTrip(float[] values) {
      ByteBuffer data = ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
      data.asFloatBuffer().put(values);
      ByteBuffer packed = ByteBuffer.allocate(values.length / 2);
      ByteBuffer scales = ByteBuffer.allocate(values.length / Mxfp4Codec.BLOCK);
      Mxfp4Codec.encode(ScaleRule.CEIL, ElementType.F32, data, 1, values.length, packed, scales);
      float[] decoded = new float[values.length];
      Mxfp4Codec.decode(packed, scales, decoded);
      return decoded;
    }

    private SampledKeys sample() throws IOException {
      int most = (int) Math.min(settings.maxKeys(), tensor.tokens());
      SampledKeys sample = new SampledKeys(layer, tensor.keyForm(options), most);
      KeyTensor data = tensor.data();
      long rowBytes = (long) layer.page().dim() * tensor.type().bytes();
      byte[] row = new byte[(int) rowBytes];
      try (BufferAllocator allocator = ArrowUtils.rootAllocator().newChildAllocator("verify", 0, Long.MAX_VALUE);
          FileRanges ranges = new FileRanges(files, "pread", conf.value());
          CachedKeys cached = new CachedKeys(layer, conf.value())) {
        long[] slots = slots(ranges, allocator);
        for (int token = 0; token < slots.length && sample.count() < settings.maxKeys(); token++) {
          if (slots[token] >= 0) {
            try (ArrowBuf key = ranges.read(allocator, data.file(), data.offset() + token * rowBytes, rowBytes)) {
              key.getBytes(0, row);
            }

            sample.add(tensor.type().floats(row), cached, slots[token]);
          }
        }
      }

      return sample.trimmed();
    }

    /** Slots of as many tokens as may be needed. */
    private long[] slots(FileRanges ranges, BufferAllocator allocator) throws IOException {
      KeyTensor mapping = tensor.slots();
      int tokens = (int) Math.min(mapping == null ? tensor.tokens() : mapping.rows(), 8L * settings.maxKeys());
      long[] slots = new long[tokens];
      if (mapping == null) {
        Arrays.setAll(slots, token -> token);
      } else {
        SlotScan.scan(ranges, allocator, mapping, tokens, (token, slot) -> slots[(int) token] = slot);
      }

      return slots;
    }
  }
}
