package org.sparkfp4.jobs;

import java.util.List;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.functions.Nvfp4Functions;
import org.sparkfp4.functions.RapidsAccelerator;
import org.sparkfp4.kernels.Device;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.kernels.Nvfp4Kernels;

/**
 * Asks, before any work, whether the kernels that a run wants are to be had where its tasks run. On a cluster that is a
 * job of one task: the driver's processor tells nothing, and it never touches a GPU. Where executors differ, a task on
 * one that has not what was asked for refuses in the same words.
 */
final class KernelProbe {
  private KernelProbe() {}

  /**
   * Asks where the tasks run.
   *
   * @throws IllegalArgumentException if the tier or the device is not to be had in this process, which runs the tasks
   * @throws IllegalStateException if there is a native library here that cannot be used
   * @throws JobException if an executor has not what is asked for, or the plan's device is not the session's
   */
  static void require(SparkSession spark, KernelChoice kernels) {
    if (kernels.device() == Device.RAPIDS) {
      requireRapids(spark);
    }

    if (spark.sparkContext().isLocal()) {
      Nvfp4Kernels.require(kernels);
    } else if (!kernels.isAutomatic()) {
      requireOnExecutor(spark, kernels);
    }
  }

  private static void requireRapids(SparkSession spark) {
    if (!RapidsAccelerator.isActive(spark.sparkContext().conf(), spark.sessionState().conf())) {
      throw new JobException("Cannot run on device rapids: the RAPIDS Accelerator is not active in this session. Start "
          + "it with --conf spark.plugins=" + RapidsAccelerator.PLUGIN + " and its jar (conf/README.md), or choose "
          + "--device cuda or cpu");
    }

    if (!Nvfp4Functions.hasRapidsFace()) {
      throw new JobException("Cannot run on device rapids: this jar was built without the functions for the RAPIDS "
          + "Accelerator. Build it with ./sparkfp4 package -Drapids.jar=JAR, or choose --device cuda or cpu");
    }
  }

  private static void requireOnExecutor(SparkSession spark, KernelChoice kernels) {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    String refusal = context.parallelize(List.of(kernels), 1).map(KernelProbe::refusal).first();
    if (!refusal.isEmpty()) {
      throw new JobException(refusal);
    }
  }

  /** Empty where the kernels are there; as text, since an exception would have the task tried again. */
  private static String refusal(KernelChoice kernels) {
    try {
      Nvfp4Kernels.require(kernels);
      return "";
    } catch (IllegalArgumentException | IllegalStateException e) {
      return e.getMessage() + " (executor " + SparkEnv.get().executorId() + ")";
    }
  }
}
