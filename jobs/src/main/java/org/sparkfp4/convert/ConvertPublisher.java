package org.sparkfp4.convert;

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.layouts.ConfigFile;
import org.sparkfp4.layouts.ExternalWeights;
import org.sparkfp4.layouts.Layouts;
import org.sparkfp4.safetensors.RawFileSystem;
import org.sparkfp4.safetensors.TensorInfo;
import org.sparkfp4.safetensors.Utf8Json;
import org.sparkfp4.sink.AtomicFile;
import org.sparkfp4.sink.FileDigest;
import org.sparkfp4.sink.Manifest;
import org.sparkfp4.sink.OutputFolder;
import org.sparkfp4.sink.OutputLock;
import org.sparkfp4.sink.RoundedScales;
import org.sparkfp4.sink.ShardRecord;
import org.sparkfp4.sink.SideFiles;

/** Turns the finished files of a conversion into a checkpoint: everything beside them, and at last the index. */
final class ConvertPublisher {
  // as Python writes an infinity and a NaN, and as config.json may have them
  private static final ObjectMapper JSON = new ObjectMapper()
      .enable(SerializationFeature.INDENT_OUTPUT)
      .configure(JsonWriteFeature.WRITE_NAN_AS_STRINGS.mappedFeature(), false);
  private static final String CARD = "README.md";
  private static final String QUANT_CONFIG = "hf_quant_config.json";

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
   * Writes manifest, side files, configurations, card and index, in this order: whatever is left behind by a run that
   * ends here is named by the manifest.
   *
   * @param records of every file and part
   */
  void publish(Map<Integer, ShardRecord> records, Provenance origin, OutputLock lock, Configuration conf)
      throws IOException {
    folder.requireWritten(plan, records);
    OutputFolder output = folder.output();
    output.removeStrayShards(plan.files().stream().map(ConvertFile::name).collect(Collectors.toSet()));
    Map<String, byte[]> written = new LinkedHashMap<>();
    for (ConfigFile config : configs(origin, conf)) {
      written.put(config.name(), JSON.writeValueAsBytes(config.content()));
    }

    written.put(CARD, card(records, conf).getBytes(StandardCharsets.UTF_8));
    byte[] index = JSON.writeValueAsBytes(index());
    SideFiles sideFiles = new SideFiles(source, output, conf);
    Map<String, FileDigest> copied = sideFiles.digests(written.keySet());
    byte[] manifest = JSON.writeValueAsBytes(manifest(records, origin, written, copied, index));
    write(Manifest.FILE, manifest);
    write(Manifest.DIGEST_FILE, Manifest.digestLine(manifest).getBytes(StandardCharsets.UTF_8));
    sideFiles.copy(copied.values());
    for (Map.Entry<String, byte[]> file : written.entrySet()) {
      write(file.getKey(), file.getValue());
    }

    lock.requireHeld();
    write(OutputFolder.INDEX, index);
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
      quantConfig(conf).ifPresent(content -> configs.add(new ConfigFile(QUANT_CONFIG, content)));
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

  /** ModelOpt's second description, where the source has one. */
  private Optional<JsonNode> quantConfig(Configuration conf) throws IOException {
    Path file = new Path(source.path(), QUANT_CONFIG);
    try (InputStream in = RawFileSystem.of(file, conf).open(file)) {
      return Optional.of(JSON.readTree(Utf8Json.reader(in)));
    } catch (FileNotFoundException e) {
      return Optional.empty();
    }
  }

  private ObjectNode index() {
    ObjectNode index = JSON.createObjectNode();
    index.putObject("metadata").put("total_size", plan.dataBytes());
    ObjectNode weightMap = index.putObject("weight_map");
    for (ConvertFile file : plan.files()) {
      file.tensors().forEach(tensor -> weightMap.put(tensor.name(), file.name()));
    }

    return index;
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

  private Manifest manifest(
      Map<Integer, ShardRecord> records,
      Provenance origin,
      Map<String, byte[]> written,
      Map<String, FileDigest> copied,
      byte[] index) {
    Map<String, FileDigest> digests = new LinkedHashMap<>(copied);
    written.forEach((name, content) -> digests.put(name, FileDigest.of(name, content)));
    Set<String> files = new TreeSet<>(digests.keySet());
    files.add(Manifest.DIGEST_FILE);
    digests.put(OutputFolder.INDEX, FileDigest.of(OutputFolder.INDEX, index));
    return new Manifest(
        producer, plan.fingerprint(), origin.input(), origin.family(), origin.options(), origin.sources(),
        fileRecords(records), List.copyOf(files), origin.checksums(), List.copyOf(digests.values()), origin.tensors(),
        origin.events());
  }

  private String card(Map<Integer, ShardRecord> records, Configuration conf) throws IOException {
    Path card = new Path(source.path(), CARD);
    String text;
    try (InputStream in = RawFileSystem.of(card, conf).open(card)) {
      text = new String(in.readAllBytes(), StandardCharsets.UTF_8).stripTrailing() + "\n\n";
    } catch (FileNotFoundException e) {
      text = "";
    }

    return text + "## Layout\n\n" + ConvertSummary.sentence(plan, producer) + "\n\n"
        + ConvertSummary.kept(rounded(records)) + "\n";
  }

  private void write(String name, byte[] content) throws IOException {
    AtomicFile.write(folder.output().fs(), new Path(folder.output().path(), name), content);
  }
}
