package org.sparkfp4.checkpoint;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;

/** The order of the dimensions in a tensor that stacks the matrices of all experts of a layer. */
public enum StackOrder {
  /** {@code [experts, rows, K]}: each matrix as a linear layer stores it. */
  @JsonProperty("rows_k")
  ROWS_K("[experts, rows, K]"),
  /** {@code [experts, K, rows]}: each matrix transposed. */
  @JsonProperty("k_rows")
  K_ROWS("[experts, K, rows]");

  private final String text;

  StackOrder(String text) {
    this.text = text;
  }

  List<Long> shape(long experts, long rows, long cols) {
    return this == ROWS_K ? List.of(experts, rows, cols) : List.of(experts, cols, rows);
  }

  @Override
  public String toString() {
    return text;
  }
}
