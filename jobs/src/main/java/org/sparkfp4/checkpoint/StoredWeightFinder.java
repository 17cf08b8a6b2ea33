package org.sparkfp4.checkpoint;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.sparkfp4.formats.CodeType;
import org.sparkfp4.formats.ScaleType;
import org.sparkfp4.formats.WeightScheme;
import org.sparkfp4.safetensors.DType;

/** Finds the weights of a checkpoint that are codes with scales, whatever the names of their parts. */
final class StoredWeightFinder {
  private static final String WEIGHT = "weight";
  private static final String PACKED = "weight_packed";
  private static final String SHAPE = "weight_shape";
  private static final String SCALE = "scale";

  /** Names of scales: compressed-tensors' and ModelOpt's, DeepSeek V3's, DeepSeek V4's. */
  private static final List<String> SCALES = List.of("weight_scale", "weight_scale_inv", SCALE);

  /** Scales of activations: they belong to the stored codes, and are of no use to others. */
  private static final List<String> ACTIVATIONS = List.of("input_scale", "activation_scale");

  /** Parts of formats that are not read. */
  private static final Set<String> FOREIGN = Set.of(
      "weight_scale_2", "weight_global_scale", "weight_zero_point", "weight_g_idx", "qweight", "qzeros", "g_idx");

  private static final Set<DType> CODES =
      EnumSet.of(DType.F8_E4M3, DType.F8_E5M2, DType.F8_E8M0, DType.I8, DType.U8, DType.F4, DType.I32);
  private static final Set<DType> EIGHT_BIT_FLOATS = EnumSet.of(DType.F8_E4M3, DType.F8_E5M2, DType.F8_E8M0);
  private static final int WORD_CODES = 8;

  private final SourceQuantization config;
  private final Map<String, LocatedTensor> byName = new HashMap<>();
  private final Map<String, StoredWeight> weights = new LinkedHashMap<>();
  private final Map<String, LocatedTensor> parts = new LinkedHashMap<>();

  StoredWeightFinder(List<LocatedTensor> tensors, SourceQuantization config) {
    this.config = config;
    tensors.forEach(tensor -> byName.put(tensor.name(), tensor));
    tensors.forEach(this::find);
    tensors.forEach(this::requireClaimed);
    requireConfigured();
  }

  /** The stored weights, by the name of their codes. */
  Map<String, StoredWeight> weights() {
    return weights;
  }

  /** The other tensors of stored weights, by name. */
  Map<String, LocatedTensor> parts() {
    return parts;
  }

  private void find(LocatedTensor tensor) {
    String name = tensor.name();
    int dot = name.lastIndexOf('.');
    String last = name.substring(dot + 1);
    String module = name.substring(0, Math.max(0, dot));
    if (FOREIGN.contains(last)) {
      throw new IllegalArgumentException("Cannot quantize a checkpoint that is quantized already: it has the tensor "
          + describe(tensor) + "; " + SourceQuantization.SOURCES);
    }

    if (last.equals(PACKED)) {
      add(module, tensor, packedCodes(tensor));
    } else if (last.equals(WEIGHT) && CODES.contains(tensor.dtype())) {
      add(module, tensor, codes(tensor));
    }
  }

  private CodeType packedCodes(LocatedTensor tensor) {
    return switch (tensor.dtype()) {
      case I32 -> CodeType.INT4;
      case U8, I8 -> CodeType.E2M1;
      default -> throw new IllegalArgumentException("Invalid tensor " + describe(tensor)
          + ": packed codes are I32 (INT4) or U8 (MXFP4); download the checkpoint again");
    };
  }

  private CodeType codes(LocatedTensor tensor) {
    return switch (tensor.dtype()) {
      case F8_E4M3 -> CodeType.E4M3;
      case I8, U8 -> CodeType.E2M1;
      default -> throw new IllegalArgumentException("Cannot read " + describe(tensor)
          + ": weights are read in BF16, F16, F32, F8_E4M3, INT4 (weight_packed, I32) and MXFP4; give such a source");
    };
  }

