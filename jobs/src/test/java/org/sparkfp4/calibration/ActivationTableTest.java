package org.sparkfp4.calibration;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.TestSpark;

/** What a table of activations must not have. */
class ActivationTableTest {
  private static final String VALUES = "transform(sequence(1, 16), i -> float(i))";

  @TempDir
  private Path folder;

  @Test
  void nullsAreRefused() {
    requireRefusal("SELECT 'm' AS module, 0 AS token, CAST(NULL AS ARRAY<FLOAT>) AS values",
        "module m: a token has no values");
    requireRefusal("SELECT 'm' AS module, id AS token, IF(id = 2, NULL, " + VALUES + ") AS values FROM range(4)",
        "module m: a token has no values");
    requireRefusal("SELECT 'm' AS module, 0 AS token, transform(sequence(1, 16), i -> IF(i = 3, NULL, float(i))) "
        + "AS values", "module m: a token has no values, a null among them");
    requireRefusal("SELECT 'm' AS module, CAST(NULL AS INT) AS token, " + VALUES + " AS values",
        "module m: a token is null");
    requireRefusal("SELECT CAST(NULL AS STRING) AS module, 0 AS token, " + VALUES + " AS values",
        "module null: it is null");
    requireRefusal("SELECT 'm' AS module, 0 AS token, " + VALUES + " AS values, array(1, NULL) AS experts",
        "module m: a token has a null among its experts");
    requireRefusal("SELECT 'm' AS module, 0 AS token, CAST(NULL AS BINARY) AS values, 'F32' AS dtype",
        "module m: a token has no values");
  }

  @Test
  void whatACastWouldChangeIsRefused() {
    requireRefusal("SELECT 'm' AS module, 0.5D AS token, " + VALUES + " AS values",
        "column token is DOUBLE, must be an integer");
    requireRefusal("SELECT 'm' AS module, 0 AS token, " + VALUES + " AS values, array(1.5D) AS experts",
        "column experts is ARRAY<DOUBLE>, must be an array of integers");
    requireRefusal("SELECT 'm' AS module, 0 AS token, array('1', 'x') AS values",
        "column values is ARRAY<STRING>, must be ARRAY<FLOAT> or BINARY");
    requireRefusal("SELECT 'm' AS module, 0 AS token, 'abc' AS values",
        "column values is STRING, must be ARRAY<FLOAT> or BINARY");
  }

  @Test
  void whatCannotBeOpenedIsToldInALine() {
    for (String table : List.of("nosuch:/x", "parquet:/nosuch")) {
      assertThatThrownBy(() -> new ActivationTable(TestSpark.session(), table))
          .isInstanceOf(IllegalArgumentException.class)
          .message()
          .startsWith("Cannot open table " + table + ": ")
          .contains("check its format and its path")
          .hasLineCount(1);
    }
  }

  @Test
  void doublesAreTaken() {
    TestSpark.session().sql("SELECT 'm' AS module, 0 AS token, transform(sequence(1, 16), i -> double(i)) AS values")
        .write().parquet(folder.resolve("doubles").toString());
    assertThat(new ActivationTable(TestSpark.session(), "parquet:" + folder.resolve("doubles")).inputs())
        .extracting(FoundInput::module).containsExactly("m");
  }

  private void requireRefusal(String query, String message) {
    String table = folder.resolve("table").toString();
    TestSpark.session().sql(query).write().mode("overwrite").parquet(table);
    assertThatThrownBy(() -> new ActivationTable(TestSpark.session(), "parquet:" + table))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }
}
