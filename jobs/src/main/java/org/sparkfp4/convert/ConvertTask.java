package org.sparkfp4.convert;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.kernels.LayoutKernels;
import org.sparkfp4.safetensors.SourceChangedException;
import org.sparkfp4.sink.BadSourceException;
import org.sparkfp4.sink.SourceFiles;
import org.sparkfp4.sink.SourcePieces;
import org.sparkfp4.sink.StagedFile;
import org.sparkfp4.sink.StagingFolder;
import org.sparkfp4.sink.Storage;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction2;

/**
 * A task that writes files. What is wrong with the source is its result and no exception, since Spark would run a failed
 * task again: an empty text where all is well.
 */
abstract class ConvertTask extends AbstractFunction2<TaskContext, Iterator<Integer>, String> implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Folder, in the run's own, of parts whose file is not whole. */
  private static final String PARTS = "parts";

  /** Of what stands behind the bytes of a part. */
  static final ObjectMapper JSON = new ObjectMapper();

  private final Broadcast<ConvertPlan> plan;
  private final Broadcast<SerializableConfiguration> conf;
  private final TaskSettings settings;

  ConvertTask(Broadcast<ConvertPlan> plan, Broadcast<SerializableConfiguration> conf, TaskSettings settings) {
    this.plan = plan;
    this.conf = conf;
    this.settings = settings;
  }

  ConvertPlan plan() {
    return plan.value();
  }

  Configuration conf() {
    return conf.value().value();
  }

  static Path parts(StagingFolder staging) {
    return new Path(staging.root(), PARTS);
  }

  /** Writes the file of a number. */
  abstract void write(int number, Output output, long attempt) throws IOException;

  @Override
  public String apply(TaskContext context, Iterator<Integer> numbers) {
    try {
      Path folder = new Path(settings.output());
      Storage storage = Storage.of(folder, conf(), settings.commit());
      Output output = new Output(storage, new StagingFolder(storage.fs(), folder), folder, settings.run());
      while (numbers.hasNext()) {
        write(numbers.next(), output, context.taskAttemptId());
      }

      return "";
    } catch (BadSourceException | SourceChangedException e) {
      return e.getMessage();
    } catch (IOException e) {
      throw new UncheckedIOException(e.getMessage(), e);
    }
  }

  /** The kernels of the machine that the task runs on. */
  ExpertArranger arranger() {
    return new ExpertArranger(LayoutKernels.chosen(settings.kernels()));
  }

  SourceFiles source(SourcePieces pieces) {
    return new SourceFiles(plan().input(), plan().sources(), conf(), pieces);
  }

  /** Where a task writes. */
  record Output(Storage storage, StagingFolder staging, Path folder, String run) {
    StagedFile file(String name, int record, long attempt) throws IOException {
      return new StagedFile(storage, staging, new Path(folder, name), record, run, attempt);
    }

    StagedFile part(String name, int record, long attempt) throws IOException {
      return new StagedFile(storage, staging, new Path(parts(staging), name), record, run, attempt);
    }
  }
}
