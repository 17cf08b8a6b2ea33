package org.sparkfp4.sink;

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.layouts.ConfigFile;
import org.sparkfp4.layouts.IndexFile;
import org.sparkfp4.layouts.Layout;
import org.sparkfp4.layouts.ModelCard;
import org.sparkfp4.layouts.RequantizedBlocks;
import org.sparkfp4.layouts.RoleErrors;
import org.sparkfp4.plan.PlanSummary;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.safetensors.RawFileSystem;

/** Turns finished shards into a checkpoint: everything beside them, and at last the index. */
public final class CheckpointPublisher {
  private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  // as Python writes an infinity and a NaN, and as config.json may have them
  private static final ObjectMapper PYTHON_JSON =
      JSON.copy().configure(JsonWriteFeature.WRITE_NAN_AS_STRINGS.mappedFeature(), false);

  private static final String CARD = "README.md";

  private final OutputFolder output;
  private final Checkpoint source;
  private final ModelFamily family;
  private final QuantizationPlan plan;
  private final Layout layout;
  private final String producer;

  /** {@code producer} is the product's name and version. */
  public CheckpointPublisher(
      OutputFolder output,
      Checkpoint source,
      ModelFamily family,
      QuantizationPlan plan,
      Layout layout,
      String producer) {
    this.output = output;
    this.source = source;
    this.family = family;
    this.plan = plan;
    this.layout = layout;
    this.producer = producer;
  }

  /**
   * Writes manifest, side files, configurations, model card and index, in this order: whatever is left behind by a run
   * that ends here is named by the manifest.
   *
   * @param records the record of every shard of the plan
   * @param checksums CRC-32C of each source file
   * @throws IOException if a shard is not as planned: nothing is published then
   */
  public void publish(
      List<ShardRecord> records, Map<String, String> checksums, OutputLock lock, Configuration conf)
      throws IOException {
    requireComplete(records);
    new WrittenShards(output).require(plan, records);
    output.removeStrayShards(plan);
    Map<String, byte[]> written = new LinkedHashMap<>();
    for (ConfigFile config : layout.configs((ObjectNode) source.config(), plan)) {
      written.put(config.name(), PYTHON_JSON.writeValueAsBytes(config.content()));
    }

    written.put(CARD, modelCard(records, conf).getBytes(StandardCharsets.UTF_8));
    byte[] index = JSON.writeValueAsBytes(IndexFile.of(plan));
    SideFiles sideFiles = new SideFiles(source, output, conf);
    Map<String, FileDigest> copied = sideFiles.digests(written.keySet());
    byte[] manifest = JSON.writeValueAsBytes(manifest(records, checksums, written, copied, index));
    write(Manifest.FILE, manifest);
    write(Manifest.DIGEST_FILE, Manifest.digestLine(manifest).getBytes(StandardCharsets.UTF_8));
    sideFiles.copy(copied.values());
    for (Map.Entry<String, byte[]> file : written.entrySet()) {
      write(file.getKey(), file.getValue());
    }

    lock.requireHeld();
    write(OutputFolder.INDEX, index);
  }

  private Manifest manifest(
      List<ShardRecord> records,
      Map<String, String> checksums,
      Map<String, byte[]> written,
      Map<String, FileDigest> copied,
      byte[] index) {
    Map<String, FileDigest> digests = new TreeMap<>(copied);
    written.forEach((name, content) -> digests.put(name, FileDigest.of(name, content)));
    Set<String> files = new TreeSet<>(digests.keySet());
    files.add(Manifest.DIGEST_FILE);
    digests.put(OutputFolder.INDEX, FileDigest.of(OutputFolder.INDEX, index));
    return new Manifest(
        producer, plan.fingerprint(), plan.input(), plan.family(), plan.options(), plan.sources(),
        records.stream().map(ShardRecord::withoutSource).toList(), List.copyOf(files), checksums,
        List.copyOf(digests.values()), TensorSchemes.of(plan), ExceptionalEvents.of(plan, records));
  }

  private String modelCard(List<ShardRecord> records, Configuration conf) throws IOException {
    RoleErrors errors = new RoleErrors(family);
    records.stream()
        .flatMap(record -> record.layers().stream())
        .forEach(layer -> errors.add(layer.module(), layer.sumSquares(), layer.squaredError()));
    long requantized = records.stream()
        .flatMap(record -> record.layers().stream())
        .mapToLong(LayerError::requantized)
        .sum();
    return ModelCard.text(
        PlanSummary.of(plan, family), plan.fingerprint(), source.config(), sourceCard(conf), producer, errors.list(),
        RequantizedBlocks.of(plan, requantized));
  }

  private String sourceCard(Configuration conf) throws IOException {
    Path card = new Path(source.path(), CARD);
    try (InputStream in = RawFileSystem.of(card, conf).open(card)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (FileNotFoundException e) {
      return "";
    }
  }

  private void requireComplete(List<ShardRecord> records) {
    if (records.size() != plan.shards().size()) {
      throw new IllegalStateException(
          "Cannot publish " + output.path() + ": " + records.size() + " shards are finished, the plan has "
              + plan.shards().size());
    }
  }

  private void write(String name, byte[] content) throws IOException {
    AtomicFile.write(output.fs(), new Path(output.path(), name), content);
  }
}
