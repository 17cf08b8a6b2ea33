package org.sparkfp4.columnar;

import org.apache.spark.sql.SparkSessionExtensions;
import org.sparkfp4.functions.SqlFunctions;
import scala.Function1;
import scala.runtime.BoxedUnit;

/**
 * What {@code spark.sql.extensions=org.sparkfp4.columnar.Fp4Extensions} adds to a session: the rule that runs functions
 * on columns (conf {@code spark.fp4.columnar}: auto or off), and the SQL functions.
 */
public final class Fp4Extensions implements Function1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    SparkVersion version = SparkVersion.current();
    version.requireSupported();
    extensions.injectColumnar(session -> new Fp4ColumnarRule(session.sparkContext().conf(), version));
    SqlFunctions.inject(extensions);
    return BoxedUnit.UNIT;
  }
}
