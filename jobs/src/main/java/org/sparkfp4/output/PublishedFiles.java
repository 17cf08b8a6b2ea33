package org.sparkfp4.output;

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
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
import org.sparkfp4.files.AtomicFile;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.plan.ConfigFile;

/** What stands beside the weights of a finished checkpoint, and the order in which it is written. */
public final class PublishedFiles {
  private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  // as Python writes an infinity and a NaN, and as config.json may have them
  private static final ObjectMapper PYTHON_JSON =
      JSON.copy().configure(JsonWriteFeature.WRITE_NAN_AS_STRINGS.mappedFeature(), false);

  private static final String CARD = "README.md";

  private final OutputFolder output;
  private final Checkpoint source;
  private final Configuration conf;

  /** @param source whose side files the output gets */
  public PublishedFiles(OutputFolder output, Checkpoint source, Configuration conf) {
    this.output = output;
    this.source = source;
    this.conf = conf;
  }

  /** Makes the manifest, when all that it names is known. */
  @FunctionalInterface
  public interface ManifestOf {
    /**
     * The manifest.
     *
     * @param files names of all files beside the weights, the index apart
     * @param digests of them and of the index, the manifest and its own digest apart
     */
    Manifest manifest(List<String> files, List<FileDigest> digests);
  }

  /** The source's model card; an empty text where it has none. */
  public String sourceCard() throws IOException {
    Path card = new Path(source.path(), CARD);
    try (InputStream in = RawFileSystem.of(card, conf).open(card)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (FileNotFoundException e) {
      return "";
    }
  }

  /**
   * Writes manifest, side files, configurations, model card and index, in this order: whatever is left behind by a run
   * that ends here is named by the manifest, and without an index there is no checkpoint.
   *
   * @param card the model card, Markdown
   * @param index content of model.safetensors.index.json
   */
  public void publish(List<ConfigFile> configs, String card, JsonNode index, ManifestOf manifest, OutputLock lock)
      throws IOException {
    Map<String, byte[]> written = new LinkedHashMap<>();
    for (ConfigFile config : configs) {
      written.put(config.name(), PYTHON_JSON.writeValueAsBytes(config.content()));
    }

    written.put(CARD, card.getBytes(StandardCharsets.UTF_8));
    byte[] weights = JSON.writeValueAsBytes(index);
    SideFiles sideFiles = new SideFiles(source, output, conf);
    Map<String, FileDigest> copied = sideFiles.digests(written.keySet());
    byte[] all = JSON.writeValueAsBytes(manifest(manifest, written, copied, weights));
    write(Manifest.FILE, all);
    write(Manifest.DIGEST_FILE, Manifest.digestLine(all).getBytes(StandardCharsets.UTF_8));
    sideFiles.copy(copied.values());
    for (Map.Entry<String, byte[]> file : written.entrySet()) {
      write(file.getKey(), file.getValue());
    }

    lock.requireHeld();
    write(OutputFolder.INDEX, weights);
  }

  private static Manifest manifest(
      ManifestOf manifest, Map<String, byte[]> written, Map<String, FileDigest> copied, byte[] index) {
    Map<String, FileDigest> digests = new TreeMap<>(copied);
    written.forEach((name, content) -> digests.put(name, FileDigest.of(name, content)));
    Set<String> files = new TreeSet<>(digests.keySet());
    files.add(Manifest.DIGEST_FILE);
    digests.put(OutputFolder.INDEX, FileDigest.of(OutputFolder.INDEX, index));
    return manifest.manifest(List.copyOf(files), List.copyOf(digests.values()));
  }

  private void write(String name, byte[] content) throws IOException {
    AtomicFile.write(output.fs(), new Path(output.path(), name), content);
  }
}
