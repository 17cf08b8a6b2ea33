package org.sparkfp4.calibration;

import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.util.TaskCompletionListener;
import org.sparkfp4.kernels.MatrixMemory;
import org.sparkfp4.kernels.ProductKernel;
import org.sparkfp4.kernels.ProductKernels;

/** What a task sums full Hessians with: the kernel, and native memory, of which nothing is left when the task ends. */
final class HessianWorkspace implements TaskCompletionListener {
  private final ProductKernel kernel;
  private final BufferAllocator allocator;
  private final MatrixMemory memory;

  private HessianWorkspace(ProductKernel kernel, BufferAllocator allocator) {
    this.kernel = kernel;
    this.allocator = allocator;
    this.memory = new MatrixMemory(allocator);
  }

  /** @param tier of the processor's kernels, as {@link ProductKernels#forTier} takes it */
  static HessianWorkspace open(TaskContext context, String tier) {
    HessianWorkspace workspace = new HessianWorkspace(
        ProductKernels.forTier(tier),
        ArrowUtils.rootAllocator().newChildAllocator("Hessians of task " + context.taskAttemptId(), 0, Long.MAX_VALUE));
    context.addTaskCompletionListener(workspace);
    return workspace;
  }

  ProductKernel kernel() {
    return kernel;
  }

  /** Of the sums of one input at a time. */
  MatrixMemory memory() {
    return memory;
  }

  @Override
  public void onTaskCompletion(TaskContext context) {
    try (allocator) {
      memory.close();
    }
  }
}
