package org.sparkfp4.plan;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.safetensors.RawFileSystem;

/** {@code plan.json}: a plan as Jackson writes its records. It may have tens of megabytes and is streamed. */
public final class PlanFile {
  private static final int BUFFER_BYTES = 1 << 20;

  private static final ObjectMapper JSON = JsonMapper.builder()
      .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
      .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
      .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
      .build();

  private PlanFile() {}

  /**
   * Reads a plan.
   *
   * @throws InvalidPlanException when it is damaged, or of another version
   * @throws IOException when there is none
   */
  public static QuantizationPlan read(Configuration configuration, Path path) throws IOException {
    FileSystem fileSystem = RawFileSystem.of(path, configuration);
    try (InputStream in = new BufferedInputStream(fileSystem.open(path), BUFFER_BYTES)) {
      return JSON.readValue(in, QuantizationPlan.class);
    } catch (JsonProcessingException e) {
      throw new InvalidPlanException(path, e.getOriginalMessage(), e);
    }
  }

  /**
   * Writes a plan, in the place of one that is there. Readers see the old plan, none, or all of the new one.
   */
  public static void write(Configuration configuration, Path path, QuantizationPlan plan) throws IOException {
    FileSystem fileSystem = RawFileSystem.of(path, configuration);
    Path unfinished = new Path(path.getParent(), "." + path.getName() + ".unfinished");
    try (OutputStream out = new BufferedOutputStream(fileSystem.create(unfinished, true), BUFFER_BYTES)) {
      JSON.writeValue(out, plan);
    }

    fileSystem.delete(path, false);
    if (!fileSystem.rename(unfinished, path)) {
      throw new IOException("Cannot write plan " + path + ": renaming " + unfinished + " failed");
    }
  }
}
