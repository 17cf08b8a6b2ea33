package org.sparkfp4.convert;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.Utf8Json;

/** ModelOpt's second description of a checkpoint, which an output that keeps its description takes over. */
final class QuantConfig {
  private static final ObjectMapper JSON = new ObjectMapper();

  private QuantConfig() {}

  /**
   * Content of hf_quant_config.json, where there is one.
   *
   * @throws IOException if it is no JSON object
   */
  static Optional<JsonNode> read(Configuration conf, Checkpoint source) throws IOException {
    Path file = new Path(source.path(), Checkpoint.QUANT_CONFIG);
    try (InputStream in = RawFileSystem.of(file, conf).open(file)) {
      JsonNode content = JSON.readTree(Utf8Json.reader(in));
      if (content.isObject()) {
        return Optional.of(content);
      }

      throw refused(file, "is no JSON object", null);
    } catch (FileNotFoundException e) {
      return Optional.empty();
    } catch (JsonProcessingException e) {
      throw refused(file, "is no JSON: " + e.getOriginalMessage(), e);
    }
  }

  private static IOException refused(Path file, String why, Exception cause) {
    return new IOException("Cannot convert: " + file + " " + why + "; give the file that belongs to the weights", cause);
  }
}
