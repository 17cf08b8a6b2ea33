package org.sparkfp4;

import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.columnar.Fp4Extensions;

/** The one session of the module's tests. */
public final class TestSpark {
  private static SparkSession session;

  private TestSpark() {}

  public static synchronized SparkSession session() {
    // a test of commands may have stopped it
    if (session == null || session.sparkContext().isStopped()) {
      session = SparkSession.builder()
          // tasks may fail three times, so that a test sees whether what cannot succeed is tried again
          .master("local[2,4]")
          .config("spark.sql.extensions", Fp4Extensions.class.getName())
          .config("spark.ui.enabled", "false")
          .config("spark.sql.shuffle.partitions", "2")
          // a test of what comes with heartbeats waits for one
          .config("spark.executor.heartbeatInterval", "500ms")
          .getOrCreate();
      session.sparkContext().setLogLevel("ERROR");
    }

    return session;
  }

  /** Returns once Spark's listeners have been told of all that has happened, which another thread does. */
  public static void awaitEvents() {
    try {
      session().sparkContext().listenerBus().waitUntilEmpty(10_000);
    } catch (TimeoutException e) {
      throw new IllegalStateException("Spark's listeners are not told of all in 10 s", e);
    }
  }
}
