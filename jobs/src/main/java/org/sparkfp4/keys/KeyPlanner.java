package org.sparkfp4.keys;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.util.ArrowUtils;
import org.sparkfp4.checkpoint.NaturalOrder;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Fp8DsMla;
import org.sparkfp4.formats.KeyPage;
import org.sparkfp4.formats.Mxfp4Codec;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.source.FileRanges;

/** Finds the layers of an input and what becomes of them; what names and shapes show to be wrong is refused here. */
final class KeyPlanner {
  static final String KEYS = ".index_k";
  private static final String LATENTS = ".kv_c";
  private static final String QUERIES = ".q_c";
  private static final String TOPK = ".topk_indices_buffer";

  private final Configuration conf;
  private final KeyInputs inputs;
  private final KeyOptions options;
  private final List<CacheTensor> tensors = new ArrayList<>();
  private final Map<String, List<Integer>> tensorsOfLayer = new TreeMap<>(new NaturalOrder());
  private final Map<String, Long> cached = new TreeMap<>();
  private final Set<String> outOfOrder = new TreeSet<>();

  KeyPlanner(Configuration conf, KeyInputs inputs, KeyOptions options) {
    this.conf = conf;
    this.inputs = inputs;
    this.options = options;
  }

  /** The plan of the layers whose keys are in the input's files. */
  KeyPlan plan(String input) throws IOException {
    for (KeyTensor tensor : inputs.tensors()) {
      if (tensor.name().endsWith(KEYS)) {
        tensorsOfLayer.put(layerOf(tensor.name(), KEYS), new ArrayList<>());
      } else if (tensor.name().endsWith(LATENTS) || tensor.name().endsWith(QUERIES) || tensor.name().endsWith(TOPK)) {
        String layer = tensor.name().substring(0, tensor.name().lastIndexOf('.'));
        if (inputs.find(layer + KEYS) == null) {
          throw tensor.invalid("there is no " + layer + KEYS + " beside it");
        }
      }
    }

    if (tensorsOfLayer.isEmpty()) {
      throw new InvalidKeysException("Invalid input: " + input + " has no tensor called LAYER" + KEYS);
    }

    for (String layer : tensorsOfLayer.keySet()) {
      addKeys(layer);
      addLatents(layer);
      addQueries(layer);
      addTopk(layer);
    }

    return KeyPlan.of(input, options, inputs.files(), tensors, layers(), "");
  }

  /** The plan of the layers of a table; the input's files have their norms. */
  KeyPlan plan(KeyTable table) throws IOException {
    for (KeyTable.Layer layer : table.layers()) {
      cached.put(layer.name(), layer.tokens());
      // rows have no order but that of their slots, which are all different
      if (layer.largestSlot() + 1 != layer.tokens()) {
        outOfOrder.add(layer.name());
      }

      keysOf(layer);
    }

    return KeyPlan.of(table.name(), options, inputs.files(), tensors, layers(), table.state());
  }

  /** The keys of one layer as they are to be cached. */
  CacheTensor keysOf(String layer) throws IOException {
    tensorsOfLayer.put(layer, new ArrayList<>());
    addKeys(layer);
    return tensors.get(tensors.size() - 1);
  }

  /** The same of a table's layer. */
  CacheTensor keysOf(KeyTable.Layer layer) throws IOException {
    tensorsOfLayer.put(layer.name(), new ArrayList<>());
    Norm norm = norm(layer.name(), layer.dim());
    requirePages(layer.name(), layer.largestSlot(), "a row of the table");
    addChecked(
        keys(layer.name(), layer.dim(), layer.type(), layer.tokens(), pages(layer.largestSlot()), null, null, norm));
    return tensors.get(tensors.size() - 1);
  }

  /** How many keys of a layer that was planned have a slot. */
  long cachedOf(String layer) {
    return cached.get(layer);
  }

  private static String layerOf(String name, String ending) {
    return name.substring(0, name.length() - ending.length());
  }

  private List<CacheLayer> layers() {
    List<CacheLayer> layers = new ArrayList<>();
    for (Map.Entry<String, List<Integer>> layer : tensorsOfLayer.entrySet()) {
      layers.add(new CacheLayer(layer.getKey(),
          String.format("keys-%05d-of-%05d.safetensors", layers.size() + 1, tensorsOfLayer.size()),
          List.copyOf(layer.getValue()), cached.get(layer.getKey()), !outOfOrder.contains(layer.getKey())));
    }

    return layers;
  }

