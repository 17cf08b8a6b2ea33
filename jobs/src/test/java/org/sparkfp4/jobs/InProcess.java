package org.sparkfp4.jobs;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.TestSpark;

/** Runs commands in the tests' own session: as {@link SparkSubmit} does, without the seconds that a JVM takes. */
final class InProcess {
  private final Map<String, String> conf = new LinkedHashMap<>();

  InProcess conf(String key, String value) {
    conf.put(key, value);
    return this;
  }

  /** Runs a command whose arguments may be paths and numbers. */
  SparkSubmitResult runAll(Object... arguments) {
    return run(Arrays.stream(arguments).map(Object::toString).toArray(String[]::new));
  }

  SparkSubmitResult run(String... arguments) {
    SparkSession spark = TestSpark.session();
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    conf.forEach(spark.conf()::set);
    try {
      int status = Main.commandLine()
          .setOut(new PrintWriter(out, true))
          .setErr(new PrintWriter(err, true))
          .execute(arguments);
      return new SparkSubmitResult(status, out.toString(), err.toString());
    } finally {
      conf.keySet().forEach(spark.conf()::unset);
    }
  }
}
