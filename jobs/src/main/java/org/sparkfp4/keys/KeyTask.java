package org.sparkfp4.keys;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.safetensors.SourceChangedException;
import org.sparkfp4.sink.BadSourceException;
import org.sparkfp4.sink.StagedFile;
import org.sparkfp4.sink.StagingFolder;
import org.sparkfp4.sink.Storage;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction2;

/** A task that writes one file. */
abstract class KeyTask<T> extends AbstractFunction2<TaskContext, Iterator<T>, TaskResult> implements Serializable {
  /** Folder, in the run's own, of ranges whose layer is not whole. */
  private static final String PARTS = "parts";

  private final Broadcast<KeyPlan> plan;
  private final Broadcast<SerializableConfiguration> conf;
  private final TaskSettings settings;

  KeyTask(Broadcast<KeyPlan> plan, Broadcast<SerializableConfiguration> conf, TaskSettings settings) {
    this.plan = plan;
    this.conf = conf;
    this.settings = settings;
  }

  KeyPlan plan() {
    return plan.value();
  }

  TaskSettings settings() {
    return settings;
  }

  Configuration conf() {
    return conf.value().value();
  }

  static Path parts(StagingFolder staging) {
    return new Path(staging.root(), PARTS);
  }

  /** Writes the file. */
  abstract void write(TaskContext context, Iterator<T> rows) throws IOException;

  @Override
  public TaskResult apply(TaskContext context, Iterator<T> rows) {
    try {
      write(context, rows);
      return new TaskResult(null);
    } catch (BadSourceException | SourceChangedException e) {
      return new TaskResult(e.getMessage());
    } catch (IOException e) {
      throw new UncheckedIOException(e.getMessage(), e);
    }
  }

  /** Begins the file of a record. */
  StagedFile begin(Output output, int record, String name, boolean isPart, TaskContext context) throws IOException {
    Path folder = isPart ? parts(output.staging) : new Path(settings.output());
    return new StagedFile(
        output.storage, output.staging, new Path(folder, name), record, settings.run(), context.taskAttemptId());
  }

  Output output() throws IOException {
    Path folder = new Path(settings.output());
    Storage storage = Storage.of(folder, conf(), settings.commit());
    return new Output(storage, new StagingFolder(storage.fs(), folder));
  }

  /** Where a task writes. */
  record Output(Storage storage, StagingFolder staging) {}
}
