package org.sparkfp4.plan;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.checkpoint.ModelTensors;
import org.sparkfp4.checkpoint.Role;
import org.sparkfp4.checkpoint.RoledTensor;
import org.sparkfp4.checkpoint.SourceTensors;
import org.sparkfp4.checkpoint.TensorClassifier;
import org.sparkfp4.formats.ElementType;

/** Makes the plan of a run from headers and configuration alone. */
public final class Planner {
  private static final Comparator<LocatedTensor> SOURCE_ORDER =
      Comparator.comparing(LocatedTensor::file).thenComparingLong(LocatedTensor::offset);

  private final PlanSource source;
  private final ModelFamily family;
  private final Layout layout;
  private final PlanOptions options;
  private final long slabBytes;
  private final InputAmaxes inputs;

  /**
   * @param checkpoint the source
   * @param family its model family
   * @param layout the output's layout
   * @param options what the bytes depend on
   * @param slabBytes source bytes of a unit above which it is cut by rows
   * @param inputs what is known of the layers' inputs; null for nothing
   */
  public Planner(
      Checkpoint checkpoint,
      ModelFamily family,
      Layout layout,
      PlanOptions options,
      long slabBytes,
      InputAmaxes inputs) {
    this(
        new PlanSource(
            checkpoint.path().toString(), checkpoint.config(), checkpoint.sourceFiles(), checkpoint.tensors()),
        family, layout, options, slabBytes, inputs);
  }

  Planner(
      PlanSource source,
      ModelFamily family,
      Layout layout,
      PlanOptions options,
      long slabBytes,
      InputAmaxes inputs) {
    this.source = source;
    this.family = family;
    this.layout = layout;
    this.options = options;
    this.slabBytes = slabBytes;
    this.inputs = inputs;
  }

  /**
   * The plan.
   *
   * @throws IllegalArgumentException if the source is quantized already, contradicts its config or lacks a tensor, if
   *     layers that runtimes fuse cannot share a scale, if a pattern of the selection matches nothing or a part of what
   *     runtimes fuse, or if the options leave nothing to quantize
   */
  public QuantizationPlan plan() {
    Targets targets = Targets.named(options.targets());
    ModelConfig config = new ModelConfig(source.config());
    ModelTensors tensors =
        new TensorClassifier(family, config, layout.batchesExperts()).classify(source.tensors());
    Selection selection = options.selection();
    LayerChoice choice =
        new LayerChoice(tensors.blocks(), tensors.others(), new GatedAttention(config), targets, selection);
    UnitFinder found = new UnitFinder(tensors, choice, selection.strict());
    if (found.units().isEmpty()) {
      throw nothingToQuantize(found, targets);
    }

    StoredWeights stored = new StoredWeights(tensors.source(), config, layout, options.keepSourcePrecision());
    List<ItemDraft> items = items(found, tensors, stored);
    requireDistinctNames(items);
    QuantizationPlan plan = new QuantizationPlan(
        Fingerprint.of(source, family, options),
        source.input(),
        options,
        family.name(),
        slabBytes,
        source.files(),
        new ShardPacker(items, options.maxShardBytes()).shards(),
        kept(found, tensors, stored),
        stored.dropped(items));
    if (options.keepSourcePrecision()) {
      // what configuration files cannot say is an error now, not when they are written
      layout.configs(source.config().deepCopy(), plan);
    }

    return plan;
  }

  private IllegalArgumentException nothingToQuantize(UnitFinder found, Targets targets) {
    String why = found.kept().stream()
        .collect(Collectors.groupingBy(found::reason, Collectors.counting()))
        .entrySet().stream()
        .map(entry -> entry.getValue() + " layers: " + entry.getKey())
        .collect(Collectors.joining("; "));
    return new IllegalArgumentException("Cannot find a layer to quantize: targets " + targets.optionName()
        + " choose none of family " + family.name() + " in " + source.input() + " that can be (left as they are: "
        + why + "); choose --targets mlp or linears, or another source");
  }

