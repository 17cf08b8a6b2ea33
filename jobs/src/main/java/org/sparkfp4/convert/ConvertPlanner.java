package org.sparkfp4.convert;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.NaturalOrder;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.Sha256;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.layouts.ExternalWeights;
import org.sparkfp4.safetensors.TensorInfo;

/** Makes the plan of a conversion from what the source's headers show. */
final class ConvertPlanner {
  /** Goes up whenever the same source and options give other bytes than before. */
  private static final int BYTE_FORMAT = 2;

  private final SourceModel model;
  private final String target;
  private final InitializerNames names;
  private final long maxFileBytes;

  /**
   * @param target name of a layout
   * @param names of stacked experts' tensors
   * @param maxFileBytes above which a file has one item only; 0 for a size that the model gives
   * @throws IllegalArgumentException if there is no such layout
   */
  ConvertPlanner(SourceModel model, String target, InitializerNames names, long maxFileBytes) {
    this.model = model;
    this.target = target;
    this.names = names;
    this.maxFileBytes = maxFileBytes;
  }

  /** The names of all layouts. */
  static String layouts() {
    return ModuleForm.MODELOPT.layout() + ", " + ModuleForm.COMPRESSED_TENSORS.layout() + ", " + ExpertLayout.names();
  }

  /** Whether there is a layout of that name. */
  static boolean isLayout(String name) {
    return ModuleForm.named(name).isPresent() || ExpertLayout.named(name).isPresent();
  }

  /**
   * The output's files.
   *
   * @throws IllegalArgumentException if the layout does not take the model, naming the rule
   */
  List<ConvertFile> files() {
    ExpertLayout stacked = ExpertLayout.named(target).orElse(null);
    ModuleForm form = ModuleForm.named(target).orElse(ModuleForm.MODELOPT);
    model.requireDescribableAs(form);
    List<ConvertItem> items = new ArrayList<>();
    model.others().forEach(tensor -> items.add(copied(tensor)));
    model.linears().forEach(linear -> items.add(linears(List.of(linear), form)));
    List<ConvertItem> container = new ArrayList<>();
    if (stacked == null) {
      model.layers().forEach(layer -> addExperts(layer, form, items));
    } else {
      addStacks(stacked, stacked.isExternal() ? container : items);
    }

    items.sort(Comparator.comparing(ConvertPlanner::place));
    List<ConvertFile> files = new ArrayList<>(FilePacker.pack(items, maxFileBytes));
    if (!container.isEmpty()) {
      files.add(new ConvertFile(ExternalWeights.FILE, FilePacker.inOrder(container), true));
    }

    requireDistinctNames(files);
    return files;
  }

  private void addStacks(ExpertLayout layout, List<ConvertItem> items) {
    if (model.layers().isEmpty()) {
      throw new IllegalArgumentException("Cannot write layout " + target + ": the source has no NVFP4 layers of routed "
          + "experts, and the layout is for those; choose modelopt or compressed-tensors");
    }

    List<ExpertLayer> layers = model.layers().stream()
        .sorted(Comparator.comparing(ExpertLayer::path, new NaturalOrder()))
        .toList();
    for (int i = 0; i < layers.size(); i++) {
      ExpertLayer layer = layers.get(i);
      layout.requireFits(layer.path(), layer.shape());
      items.add(new ConvertItem.Layer(layer, layout, names.tensors(layer, i, layout)));
    }

    names.requireAllTaken(layers.size(), layout);
  }

  private static void addExperts(ExpertLayer layer, ModuleForm form, List<ConvertItem> items) {
    for (int e = 0; e < layer.shape().experts(); e++) {
      if (layer.stored() instanceof StoredExperts.Modules modules) {
        items.add(linears(modules.experts().get(e), form));
      } else {
        int expert = e;
        List<Boolean> inputs = IntStream.range(0, layer.projections().size())
            .mapToObj(p -> layer.stored().hasInput(expert, p))
            .toList();
        items.add(new ConvertItem.Expert(layer, e, form, form.tensors(layer.modules(e), inputs)));
      }
    }
  }

  private static ConvertItem copied(LocatedTensor tensor) {
    return new ConvertItem.Copied(
        tensor, List.of(new TensorInfo(tensor.name(), tensor.dtype(), tensor.shape(), 0, tensor.length())));
  }

  private static ConvertItem linears(List<QuantizedLinear> sources, ModuleForm form) {
    return new ConvertItem.Linears(sources, form, form.tensors(
        sources.stream().map(source -> new LinearShape(source.module(), source.rows(), source.cols())).toList(),
        sources.stream().map(source -> source.input() != null).toList()));
  }

  /** Where the source has an item: files are read front to back. */
  private static Place place(ConvertItem item) {
    if (item instanceof ConvertItem.Copied copied) {
      return Place.of(copied.source(), 0);
    }

    if (item instanceof ConvertItem.Linears linears) {
      return Place.of(linears.sources().get(0).codes(), 0);
    }

    ExpertLayer layer = item instanceof ConvertItem.Expert expert ? expert.layer() : ((ConvertItem.Layer) item).layer();
    int number = item instanceof ConvertItem.Expert expert ? expert.expert() : 0;
    return layer.stored() instanceof StoredExperts.Stack stack
        ? Place.of(stack.tensors().get(0), number)
        : Place.of(((StoredExperts.Modules) layer.stored()).experts().get(0).get(0).codes(), 0);
  }

  private record Place(String file, long offset, int number) implements Comparable<Place> {
    static Place of(LocatedTensor tensor, int number) {
      return new Place(tensor.file(), tensor.offset(), number);
    }

    @Override
    public int compareTo(Place other) {
      return Comparator.comparing(Place::file).thenComparing(Place::offset).thenComparing(Place::number)
          .compare(this, other);
    }
  }

  private static void requireDistinctNames(List<ConvertFile> files) {
    Set<String> taken = new HashSet<>();
    for (ConvertFile file : files) {
      for (TensorInfo tensor : file.tensors()) {
        if (!taken.add(tensor.name())) {
          throw new IllegalArgumentException(
              "Cannot convert: two tensors of the output would be called " + tensor.name());
        }
      }
    }
  }

  /**
   * The plan of a checkpoint.
   *
   * @param input its folder, a qualified path
   * @param sources its files
   * @param tensors all of it
   */
  ConvertPlan plan(String input, List<SourceFile> sources, List<LocatedTensor> tensors) {
    Sha256 digest = new Sha256();
    add(digest, "convert " + BYTE_FORMAT + " " + target + " " + maxFileBytes + " " + model.config());
    sources.forEach(source -> add(digest, source.name() + " " + source.length() + " " + source.modified()));
    tensors.forEach(tensor -> add(digest, tensor.name().length() + " " + tensor));
    List<ConvertFile> files = files();
    files.forEach(file -> file.tensors().forEach(tensor -> add(digest, file.name() + " " + tensor)));
    return new ConvertPlan(digest.hex(), input, target, sources, files);
  }

  /** What a plan is called whose source is itself made by a plan, and not kept. */
  String fingerprint(String of) {
    Sha256 digest = new Sha256();
    add(digest, "convert " + BYTE_FORMAT + " " + target + " " + maxFileBytes + " " + of);
    files().forEach(file -> file.tensors().forEach(tensor -> add(digest, file.name() + " " + tensor)));
    return digest.hex();
  }

  private static void add(Sha256 digest, String line) {
    digest.update(line + "\n");
  }
}