  private void add(CacheTensor tensor) {
    tensorsOfLayer.get(tensor.layer()).add(tensors.size());
    tensors.add(tensor);
  }

  private void addKeys(String layer) throws IOException {
    KeyTensor keys = inputs.find(layer + KEYS);
    keys.requireMatrix(-1, -1);
    if (keys.cols() <= 0 || keys.cols() % Mxfp4Codec.BLOCK != 0) {
      throw keys.invalid("its keys have " + keys.cols() + " values, must be a multiple of " + Mxfp4Codec.BLOCK);
    }

    Norm norm = norm(layer, keys.cols());
    KeyTensor slots = slots(keys, layer + ".slot_mapping", layer + ".index_slot_mapping");
    SlotSummary summary = summary(keys, slots);
    cached.put(layer, summary.used);
    if (!summary.isInOrder) {
      outOfOrder.add(layer);
    }

    addChecked(keys(layer, keys.cols(), keys.elements(), keys.rows(), pages(summary.largest), keys, slots, norm));
  }

  /** Keys whose form is held to what it may be here, before any task asks for it. */
  private void addChecked(CacheTensor keys) {
    keys.keyForm(options);
    add(keys);
  }

  private CacheTensor keys(String layer, int dim, ElementType type, long tokens, long pages, KeyTensor data,
      KeyTensor slots, Norm norm) {
    KeyPage page = new KeyPage(options.pageTokens(), dim);
    return new CacheTensor(CacheTensor.Kind.KEYS, layer, layer + KEYS, DType.U8,
        List.of(pages, (long) page.tokens(), (long) page.tokenBytes()), page.bytes(), type, tokens, data, null, slots,
        norm.weight, norm.bias);
  }

  /** A layer's LayerNorm; both null: none. */
  private record Norm(float[] weight, float[] bias) {}

  private Norm norm(String layer, int dim) throws IOException {
    KeyTensor weight = inputs.find(layer + ".k_norm.weight", layer + ".k_norm_weight");
    KeyTensor bias = inputs.find(layer + ".k_norm.bias", layer + ".k_norm_bias");
    if (weight == null && bias == null) {
      return new Norm(null, null);
    }

    if (weight == null || bias == null) {
      KeyTensor there = weight == null ? bias : weight;
      throw there.invalid("layer " + layer + " has no k_norm." + (weight == null ? "weight" : "bias")
          + "; give both, or neither for keys that are normalised already");
    }

    return new Norm(weights(weight, dim), weights(bias, dim));
  }

  private float[] weights(KeyTensor tensor, long count) throws IOException {
    requireEps(tensor);
    if (!tensor.shape().equals(List.of(count))) {
      throw tensor.invalid("its shape is " + tensor.shape() + ", must be [" + count + "], one a value");
    }

    float[] values = inputs.floats(tensor, conf);
    for (int i = 0; i < values.length; i++) {
      if (!Float.isFinite(values[i])) {
        throw tensor.invalid("element " + i + " is " + values[i] + ", must be finite");
      }
    }

    return values;
  }

  private void requireEps(KeyTensor norm) {
    if (options.eps() == null) {
      throw norm.invalid("a norm needs its epsilon; give --eps, which the model's config.json or code names");
    }
  }

  private void addLatents(String layer) throws IOException {
    KeyTensor latents = inputs.find(layer + LATENTS);
    if (latents == null) {
      return;
    }

    latents.requireMatrix(inputs.find(layer + KEYS).rows(), Fp8DsMla.LATENT);
    float[] weight = rmsWeight(layer, "kv_norm_weight", latents);
    KeyTensor rope = inputs.find(layer + ".k_pe");
    KeyTensor slots = slots(latents, layer + ".mla_slot_mapping");
    if (rope != null) {
      rope.requireMatrix(latents.rows(), Fp8DsMla.ROPE);
      if (rope.dtype() != latents.dtype()) {
        throw rope.invalid("it is of " + rope.dtype() + ", must be of " + latents.dtype() + " as " + latents.name());
      }

      long pages = pages(summary(latents, slots).largest);
      add(new CacheTensor(CacheTensor.Kind.LATENTS, layer, layer + ".mla", DType.U8,
          List.of(pages, (long) options.pageTokens(), (long) Fp8DsMla.BYTES),
          (long) options.pageTokens() * Fp8DsMla.BYTES, latents.elements(), latents.rows(), latents, rope, slots,
          weight, null));
    }

    add(rows(layer, ".kv_c_normed", latents, weight));
  }

