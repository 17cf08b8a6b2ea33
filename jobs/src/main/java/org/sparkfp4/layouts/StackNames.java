package org.sparkfp4.layouts;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.sparkfp4.safetensors.DType;

/** What a runtime calls the tensors of a layer's experts, in the order in which it takes them, and their bytes' types. */
enum StackNames {
  /** Inputs 2 to 10 of {@code Nvfp4MoePlugin}. */
  PLUGIN(DType.I8, DType.I8,
      List.of(StackPart.FC1_CODES, StackPart.FC1_SCALES, StackPart.FC1_GLOBAL, StackPart.FC2_CODES,
          StackPart.FC2_SCALES, StackPart.FC2_GLOBAL, StackPart.FC1_INPUT, StackPart.FC2_INPUT, StackPart.SCORE_BIAS),
      List.of("fc1_qweights", "fc1_blocks_scale", "fc1_alpha", "fc2_qweights", "fc2_blocks_scale", "fc2_alpha",
          "input_global_scale", "down_input_scale", "e_score_correction_bias")),
  /** Inputs of the Blackwell plugin for activations in high precision. */
  A16_PLUGIN(DType.I8, DType.I8, six(),
      List.of("fc1_qweights", "fc1_block_scales", "fc1_global_scales", "fc2_qweights", "fc2_block_scales",
          "fc2_global_scales")),
  /** Inputs 2 to 8 of {@code Nvfp4A16MoePlugin}. */
  A16_MARLIN_PLUGIN(DType.I8, DType.I8,
      List.of(StackPart.FC1_CODES, StackPart.FC1_SCALES, StackPart.FC1_GLOBAL, StackPart.FC2_CODES,
          StackPart.FC2_SCALES, StackPart.FC2_GLOBAL, StackPart.SCORE_BIAS),
      List.of("fc1_qweights", "fc1_block_scales", "fc1_global_scales", "fc2_qweights", "fc2_block_scales",
          "fc2_global_scales", "e_score_correction_bias")),
  /** Parameters of vLLM's and FlashInfer's fused experts. */
  FUSED(DType.U8, DType.F8_E4M3, six(),
      List.of("w13_weight", "w13_weight_scale", "w13_weight_scale_2", "w2_weight", "w2_weight_scale",
          "w2_weight_scale_2")),
  /** The same of vLLM's Marlin kernels, whose codes are words and whose scales are no E4M3. */
  FUSED_WORDS(DType.I32, DType.U8, six(), FUSED);

  private final DType codes;
  private final DType scales;
  private final List<StackPart> parts;
  private final Map<StackPart, String> names;

  StackNames(DType codes, DType scales, List<StackPart> parts, List<String> names) {
    this.codes = codes;
    this.scales = scales;
    this.parts = parts;
    Map<StackPart, String> byPart = new EnumMap<>(StackPart.class);
    for (int i = 0; i < parts.size(); i++) {
      byPart.put(parts.get(i), names.get(i));
    }

    this.names = byPart;
  }

  StackNames(DType codes, DType scales, List<StackPart> parts, StackNames other) {
    this(codes, scales, parts, parts.stream().map(other::of).toList());
  }

  private static List<StackPart> six() {
    return List.of(StackPart.FC1_CODES, StackPart.FC1_SCALES, StackPart.FC1_GLOBAL, StackPart.FC2_CODES,
        StackPart.FC2_SCALES, StackPart.FC2_GLOBAL);
  }

  List<StackPart> parts() {
    return parts;
  }

  String of(StackPart part) {
    return names.get(part);
  }

  DType codes() {
    return codes;
  }

  DType scales() {
    return scales;
  }
}
