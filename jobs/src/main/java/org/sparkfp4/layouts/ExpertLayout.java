package org.sparkfp4.layouts;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.sparkfp4.formats.Arrangement;
import org.sparkfp4.formats.BlockScaleLayout;
import org.sparkfp4.formats.CodeLayout;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.RowOrder;
import org.sparkfp4.safetensors.DType;

/**
 * The layouts in which runtimes hold a layer's NVFP4 experts in memory: all experts of a product in one tensor, rows and
 * bytes arranged. A conversion to one of them moves bytes and rounds nothing, but where an expert's gate and up have two
 * global scales.
 *
 * <p>Each expert is {@code [rows, K]}, FC1's gate and up together; whatever a layout pads with is zero.
 */
public enum ExpertLayout {
  /** TensorRT Edge-LLM's {@code Nvfp4MoePlugin} on SM100, SM101 and SM110, versions 0.9 to 0.11. */
  TRT_EDGE_LLM_SM110("trt-edge-llm-sm110", RowOrder.INTERLEAVED_64, false, CodeLayout.ROW_MAJOR,
      BlockScaleLayout.ATOM_128X4, StackNames.PLUGIN, GlobalForm.F32, Padding.of(64, 128)),
  /** The same on SM120 and SM121, {@code NvFP4MoEPluginGeforce}. */
  TRT_EDGE_LLM_SM12X("trt-edge-llm-sm12x", RowOrder.CONCATENATED, false, CodeLayout.ROW_MAJOR,
      BlockScaleLayout.ATOM_128X4, StackNames.PLUGIN, GlobalForm.F32, Padding.of(128, 128)),
  /** Edge-LLM's {@code Nvfp4A16BlackwellMoePlugin}, version 0.11. */
  BLACKWELL_MOE("blackwell-moe", RowOrder.CONCATENATED, false, CodeLayout.BLACKWELL_MOE_N128_K64,
      BlockScaleLayout.BLACKWELL_N128_K64, StackNames.A16_PLUGIN, GlobalForm.F32, Padding.NONE),
  /** Edge-LLM's {@code Nvfp4A16MoePlugin}, versions 0.10 and 0.11: gate first. */
  MARLIN_EDGE("marlin-edge", RowOrder.CONCATENATED, true, CodeLayout.MARLIN, BlockScaleLayout.MARLIN_E4M3,
      StackNames.A16_MARLIN_PLUGIN, GlobalForm.F16_TIMES_128, Padding.NONE),
  /** What vLLM's Marlin kernels for float16 activations hold: gate first. */
  MARLIN_VLLM("marlin-vllm", RowOrder.CONCATENATED, true, CodeLayout.MARLIN, BlockScaleLayout.MARLIN_S0E5M3,
      StackNames.FUSED_WORDS, GlobalForm.F32_TIMES_128, Padding.NONE),
  /** cuBLAS's and CUTLASS's flat block scales, up first. */
  CUBLAS_128X4("cublas-128x4", RowOrder.CONCATENATED, false, CodeLayout.ROW_MAJOR, BlockScaleLayout.ATOM_128X4,
      StackNames.FUSED, GlobalForm.F32, Padding.NONE),
  /** The same with tiles of 8 rows. */
  SCALES_8X4("scales-8x4", RowOrder.CONCATENATED, false, CodeLayout.ROW_MAJOR, BlockScaleLayout.ATOM_8X4,
      StackNames.FUSED, GlobalForm.F32, Padding.NONE),
  /** What TRTLLM-gen's kernels with epilogue tiles of 128 rows take. */
  TRTLLM_GEN("trtllm-gen", RowOrder.TRTLLM_GEN_32, false, CodeLayout.ROW_MAJOR, BlockScaleLayout.ATOM_128X4,
      StackNames.FUSED, GlobalForm.F32, Padding.NONE);

  /**
   * Multiples to which an expert's width is padded, in FC1's rows and FC2's columns both.
   *
   * @param gated of experts with a gate: each of gate and up is padded by itself
   * @param plain of others
   */
  private record Padding(long gated, long plain) {
    static final Padding NONE = of(1, 1);

    static Padding of(long gated, long plain) {
      return new Padding(gated, plain);
    }
  }

  private final String optionName;
  private final RowOrder order;
  private final boolean gateFirst;
  private final CodeLayout codes;
  private final BlockScaleLayout scales;
  private final StackNames names;
  private final GlobalForm global;
  private final Padding padding;

