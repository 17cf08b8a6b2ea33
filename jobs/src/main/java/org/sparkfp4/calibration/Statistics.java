package org.sparkfp4.calibration;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.ByteArrayInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.Sha256;
import org.sparkfp4.files.Utf8Json;

/**
 * A folder of finished statistics.
 *
 * @param folder its path
 * @param index what is in it
 * @param digest SHA-256 of the index, lower-case hexadecimal; as the index has those of the files, it stands for all
 */
public record Statistics(Path folder, StatisticsIndex index, String digest) {
  /** Name of the index. */
  public static final String INDEX = "statistics.json";

  static final ObjectMapper JSON = JsonMapper.builder()
      .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
      .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
      .build();

  /** The name of a tensor of a module's statistics, such as {@code mean_square}. */
  public static String tensor(String module, String name) {
    return module + ".input." + name;
  }

  /**
   * Opens a folder.
   *
   * @throws IOException if it has no index, the index is of another version, or a file is missing or of another length
   */
  public static Statistics open(Configuration conf, Path folder) throws IOException {
    Path path = new Path(folder, INDEX);
    FileSystem fs = RawFileSystem.of(path, conf);
    byte[] content;
    try (InputStream in = fs.open(path)) {
      content = in.readAllBytes();
    } catch (FileNotFoundException e) {
      throw new IOException("Cannot read statistics in " + folder + ": it has no " + INDEX
          + "; give a folder that calibrate has finished", e);
    }

    StatisticsIndex index = parse(path, content);
    for (StatisticsIndex.StatisticsFile file : index.files()) {
      Path shard = ChildPath.of(folder, file.name());
      if (!fs.exists(shard) || fs.getFileStatus(shard).getLen() != file.length()) {
        throw new IOException("Invalid statistics " + path + ": file " + file.name() + " of " + file.length()
            + " bytes is missing or of another length; calibrate anew");
      }
    }

    Set<String> names = index.files().stream().map(StatisticsIndex.StatisticsFile::name).collect(Collectors.toSet());
    for (ModuleStatistics module : index.modules()) {
      if (!names.contains(module.file())) {
        throw new IOException("Invalid statistics " + path + ": those of " + module.module() + " are in " + module.file()
            + ", which is none of its files; calibrate anew");
      }
    }

    return new Statistics(folder, index, Sha256.hex(content));
  }

  private static StatisticsIndex parse(Path path, byte[] content) throws IOException {
    try {
      StatisticsIndex index = JSON.readValue(Utf8Json.reader(new ByteArrayInputStream(content)), StatisticsIndex.class);
      if (index.format() != StatisticsIndex.FORMAT) {
        throw new IOException("Invalid statistics " + path + ": format " + index.format() + ", must be "
            + StatisticsIndex.FORMAT + "; calibrate anew");
      }

      return index;
    } catch (JsonProcessingException e) {
      throw new IOException("Invalid statistics " + path + ": " + e.getOriginalMessage() + "; calibrate anew", e);
    }
  }

  /**
   * Holds the modules against a model's layers.
   *
   * @throws IllegalArgumentException naming the first module that is none of them, or whose K differs
   */
  public void requireOf(ModelModules model) {
    for (ModuleStatistics module : index.modules()) {
      model.require(new FoundInput(module.module(), module.cols(), false, folder + "/" + module.file()));
    }
  }
}