  private void addQueries(String layer) throws IOException {
    KeyTensor queries = inputs.find(layer + QUERIES);
    if (queries == null) {
      return;
    }

    queries.requireMatrix(inputs.find(layer + KEYS).rows(), -1);
    if (queries.cols() <= 0 || queries.cols() % Mxfp4Codec.BLOCK != 0) {
      throw queries.invalid("its rows have " + queries.cols() + " values, must be a multiple of " + Mxfp4Codec.BLOCK);
    }

    add(rows(layer, ".q_c_normed", queries, rmsWeight(layer, "q_norm_weight", queries)));
  }

  private void addTopk(String layer) {
    KeyTensor buffer = inputs.find(layer + TOPK);
    if (buffer == null) {
      return;
    }

    long tokens = inputs.find(layer + KEYS).rows();
    List<Long> shape = buffer.shape();
    if (buffer.dtype() != DType.I32 || shape.size() != 2 || shape.get(0) < tokens || shape.get(1) < 1) {
      throw buffer.invalid("it is " + buffer.dtype() + " " + shape + ", must be I32 [rows, topk] of at least " + tokens
          + " rows, one for each token of " + layer + KEYS);
    }

    add(new CacheTensor(CacheTensor.Kind.TOPK, layer, layer + TOPK, DType.I32, shape,
        shape.get(1) * Integer.BYTES, null, tokens, buffer, null, null, null, null));
  }

  private float[] rmsWeight(String layer, String name, KeyTensor rows) throws IOException {
    KeyTensor weight = inputs.find(layer + "." + name);
    if (weight == null) {
      throw rows.invalid("there is no " + layer + "." + name + " to normalise it");
    }

    return weights(weight, rows.cols());
  }

  private static CacheTensor rows(String layer, String ending, KeyTensor data, float[] weight) {
    return new CacheTensor(CacheTensor.Kind.ROWS, layer, layer + ending, data.dtype(), data.shape(),
        (long) data.cols() * data.elements().bytes(), data.elements(), data.rows(), data, null, null, weight, null);
  }

  private KeyTensor slots(KeyTensor data, String... names) {
    KeyTensor slots = inputs.find(names);
    if (slots != null && (slots.dtype() != DType.I64 || slots.shape().size() != 1 || slots.rows() > data.rows())) {
      throw slots.invalid("it is " + slots.dtype() + " " + slots.shape() + ", must be I64 of " + data.rows()
          + " slots at most, one for each token of " + data.name());
    }

    return slots;
  }

  /** What a slot map comes to. */
  private static final class SlotSummary {
    private long largest = -1;
    private long used;
    private boolean isInOrder = true;
  }

  private SlotSummary summary(KeyTensor data, KeyTensor slots) throws IOException {
    SlotSummary summary = new SlotSummary();
    if (slots == null) {
      summary.largest = data.rows() - 1;
      summary.used = data.rows();
      requirePages(data.name(), summary.largest, "token " + summary.largest);
      return summary;
    }

    try (BufferAllocator allocator = ArrowUtils.rootAllocator().newChildAllocator("slots", 0, Long.MAX_VALUE);
        FileRanges ranges = new FileRanges(inputs.files(), "pread", conf)) {
      SlotScan.scan(ranges, allocator, slots, slots.rows(), (token, slot) -> {
        if (slot > summary.largest) {
          requirePages(slots.name(), slot, "token " + token);
          summary.largest = slot;
        }

        summary.used += slot < 0 ? 0 : 1;
        summary.isInOrder &= slot == token;
      });
    }

    return summary;
  }

  private void requirePages(String name, long slot, String where) {
    if (options.pages() > 0 && slot >= options.pages() * options.pageTokens()) {
      throw new InvalidKeysException("Invalid slot in " + name + ": " + slot + " of " + where + ", must be below "
          + options.pages() * options.pageTokens() + ": --pages " + options.pages() + " of " + options.pageTokens()
          + " tokens");
    }

    // a page's number, and so a range's, is an int
    if (slot / options.pageTokens() >= Integer.MAX_VALUE) {
      throw new InvalidKeysException("Invalid slot in " + name + ": " + slot + " of " + where + ", must be below "
          + (long) Integer.MAX_VALUE * options.pageTokens());
    }
  }

  private long pages(long largestSlot) {
    return options.pages() > 0 ? options.pages() : (largestSlot + options.pageTokens()) / options.pageTokens();
  }
}
