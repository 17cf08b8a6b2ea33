package org.sparkfp4.kernels;

import org.apache.spark.TaskContext;
import org.apache.spark.resource.ResourceInformation;

/** Which device a task works on. */
final class CudaDevices {
  private static final String GPU = "gpu";

  private CudaDevices() {}

  /**
   * The device that Spark assigned to the task; where Spark schedules no GPUs, tasks take them in turn.
   *
   * @param task null outside of tasks
   * @param count devices of this host
   * @throws IllegalStateException if Spark assigned one that is not there
   */
  static int of(TaskContext task, int count) {
    if (task == null) {
      return 0;
    }

    ResourceInformation assigned = task.resourcesJMap().get(GPU);
    return assigned == null || assigned.addresses().length == 0
        ? task.partitionId() % count
        : of(assigned.addresses()[0], count);
  }

  /** The device of an address that Spark assigned. */
  static int of(String address, int count) {
    try {
      int device = Integer.parseInt(address.strip());
      if (device >= 0 && device < count) {
        return device;
      }
    } catch (NumberFormatException e) {
      // told below
    }

    throw new IllegalStateException("Cannot use the GPU that Spark assigned, " + address + ": devices here are 0 to "
        + (count - 1) + ". Let spark.executor.resource.gpu.discoveryScript print such numbers (conf/gpu-discovery)");
  }
}
