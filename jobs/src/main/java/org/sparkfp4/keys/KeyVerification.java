package org.sparkfp4.keys;

import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.checkpoint.NaturalOrder;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Mxfp4Codec;
import org.sparkfp4.formats.ScaleRule;
import org.sparkfp4.progress.CountedTasks;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.progress.RunProgress;
import org.sparkfp4.progress.Work;
import org.sparkfp4.source.FileRanges;
import org.sparkfp4.source.SlabFile;

/** Holds a cache against the keys that it was made from: bytes by the reference, and what an indexer makes of them. */
public final class KeyVerification {
  private final SparkSession spark;
  private final List<String> inputs;
  private final String table;
  private final String keyType;
  private final String cache;
  private final Settings settings;

  /**
   * What is compared.
   *
   * @param maxKeys of a layer, the first that have a slot; of a table, those of the first slots
   * @param queries drawn at random, standard normal, with the magnitudes of such numbers for the heads' weights
   * @param heads of a query
   * @param topk how many tokens the largest logits choose, where there are twice as many
   */
  public record Settings(int maxKeys, int queries, int heads, int topk) implements Serializable {}

  /**
   * Prepares a comparison.
   *
   * @param inputs the safetensors files, or folders of them, that the cache was made from; beside a table, of its norms
   * @param table FORMAT:PATH, or null
   * @param keyType of a table's binary keys, or null
   */
  public KeyVerification(SparkSession spark, List<String> inputs, String table, String keyType, String cache,
      Settings settings) {
    this.spark = spark;
    this.inputs = inputs;
    this.table = table;
    this.keyType = keyType;
    this.cache = cache;
    this.settings = settings;
  }

  /**
   * What was found.
   *
   * @param layers of the cache
   * @param absent layers of the source that the cache has not; none where it is one file of a cache
   */
  public record Findings(List<LayerVerification> layers, List<String> absent) {}

  /**
   * Compares all layers, one a task.
   *
   * @param view of the progress; closed when all is read
   * @throws InvalidKeysException if the input has not the cache's layers, or the cache's files say of themselves what
   *     cannot be
   */
  public Findings run(ProgressView view) throws IOException {
    Configuration conf = spark.sessionState().newHadoopConf();
    KeyInputs files = KeyInputs.open(conf, inputs);
    List<CachedLayer> layers = CachedKeys.layers(conf, cache);
    return table == null ? ofFiles(conf, files, layers, view) : ofTable(conf, files, layers, view);
  }

  private Findings ofFiles(Configuration conf, KeyInputs files, List<CachedLayer> layers, ProgressView view)
      throws IOException {
    List<Comparison> comparisons = new ArrayList<>();
    for (CachedLayer layer : layers) {
      KeyTensor keys = files.find(layer.name() + KeyPlanner.KEYS);
      if (keys == null) {
        throw missing(layer, String.join(", ", inputs));
      }

      keys.requireMatrix(-1, layer.page().dim());
      KeyPlanner planner = new KeyPlanner(conf, files, layer.options());
      CacheTensor tensor = planner.keysOf(layer.name());
      comparisons.add(comparison(conf, files, layer, tensor, planner.cachedOf(layer.name())));
    }

    List<String> there = new ArrayList<>();
    for (KeyTensor tensor : files.tensors()) {
      if (tensor.name().endsWith(KeyPlanner.KEYS)) {
        there.add(tensor.name().substring(0, tensor.name().length() - KeyPlanner.KEYS.length()));
      }
    }

    return new Findings(new CountedTasks(spark, view, Work.LAYERS_COMPARED)
        .run(comparisons, Comparison::run, Comparison::bytes), absent(conf, there, layers));
  }

