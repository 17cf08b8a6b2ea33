package org.sparkfp4.checkpoint;

import static org.sparkfp4.checkpoint.ModelFamily.WEIGHT;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.sparkfp4.safetensors.DType;

/**
 * Finds the role of each tensor of a checkpoint and holds the blocks against config.json, so that a wrong family, a
 * half checkpoint or an unknown layout is an error before any work.
 */
public final class TensorClassifier {
  private static final Set<DType> READABLE = Set.of(DType.BF16, DType.F16, DType.F32);

  private final ModelFamily family;
  private final ModelConfig config;
  private final boolean batch;
  private final int layers;
  private final long mtpLayers;

  /**
   * @param batch whether experts that are stacked in one tensor stay so in families whose runtimes want that; else every
   *     expert's matrix is taken for a tensor of its own
   */
  public TensorClassifier(ModelFamily family, ModelConfig config, boolean batch) {
    this.family = family;
    this.config = config;
    this.batch = batch;
    this.layers = config.requireCount("num_hidden_layers");
    this.mtpLayers = family.mtpKey().map(key -> config.number(key).orElse(0)).orElse(0L);
  }

  /**
   * The tensors by their roles.
   *
   * @throws IllegalArgumentException if the source is stored in a way that is not read ({@link SourceTensors#of}), a
   *     layer, an expert or a part of one is
   *     missing, or a shape is not what the config says
   */
  public ModelTensors classify(List<LocatedTensor> tensors) {
    SourceTensors source = SourceTensors.of(tensors, config, family, batch);
    Map<String, Draft> drafts = new LinkedHashMap<>();
    List<RoledTensor> others = new ArrayList<>();
    for (LocatedTensor tensor : source.tensors()) {
      Role role = mtp(tensor) ? Role.MTP : addToBlock(tensor, source, drafts);
      if (role != null) {
        others.add(new RoledTensor(tensor, role));
      }
    }

    drafts.values().forEach(this::checkComplete);
    checkLayers(drafts.values(), source.tensors());
    List<BlockTensors> blocks = drafts.values().stream().map(Draft::finish).toList();
    return new ModelTensors(source, blocks, others, headsOf(source.tensors()));
  }

  /** Whether a tensor is of a layer behind the model's last one. */
  private boolean mtp(LocatedTensor tensor) {
    int layer = family.layer(tensor.name());
    if (layer < layers) {
      return false;
    }

    boolean known = family.mtpKey().isPresent() && (mtpLayers == 0 || layer < layers + mtpLayers);
    if (!known) {
      throw new IllegalArgumentException("Invalid config.json: num_hidden_layers is " + layers
          + family.mtpKey().map(key -> " and " + key + " is " + mtpLayers).orElse("") + ", but " + tensor.name()
          + " (" + tensor.file() + ") is of layer " + layer);
    }

    return true;
  }

  /** Puts the weight of a block's layer into its block, or gives the role of any other tensor. */
  private Role addToBlock(LocatedTensor tensor, SourceTensors source, Map<String, Draft> drafts) {
    String name = tensor.name();
    int dot = name.lastIndexOf('.');
    ModelFamily.Known known = family.known(name.substring(0, Math.max(0, dot)));
    if (known == null || known.block() == null) {
      return family.role(name);
    }

    if (!SourceTensors.isWeight(name)) {
      return known.role();
    }

    check(tensor, source.stored(tensor) != null, known);
    String path = name.substring(0, dot - known.linear().length() - 1);
    Draft draft = drafts.computeIfAbsent(
        known.role() + " " + path, key -> new Draft(known.block(), path, family.layer(name)));
    draft.weights.put(known.linear(), tensor);
    return null;
  }

  private void check(LocatedTensor tensor, boolean stored, ModelFamily.Known known) {
    if (!stored && !READABLE.contains(tensor.dtype())) {
      throw new IllegalArgumentException("Cannot quantize " + tensor.name() + " (" + tensor.file() + "): its dtype is "
          + tensor.dtype() + "; weights are read in BF16, F16, F32, FP8 (E4M3), INT4 and MXFP4: give such a source");
    }

    if (known.block().isStacked()) {
      return;
    }

    if (tensor.shape().size() != 2) {
      throw new IllegalArgumentException("Invalid tensor " + tensor.name() + " (" + tensor.file() + "): its shape "
          + tensor.shape() + " is not that of a matrix, which family " + family.name() + " has there");
    }

    List<String> keys = known.block().linears().get(known.linear());
    for (int i = 0; i < keys.size(); i++) {
      long expected = config.require(keys.get(i));
      if (tensor.shape().get(i) != expected) {
        throw new IllegalArgumentException("Invalid tensor " + tensor.name() + " (" + tensor.file() + "): its shape is "
            + tensor.shape() + ", but " + keys.get(i).replace("|", " or ") + " of config.json makes dimension " + i + " "
            + expected);
      }
    }
  }