  /** Units and copied tensors in the source's order, units numbered in it. */
  private List<ItemDraft> items(UnitFinder found, ModelTensors tensors, StoredWeights stored) {
    Map<LocatedTensor, List<Member>> units = new IdentityHashMap<>();
    found.units().forEach(members -> units.put(members.get(0).weight(), members));
    List<LocatedTensor> anchors = new ArrayList<>(units.keySet());
    anchors.addAll(new KeptTensors(found, tensors).tensors());
    tensors.others().forEach(other -> anchors.add(other.tensor()));
    anchors.sort(SOURCE_ORDER);
    List<ItemDraft> items = new ArrayList<>(anchors.size());
    int id = 0;
    for (LocatedTensor anchor : anchors) {
      List<Member> members = units.get(anchor);
      if (members == null && tensors.source().stored(anchor) != null) {
        items.add(stored.item(tensors.source().stored(anchor)));
      } else if (members == null) {
        items.add(ItemDraft.copied(anchor));
      } else {
        Unit unit = new Unit(id++, name(members), tensors.source().scheme(anchor), anchor.cols(), members);
        items.add(ItemDraft.quantized(unit, layout.tensors(unit, options), inputScale(members)));
      }
    }

    return items;
  }

  /** Layers that runtimes fuse have one input, and so one scale. */
  private InputScale inputScale(List<Member> members) {
    List<String> layers = members.stream().map(Member::module).toList();
    if (inputs == null || options.weightOnly()) {
      return InputScale.ASSUMED;
    }

    Float own = inputs.own(layers);
    Float amax = own != null ? own : inputs.peers(layers);
    return amax == null
        ? InputScale.ASSUMED
        : new InputScale(
            layout.recipe().globalScale(amax, ElementType.F32),
            own != null ? InputScale.Origin.MEASURED : InputScale.Origin.PEERS);
  }

  /** {@code model.layers.0.mlp.experts.3.{gate_proj,up_proj}} of two modules, the module's own name of one. */
  private static String name(List<Member> members) {
    if (members.size() == 1) {
      return members.get(0).module();
    }

    String first = members.get(0).module();
    String path = first.substring(0, first.lastIndexOf('.') + 1);
    return members.stream()
        .map(member -> member.module().substring(path.length()))
        .collect(Collectors.joining(",", path + "{", "}"));
  }

  private static void requireDistinctNames(List<ItemDraft> items) {
    Set<String> names = new HashSet<>();
    for (ItemDraft item : items) {
      item.at(0).outputs().forEach(tensor -> requireNew(names, tensor.name()));
    }
  }

  private static void requireNew(Set<String> names, String name) {
    if (!names.add(name)) {
      throw new IllegalArgumentException("Invalid checkpoint: its tensor " + name
          + " has the name of a tensor that a quantized layer gets; is it quantized already?");
    }
  }

  /** Modules with a matrix that is not quantized, in the source's order; output heads are there even if tied. */
  private List<KeptModule> kept(UnitFinder found, ModelTensors tensors, StoredWeights stored) {
    List<Reasoned> kept = new ArrayList<>();
    found.kept().forEach(weight -> kept.add(new Reasoned(weight, found.reason(weight))));
    for (RoledTensor other : tensors.others()) {
      if (isMatrix(other.tensor())) {
        kept.add(new Reasoned(other.tensor(), other.role().reason()));
      }
    }

    kept.sort(Comparator.comparing(Reasoned::tensor, SOURCE_ORDER));
    Set<KeptModule> modules = new LinkedHashSet<>();
    tensors.heads().forEach(head -> modules.add(new KeptModule(head, Role.LM_HEAD.description())));
    for (Reasoned each : kept) {
      String module = SourceTensors.module(each.tensor().name());
      modules.add(new KeptModule(module, each.reason(), stored.format(module)));
    }

    return List.copyOf(modules);
  }

  private static boolean isMatrix(LocatedTensor tensor) {
    return tensor.shape().size() >= 2 && SourceTensors.isWeight(tensor.name());
  }

  private record Reasoned(LocatedTensor tensor, String reason) {}
}