  ExpertLayout(String optionName, RowOrder order, boolean gateFirst, CodeLayout codes, BlockScaleLayout scales,
      StackNames names, GlobalForm global, Padding padding) {
    this.optionName = optionName;
    this.order = order;
    this.gateFirst = gateFirst;
    this.codes = codes;
    this.scales = scales;
    this.names = names;
    this.global = global;
    this.padding = padding;
  }

  /** The name that {@code --to} and {@code --layout} take. */
  public String optionName() {
    return optionName;
  }

  /** The layout of that name. */
  public static Optional<ExpertLayout> named(String name) {
    return Arrays.stream(values()).filter(layout -> layout.optionName.equals(name)).findFirst();
  }

  /** The names of all of them. */
  public static String names() {
    return Arrays.stream(values()).map(ExpertLayout::optionName).collect(Collectors.joining(", "));
  }

  /** What takes experts so, in words that follow "as". */
  public String takenBy() {
    return switch (this) {
      case TRT_EDGE_LLM_SM110 ->
          "TensorRT Edge-LLM's Nvfp4MoePlugin takes them on SM100, SM101 and SM110, versions 0.9 to 0.11";
      case TRT_EDGE_LLM_SM12X -> "TensorRT Edge-LLM's NvFP4MoEPluginGeforce takes them on SM120 and SM121";
      case BLACKWELL_MOE -> "TensorRT Edge-LLM's Nvfp4A16BlackwellMoePlugin takes them, version 0.11";
      case MARLIN_EDGE -> "TensorRT Edge-LLM's Nvfp4A16MoePlugin takes them, versions 0.10 and 0.11";
      case MARLIN_VLLM -> "vLLM's Marlin kernels for float16 activations hold them in memory";
      case CUBLAS_128X4 -> "cuBLASLt, CUTLASS and FlashInfer's CUTLASS experts hold them in memory";
      case SCALES_8X4 -> "kernels whose block scales are in tiles of 8 rows hold them in memory";
      case TRTLLM_GEN -> "TRTLLM-gen's kernels with epilogue tiles of 128 rows hold them in memory";
    };
  }

  /** Whether a runtime reads the layer's tensors from a container of their own. */
  public boolean isExternal() {
    return this == TRT_EDGE_LLM_SM110 || this == TRT_EDGE_LLM_SM12X;
  }

  /** Whether the gate's rows come before up's. */
  public boolean gateFirst() {
    return gateFirst;
  }

  /** The tensors of a layer, in the order of their bytes. */
  public List<StackPart> parts() {
    return names.parts();
  }

  /** What a part is called, behind the experts' path. */
  public String nameOf(StackPart part) {
    return names.of(part);
  }

  /** How the bytes of a product's matrices lie. */
  public ExpertArrangement arrangement(ExpertShape shape, Fc fc) {
    long width = up(shape.intermediate(), shape.gated() ? padding.gated : padding.plain);
    int members = shape.members(fc);
    RowOrder rows = members == 1 && order != RowOrder.TRTLLM_GEN_32 ? RowOrder.PLAIN : order;
    return new ExpertArrangement(
        fc == Fc.FC1
            ? new Arrangement(rows, members, shape.intermediate(), width, shape.hidden(), shape.hidden())
            : new Arrangement(rows, members, shape.hidden(), shape.hidden(), shape.intermediate(), width),
        codes, scales, gateFirst);
  }

  private static long up(long value, long multiple) {
    return (value + multiple - 1) / multiple * multiple;
  }

  /** Element type of a part. */
  public DType dtype(StackPart part) {
    return switch (part) {
      case FC1_CODES, FC2_CODES -> names.codes();
      case FC1_SCALES, FC2_SCALES -> names.scales();
      case FC1_GLOBAL, FC2_GLOBAL -> global.dtype();
      case FC1_INPUT, FC2_INPUT, SCORE_BIAS -> DType.F32;
    };
  }

  /** Dimensions of a part. */
  public List<Long> shapeOf(ExpertShape shape, StackPart part) {
    List<Long> dimensions = new ArrayList<>();
    dimensions.add((long) shape.experts());
    switch (part) {
      case FC1_CODES, FC2_CODES -> dimensions.addAll(codeShape(arrangement(shape, part.fc())));
      case FC1_SCALES, FC2_SCALES -> dimensions.addAll(scaleShape(arrangement(shape, part.fc())));
      default -> { }
    }

    return dimensions;
  }

