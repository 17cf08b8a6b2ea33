package org.sparkfp4.jobs;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.InvalidCheckpointException;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.ModelFamilies;
import org.sparkfp4.checkpoint.NaturalOrder;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.keys.CachedKeys;
import org.sparkfp4.layouts.Layouts;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.plan.ByteSize;
import org.sparkfp4.plan.Layout;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.Targets;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * {@code inspect}: what a checkpoint is and what would become of it, or what a cache of keys is, by headers alone. No
 * tensor's bytes are read.
 */
@Command(
    name = "inspect",
    description = "Tells what is in a checkpoint, what quantize would do with it or what it did, from its headers alone.",
    mixinStandardHelpOptions = true)
final class InspectCommand implements Callable<Integer> {
  private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  /** Folders that a message names. */
  private static final int NAMED = 10;

  @Parameters(paramLabel = "DIR", converter = FolderText.class,
      description = "A checkpoint's folder, or one .safetensors file; or a cache of keys.")
  private String folder;

  @Option(names = "--tensors", description = "List every tensor: name, element type, shape, file, bytes.")
  private boolean tensors;

  @Option(names = "--json", description = "Print all of it as one JSON object, every tensor included.")
  private boolean json;

  @Option(names = "--layout", defaultValue = "modelopt", paramLabel = "NAME",
      description = "Layout to plan for: modelopt (default), compressed-tensors, or another that quantize takes, whose "
          + "demands on shapes only quantize --dry-run looks at.")
  private String layout;

  @Option(names = "--targets", defaultValue = "experts", paramLabel = "WHICH",
      description = "Layers to plan for: experts (default), mlp or linears.")
  private String targets;

  @Option(names = "--keep-source-precision", description = "Plan with the option of quantize.")
  private boolean keepSourcePrecision;

  @Mixin
  private SelectionOptions selection;

  @Mixin
  private FamilyOption familyOption;

  @Mixin
  private Verbosity verbosity;

  @Spec
  private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    if (CachedKeys.isCache(SparkConfiguration.hadoop(), folder)) {
      return inspectCache();
    }

