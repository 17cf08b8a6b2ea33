package org.sparkfp4.calibration;

import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.TensorInfo;

/**
 * The tensors of an entry, whose names follow {@code <module>.input.}: {@code tokens} I64 [1], {@code
 * block_amax_histogram} I64 [bins], {@code sum_squares} F64 [K]; then those of four bytes, {@code amax} F32 [1], {@code
 * mean_square} F32 [K], and, as they are asked for and where there are tokens, {@code local_hessian} F32 [K/16, 16,
 * 16], the mean of x xᵀ in each block, {@code hessian} F32 [K, K], its mean over the tokens that are not held out, and
 * {@code hessian_held_out}, that over the held-out ones, whose number is {@code held_out_tokens} I64 [1].
 *
 * @param hasTokens whether a token was seen
 */
record EntryLayout(StatisticsEntry entry, HessianKind hessian, boolean hasTokens) {
  /** Whether there are the Hessians of blocks. */
  boolean hasLocal() {
    return hessian != HessianKind.NONE && hasTokens;
  }

  /** Whether there are the full Hessians. */
  boolean hasFull() {
    return hessian == HessianKind.FULL && hasTokens;
  }

  /** Tensors with elements of eight bytes, the first at {@code begin}. */
  List<TensorInfo> wide(long begin) {
    Places places = new Places(begin);
    places.add("tokens", DType.I64, 1);
    if (hasFull()) {
      places.add("held_out_tokens", DType.I64, 1);
    }

    places.add("block_amax_histogram", DType.I64, BlockAmaxHistogram.BINS);
    places.add("sum_squares", DType.F64, entry.cols());
    return places.tensors;
  }

  /** Tensors with elements of four bytes, the first at {@code begin}. */
  List<TensorInfo> narrow(long begin) {
    int cols = entry.cols();
    Places places = new Places(begin);
    places.add("amax", DType.F32, 1);
    places.add("mean_square", DType.F32, cols);
    if (hasLocal()) {
      places.add("local_hessian", DType.F32, cols / Nvfp4.BLOCK, Nvfp4.BLOCK, Nvfp4.BLOCK);
    }

    if (hasFull()) {
      places.add("hessian", DType.F32, cols, cols);
      places.add("hessian_held_out", DType.F32, cols, cols);
    }

    return places.tensors;
  }

  /** Bytes of all of them. */
  long bytes() {
    return end(narrow(end(wide(0))));
  }

  /** One past the last byte of tensors that follow one another from 0. */
  static long end(List<TensorInfo> tensors) {
    return tensors.isEmpty() ? 0 : tensors.get(tensors.size() - 1).end();
  }

  /** Tensors one behind the other. */
  private final class Places {
    private final List<TensorInfo> tensors = new ArrayList<>();
    private long end;

    Places(long begin) {
      this.end = begin;
    }

    void add(String name, DType dtype, long... shape) {
      long elements = 1;
      List<Long> dimensions = new ArrayList<>();
      for (long dimension : shape) {
        elements = Math.multiplyExact(elements, dimension);
        dimensions.add(dimension);
      }

      long begin = end;
      end += dtype.bytes(elements);
      tensors.add(new TensorInfo(
          Statistics.tensor(entry.module(), name), dtype, dimensions, begin, end));
    }
  }
}
