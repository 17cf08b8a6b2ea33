package org.sparkfp4.calibration;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.safetensors.RawFileSystem;

/** A folder of statistics: its index, and what its tensors are called. */
public final class Statistics {
  /** Name of the index. */
  public static final String INDEX = "statistics.json";

  static final ObjectMapper JSON = JsonMapper.builder()
      .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
      .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
      .build();

  private Statistics() {}

  /** The name of a tensor of a module's statistics, such as {@code mean_square}. */
  public static String tensor(String module, String name) {
    return module + ".input." + name;
  }

  /**
   * Reads a folder's index.
   *
   * @throws IOException if there is none, or it is of another version
   */
  public static StatisticsIndex read(Configuration conf, Path folder) throws IOException {
    Path path = new Path(folder, INDEX);
    FileSystem fs = RawFileSystem.of(path, conf);
    StatisticsIndex index;
    try (InputStream in = fs.open(path)) {
      index = JSON.readValue(in.readAllBytes(), StatisticsIndex.class);
    } catch (FileNotFoundException e) {
      throw new IOException("Cannot read statistics in " + folder + ": it has no " + INDEX
          + "; give a folder that calibrate has finished", e);
    } catch (JsonProcessingException e) {
      throw new IOException("Invalid statistics " + path + ": " + e.getOriginalMessage() + "; calibrate anew", e);
    }

    if (index.format() != StatisticsIndex.FORMAT) {
      throw new IOException("Invalid statistics " + path + ": format " + index.format() + ", must be "
          + StatisticsIndex.FORMAT + "; calibrate anew");
    }

    return index;
  }
}