  private List<Long> codeShape(ExpertArrangement of) {
    long rows = codes.rows(of.rows());
    return switch (codes) {
      case ROW_MAJOR -> List.of(rows, of.cols() / 2);
      case BLACKWELL_MOE_N128_K64, BLACKWELL_N128_K64 -> List.of(rows / 128, of.cols() / 64, 128L, 32L);
      case MARLIN -> List.of(of.cols() / 16, rows * Long.SIZE / names.codes().bits());
    };
  }

  private List<Long> scaleShape(ExpertArrangement of) {
    long rows = scales.rows(of.rows());
    long columns = scales.columns(of.cols() / Nvfp4.BLOCK);
    return switch (scales) {
      case ROW_MAJOR -> List.of(rows, columns);
      case ATOM_128X4, ATOM_8X4 -> isExternal()
          ? List.of(rows / 128, columns / 4, 32L, 4L, 4L)
          : List.of(of.scaleBytes());
      case BLACKWELL_N128_K64 -> List.of(rows / 128, columns / 4, 128L, 4L);
      case MARLIN_E4M3, MARLIN_S0E5M3 -> List.of(columns, rows);
    };
  }

  /** Appends the factor of an expert's weights as the runtime takes it. */
  public void putGlobal(ByteBuffer out, float factor) {
    global.put(out, factor);
  }

  /** Whether a factor's value is stored, and not one near it. */
  public boolean keepsGlobal(float factor) {
    return global.keeps(factor);
  }

  /** Whether the runtime can multiply by a factor as it is stored. */
  public boolean holdsGlobal(float factor) {
    return global.holds(factor);
  }

  /**
   * Requires that the runtime takes experts of these sizes.
   *
   * @param layer what the message calls the experts
   * @throws IllegalArgumentException naming the rule that is broken
   */
  public void requireFits(String layer, ExpertShape shape) {
    Rules rules = new Rules(layer, shape);
    switch (this) {
      case TRT_EDGE_LLM_SM110 -> {
        rules.experts(Set.of(128, 256));
        rules.hidden(128);
        rules.intermediate(64);
      }
      case TRT_EDGE_LLM_SM12X -> {
        rules.hidden(256);
        rules.intermediate(128);
      }
      case BLACKWELL_MOE -> {
        rules.ungated();
        rules.experts(Set.of(128, 256, 512));
        rules.hidden(64);
        rules.intermediate(64);
      }
      case MARLIN_EDGE -> {
        rules.experts(Set.of(128));
        rules.hidden(128);
        rules.intermediate(shape.gated() ? 64 : 128);
      }
      case MARLIN_VLLM -> {
        rules.hidden(64);
        rules.intermediate(64);
      }
      case CUBLAS_128X4, SCALES_8X4 -> {
        rules.hidden(16);
        rules.intermediate(16);
      }
      case TRTLLM_GEN -> {
        rules.hidden(128);
        rules.intermediate(shape.gated() ? 64 : 128);
      }
    }
  }

  /** What a runtime asks of a layer. */
  private final class Rules {
    private final String layer;
    private final ExpertShape shape;

    Rules(String layer, ExpertShape shape) {
      this.layer = layer;
      this.shape = shape;
    }

    void experts(Set<Integer> allowed) {
      if (!allowed.contains(shape.experts())) {
        String numbers = allowed.stream().sorted().map(String::valueOf).collect(Collectors.joining(", "));
        throw broken("it has " + shape.experts() + " experts, the runtime takes " + numbers);
      }
    }

    void hidden(int multiple) {
      if (shape.hidden() % multiple != 0) {
        throw broken("the model's width H is " + shape.hidden() + ", which must be a multiple of " + multiple);
      }
    }

    void intermediate(int multiple) {
      if (shape.intermediate() % multiple != 0) {
        throw broken("an expert's width I is " + shape.intermediate() + ", which must be a multiple of " + multiple);
      }
    }

    void ungated() {
      if (shape.gated()) {
        throw broken("its experts have a gate, the runtime takes those without (relu2)");
      }
    }

    private IllegalArgumentException broken(String rule) {
      return new IllegalArgumentException(
          "Cannot write " + layer + " in layout " + optionName + ": " + rule + "; choose another layout");
    }
  }
}
