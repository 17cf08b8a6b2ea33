package org.sparkfp4.functions;

import java.util.Objects;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF3;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.kernels.KernelChoice;

/**
 * What NVFP4 with ModelOpt's arithmetic would lose of a tensor: {@code (payload, dtype, cols)}, the arguments of
 * {@code nvfp4_quantize}. The tensor is encoded to memory that is given back at once; sums leave alone. A null payload
 * gives null; a weight that is NaN or infinite is a {@link org.sparkfp4.formats.NonFiniteException}.
 */
public final class Nvfp4Error implements UDF3<byte[], String, Long, Row>, ArrowUdf {
  /** A struct of sum_squares, squared_error, relative_error and sqnr (in decibels, null where nothing is lost). */
  public static final StructType RETURN_TYPE = EncodingError.RETURN_TYPE;

  private static final int DTYPE = 1;
  private static final int COLS = 2;

  private final ScaleSearch search;
  private final LazyKernel kernel;

  /** @param search how block scales are chosen */
  public Nvfp4Error(ScaleSearch search, KernelChoice kernels) {
    this.search = Objects.requireNonNull(search, "search");
    this.kernel = new LazyKernel(kernels);
  }

  @Override
  public Row call(byte[] payload, String dtype, Long cols) {
    if (payload == null) {
      return null;
    }

    try (NativeScratch scratch = new NativeScratch(ArrowUtils.rootAllocator())) {
      return error(scratch.copy(payload), payload.length, dtype, cols, scratch);
    }
  }

  @Override
  public ArrowEvaluator open(BufferAllocator allocator) {
    return new StructEvaluator(RETURN_TYPE, this::figures, allocator);
  }

  private Row figures(ColumnVector[] arguments, int row, NativeScratch scratch) {
    ArrowBuf payload = scratch.view(arguments[0], row);
    Long cols = arguments[COLS].isNullAt(row) ? null : arguments[COLS].getLong(row);
    return error(payload.memoryAddress(), payload.capacity(), Payload.text(arguments[DTYPE], row), cols, scratch);
  }

  private Row error(long address, long bytes, String dtype, Long cols, NativeScratch scratch) {
    Segments segments = new Segments(ElementType.of(dtype).name());
    segments.add(0, address, bytes);
    WeightUnit unit = new WeightUnit(segments, cols, null);
    ErrorSums[] sums = unit.encode(kernel.kernel(), Nvfp4Recipe.MODELOPT, search,
        scratch.take(unit.packedBytes()).memoryAddress(), scratch.take(unit.scalesBytes()).memoryAddress()).sums();
    return EncodingError.row(sums[0]);
  }
}
