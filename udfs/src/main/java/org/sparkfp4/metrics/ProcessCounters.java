package org.sparkfp4.metrics;

import com.codahale.metrics.Counter;
import com.codahale.metrics.MetricRegistry;
import java.util.EnumMap;
import java.util.Map;
import org.apache.spark.SparkEnv;
import org.apache.spark.metrics.source.Source;

/** All counters of a process, as a source of Spark's metrics system. */
final class ProcessCounters implements Source {
  private static final ProcessCounters COUNTERS = new ProcessCounters();

  /** The environment whose metrics system has the counters; a session that is started anew has another. */
  private static volatile SparkEnv registered;

  private final MetricRegistry registry = new MetricRegistry();
  private final Map<ProcessCounter, Counter> counters = new EnumMap<>(ProcessCounter.class);

  private ProcessCounters() {
    for (ProcessCounter each : ProcessCounter.values()) {
      counters.put(each, registry.counter(each.title()));
    }
  }

  static ProcessCounters ofProcess() {
    SparkEnv env = SparkEnv.get();
    if (env != registered && env != null) {
      register(env);
    }

    return COUNTERS;
  }

  private static synchronized void register(SparkEnv env) {
    if (env != registered) {
      env.metricsSystem().registerSource(COUNTERS);
      registered = env;
    }
  }

  Counter counter(ProcessCounter which) {
    return counters.get(which);
  }

  @Override
  public String sourceName() {
    return "spark.fp4";
  }

  @Override
  public MetricRegistry metricRegistry() {
    return registry;
  }
}
