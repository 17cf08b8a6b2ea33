package org.sparkfp4.kernels;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.arrow.memory.util.MemoryUtil;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Host memory, by way of contexts. A task has a context from its first call to its end, when the next task takes it
 * over: to pin memory takes as long as much work. What no task takes over for half a minute is closed. Who calls outside
 * of tasks borrows one for the call.
 */
final class CudaContexts implements CudaMemory {
  /** Tries again after so many milliseconds each, when other tasks may have given memory back. */
  private static final int[] PAUSES = {100, 1000, 5000};

  /** How long contexts stay open that no task takes over. */
  private static final long KEPT_SECONDS = 30;

  private final Map<Long, CudaContext> ofTasks = new ConcurrentHashMap<>();
  private final Deque<CudaContext> idle = new ArrayDeque<>();
  private long lastUse;
  private boolean isCloseDue;

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

  private CudaContext ofTask(TaskContext task) {
    long id = task.taskAttemptId();
    CudaContext context = ofTasks.get(id);
    if (context == null) {
      context = open(CudaDevices.of(task, CudaBinding.deviceCount()));
      ofTasks.put(id, context);
      task.addTaskCompletionListener((TaskCompletionListener) ended -> putBack(ofTasks.remove(id)));
    }

    return context;
  }

  /** Not under a lock: each task of a job's first wave waits for its own pinned memory alone. */
  private CudaContext open(int device) {
    CudaContext found = taken(device);
    return found == null ? CudaContext.open(device) : found;
  }

  private synchronized CudaContext taken(int device) {
    for (Iterator<CudaContext> contexts = idle.iterator(); contexts.hasNext(); ) {
      CudaContext context = contexts.next();
      if (context.device() == device) {
        contexts.remove();
        return context;
      }
    }

    return null;
  }

  private synchronized void putBack(CudaContext context) {
    idle.push(context);
    lastUse = System.nanoTime();
    if (!isCloseDue) {
      isCloseDue = true;
      closeLater();
    }
  }

  private void closeLater() {
    CompletableFuture.delayedExecutor(KEPT_SECONDS, TimeUnit.SECONDS).execute(this::closeUnused);
  }

  private synchronized void closeUnused() {
    if (System.nanoTime() - lastUse < TimeUnit.SECONDS.toNanos(KEPT_SECONDS)) {
      closeLater();
    } else {
      isCloseDue = false;
      closeIdle();
    }
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
