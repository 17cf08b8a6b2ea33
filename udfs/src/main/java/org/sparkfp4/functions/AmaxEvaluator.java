package org.sparkfp4.functions;

import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.Float4Vector;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.sparkfp4.kernels.Nvfp4Kernel;

/** {@link Nvfp4Amax} on columns. */
final class AmaxEvaluator implements ArrowEvaluator {
  private static final int COLS = 7;

  private final Nvfp4Kernel kernel;
  private final BufferAllocator allocator;

  AmaxEvaluator(Nvfp4Kernel kernel, BufferAllocator allocator) {
    this.kernel = kernel;
    this.allocator = allocator;
  }

  @Override
  public ColumnVector evaluate(int rows, ColumnVector[] arguments) {
    Float4Vector result = new Float4Vector("amax", allocator);
    try (NativeScratch scratch = new NativeScratch(allocator)) {
      ArgumentReader reader = new ArgumentReader(arguments, scratch);
      result.allocateNew(rows);
      for (int row = 0; row < rows; row++) {
        Segments segments = reader.segments(row);
        if (segments != null) {
          result.set(row, Nvfp4Amax.amax(kernel, segments, reader.longAt(COLS, row)));
        }
      }

      result.setValueCount(rows);
      return new ArrowColumnVector(result);
    } catch (RuntimeException | Error e) {
      result.close();
      throw e;
    }
  }

  @Override
  public void close() {}
}
