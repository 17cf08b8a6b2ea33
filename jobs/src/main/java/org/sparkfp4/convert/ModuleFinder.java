package org.sparkfp4.convert;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.safetensors.DType;

/** Finds the NVFP4 layers that are stored each by itself: there is one for each global scale. */
final class ModuleFinder {
  private static final Pattern EXPERT =
      Pattern.compile("(.+\\.experts)\\.(\\d{1,6})\\.(gate_proj|up_proj|down_proj|w1|w2|w3)");

  private final UnclaimedTensors tensors;
  private final Map<String, GlobalScale> origins;
  private final List<QuantizedLinear> linears = new ArrayList<>();
  private final Map<String, ExpertModules> experts = new LinkedHashMap<>();
  private ModuleForm form;

  /** @param origins scales that others were made from, {@link SourceMetadata#origins} */
  ModuleFinder(UnclaimedTensors tensors, Map<String, GlobalScale> origins) {
    this.tensors = tensors;
    this.origins = origins;
  }

  /**
   * Claims the layers' tensors.
   *
   * @throws IllegalArgumentException if a layer is incomplete or of another format
   */
  void find() {
    for (LocatedTensor tensor : tensors.list()) {
      requireUnstacked(tensor);
      for (ModuleForm candidate : ModuleForm.values()) {
        String module = candidate.moduleOf(tensor.name());
        if (module != null) {
          requireOneForm(tensor, candidate);
          form = candidate;
          add(linear(candidate, module));
        }
      }
    }
  }

  /** Layers that are no routed experts. */
  List<QuantizedLinear> linears() {
    return linears;
  }

  /** The routed experts of each layer. */
  List<ExpertModules> experts() {
    return List.copyOf(experts.values());
  }

  /** How tensors are named; null where no layer was found. */
  ModuleForm form() {
    return form;
  }

  private void requireOneForm(LocatedTensor tensor, ModuleForm candidate) {
    if (form != null && form != candidate) {
      throw new IllegalArgumentException("Cannot convert a checkpoint of two layouts: " + tensor.name() + " is of "
          + candidate.layout() + ", others of " + form.layout());
    }
  }

  private static void requireUnstacked(LocatedTensor tensor) {
    if (tensor.name().endsWith("_weight_scale_2")) {
      throw new IllegalArgumentException("Cannot convert " + tensor.name() + " (" + tensor.file() + "): its experts are"
          + " stacked as ModelOpt does for Llama 4 and gpt-oss, with one scale for all; give a checkpoint whose experts"
          + " are apart");
    }
  }

  private void add(QuantizedLinear linear) {
    Matcher expert = EXPERT.matcher(linear.module());
    if (expert.matches()) {
      requireNumber(linear.module(), expert.group(2));
      experts.computeIfAbsent(expert.group(1), ExpertModules::new)
          .add(Integer.parseInt(expert.group(2)), expert.group(3), linear);
    } else {
      linears.add(linear);
    }
  }

  /** 01 would be another name for 1, and one of the two experts lost. */
  private static void requireNumber(String module, String number) {
    if (number.length() > 1 && number.startsWith("0")) {
      throw new IllegalArgumentException("Cannot convert " + module + ": the expert's number " + number
          + " has a leading zero, and runtimes look for " + Integer.valueOf(number) + "; rename the expert's tensors");
    }
  }

  private QuantizedLinear linear(ModuleForm of, String module) {
    LocatedTensor global = tensors.claim(of.global(module));
    LocatedTensor codes = tensors.claim(of.codes(module));
    LocatedTensor scales = tensors.claim(of.scales(module));
    LocatedTensor input = tensors.claim(of.input(module));
    require(codes, of.codes(module), module, codes != null && codes.dtype() == DType.U8 && codes.shape().size() == 2
        && 2 * codes.cols() % Nvfp4.BLOCK == 0, "U8 [rows, K/2]");
    require(scales, of.scales(module), module, scales != null && scales.dtype() == DType.F8_E4M3
        && scales.shape().equals(List.of(codes.rows(), 2 * codes.cols() / Nvfp4.BLOCK)),
        "F8_E4M3 [rows, K/16], a scale for each 16 codes");
    require(global, of.global(module), module, isScalar(global), "an F32 scalar");
    require(input, of.input(module), module, input == null || isScalar(input), "an F32 scalar");
    ModuleForm other = of == ModuleForm.MODELOPT ? ModuleForm.COMPRESSED_TENSORS : ModuleForm.MODELOPT;
    return new QuantizedLinear(module, of, codes, scales, global, input, origins.get(other.global(module)),
        origins.get(other.input(module)));
  }

  private static boolean isScalar(LocatedTensor tensor) {
    return tensor.dtype() == DType.F32 && tensor.length() == Float.BYTES;
  }

  private static void require(LocatedTensor tensor, String name, String module, boolean fits, String expected) {
    if (!fits) {
      throw new IllegalArgumentException("Cannot convert " + module + ": tensor " + name + " is "
          + (tensor == null ? "missing" : tensor.dtype() + " " + tensor.shape() + " (" + tensor.file() + ")")
          + ", must be " + expected);
    }
  }
}
