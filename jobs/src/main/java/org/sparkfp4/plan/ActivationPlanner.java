package org.sparkfp4.plan;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.safetensors.DType;

/**
 * Makes the plan of activations: each tensor {@code <module>.input} of {@code [tokens, K]} is a unit of its own, every
 * other is carried over.
 */
public final class ActivationPlanner {
  /** What the options of such a plan have for targets. */
  public static final String TARGETS = "activations";

  private static final String INPUT = ".input";
  private static final List<DType> READABLE = List.of(DType.BF16, DType.F16, DType.F32);

  private final String input;
  private final List<Checkpoint> files;
  private final Layout layout;
  private final PlanOptions options;
  private final long slabBytes;
  private final Map<String, Float> amax;

  /**
   * @param files the files that hold the activations
   * @param layout what quantized activations are called
   * @param slabBytes source bytes of a tensor above which it is cut by rows
   * @param amax of modules whose global scale is not that of their own tensor
   */
  public ActivationPlanner(
      List<Checkpoint> files, Layout layout, PlanOptions options, long slabBytes, Map<String, Float> amax) {
    this.input = files.get(0).path().toString();
    this.files = List.copyOf(files);
    this.layout = layout;
    this.options = options;
    this.slabBytes = slabBytes;
    this.amax = new LinkedHashMap<>(amax);
  }

  /**
   * The plan.
   *
   * @throws IllegalArgumentException if two files have tensors of one name, or none can be quantized
   */
  public QuantizationPlan plan() {
    Map<String, LocatedTensor> names = new LinkedHashMap<>();
    List<ItemDraft> items = new ArrayList<>();
    List<KeptModule> kept = new ArrayList<>();
    int units = 0;
    for (Checkpoint file : files) {
      for (LocatedTensor tensor : file.tensors()) {
        LocatedTensor known = names.putIfAbsent(tensor.name(), tensor);
        if (known != null) {
          throw new IllegalArgumentException("Cannot quantize " + tensor.name() + " of " + tensor.file() + ": "
              + known.file() + " has a tensor of that name too, and the output has one of each name; give a file at a "
              + "time, each with an --output of its own");
        }

        String reason = reason(tensor);
        if (reason == null) {
          String module = module(tensor);
          Unit unit = new Unit(
              units++, tensor.name(), tensor.dtype().name(), tensor.cols(),
              List.of(new Member(module, tensor, null)));
          items.add(ItemDraft.quantized(unit, layout.tensors(unit, options), InputScale.ASSUMED));
        } else {
          items.add(ItemDraft.copied(tensor));
          kept.add(new KeptModule(tensor.name(), reason));
        }
      }
    }

    if (units == 0) {
      throw new IllegalArgumentException("Cannot find activations in " + input + ": it has no tensor <module>" + INPUT
          + " of [tokens, K], K a multiple of " + Nvfp4.BLOCK + ", in BF16, F16 or F32");
    }

    List<SourceFile> sources = files.stream().flatMap(file -> file.sourceFiles().stream()).toList();
    return new QuantizationPlan(
        Fingerprint.of(sources, List.copyOf(names.values()), options, amax),
        input, options, layout.name(), slabBytes, sources,
        new ShardPacker(items, options.maxShardBytes()).shards(), kept, List.of());
  }

  /** The module that an input's tensor is of. */
  public static String module(LocatedTensor tensor) {
    return tensor.name().substring(0, tensor.name().length() - INPUT.length());
  }

  /** Why a tensor is carried over; null for one that is quantized. */
  private static String reason(LocatedTensor tensor) {
    if (!tensor.name().endsWith(INPUT) || tensor.shape().size() != 2 || !READABLE.contains(tensor.dtype())) {
      return "no activations";
    }

    if (tensor.rows() == 0) {
      return "no tokens";
    }

    return tensor.cols() > 0 && tensor.cols() % Nvfp4.BLOCK == 0
        ? null
        : "K " + tensor.cols() + " is no multiple of " + Nvfp4.BLOCK;
  }
}
