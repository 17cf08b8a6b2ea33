package org.sparkfp4.convert;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.CheckpointIndex;
import org.sparkfp4.layouts.ExternalWeights;
import org.sparkfp4.layouts.Layouts;
import org.sparkfp4.output.Manifest;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.output.OutputLock;
import org.sparkfp4.output.PublishedFiles;
import org.sparkfp4.output.RoundedScales;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.plan.ConfigFile;
import org.sparkfp4.safetensors.TensorInfo;

/** Turns the finished files of a conversion into a checkpoint: everything beside them, and at last the index. */
final class ConvertPublisher {
  private final ConvertFolder folder;
  private final Checkpoint source;
  private final SourceModel model;
  private final ConvertPlan plan;
  private final String producer;

  /** {@code producer} is the product's name and version. */
  ConvertPublisher(
      ConvertFolder folder, Checkpoint source, SourceModel model, ConvertPlan plan, String producer) {
    this.folder = folder;
    this.source = source;
    this.model = model;
    this.plan = plan;
    this.producer = producer;
  }

  /**
   * Writes what stands beside the files, as {@link PublishedFiles} does.
   *
   * @param records of every file and part
   */
  void publish(Map<Integer, ShardRecord> records, Provenance origin, OutputLock lock, Configuration conf)
      throws IOException {
    folder.requireWritten(plan, records);
    OutputFolder output = folder.output();
    output.removeStrayShards(plan.files().stream().map(ConvertFile::name).collect(Collectors.toSet()));
    PublishedFiles files = new PublishedFiles(output, source, conf);
    files.publish(
        configs(origin, conf),
        ConvertCard.text(files.sourceCard(), plan, model.isWeightOnly(), rounded(records), producer),
        index(),
        (names, digests) -> new Manifest(
            producer, plan.fingerprint(), origin.input(), origin.family(), origin.options(), origin.sources(),
            fileRecords(records), names, origin.checksums(), digests, origin.tensors(), origin.events()),
        lock);
  }

  /**
   * What is not stacked is named as ModelOpt names it, unless the target is compressed-tensors: a source that is
   * described in that form already keeps its description.
   */
  private List<ConfigFile> configs(Provenance origin, Configuration conf) throws IOException {
    ModuleForm form = ModuleForm.named(plan.target()).orElse(ModuleForm.MODELOPT);
    ObjectNode config = model.config().deepCopy();
    ExternalWeights.forget(config);
    List<ConfigFile> configs = new ArrayList<>();
    if (model.describedAs() == form) {
      configs.add(new ConfigFile(Checkpoint.CONFIG, config));
      QuantConfig.read(conf, source).ifPresent(content -> configs.add(new ConfigFile(Checkpoint.QUANT_CONFIG, content)));
    } else {
      configs.addAll(Layouts.named(form.layout()).configs(config, ConvertedModules.of(model, origin.options())));
    }

    for (ConvertFile file : plan.files()) {
      if (file.name().equals(ExternalWeights.FILE)) {
        ObjectNode main = (ObjectNode) configs.stream()
            .filter(each -> each.name().equals(Checkpoint.CONFIG)).findFirst().orElseThrow().content();
        ExternalWeights.describe(main, file.tensors().stream().map(TensorInfo::name).toList());
      }
    }

    return configs;
  }

  private ObjectNode index() {
    Map<String, String> files = new LinkedHashMap<>();
    for (ConvertFile file : plan.files()) {
      file.tensors().forEach(tensor -> files.put(tensor.name(), file.name()));
    }

    return new CheckpointIndex(files).json(plan.dataBytes());
  }

  /** What was rounded for a file that was written by parts is in the parts' records. */
  private List<ShardRecord> fileRecords(Map<Integer, ShardRecord> records) {
    List<ShardRecord> files = new ArrayList<>();
    for (int i = 0; i < plan.files().size(); i++) {
      ShardRecord record = records.get(i).withoutSource();
      RoundedScales rounded = record.rounded() == null ? RoundedScales.NONE : record.rounded();
      for (ConvertPlan.Part part : plan.files().get(i).byParts() ? plan.parts(i) : List.<ConvertPlan.Part>of()) {
        rounded = rounded.plus(records.containsKey(part.record())
            ? records.get(part.record()).rounded() : RoundedScales.NONE);
      }

      files.add(record.withRounded(rounded));
    }

    return files;
  }

  /** What could not be kept. */
  RoundedScales rounded(Map<Integer, ShardRecord> records) {
    return fileRecords(records).stream().map(ShardRecord::rounded).reduce(RoundedScales.NONE, RoundedScales::plus);
  }
}
