package org.sparkfp4.columnar;

import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.internal.SQLConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkfp4.functions.RapidsAccelerator;

/** Whether projections run on columns here: {@code spark.fp4.columnar} is auto (the default) or off. */
final class ColumnarMode {
  static final String CONF = "spark.fp4.columnar";

  private static final Logger LOG = LoggerFactory.getLogger(ColumnarMode.class);

  private final SparkConf sparkConf;
  private final SparkVersion version;
  private final AtomicReference<String> logged = new AtomicReference<>();

  ColumnarMode(SparkConf sparkConf, SparkVersion version) {
    this.sparkConf = sparkConf;
    this.version = version;
  }

  /**
   * Asked for a plan that could be changed; says in the log why it is not, once for each reason that comes up.
   *
   * @throws IllegalArgumentException if the conf is neither auto nor off
   */
  boolean enabled(SQLConf conf) {
    Optional<String> reason = reasonAgainst(conf);
    if (reason.isPresent() && !reason.get().equals(logged.getAndSet(reason.get()))) {
      LOG.info("Functions do not run on host columns: {}", reason.get());
    }

    return reason.isEmpty();
  }

  Optional<String> reasonAgainst(SQLConf conf) {
    String mode = conf.getConfString(CONF, "auto");
    if (mode.equals("off")) {
      return Optional.of(CONF + " is off");
    }

    if (!mode.equals("auto")) {
      throw new IllegalArgumentException("Invalid " + CONF + ": " + mode + ", must be auto or off");
    }

    if (RapidsAccelerator.isActive(sparkConf, conf)) {
      return Optional.of(
          "the RAPIDS Accelerator (" + RapidsAccelerator.PLUGIN + ") is active and plans the projections itself");
    }

    return version.reasonAgainstColumns();
  }
}
