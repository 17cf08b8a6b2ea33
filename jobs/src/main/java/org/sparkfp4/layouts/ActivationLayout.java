package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.StoredParts;
import org.sparkfp4.checkpoint.StoredWeight;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.plan.CarriedTensor;
import org.sparkfp4.plan.ConfigFile;
import org.sparkfp4.plan.Layout;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.plan.UnitTensor;
import org.sparkfp4.plan.UnitTensor.Part;

/**
 * Activations {@code <module>.input} {@code [tokens, K]} as NVFP4: {@code <module>.input_packed} U8 {@code [tokens,
 * K/2]}, {@code <module>.input_scale} F8_E4M3 {@code [tokens, K/16]}, row after row, and {@code
 * <module>.input_global_scale} F32 [1], amax / 2688, which multiplies. TensorRT Edge-LLM's {@code NVFP4Tensor} reads the
 * scales of 64 elements as a word whose bytes 1 and 2 are exchanged, as Marlin's decoding takes them.
 */
public final class ActivationLayout implements Layout {
  /** The layout with scales one after another. */
  public static final String LINEAR = "linear";

  /** The layout with scales in Marlin's words. */
  public static final String TRT_EDGE_LLM = "trt-edge-llm";

  private static final String PLANNED = "activations";

  private static final int TILE = 64;
  private static final TensorNames NAMES =
      new TensorNames("input_packed", "input_scale", "input_global_scale", null, List.of(1L));

  private final boolean words;

  private ActivationLayout(boolean words) {
    this.words = words;
  }

  /**
   * The layout of that name.
   *
   * @throws IllegalArgumentException if there is none; the message lists the names
   */
  public static ActivationLayout named(String name) {
    return switch (name) {
      case LINEAR -> new ActivationLayout(false);
      case TRT_EDGE_LLM -> new ActivationLayout(true);
      default -> throw new IllegalArgumentException(
          "Invalid layout: " + name + "; known are " + LINEAR + ", " + TRT_EDGE_LLM);
    };
  }

  /** What plans call it: the first has the name that it had as the only one. */
  @Override
  public String name() {
    return words ? TRT_EDGE_LLM : PLANNED;
  }

  /** What a command line calls the layout that plans call so; the same name of every other layout. */
  public static String optionName(String planned) {
    return planned.equals(PLANNED) ? LINEAR : planned;
  }

  @Override
  public Nvfp4Recipe recipe() {
    return Nvfp4Recipe.MODELOPT;
  }

  @Override
  public boolean batchesExperts() {
    return false;
  }

  @Override
  public List<UnitTensor> tensors(Unit unit, PlanOptions options) {
    List<UnitTensor> tensors = NAMES.of(unit, true);
    if (!words) {
      return tensors;
    }

    if (unit.cols() % TILE != 0) {
      throw new IllegalArgumentException("Cannot write " + unit.name() + " in layout " + TRT_EDGE_LLM + ": K is "
          + unit.cols() + ", which must be a multiple of " + TILE + ", the elements of a word of scales; choose layout "
          + LINEAR);
    }

    return tensors.stream()
        .map(tensor -> tensor.part() == Part.SCALES
            ? new UnitTensor(tensor.member(), Part.SCALE_WORDS, tensor.output())
            : tensor)
        .toList();
  }

  @Override
  public List<CarriedTensor> carry(StoredWeight weight, StoredParts parts, ModelConfig config) {
    throw new IllegalArgumentException("Cannot carry " + weight.weight().name() + ": activations are not weights");
  }

  @Override
  public List<ConfigFile> configs(ObjectNode sourceConfig, QuantizationPlan plan) {
    return List.of();
  }
}
