package org.sparkfp4.metrics;

/**
 * The counters {@code spark.fp4.NAME} of a process, which is a driver or an executor. They only rise, and count what
 * was done: a task that is tried again counts again.
 */
public enum ProcessCounter {
  /** Bytes of source tensors that partition readers gave, mapped or copied. */
  SOURCE_BYTES("source.bytes"),
  /** Rows that they gave. */
  SOURCE_SLABS("source.slabs"),
  /** Batches that functions ran on. */
  FUNCTION_BATCHES("function.batches"),
  /** Bytes of their results. */
  FUNCTION_RESULT_BYTES("function.resultBytes"),
  /** Time that they took. */
  FUNCTION_NANOS("function.nanos"),
  /** Bytes of shards, their headers included. */
  SINK_BYTES("sink.bytes"),
  /** Shards that got their names. */
  SINK_SHARDS("sink.shards"),
  /** Units that were written. */
  SINK_UNITS("sink.units"),
  /** Units of zeros among them. */
  SINK_ZERO_UNITS("sink.zeroUnits"),
  /** Codes of the largest magnitude, 6. */
  SINK_SATURATED_CODES("sink.saturatedCodes"),
  /** Block scales that are subnormal in E4M3. */
  SINK_SUBNORMAL_SCALES("sink.subnormalScales"),
  /** Blocks of MXFP4 sources that no exact cast could hold. */
  SINK_REQUANTIZED_BLOCKS("sink.requantizedBlocks"),
  /** Shards that the runs of this driver began to write. */
  RUN_SHARDS_PLANNED("run.shardsPlanned"),
  /** Those of them whose tasks have told the driver that they are finished. */
  RUN_SHARDS_FINISHED("run.shardsFinished");

  private final String title;

  ProcessCounter(String title) {
    this.title = title;
  }

  String title() {
    return title;
  }

  /** Adds to the counter of this process, which Spark's metrics system shows from the first time on. */
  public void add(long amount) {
    ProcessCounters.ofProcess().counter(this).inc(amount);
  }
}
