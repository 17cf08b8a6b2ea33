package org.sparkfp4.kernels;

import org.apache.spark.SparkEnv;
import org.sparkfp4.formats.NonFiniteException;

/** What the statuses of {@link CudaBinding} mean to a task. */
final class CudaStatus {
  /** How Spark names the executor of a local session. */
  private static final String DRIVER = "driver";

  private CudaStatus() {}

  /** The status of a call that looks at no weights. */
  static void check(int status) {
    check(status, new NativeResult());
  }

  /**
   * @param result has the first element that is not finite
   * @throws NonFiniteException if there is one
   * @throws IllegalStateException if the device has no memory left, or fails
   */
  static void check(int status, NativeResult result) {
    switch (status) {
      case NativeBinding.OK -> { }
      case NativeBinding.NON_FINITE -> throw result.nonFinite();
      case NativeBinding.OUT_OF_MEMORY -> throw new OutOfMemoryError("Cannot allocate the segments of a CUDA kernel");
      case CudaBinding.OUT_OF_DEVICE_MEMORY -> throw new IllegalStateException("Cannot run on the GPU: no memory for the "
          + "smallest pieces (" + CudaBinding.error() + "). Run fewer tasks a GPU (spark.executor.cores, "
          + "spark.task.resource.gpu.amount), or end what else uses it");
      case CudaBinding.STICKY -> throw lost(CudaBinding.error());
      default -> throw new IllegalStateException(
          "Cannot run on the GPU: status " + status + " (" + CudaBinding.error() + ")");
    }
  }

  /** An executor must end, and Spark replaces it. In a local session that is the driver, whose job fails instead. */
  private static RuntimeException lost(String error) {
    SparkEnv env = SparkEnv.get();
    String message = "Cannot use the GPU any more in this process: " + error;
    if (env != null && !env.executorId().equals(DRIVER)) {
      throw new DeviceLostError(message + ". The executor ends, for Spark to start another");
    }

    return new IllegalStateException(message + ". Start again; if it comes back, run with device cpu");
  }
}