  /** Layers are read one after another, each by Spark's own plan. */
  private Findings ofTable(Configuration conf, KeyInputs files, List<CachedLayer> layers, ProgressView view)
      throws IOException {
    KeyTable rows = KeyTable.open(spark, table, keyType);
    List<Comparison> comparisons = new ArrayList<>();
    for (CachedLayer layer : layers) {
      KeyTable.Layer found = rows.layers().stream()
          .filter(there -> there.name().equals(layer.name()))
          .findFirst()
          .orElseThrow(() -> missing(layer, "table " + table));
      if (found.dim() != layer.page().dim()) {
        throw new InvalidKeysException("Invalid table " + table + ": keys of layer " + layer.name() + " have "
            + found.dim() + " values, " + cache + " has " + layer.page().dim());
      }

      CacheTensor tensor = new KeyPlanner(conf, files, layer.options()).keysOf(found);
      comparisons.add(comparison(conf, files, layer, tensor, found.tokens()));
    }

    List<LayerVerification> verifications = new ArrayList<>();
    try (RunProgress progress = new RunProgress(view, Work.LAYERS_COMPARED, comparisons.size(),
        comparisons.stream().mapToLong(Comparison::bytes).sum())) {
      progress.show();
      for (Comparison comparison : comparisons) {
        verifications.addAll(rows.first(comparison.layer().name(), settings.maxKeys())
            .mapPartitions(comparison::ofRows)
            .collect());
        progress.finished(comparison.bytes());
      }
    }

    return new Findings(
        verifications, absent(conf, rows.layers().stream().map(KeyTable.Layer::name).toList(), layers));
  }

  /** The source's layers that a cache has not; one file of a cache need not have them all. */
  private List<String> absent(Configuration conf, List<String> source, List<CachedLayer> layers) throws IOException {
    Path path = new Path(cache);
    if (RawFileSystem.of(path, conf).getFileStatus(path).isFile()) {
      return List.of();
    }

    Set<String> absent = new TreeSet<>(new NaturalOrder());
    absent.addAll(source);
    layers.forEach(layer -> absent.remove(layer.name()));
    return List.copyOf(absent);
  }

  private InvalidKeysException missing(CachedLayer layer, String where) {
    return new InvalidKeysException(
        "Invalid input: " + where + " has no " + layer.name() + KeyPlanner.KEYS + ", which " + cache + " has");
  }

  private Comparison comparison(Configuration conf, KeyInputs files, CachedLayer layer, CacheTensor tensor,
      long sourceKeys) {
    // a count that cannot be ends it here, before any task
    String count = layer.tokens() == sourceKeys
        ? "" : layer.file() + ": it has " + layer.tokens() + " keys, the source " + sourceKeys;
    return new Comparison(
        layer, tensor, layer.options(), count, files.files(), settings, new SerializableConfiguration(conf));
  }

  /** The work of a task. */
  private record Comparison(CachedLayer layer, CacheTensor tensor, KeyOptions options, String count,
      List<SlabFile> files, Settings settings, SerializableConfiguration conf) implements Serializable {
    /** Of the cache, all of which is read. */
    long bytes() {
      return layer.pages() * layer.page().bytes();
    }

    LayerVerification run() throws IOException {
      return compared(sample());
    }

    Iterator<LayerVerification> ofRows(Iterator<KeyTable.SlottedKey> rows) throws IOException {
      SampledKeys sample = emptySample();
      try (CachedKeys cached = new CachedKeys(layer, conf.value())) {
        while (rows.hasNext()) {
          KeyTable.SlottedKey row = rows.next();
          sample.add(row.values(), cached, row.slot());
        }
      }

      return List.of(compared(sample.trimmed())).iterator();
    }

    private SampledKeys emptySample() {
      return new SampledKeys(
          layer, tensor.keyForm(options), (int) Math.min(settings.maxKeys(), tensor.tokens()));
    }

    private LayerVerification compared(SampledKeys sample) throws IOException {
      int dim = layer.page().dim();
      int count = sample.count();
      int topk = IndexerLogits.topOf(count, settings.topk());
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

        overlap += topk == 0 ? 0 : IndexerLogits.overlap(original, cached, topk);
      }

      return new LayerVerification(layer.name(), count, sample.differing(), sample.relativeError(),
          squares == 0 ? 0 : 1 - 2 * product / squares, overlap / settings.queries(), topk, damage());
    }

    private String damage() throws IOException {
      String bytes = CacheChecksums.damage(layer, conf.value());
      return count.isEmpty() || bytes.isEmpty() ? count + bytes : count + "; " + bytes;
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
      SampledKeys sample = emptySample();
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
