package org.sparkfp4.kernels;

import java.io.IOException;
import java.util.List;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;

/** A program for SparkSubmit: a task whose GPU is lost the first time. Prints which executor then did it. */
public final class LostDevice {
  private LostDevice() {}

  public static void main(String[] arguments) throws IOException {
    try (SparkSession spark = SparkSession.builder().appName("lost device").getOrCreate()) {
      JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
      List<String> executors = context.parallelize(List.of(1), 1).map(ignored -> {
        if (TaskContext.get().attemptNumber() == 0) {
          throw new DeviceLostError("an illegal memory access was encountered");
        }

        return SparkEnv.get().executorId();
      }).collect();
      System.out.println("served by executor " + executors.get(0));
    }
  }
}