  private void checkComplete(Draft draft) {
    for (String linear : draft.block.linears().keySet()) {
      if (!draft.weights.containsKey(linear) && !draft.block.optional().contains(linear)) {
        LocatedTensor present = draft.weights.values().iterator().next();
        throw new IllegalArgumentException("Invalid checkpoint: " + draft.path + "." + linear + WEIGHT
            + " is missing, though " + present.name() + " is there (" + present.file() + ")");
      }
    }
  }

  /** Every layer has an MLP or all of its experts; in hybrid models, any tensor. */
  private void checkLayers(Iterable<Draft> drafts, List<LocatedTensor> tensors) {
    // sets of what is there, however large the numbers are that names and config.json have
    Set<Integer> fed = new HashSet<>();
    Map<Integer, TreeSet<Integer>> experts = new TreeMap<>();
    Map<Integer, String> paths = new TreeMap<>();
    for (Draft draft : drafts) {
      if (draft.block.role() == Role.DENSE_MLP || draft.block.role() == Role.ROUTED_EXPERT) {
        fed.add(draft.layer);
      }

      if (draft.block.role() == Role.ROUTED_EXPERT && !draft.block.isStacked()) {
        int dot = draft.path.lastIndexOf('.');
        int expert = Integer.parseInt(draft.path.substring(dot + 1));
        experts.computeIfAbsent(draft.layer, layer -> new TreeSet<>()).add(expert);
        paths.put(draft.layer, draft.path.substring(0, dot));
      }
    }

    TreeSet<Integer> stored = new TreeSet<>();
    tensors.stream().mapToInt(tensor -> family.layer(tensor.name())).filter(layer -> layer >= 0).forEach(stored::add);
    long unfed = firstUnfed(family.everyLayerFed() ? fed : stored, stored);
    if (unfed < layers) {
      throw new IllegalArgumentException("Invalid checkpoint: num_hidden_layers of config.json is " + layers
          + ", but layer " + unfed + " has " + (family.everyLayerFed() ? "neither an MLP nor experts" : "no tensor")
          + " under the names of family " + family.name());
    }

    experts.forEach((layer, present) -> checkExperts(paths.get(layer), present));
  }

  /** Leading layers without experts may be left out of a checkpoint, whole: its experts are complete nevertheless. */
  private long firstUnfed(Set<Integer> fed, TreeSet<Integer> stored) {
    long leading = Math.max(0, Math.min(layers, config.number("first_k_dense_replace").orElse(0)));
    for (int layer : stored) {
      if (layer < leading && !fed.contains(layer)) {
        return layer;
      }
    }

    return firstMissing(fed, (int) leading);
  }

  private static int firstMissing(Set<Integer> present, int from) {
    int missing = from;
    while (present.contains(missing)) {
      missing++;
    }

    return missing;
  }

  private void checkExperts(String path, TreeSet<Integer> present) {
    int count = config.requireCount(family.expertsKey());
    int missing = firstMissing(present, 0);
    if (missing < count) {
      throw new IllegalArgumentException("Invalid checkpoint: " + path + "." + missing + " is missing, though "
          + family.expertsKey() + " of config.json is " + count);
    }

    if (present.last() >= count) {
      throw new IllegalArgumentException("Invalid checkpoint: it has " + path + "." + present.last()
          + ", though " + family.expertsKey() + " of config.json is " + count);
    }
  }

  /** The output head under the prefix that the checkpoint's layers have; the plain one where that cannot be told. */
  private List<String> headsOf(List<LocatedTensor> tensors) {
    List<String> named = family.heads().stream()
        .filter(head -> tensors.stream().anyMatch(tensor -> SourceTensors.module(tensor.name()).equals(head)))
        .toList();
    return named.isEmpty() ? family.heads() : named;
  }

  /** A block while its weights are being found. */
  private static final class Draft {
    private final Block block;
    private final String path;
    private final int layer;
    private final Map<String, LocatedTensor> weights = new LinkedHashMap<>();

    Draft(Block block, String path, int layer) {
      this.block = block;
      this.path = path;
      this.layer = layer;
    }

    BlockTensors finish() {
      return new BlockTensors(block.role(), path, layer, block.groups(), weights);
    }
  }
}
