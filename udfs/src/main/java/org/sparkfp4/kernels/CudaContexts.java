package org.sparkfp4.kernels;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.arrow.memory.util.MemoryUtil;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Host memory, by way of contexts. A task has a context from its first call to its end, when the next task takes it
 * over, since pinning memory takes as long as much work; once no task has one, all are closed. Who calls outside of tasks
 * borrows one for the call.
 */
final class CudaContexts implements CudaMemory {
  /** Tries again after so many milliseconds each, when other tasks may have given memory back. */
  private static final int[] PAUSES = {100, 1000, 5000};

  private final Map<Long, CudaContext> ofTasks = new HashMap<>();
  private final Deque<CudaContext> idle = new ArrayDeque<>();

  @Override
  public int run(Call call) {
    TaskContext task = TaskContext.get();
    if (task != null) {
      return run(ofTask(task), call);
    }

    CudaContext borrowed = open(0);
    try {
      return run(borrowed, call);
    } finally {
      putBack(borrowed);
    }
  }

  private int run(CudaContext context, Call call) {
    int status = context.run(call);
    for (int i = 0; status == CudaBinding.OUT_OF_DEVICE_MEMORY && i < PAUSES.length; i++) {
      closeIdle();
      pause(PAUSES[i]);
      status = context.run(call);
    }

    return status;
  }

  @Override
  public void fill(long address, long bytes, byte value) {
    MemoryUtil.setMemory(address, bytes, value);
  }

  private synchronized CudaContext ofTask(TaskContext task) {
    long id = task.taskAttemptId();
    CudaContext context = ofTasks.get(id);
    if (context == null) {
      context = open(CudaDevices.of(task, CudaBinding.deviceCount()));
      ofTasks.put(id, context);
      task.addTaskCompletionListener((TaskCompletionListener) ended -> giveBack(id));
    }

    return context;
  }

  private synchronized CudaContext open(int device) {
    for (Iterator<CudaContext> contexts = idle.iterator(); contexts.hasNext(); ) {
      CudaContext context = contexts.next();
      if (context.device() == device) {
        contexts.remove();
        return context;
      }
    }

    return CudaContext.open(device);
  }

  private synchronized void giveBack(long task) {
    idle.push(ofTasks.remove(task));
    if (ofTasks.isEmpty()) {
      closeIdle();
    }
  }

  private synchronized void putBack(CudaContext context) {
    idle.push(context);
  }

  private synchronized void closeIdle() {
    idle.forEach(CudaContext::close);
    idle.clear();
  }

  private static void pause(int milliseconds) {
    try {
      TimeUnit.MILLISECONDS.sleep(milliseconds);
    } catch (InterruptedException e) {
      // The task is being ended; whoever interrupted it looks at this.
      Thread.currentThread().interrupt();
    }
  }
}
