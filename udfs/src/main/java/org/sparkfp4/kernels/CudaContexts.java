package org.sparkfp4.kernels;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
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

  /** How long contexts and pinned memory stay that no task takes over. */
  private static final Duration KEPT = Duration.ofSeconds(30);

  private final Map<Long, CudaContext> ofTasks = new ConcurrentHashMap<>();
  private final Spares<CudaContext> spares = new Spares<>(KEPT);
  private final PinnedResults results = new PinnedResults(KEPT);

  @Override
  public int run(Call call) {
    TaskContext task = TaskContext.get();
    if (task != null) {
      return run(ofTask(task), call);
    }

    CudaContext borrowed = open(device(null));
    try {
      return run(borrowed, call);
    } finally {
      spares.give(borrowed);
    }
  }

  private int run(CudaContext context, Call call) {
    int status = context.run(call);
    for (int i = 0; status == CudaBinding.OUT_OF_DEVICE_MEMORY && i < PAUSES.length; i++) {
      spares.closeAll();
      results.closeSpares();
      pause(PAUSES[i]);
      status = context.run(call);
    }

    return status;
  }

  @Override
  public void fill(long address, long bytes, byte value) {
    MemoryUtil.setMemory(address, bytes, value);
  }

  @Override
  public ArrowBuf results(BufferAllocator allocator, long bytes) {
    return results.buffer(allocator, device(TaskContext.get()), bytes);
  }

  private CudaContext ofTask(TaskContext task) {
    long id = task.taskAttemptId();
    CudaContext context = ofTasks.get(id);
    if (context == null) {
      context = open(device(task));
      ofTasks.put(id, context);
      task.addTaskCompletionListener((TaskCompletionListener) ended -> spares.give(ofTasks.remove(id)));
    }

    return context;
  }

  /** Not under a lock: each task of a job's first wave waits for its own pinned memory alone. */
  private CudaContext open(int device) {
    CudaContext spare = spares.take(context -> context.device() == device);
    return spare == null ? CudaContext.open(device) : spare;
  }

  private static int device(TaskContext task) {
    return CudaDevices.of(task, CudaBinding.deviceCount());
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
