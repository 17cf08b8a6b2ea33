package org.sparkfp4.columnar;

import java.util.ArrayDeque;
import java.util.Deque;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The Arrow memory of one operator in one task. When the task ends, everything opened on it is closed; memory that is
 * then still in use was leaked, and the task fails, unless it has failed already.
 */
final class TaskMemory implements TaskCompletionListener, TaskFailureListener {
  private static final Logger LOG = LoggerFactory.getLogger(TaskMemory.class);

  private final BufferAllocator allocator;
  private final Deque<AutoCloseable> opened = new ArrayDeque<>();
  private boolean failed;

  private TaskMemory(BufferAllocator allocator) {
    this.allocator = allocator;
  }

  /** @param owner names the allocator in messages, with the task */
  static TaskMemory open(TaskContext context, String owner) {
    String name = owner + " of task " + context.taskAttemptId() + " (stage " + context.stageId() + ", partition "
        + context.partitionId() + ")";
    TaskMemory memory = new TaskMemory(ArrowUtils.rootAllocator().newChildAllocator(name, 0, Long.MAX_VALUE));
    context.addTaskFailureListener(memory);
    context.addTaskCompletionListener(memory);
    return memory;
  }

  BufferAllocator allocator() {
    return allocator;
  }

  /** Closes the resource when the task ends; what was opened last is closed first. */
  <T extends AutoCloseable> T closedAtEnd(T resource) {
    opened.push(resource);
    return resource;
  }

  @Override
  public void onTaskFailure(TaskContext context, Throwable error) {
    failed = true;
  }

  @Override
  public void onTaskCompletion(TaskContext context) {
    RuntimeException problem = null;
    for (AutoCloseable resource : opened) {
      problem = close(resource, "Cannot close " + resource.getClass().getSimpleName() + " of " + allocator.getName(),
          problem);
    }

    long bytes = allocator.getAllocatedMemory();
    problem = close(allocator, "Cannot end " + allocator.getName() + ": " + bytes
        + " bytes of its Arrow memory are still in use, a consumer of its batches has retained them and not released",
        problem);
    if (problem != null && failed) {
      // Thrown it would hide why the task failed.
      LOG.warn("A failed task did not give back its memory", problem);
    } else if (problem != null) {
      throw problem;
    }
  }

  private static RuntimeException close(AutoCloseable resource, String message, RuntimeException before) {
    try {
      resource.close();
      return before;
    } catch (Exception e) {
      RuntimeException problem = new IllegalStateException(message, e);
      if (before == null) {
        return problem;
      }

      before.addSuppressed(problem);
      return before;
    }
  }
}
