package org.sparkfp4.columnar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;

class TaskMemoryTest {
  private final SparkSession spark = TestSpark.extended();

  @Test
  void aConsumerThatNeverReleasesFailsItsTask() {
    Dataset<Row> units = Queries.units(spark, Map.of("partitions", "1"));
    Throwable error = catchThrowable(() -> write(Queries.quantized(spark, units)));
    assertThat(Queries.chain(error)).extracting(Throwable::getMessage)
        .anyMatch(message -> message.contains("Cannot end ArrowProject of task")
            && message.contains("bytes of its Arrow memory are still in use"));
  }

  @Test
  void aLeakDoesNotHideWhyATaskFailed() {
    Dataset<Row> units = Queries.units(spark, Map.of("nan", "6", "partitions", "1"));
    Throwable error = catchThrowable(() -> write(Queries.quantized(spark, units)));
    assertThat(Queries.chain(error)).extracting(Throwable::getMessage)
        .anyMatch(message -> message.startsWith("Invalid weight: NaN at element 5"))
        .noneMatch(message -> message.contains("still in use"));
  }

  private static void write(Dataset<Row> quantized) {
    quantized.write().format(UnitSink.class.getName()).option("run", "leak").option("leak", true).mode("append").save();
  }
}
