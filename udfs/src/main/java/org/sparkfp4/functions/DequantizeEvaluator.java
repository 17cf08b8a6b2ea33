package org.sparkfp4.functions;

import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.util.MemoryUtil;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;

/** {@link Nvfp4Dequantize} on columns. */
final class DequantizeEvaluator implements ArrowEvaluator {
  private static final int GLOBAL_SCALE = 2;

  private final Nvfp4Dequantize function;
  private final BufferAllocator allocator;
  private final BinaryResult payloads;

  DequantizeEvaluator(Nvfp4Dequantize function, BufferAllocator allocator) {
    this.function = function;
    this.allocator = allocator;
    this.payloads = new BinaryResult("payload", allocator, allocator::buffer);
  }

  @Override
  public ColumnVector evaluate(int rows, ColumnVector[] arguments) {
    VarBinaryVector result = new VarBinaryVector("payload", allocator);
    try (NativeScratch scratch = new NativeScratch(allocator)) {
      ArrowBuf[] packed = new ArrowBuf[rows];
      ArrowBuf[] scales = new ArrowBuf[rows];
      int[] lengths = new int[rows];
      long bytes = 0;
      for (int row = 0; row < rows; row++) {
        if (!arguments[0].isNullAt(row) && !arguments[1].isNullAt(row) && !arguments[GLOBAL_SCALE].isNullAt(row)) {
          packed[row] = scratch.view(arguments[0], row);
          scales[row] = scratch.view(arguments[1], row);
          lengths[row] = Nvfp4Dequantize.payloadBytes(
              packed[row].capacity(), scales[row].capacity(), arguments[GLOBAL_SCALE].getFloat(row));
          bytes += lengths[row];
        }
      }

      payloads.begin(rows, bytes);
      for (int row = 0; row < rows; row++) {
        if (packed[row] == null) {
          payloads.appendNull();
        } else {
          function.decode(packed[row], scales[row], arguments[GLOBAL_SCALE].getFloat(row),
              MemoryUtil.directBuffer(payloads.append(lengths[row]), lengths[row]));
        }
      }

      payloads.load(result);
      return new ArrowColumnVector(result);
    } catch (RuntimeException | Error e) {
      result.close();
      throw e;
    }
  }

  @Override
  public void close() {
    payloads.close();
  }
}