    Layout planned = OptionValue.of(spec, () -> Layouts.named(layout));
    OptionValue.of(spec, () -> Targets.named(targets));
    OutputFolder ours = ours();
    requireNoneBegun(ours);
    Checkpoint checkpoint = open(ours);
    CheckpointSummary summary = CheckpointSummary.of(checkpoint);
    QuantizedSummary quantized = QuantizedSummary.of(SparkConfiguration.hadoop(), checkpoint, ours);
    String state = ours == null ? null : new OutputState(ours).text();
    // what is in NVFP4 already is no source, and nothing would become of it
    PlanPreview preview = quantized == null ? preview(checkpoint, planned) : null;
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      ObjectNode all = JSON.valueToTree(summary);
      all.set("nvfp4", JSON.valueToTree(quantized));
      all.put("state", state);
      all.set("plan", JSON.valueToTree(preview));
      addTensors(all.putArray("tensors"), checkpoint);
      out.println(JSON.writeValueAsString(all));
    } else {
      printHead(out, summary, preview);
      if (quantized != null) {
        quantized.print(out);
      }

      if (state != null) {
        out.printf("state         %s%n", state);
      }

      printTensors(out, checkpoint, summary, preview);
    }

    out.flush();
    return 0;
  }

  /** The folder as an output of ours, which it may be; null for a single file. */
  private OutputFolder ours() throws IOException {
    Path path = new Path(folder);
    FileSystem fs = RawFileSystem.of(path, SparkConfiguration.hadoop());
    return fs.exists(path) && fs.getFileStatus(path).isDirectory() ? new OutputFolder(fs, fs.makeQualified(path)) : null;
  }

  /** Shards without the index that is written last, and without what stands beside them, would be told of as others. */
  private static void requireNoneBegun(OutputFolder ours) throws IOException {
    if (ours != null && new OutputState(ours).isBegun() && !ours.fs().exists(ours.index())) {
      throw new JobException("Cannot inspect " + ours.path()
          + " yet: a run was begun there and has not finished; the same command finishes it");
    }
  }

  private Checkpoint open(OutputFolder ours) throws IOException {
    try {
      return Checkpoint.open(SparkConfiguration.hadoop(), folder);
    } catch (InvalidCheckpointException e) {
      List<String> batch = ours == null ? List.of() : outputsIn(ours);
      if (!batch.isEmpty()) {
        throw new JobException("Cannot inspect " + ours.path() + " as one checkpoint: it holds " + batch.size()
            + (batch.size() == 1 ? " output" : " outputs") + ", each in a folder of its own; give one of them: "
            + String.join(", ", batch.subList(0, Math.min(NAMED, batch.size()))) + (batch.size() > NAMED ? ", …" : ""));
      }

      throw e;
    }
  }

  /** Names of the folders directly in one that hold an output each, as files of a batch of activations become. */
  private static List<String> outputsIn(OutputFolder folder) throws IOException {
    List<String> names = new ArrayList<>();
    for (FileStatus entry : folder.fs().listStatus(folder.path())) {
      if (entry.isDirectory() && folder.fs().exists(new OutputFolder(folder.fs(), entry.getPath()).manifestFile())) {
        names.add(entry.getPath().getName());
      }
    }

    return names.stream().sorted(new NaturalOrder()).toList();
  }

  private int inspectCache() throws IOException {
    CacheInspection cache = new CacheInspection(folder, CachedKeys.layers(SparkConfiguration.hadoop(), folder));
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      out.println(cache.json());
    } else {
      cache.print(out);
    }

    out.flush();
    return 0;
  }

  private PlanPreview preview(Checkpoint checkpoint, Layout planned) throws IOException {
    ModelFamilies families = familyOption.families(SparkConfiguration.hadoop());
    String search = ScaleSearch.SWEEP.optionName();
    PlanOptions options =
        new PlanOptions(layout, search, targets, false, 0, selection.selection(), keepSourcePrecision, null);
    return PlanPreview.of(
        checkpoint, each -> families.of(ModelConfig.of(each)), planned, options);
  }

  private static void addTensors(ArrayNode list, Checkpoint checkpoint) {
    for (LocatedTensor tensor : checkpoint.tensors()) {
      list.add(JSON.<ObjectNode>valueToTree(tensor));
    }
  }

  private static void printHead(PrintWriter out, CheckpointSummary summary, PlanPreview preview) {
    out.printf("%s%n", summary.path());
    out.printf("model type    %s%n", summary.modelType() == null ? "unknown" : summary.modelType());
    if (preview != null) {
      out.printf("family        %s%n", preview.family() == null ? "unknown" : preview.family());
    }

    out.printf("quantization  %s%n", quantization(summary.quantization()));
  }

  private void printTensors(PrintWriter out, Checkpoint checkpoint, CheckpointSummary summary, PlanPreview preview) {
    out.printf("tensors       %d, %s, in %d %s%n", summary.total().tensors(), ByteSize.format(summary.total().bytes()),
        summary.shards(), summary.shards() == 1 ? "shard" : "shards");
    summary.strayShards().forEach(shard -> out.printf("not indexed   %s%n", shard));
    out.println();
    TextTable dtypes = new TextTable("dtype", "tensors", "bytes");
    summary.dtypes().forEach((dtype, total) ->
        dtypes.add(dtype, Long.toString(total.tensors()), ByteSize.format(total.bytes())));
    dtypes.print(out);
    out.println();
    if (preview != null) {
      printPlan(out, preview);
    }

    if (tensors) {
      listTensors(checkpoint).print(out);
    } else {
      listGroups(summary).print(out);
    }
  }

  private static void printPlan(PrintWriter out, PlanPreview preview) {
    if (!preview.roles().isEmpty()) {
      TextTable roles = new TextTable("role", "stored", "becomes", "because", "tensors", "bytes");
      preview.roles().forEach(row -> roles.add(row.role(), String.join(", ", row.stored()), row.outcome(), row.reason(),
          Long.toString(row.tensors()), ByteSize.format(row.bytes())));
      roles.print(out);
      out.printf("%nquantized     %.1f %% of the parameters, %s out%n",
          100 * preview.quantizedShare(), ByteSize.format(preview.bytesOut()));
    }

    // where there is a plan, nothing stands in its way
    String label = preview.roles().isEmpty() ? "problem" : "warning";
    preview.problems().forEach(problem -> out.printf("%s       %s%n", label, problem));
    out.println();
  }

  private static TextTable listTensors(Checkpoint checkpoint) {
    TextTable table = new TextTable("name", "dtype", "shape", "file", "bytes");
    for (LocatedTensor tensor : checkpoint.tensors()) {
      table.add(tensor.name(), tensor.dtype().name(), tensor.shape().toString(), tensor.file(),
          Long.toString(tensor.length()));
    }

    return table;
  }

  private static TextTable listGroups(CheckpointSummary summary) {
    TextTable table = new TextTable("name", "dtype", "shape", "tensors", "bytes");
    for (CheckpointSummary.Group group : summary.groups()) {
      String more = group.shapes().size() > 1 ? " and " + (group.shapes().size() - 1) + " more" : "";
      table.add(group.pattern(), String.join(", ", group.dtypes()), group.shapes().get(0) + more,
          Long.toString(group.tensors()), ByteSize.format(group.bytes()));
    }

    return table;
  }

  private static String quantization(JsonNode config) {
    if (config == null) {
      return "none";
    }

    List<String> parts = new ArrayList<>();
    for (String key : List.of("quant_method", "quant_algo", "format", "fmt", "bits", "weight_block_size")) {
      if (config.hasNonNull(key)) {
        parts.add(key + " " + (config.get(key).isTextual() ? config.get(key).textValue() : config.get(key)));
      }
    }

    return parts.isEmpty() ? config.toString() : String.join(", ", parts);
  }
}
