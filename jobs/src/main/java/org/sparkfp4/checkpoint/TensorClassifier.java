package org.sparkfp4.checkpoint;

import static org.sparkfp4.checkpoint.ModelFamily.WEIGHT;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.sparkfp4.safetensors.DType;

/**
 * Finds the role of each tensor of a checkpoint and holds the blocks against config.json, so that a wrong family, a
 * half checkpoint or an unknown layout is an error before any work.
 */
public final class TensorClassifier {
  private static final Set<DType> READABLE = Set.of(DType.BF16, DType.F16, DType.F32);
  private static final Set<String> QUANTIZED_PARTS =
      Set.of("weight_packed", "weight_scale", "weight_scale_inv", "weight_scale_2", "scale", "qweight", "weight_shape");

  private final ModelFamily family;
  private final ModelConfig config;
  private final int layers;
  private final long mtpLayers;

  public TensorClassifier(ModelFamily family, ModelConfig config) {
    this.family = family;
    this.config = config;
    this.layers = config.requireCount("num_hidden_layers");
    this.mtpLayers = family.mtpKey().map(key -> config.number(key).orElse(0)).orElse(0L);
  }

  /**
   * The tensors by their roles.
   *
   * @throws IllegalArgumentException if the source is quantized already, a layer, an expert or a part of one is
   *     missing, or a shape is not what the config says
   */
  public ModelTensors classify(List<LocatedTensor> tensors) {
    refuseQuantizedConfig();
    Map<String, Draft> drafts = new LinkedHashMap<>();
    List<RoledTensor> others = new ArrayList<>();
    for (LocatedTensor tensor : tensors) {
      Role role = mtp(tensor) ? Role.MTP : addToBlock(tensor, drafts);
      if (role != null) {
        others.add(new RoledTensor(tensor, role));
      }
    }

    drafts.values().forEach(this::checkComplete);
    checkLayers(drafts.values());
    List<BlockTensors> blocks = drafts.values().stream().map(Draft::finish).toList();
    return new ModelTensors(blocks, others, headsOf(tensors));
  }

  private void refuseQuantizedConfig() {
    JsonNode quantization = config.quantization();
    if (quantization.isObject()) {
      StringBuilder format = new StringBuilder();
      for (String key : List.of("quant_method", "quant_algo", "format", "fmt", "bits", "weight_block_size")) {
        if (quantization.has(key)) {
          format.append(format.isEmpty() ? "" : ", ").append(key).append(' ').append(quantization.get(key));
        }
      }

      throw new IllegalArgumentException("Cannot quantize a checkpoint that is quantized already: quantization_config"
          + " of its config.json says " + format + "; only BF16, F16 and F32 sources are read so far");
    }
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
  private Role addToBlock(LocatedTensor tensor, Map<String, Draft> drafts) {
    String name = tensor.name();
    int dot = name.lastIndexOf('.');
    ModelFamily.Known known = family.known(name.substring(0, Math.max(0, dot)));
    if (known == null || known.block() == null) {
      return family.role(name);
    }

    if (!name.endsWith(WEIGHT)) {
      if (QUANTIZED_PARTS.contains(name.substring(dot + 1))) {
        throw new IllegalArgumentException("Cannot quantize a checkpoint that is quantized already: it has the tensor "
            + name + " (" + tensor.dtype() + ", " + tensor.file()
            + "); only BF16, F16 and F32 sources are read so far");
      }

      return known.role();
    }

    check(tensor, known);
    String path = name.substring(0, dot - known.linear().length() - 1);
    Draft draft = drafts.computeIfAbsent(
        known.role() + " " + path, key -> new Draft(known.block(), path, family.layer(name)));
    draft.weights.put(known.linear(), tensor);
    return null;
  }

  private void check(LocatedTensor tensor, ModelFamily.Known known) {
    if (!READABLE.contains(tensor.dtype())) {
      throw new IllegalArgumentException("Cannot quantize " + tensor.name() + " (" + tensor.file() + "): its dtype is "
          + tensor.dtype() + "; only BF16, F16 and F32 sources are read so far");
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
            + tensor.shape() + ", but " + keys.get(i) + " of config.json makes dimension " + i + " " + expected);
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

  /** Every layer has an MLP or all of its experts. */
  private void checkLayers(Iterable<Draft> drafts) {
    BitSet fed = new BitSet(layers);
    Map<Integer, BitSet> experts = new TreeMap<>();
    Map<Integer, String> paths = new TreeMap<>();
    for (Draft draft : drafts) {
      if (draft.block.role() == Role.DENSE_MLP || draft.block.role() == Role.ROUTED_EXPERT) {
        fed.set(draft.layer);
      }

      if (draft.block.role() == Role.ROUTED_EXPERT) {
        int dot = draft.path.lastIndexOf('.');
        int expert = Integer.parseInt(draft.path.substring(dot + 1));
        experts.computeIfAbsent(draft.layer, layer -> new BitSet()).set(expert);
        paths.put(draft.layer, draft.path.substring(0, dot));
      }
    }

    int unfed = fed.nextClearBit(0);
    if (unfed < layers) {
      throw new IllegalArgumentException("Invalid checkpoint: num_hidden_layers of config.json is " + layers
          + ", but layer " + unfed + " has neither an MLP nor experts under the names of family " + family.name());
    }

    experts.forEach((layer, present) -> checkExperts(paths.get(layer), present));
  }

  private void checkExperts(String path, BitSet present) {
    int count = config.requireCount(family.expertsKey());
    int missing = present.nextClearBit(0);
    if (missing < count) {
      throw new IllegalArgumentException("Invalid checkpoint: " + path + "." + missing + " is missing, though "
          + family.expertsKey() + " of config.json is " + count);
    }

    if (present.length() > count) {
      throw new IllegalArgumentException("Invalid checkpoint: it has " + path + "." + (present.length() - 1)
          + ", though " + family.expertsKey() + " of config.json is " + count);
    }
  }

  /** The output head under the prefix that the checkpoint's layers have; the plain one where that cannot be told. */
  private List<String> headsOf(List<LocatedTensor> tensors) {
    List<String> named = family.heads().stream()
        .filter(head -> tensors.stream().anyMatch(tensor -> tensor.name().equals(head + WEIGHT)))
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
