package org.sparkfp4.output;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.files.SourceChangedException;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction2;

/**
 * A task that writes files of a plan. What is wrong with the source is its result, in words, and no exception, since
 * Spark would run a failed task again; the result is an empty text where all is well. {@link WritingJob} runs it.
 *
 * @param <P> the plan
 * @param <T> what a partition has
 */
public abstract class WritingTask<P, T> extends AbstractFunction2<TaskContext, Iterator<T>, String>
    implements Serializable {
  private static final long serialVersionUID = 1L;

  private final Broadcast<P> plan;
  private final Broadcast<SerializableConfiguration> conf;
  private final TaskOutput output;

  protected WritingTask(Broadcast<P> plan, Broadcast<SerializableConfiguration> conf, TaskOutput output) {
    this.plan = plan;
    this.conf = conf;
    this.output = output;
  }

  protected final P plan() {
    return plan.value();
  }

  protected final Configuration conf() {
    return conf.value().value();
  }

  /** Writes the files of a partition. */
  protected abstract void write(TaskContext context, Iterator<T> partition, TaskFiles files) throws IOException;

  @Override
  public final String apply(TaskContext context, Iterator<T> partition) {
    try {
      write(context, partition, new TaskFiles(output, conf(), context.taskAttemptId()));
      return "";
    } catch (BadSourceException | SourceChangedException e) {
      return e.getMessage();
    } catch (IOException e) {
      throw new UncheckedIOException(e.getMessage(), e);
    }
  }
}
