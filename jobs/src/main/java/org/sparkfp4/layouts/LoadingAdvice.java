package org.sparkfp4.layouts;

import java.util.Optional;

/** The part of a README.md that says what loads an output, and how. */
public final class LoadingAdvice {
  private static final String HEADING = "## Use";
  private static final String SERVE = "vllm serve DIR";
  private static final String CONVERT = "sparkfp4 convert --to modelopt";

  private LoadingAdvice() {}

  /**
   * The part, heading and all.
   *
   * @param layout name of the output's layout
   * @param weightOnly whether activations stay in high precision
   * @param carried whether there are layers that are quantized and not NVFP4
   */
  public static String text(String layout, boolean weightOnly, boolean carried) {
    Optional<ExpertLayout> stacked = ExpertLayout.named(layout);
    return HEADING + "\n\n"
        + (stacked.isPresent() ? ofStacked(stacked.get()) : ofModules(layout, weightOnly, carried));
  }

  /** Whether a part of a card, from its heading on, is one of these. */
  public static boolean isAdvice(String part) {
    return part.startsWith(HEADING + "\n") && (part.contains(SERVE) || part.contains(CONVERT));
  }

  private static String ofStacked(ExpertLayout layout) {
    return "Experts lie as " + layout.takenBy() + ". Whatever loads a folder of a model by config.json alone (vLLM, SGLang,"
        + " TensorRT-LLM) does not load this one: `" + CONVERT + "` makes one that they load.\n";
  }

  private static String ofModules(String layout, boolean weightOnly, boolean carried) {
    boolean modelOpt = layout.equals(ModelOptLayout.NAME);
    StringBuilder text = new StringBuilder(carried
        ? "vLLM finds the precision of each layer in config.json:"
        : "vLLM finds the quantization in config.json:");
    text.append("\n\n```\n").append(SERVE).append("\n```\n\n");
    if (!weightOnly && !carried) {
      text.append("SGLang")
          .append(modelOpt ? " and TensorRT-LLM (which reads hf_quant_config.json):" : " and TensorRT-LLM:")
          .append("\n\n```\npython -m sglang.launch_server --model-path DIR")
          .append(modelOpt ? " --quantization modelopt_fp4" : "")
          .append("\ntrtllm-serve DIR\n```\n\n");
    }

    return text
        + "DIR is this folder. What the model itself requires (tensor parallelism, trusted code) is as for the source.\n";
  }
}