  private void add(String module, LocatedTensor codes, CodeType type) {
    LocatedTensor scale = scale(module, codes);
    if (codes.shape().size() != 2 && codes.shape().size() != 3) {
      throw new IllegalArgumentException(
          "Invalid tensor " + describe(codes) + ": its shape is not that of a matrix, or of one an expert");
    }

    List<SourceQuantization.Blocks> allowed = config.blocks(type);
    if (allowed.isEmpty()) {
      throw new IllegalArgumentException("Invalid checkpoint: " + describe(codes) + " is " + format(type) + ", but "
          + config.text() + "; take config.json and weights from the same checkpoint");
    }

    long rows = codes.rows();
    long cols = cols(codes, type);
    ScaleType scaleType = scaleType(type, scale);
    WeightScheme scheme = allowed.stream()
        .map(blocks -> new WeightScheme(type, scaleType, blocks.rows(), blocks.cols()))
        .filter(candidate -> fits(candidate, scale, rows, cols))
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException("Invalid scale " + describe(scale) + ": "
            + describe(codes) + " needs " + allowed.stream()
                .map(blocks -> new WeightScheme(type, scaleType, blocks.rows(), blocks.cols()))
                .map(candidate -> expected(candidate, rows, cols))
                .distinct()
                .collect(Collectors.joining(" or "))
            + " scales, as " + config.text() + "; take config.json and weights from the same checkpoint"));
    List<Long> shape = new ArrayList<>(codes.shape());
    shape.set(shape.size() - 1, cols);
    LocatedTensor weight = new LocatedTensor(
        codes.name(), codes.dtype(), shape, codes.file(), codes.offset(), codes.length(), codes.strides());
    weights.put(codes.name(), new StoredWeight(weight, scale, scheme));
    parts.put(scale.name(), scale);
    claim(module, SHAPE);
    ACTIVATIONS.forEach(part -> claim(module, part));
  }

  private void claim(String module, String part) {
    LocatedTensor tensor = byName.get(module + "." + part);
    if (tensor != null) {
      parts.put(tensor.name(), tensor);
    }
  }

  private LocatedTensor scale(String module, LocatedTensor codes) {
    List<LocatedTensor> found = SCALES.stream()
        .map(name -> byName.get(module + "." + name))
        .filter(scale -> scale != null)
        .toList();
    if (found.isEmpty()) {
      throw new IllegalArgumentException("Cannot read " + describe(codes) + ": it has no scale, "
          + SCALES.stream().map(name -> module + "." + name).collect(Collectors.joining(" or "))
          + ", in any file of the checkpoint; codes without scales are no weights: download the missing file or"
          + " complete the index");
    }

    if (found.size() > 1) {
      throw new IllegalArgumentException("Invalid checkpoint: " + describe(codes) + " has two scales, "
          + describe(found.get(0)) + " and " + describe(found.get(1)) + "; remove the one that is not its own");
    }

    return found.get(0);
  }

  private static long cols(LocatedTensor codes, CodeType type) {
    long last = codes.cols();
    return switch (type) {
      case E4M3 -> last;
      case E2M1 -> Math.multiplyExact(last, 2);
      case INT4 -> Math.multiplyExact(last, WORD_CODES);
    };
  }

  private ScaleType scaleType(CodeType codes, LocatedTensor scale) {
    ScaleType type = switch (scale.dtype()) {
      case F32 -> ScaleType.F32;
      case BF16 -> ScaleType.BF16;
      case F16 -> ScaleType.F16;
      case F8_E8M0 -> ScaleType.E8M0;
      case U8 -> codes == CodeType.E2M1 || config.powerOfTwoScales() ? ScaleType.E8M0 : null;
      default -> null;
    };
    // powers of two belong to MXFP4, and to FP8 of its kind; integers have scales with a fraction
    boolean fits = type != null && switch (codes) {
      case E4M3 -> true;
      case E2M1 -> type == ScaleType.E8M0;
      case INT4 -> type != ScaleType.E8M0;
    };
    if (!fits) {
      throw new IllegalArgumentException("Invalid scale " + describe(scale) + ": its dtype is none that scales of "
          + format(codes) + " have (" + switch (codes) {
            case E4M3 -> "F32, BF16, F16, F8_E8M0, or U8 where quantization_config says MXFP8 or scale_fmt ue8m0";
            case E2M1 -> "F8_E8M0 or U8";
            case INT4 -> "F32, BF16 or F16";
          } + "); give a source that has");
    }

    return type;
  }

  private static boolean fits(WeightScheme scheme, LocatedTensor scale, long rows, long cols) {
    if (scheme.blockRows() <= 0 && scheme.blockCols() <= 0) {
      return scale.shape().stream().allMatch(dimension -> dimension == 1);
    }

    List<Long> shape = List.of(scheme.scaleRows(rows), scheme.scaleCols(cols));
    boolean stacked = scale.shape().size() == 3 && List.of(scale.rows(), scale.cols()).equals(shape);
    boolean vector = scheme.blockCols() <= 0 && scale.shape().equals(List.of(shape.get(0)));
    return stacked || vector || scale.shape().equals(shape);
  }

  private static String expected(WeightScheme scheme, long rows, long cols) {
    return scheme.blockRows() <= 0 && scheme.blockCols() <= 0
        ? "[]"
        : List.of(scheme.scaleRows(rows), scheme.scaleCols(cols)).toString();
  }

  /** Parts of stored weights that none has claimed are what is left of a format that was not understood. */
  private void requireClaimed(LocatedTensor tensor) {
    String name = tensor.name();
    if (weights.containsKey(name) || parts.containsKey(name)) {
      return;
    }

    String last = name.substring(name.lastIndexOf('.') + 1);
    boolean scale = SCALES.contains(last) && !(last.equals(SCALE) && tensor.dtype() != DType.F8_E8M0);
    if (scale || last.equals(SHAPE)) {
      throw new IllegalArgumentException("Invalid checkpoint: " + describe(tensor) + " belongs to no stored-quantized "
          + "weight of its module; remove it if the weight beside it is not quantized, else restore the weight");
    }

    if (EIGHT_BIT_FLOATS.contains(tensor.dtype())) {
      throw new IllegalArgumentException("Cannot read " + describe(tensor)
          + ": it is neither the weight of a layer nor a scale of one, so nothing says what its values are; give a"
          + " BF16 source");
    }
  }

  /** A config that names a format must have tensors of it: else it belongs to other weights. */
  private void requireConfigured() {
    if (!config.isPresent()) {
      return;
    }

    Set<CodeType> found = weights.values().stream()
        .map(weight -> weight.scheme().codes())
        .collect(Collectors.toCollection(() -> EnumSet.noneOf(CodeType.class)));
    for (CodeType codes : config.codes()) {
      if (!found.contains(codes)) {
        throw new IllegalArgumentException("Invalid checkpoint: " + config.text() + ", but no weight is stored in "
            + format(codes) + "; take config.json and weights from the same checkpoint, or remove quantization_config"
            + " if the weights are not quantized");
      }
    }
  }

  private static String format(CodeType codes) {
    return switch (codes) {
      case E4M3 -> "FP8";
      case INT4 -> "INT4";
      case E2M1 -> "MXFP4";
    };
  }

  private static String describe(LocatedTensor tensor) {
    return tensor.name() + " (" + tensor.dtype() + " " + tensor.shape() + ", " + tensor.file() + ")";
  }
}
