package org.sparkfp4.columnar;

import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.sparkfp4.functions.ArrowUdf;

/**
 * A function's value.
 *
 * @param name for messages
 * @param arguments input columns and literals
 * @param inputNames names of the input batch's columns, for messages
 * @param metrics take what the function did
 */
record FunctionColumn(
    ArrowUdf udf, String name, List<ColumnSource> arguments, List<String> inputNames, FunctionMetrics metrics)
    implements ColumnSource {
  @Override
  public ColumnReader open(BufferAllocator allocator) {
    List<ColumnReader> readers = arguments.stream().map(argument -> argument.open(allocator)).toList();
    return new FunctionReader(this, readers, udf.open(allocator));
  }
}
