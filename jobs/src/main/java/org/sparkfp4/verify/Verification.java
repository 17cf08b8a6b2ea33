package org.sparkfp4.verify;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.CheckpointIndex;
import org.sparkfp4.checkpoint.InvalidCheckpointException;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.ModelFamilies;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.checkpoint.SourceTensors;
import org.sparkfp4.convert.FoundLayout;
import org.sparkfp4.formats.E2M1;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.output.Manifest;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.plan.ActivationPlanner;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.progress.CountedTasks;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.progress.Work;
import org.sparkfp4.safetensors.InvalidSafetensorsException;

/**
 * A second reading of a quantized checkpoint beside its source, by the reference of the formats alone: no kernel, no
 * plan and no writer that made it has a part in it.
 *
 * <p>Headers, index and configuration are held to the layout's rules on the driver; bytes are read by one task a shard,
 * in slabs of rows.
 */
public final class Verification {
  /** The part of a checkpoint with a manifest that is quantized again, unless said otherwise. */
  public static final SampleSize SAMPLE = new SampleSize(-1, 0.05);

  /** More than rounding to 4 bits can do, which is 0.2 in any block whose scale is normal: a sign of a wrong layout. */
  static final double LARGEST_ERROR = 0.25;

  /** E4M3 code of 2^-6. */
  private static final int SMALLEST_NORMAL_SCALE = 0x08;

  private static final int DESCRIBED = 100;

  private final SparkSession spark;
  private final Checkpoint source;
  private final ModelFamilies families;
  private final String folder;
  private final SampleSize sample;
  private final Differences differences = new Differences(DESCRIBED);

  /**
   * @param source the checkpoint that was quantized
   * @param folder the quantized checkpoint
   * @param sample how many layers are quantized again and compared byte for byte; null for {@link #SAMPLE} of a
   *     checkpoint with a manifest, whose digests show whether its bytes are those that were written, and all of another
   */
  public Verification(SparkSession spark, Checkpoint source, String folder, SampleSize sample) {
    this(spark, source, ModelFamilies.builtIn(), folder, sample);
  }

  /**
   * @param families tell the order of dimensions where the source stacks experts in one tensor
   */
  public Verification(
      SparkSession spark, Checkpoint source, ModelFamilies families, String folder, SampleSize sample) {
    this.spark = spark;
    this.source = source;
    this.families = families;
    this.folder = folder;
    this.sample = sample;
  }

  /**
   * Verifies the checkpoint.
   *
   * @throws IOException if one of the two cannot be read; what is wrong with the quantized one is in the result
   * @throws IllegalArgumentException if it has nothing to be held against a source: stacked experts, activations
   */
  public VerificationResult run() throws IOException {
    return run(ProgressView.of("off"));
  }

  /** The same, with its progress in a view that is closed when all is read. */
  public VerificationResult run(ProgressView view) throws IOException {
    Configuration conf = spark.sessionState().newHadoopConf();
    QuantizedFolder quantizedFolder = QuantizedFolder.open(folder, conf);
    Checkpoint quantized;
    try {
      quantized = Checkpoint.open(conf, folder);
    } catch (InvalidCheckpointException | InvalidSafetensorsException e) {
      differences.add(e.getMessage());
      return result(List.of(), 0);
    }

    Manifest manifest = quantizedFolder.manifest(differences);
    requireModules(quantized, manifest, conf);
    Scheme scheme = Scheme.of(quantized).orElse(null);
    if (scheme == null) {
      differences.add("Invalid checkpoint " + folder + ": it has no NVFP4 layers of one layout, ModelOpt's "
          + "(weight_scale_2) or compressed-tensors' (weight_global_scale)");
      return result(List.of(), 0);
    }

    checkFiles(quantized, quantizedFolder, manifest);
    TensorMatch match = new TensorMatch(
        sourceTensors(scheme), quantized, scheme, ClaimReader.isHybrid(quantized.config()), sampleOf(manifest),
        differences);
    List<QuantizationClaim> claims =
        new ClaimReader(differences).read(scheme, quantized.config(), quantizedFolder.json(Checkpoint.QUANT_CONFIG));
    new ConfigCheck(claims, differences).check(
        match.layers().values(), match.kept(), match.stored().forms());

    ScaleClaim claim = ScaleClaim.of(manifest);
    List<ShardFindings> findings = verifyShards(tasks(quantized, manifest, match), claim, quantizedFolder, conf, view);
    findings.forEach(each -> differences.addAll(each.differences()));
    List<LayerCheck> checks = findings.stream().flatMap(each -> each.layers().stream()).toList();
    new GlobalScaleCheck(match.layers(), claim, manifest != null, differences).check(checks);
    checks.forEach(check -> checkError(check, scheme.recipe()));
    return result(findings, match.kept().size() + match.stored().copies().size());
  }

