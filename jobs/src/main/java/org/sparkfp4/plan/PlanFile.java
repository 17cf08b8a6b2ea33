package org.sparkfp4.plan;

import com.fasterxml.jackson.annotation.JsonSetter;
import com.fasterxml.jackson.annotation.Nulls;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.ref.WeakReference;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.AtomicRename;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.Utf8Json;

/** {@code plan.json}: a plan as Jackson writes its records. It may have tens of megabytes and is streamed. */
public final class PlanFile {
  private static final int BUFFER_BYTES = 1 << 20;

  private static final ObjectMapper JSON = JsonMapper.builder()
      .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
      .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
      .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
      .defaultSetterInfo(JsonSetter.Value.forContentNulls(Nulls.FAIL))
      .build();

  /** The job, its source and its sink read one plan in one driver: while one of them holds it, the others share it. */
  private static final AtomicReference<Known> LAST = new AtomicReference<>(new Known(null, null));

  private PlanFile() {}

  /** A plan in memory, for as long as somebody else holds it, and the file that it is the content of. */
  private record Known(Path path, long length, long modified, WeakReference<QuantizationPlan> plan) {
    Known(FileStatus file, QuantizationPlan plan) {
      this(
          file == null ? null : file.getPath(), file == null ? 0 : file.getLen(),
          file == null ? 0 : file.getModificationTime(), new WeakReference<>(plan));
    }

    QuantizationPlan of(FileStatus file) {
      return file.getPath().equals(path) && file.getLen() == length && file.getModificationTime() == modified
          ? plan.get()
          : null;
    }
  }

  /**
   * Reads a plan.
   *
   * @throws InvalidPlanException when it is damaged, or of another version
   * @throws IOException when there is none
   */
  public static QuantizationPlan read(Configuration configuration, Path path) throws IOException {
    FileSystem fileSystem = RawFileSystem.of(path, configuration);
    FileStatus status = fileSystem.getFileStatus(path);
    QuantizationPlan known = LAST.get().of(status);
    if (known != null) {
      return known;
    }

    QuantizationPlan plan = parse(path, new BufferedInputStream(fileSystem.open(path), BUFFER_BYTES));
    LAST.set(new Known(status, plan));
    return plan;
  }

  /** Parses a plan and closes the stream; {@code path} is what messages call it. */
  static QuantizationPlan parse(Path path, InputStream plan) throws IOException {
    try (InputStream in = plan) {
      QuantizationPlan read = JSON.readValue(Utf8Json.reader(in), QuantizationPlan.class);
      if (read == null) {
        throw new InvalidPlanException(path, "it is null, must be an object", null);
      }

      return read;
    } catch (JsonProcessingException e) {
      throw new InvalidPlanException(path, e.getOriginalMessage(), e);
    }
  }

  /**
   * Writes a plan, in the place of one that is there. Readers see the old plan or all of the new one.
   */
  public static void write(Configuration configuration, Path path, QuantizationPlan plan) throws IOException {
    FileSystem fileSystem = RawFileSystem.of(path, configuration);
    boolean object = RawFileSystem.isObjectStore(fileSystem);
    Path written = object ? path : new Path(path.getParent(), "." + path.getName() + ".unfinished");
    try (OutputStream out = new BufferedOutputStream(fileSystem.create(written, true), BUFFER_BYTES)) {
      JSON.writeValue(out, plan);
    }

    if (!object) {
      AtomicRename.replace(fileSystem, written, path);
    }

    LAST.set(new Known(fileSystem.getFileStatus(path), plan));
  }
}
