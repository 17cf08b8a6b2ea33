package org.sparkfp4.progress;

import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.function.Supplier;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.StageInfo;
import scala.jdk.javaapi.CollectionConverters;

/** A job whose tasks are counted as they end, those too whose results go to other tasks. */
public final class CountedJob {
  private static final String ID = "sparkfp4.job";

  private final SparkContext context;
  private final ProgressView view;

  /** @param view of the progress; closed when the job has run */
  public CountedJob(SparkContext context, ProgressView view) {
    this.context = context;
    this.view = view;
  }

  /** Runs a job, whose stages need one another's results in turn, from this thread. */
  public <R> R run(Supplier<R> job) {
    String id = UUID.randomUUID().toString();
    context.setLocalProperty(ID, id);
    try (Tasks tasks = new Tasks(id, view)) {
      context.addSparkListener(tasks);
      R result = job.get();
      tasks.complete();
      return result;
    } finally {
      context.setLocalProperty(ID, null);
    }
  }

  /** Counts tasks by Spark's events, which come on another thread and may be late. */
  private final class Tasks extends SparkListener implements AutoCloseable {
    private final String id;
    private final ProgressView shown;
    /** Partitions that are done, of each of the stages that run. */
    private final Map<Integer, BitSet> done = new HashMap<>();
    private final Map<Integer, StageInfo> stages = new HashMap<>();
    private RunProgress progress;
    /** Whether the job has run; what is told of it from then on is late. */
    private boolean ended;

    Tasks(String id, ProgressView shown) {
      this.id = id;
      this.shown = shown;
    }

    @Override
    public synchronized void onJobStart(SparkListenerJobStart start) {
      if (start.properties() != null && id.equals(start.properties().getProperty(ID))) {
        CollectionConverters.asJava(start.stageInfos()).forEach(stage -> stages.put(stage.stageId(), stage));
      }
    }

    /** Those before the first stage that runs have left their results already. */
    @Override
    public synchronized void onStageSubmitted(SparkListenerStageSubmitted submitted) {
      int first = submitted.stageInfo().stageId();
      if (ended || progress != null || !stages.containsKey(first)) {
        return;
      }

      int tasks = 0;
      for (StageInfo stage : stages.values()) {
        if (stage.stageId() >= first) {
          done.put(stage.stageId(), new BitSet());
          tasks += stage.numTasks();
        }
      }

      progress = new RunProgress(shown, Work.TASKS, tasks, 0);
      progress.show();
    }

    @Override
    public synchronized void onTaskEnd(SparkListenerTaskEnd end) {
      BitSet partitions = done.get(end.stageId());
      int partition = end.taskInfo().partitionId();
      if (!ended && partitions != null && end.taskInfo().successful() && !partitions.get(partition)) {
        partitions.set(partition);
        progress.finished(0);
      }
    }

    synchronized void complete() {
      ended = true;
      if (progress != null) {
        progress.complete();
      }
    }

    @Override
    public void close() {
      // Spark may wait here for the thread that tells of events, which may wait for this object.
      context.removeSparkListener(this);
      synchronized (this) {
        ended = true;
        if (progress == null) {
          shown.close();
        } else {
          progress.close();
        }
      }
    }
  }
}