  /**
   * Refuses what has no layers by themselves to be held against the source's: that is no difference, and another command
   * has the answer.
   */
  private void requireModules(Checkpoint quantized, Manifest manifest, Configuration conf) throws IOException {
    PlanOptions options = manifest == null ? null : manifest.options();
    if (options != null && options.targets().equals(ActivationPlanner.TARGETS)) {
      throw new IllegalArgumentException("Cannot hold " + folder + " against a checkpoint: it has activations, and no "
          + "weights; quantize-activations with --overwrite makes it anew");
    }

    Optional<String> stacked = options == null
        ? FoundLayout.stacked(conf, quantized).map(FoundLayout::name)
        : ExpertLayout.named(options.layout()).map(ExpertLayout::optionName);
    if (stacked.isPresent()) {
      throw new IllegalArgumentException("Cannot hold " + folder + " against its source: its experts are arranged for a "
          + "runtime, layout " + stacked.get() + "; verify what convert --input " + folder
          + " --to modelopt makes of it, or hold its files against their digests by --manifest");
    }
  }

  private SampleSize sampleOf(Manifest manifest) {
    if (manifest != null && manifest.isConverted()) {
      return SampleSize.NONE;
    }

    if (sample != null) {
      return sample;
    }

    return manifest == null ? SampleSize.ALL : SAMPLE;
  }

  /** The source's weights, however they are stored; a source without config.json is as its headers say. */
  private SourceTensors sourceTensors(Scheme scheme) throws IOException {
    JsonNode config = source.config().isObject() ? source.config() : JsonNodeFactory.instance.objectNode();
    try {
      ModelConfig model = new ModelConfig(config);
      Optional<ModelFamily> family = families.find(model);
      return family.isPresent()
          ? SourceTensors.of(source.tensors(), model, family.get(), scheme == Scheme.MODELOPT)
          : SourceTensors.of(source.tensors(), model);
    } catch (IllegalArgumentException e) {
      throw new IOException("Cannot verify against the source " + source.path() + ": " + e.getMessage(), e);
    }
  }

  private void checkFiles(Checkpoint quantized, QuantizedFolder quantizedFolder, Manifest manifest)
      throws IOException {
    quantized.strayShards().forEach(stray -> differences.add(
        "Unexpected file " + stray + ": the index does not name it, but some runtimes load every .safetensors file"));
    if (quantizedFolder.has(CheckpointIndex.NAME)) {
      long bytes = quantized.tensors().stream().mapToLong(LocatedTensor::length).sum();
      JsonNode total = quantizedFolder.totalSize();
      if (!total.isIntegralNumber() || total.asLong() != bytes) {
        differences.add(CheckpointIndex.NAME + " has the total_size " + (total.isMissingNode() ? "missing" : total)
            + ", the tensors take " + bytes);
      }
    }

    if (quantized.config().isMissingNode() && !source.config().isMissingNode()) {
      differences.add("Missing file " + Checkpoint.CONFIG + ", which the source has");
    }

    if (manifest != null) {
      ManifestCheck check = new ManifestCheck(manifest, differences);
      check.checkShards(quantized.shards());
      check.checkSources(source.sourceFiles());
      checkOtherFiles(quantized, quantizedFolder, manifest);
    }
  }

