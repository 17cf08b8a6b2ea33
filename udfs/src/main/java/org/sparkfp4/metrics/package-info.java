/**
 * What a run counts, in Spark's own two places: sums of a query's tasks, which its SQL page shows, and counters of a
 * process, which its metrics system hands to sinks such as JMX or Prometheus.
 */
package org.sparkfp4.metrics;