  /** What Spark FP4 writes beside the shards is there, and the model's own configuration is the source's. */
  private void checkOtherFiles(Checkpoint quantized, QuantizedFolder quantizedFolder, Manifest manifest)
      throws IOException {
    Set<String> files = new TreeSet<>(manifest.files());
    files.add(CheckpointIndex.NAME);
    if (quantized.config().isMissingNode()) {
      files.remove(Checkpoint.CONFIG);
    }

    manifest.digests().forEach(digest -> files.remove(digest.name()));
    for (String file : files) {
      if (!quantizedFolder.has(file)) {
        differences.add("Missing file " + file + ", which was written with the shards");
      }
    }

    List<FileClaim> claims = FileClaim.besideShards(quantizedFolder.path(), manifest);
    ManifestVerification.verify(spark, claims, spark.sessionState().newHadoopConf(), ProgressView.of("off"))
        .forEach(file -> file.addTo(differences));

    if (!quantized.config().isMissingNode()) {
      CarriedConfig carried = new CarriedConfig(differences);
      carried.check(source.config(), quantized.config());
      if (ClaimReader.isHybrid(quantized.config())) {
        carried.checkStorage(source.config(), quantized.config());
      }
    }
  }

  private static List<ShardTask> tasks(Checkpoint quantized, Manifest manifest, TensorMatch match) {
    Map<String, List<CopiedTensor>> copies = Stream.concat(match.copies().stream(), match.stored().copies().stream())
        .collect(Collectors.groupingBy(tensor -> tensor.copy().file(), LinkedHashMap::new, Collectors.toList()));
    Map<String, List<QuantizedLayer>> layers = match.layers().values().stream()
        .collect(Collectors.groupingBy(layer -> layer.packed().file(), LinkedHashMap::new, Collectors.toList()));
    Map<String, List<DequantizedTensor>> dequantized = match.dequantized().stream()
        .collect(Collectors.groupingBy(tensor -> tensor.copy().file(), LinkedHashMap::new, Collectors.toList()));
    Map<String, ShardRecord> recorded = manifest == null ? Map.of() : ManifestCheck.byFile(manifest);
    List<ShardTask> tasks = new ArrayList<>();
    for (FileStatus shard : quantized.shards()) {
      String file = shard.getPath().getName();
      tasks.add(new ShardTask(
          file,
          shard.getLen(),
          recorded.containsKey(file) ? recorded.get(file).sha256() : null,
          copies.getOrDefault(file, List.of()),
          dequantized.getOrDefault(file, List.of()),
          layers.getOrDefault(file, List.of())));
    }

    return tasks;
  }

  private List<ShardFindings> verifyShards(
      List<ShardTask> tasks, ScaleClaim claim, QuantizedFolder quantizedFolder, Configuration conf, ProgressView view) {
    ShardVerifier verifier = new ShardVerifier(
        source.path().toString(), quantizedFolder.path().toString(), claim, new SerializableConfiguration(conf));
    return new CountedTasks(spark, view, Work.SHARDS_COMPARED).run(tasks, verifier, ShardTask::length);
  }

  /** A layer so small beside the one it shares a scale with that its block scales are subnormal may lose all it has. */
  private void checkError(LayerCheck check, Nvfp4Recipe recipe) {
    float smallestNormalBlock = E2M1.MAX * recipe.dequantFactor(SMALLEST_NORMAL_SCALE, check.globalScale());
    if (check.amax() >= smallestNormalBlock && !(check.relativeError() <= LARGEST_ERROR)) {
      differences.add(String.format("Layer %s has a relative error of %.3f, more than rounding can cause (%.2f)",
          check.module(), check.relativeError(), LARGEST_ERROR));
    }
  }

  private VerificationResult result(List<ShardFindings> findings, int copies) {
    CodeCounts counts = new CodeCounts();
    findings.forEach(each -> counts.addAll(each.counts()));
    return new VerificationResult(
        findings.size(),
        findings.stream().mapToLong(ShardFindings::bytes).sum(),
        copies,
        findings.stream().flatMap(each -> each.layers().stream()).toList(),
        counts,
        differences);
  }
}
