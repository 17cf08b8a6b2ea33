package org.sparkfp4.kernels;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.formats.Dequantizer;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleChoice;
import org.sparkfp4.formats.WeightScheme;

/** The reference on native memory. Buffers hold less than 2 GiB, so a segment goes through it in pieces. */
final class JavaKernel implements Nvfp4Kernel {
  /**
   * Elements of a piece: 1 GiB of F32. Rows are whole blocks without padding, so a piece may end within a row; a
   * multiple of 16 blocks keeps the lanes of the error sums.
   */
  private static final long PIECE = 1L << 28;

  private final long piece;

  JavaKernel() {
    this(PIECE);
  }

  /** For tests: pieces of that many elements, a multiple of 256. */
  JavaKernel(long piece) {
    this.piece = piece;
  }

  @Override
  public String tier() {
    return "java";
  }

  @Override
  public float amax(ElementType type, long[] addresses, long[] elements) {
    Segments.check(addresses, elements);
    float amax = 0;
    for (int segment = 0; segment < addresses.length; segment++) {
      for (long start = 0; start < elements[segment]; start += piece) {
        long size = Math.min(piece, elements[segment] - start);
        ByteBuffer data = buffer(addresses[segment] + start * type.bytes(), size * type.bytes());
        try {
          amax = Math.max(amax, Nvfp4.amax(type, data));
        } catch (NonFiniteException e) {
          throw relocated(e, segment, start);
        }
      }
    }

    return amax;
  }

  @Override
  public void encode(Nvfp4Recipe recipe, BlockSearch search, ElementType type, long[] addresses, long[] rows, long cols,
      float amax, long packedAddress, long scalesAddress, ErrorSums[] sums) {
    long[] blocks = Segments.blocks(addresses, rows, cols, sums);
    if (Nvfp4.isZero(amax)) {
      Segments.encodeZero(recipe, blocks, packedAddress, scalesAddress);
      return;
    }

    ScaleChoice choice = search.choice(cols);
    float globalScale = search.search().globalScale(recipe, amax, type);
    long packed = packedAddress;
    long scales = scalesAddress;
    for (int segment = 0; segment < addresses.length; segment++) {
      long elements = blocks[segment] * Nvfp4.BLOCK;
      for (long start = 0; start < elements; start += piece) {
        long size = Math.min(piece, elements - start);
        ByteBuffer data = buffer(addresses[segment] + start * type.bytes(), size * type.bytes());
        ByteBuffer packedPiece = buffer(packed, size / 2);
        ByteBuffer scalesPiece = buffer(scales, size / Nvfp4.BLOCK);
        ErrorSums segmentSums = sums == null ? null : sums[segment];
        try {
          Nvfp4.encode(recipe, choice.after(start / Nvfp4.BLOCK), type, data, size / Nvfp4.BLOCK, Nvfp4.BLOCK,
              globalScale, packedPiece, scalesPiece, segmentSums);
        } catch (NonFiniteException e) {
          throw relocated(e, segment, start);
        }

        packed += size / 2;
        scales += size / Nvfp4.BLOCK;
      }
    }
  }

  @Override
  public float amax(WeightScheme scheme, long[] codes, long[] scales, long[] rows, long cols) {
    Segments.check(codes, scales, rows);
    Segments.blocks(codes, rows, cols, null);
    float amax = 0;
    for (QuantizedPiece piece : pieces(scheme, codes, scales, rows, cols)) {
      try {
        amax = Math.max(amax, Nvfp4.amax(scheme, piece.codes(), piece.scales(), piece.rows(), cols));
      } catch (NonFiniteException e) {
        throw relocated(e, piece.segment(), piece.firstRow() * cols);
      }
    }

    return amax;
  }

  @Override
  public void encode(Nvfp4Recipe recipe, BlockSearch search, WeightScheme scheme, long[] codes, long[] scales,
      long[] rows, long cols, float amax, long packed, long scalesOut, ErrorSums[] sums) {
    Segments.check(codes, scales, rows);
    long[] blocks = Segments.blocks(codes, rows, cols, sums);
    if (Nvfp4.isZero(amax)) {
      Segments.encodeZero(recipe, blocks, packed, scalesOut);
      return;
    }

    ScaleChoice choice = search.choice(cols);
    float globalScale = search.search().globalScale(recipe, amax, ElementType.F32);
    long elementsBefore = 0;
    for (QuantizedPiece piece : pieces(scheme, codes, scales, rows, cols)) {
      long elements = piece.rows() * cols;
      ByteBuffer packedPiece = buffer(packed + elementsBefore / 2, elements / 2);
      ByteBuffer scalesPiece = buffer(scalesOut + elementsBefore / Nvfp4.BLOCK, elements / Nvfp4.BLOCK);
      try {
        // A piece begins with a row.
        Nvfp4.encode(recipe, choice, scheme, piece.codes(), piece.scales(), piece.rows(), cols, globalScale,
            packedPiece, scalesPiece, sums == null ? null : sums[piece.segment()]);
      } catch (NonFiniteException e) {
        throw relocated(e, piece.segment(), piece.firstRow() * cols);
      }

      elementsBefore += elements;
    }
  }

  @Override
  public int largestExponent(long[] scales, long[] counts) {
    Segments.check(scales, counts);
    int largest = Mxfp4.NO_EXPONENT;
    for (int segment = 0; segment < scales.length; segment++) {
      for (long start = 0; start < counts[segment]; start += piece) {
        try {
          ByteBuffer bytes = buffer(scales[segment] + start, Math.min(piece, counts[segment] - start));
          largest = Math.max(largest, Mxfp4.largestExponent(bytes));
        } catch (NonFiniteException e) {
          throw relocated(e, segment, start * Mxfp4.BLOCK);
        }
      }
    }

    return largest;
  }

  @Override
  public long castMxfp4(Nvfp4Recipe recipe, long[] codes, long[] scales, long[] rows, long cols, int kmax, long packed,
      long scalesOut, ErrorSums[] sums) {
    Segments.check(codes, scales, rows);
    Segments.mxfp4Blocks(codes, rows, cols, sums);
    Mxfp4.amax(kmax);
    long requantized = 0;
    long elementsBefore = 0;
    for (QuantizedPiece piece : pieces(Mxfp4.SCHEME, codes, scales, rows, cols)) {
      long elements = piece.rows() * cols;
      ByteBuffer packedPiece = buffer(packed + elementsBefore / 2, elements / 2);
      ByteBuffer scalesPiece = buffer(scalesOut + elementsBefore / Nvfp4.BLOCK, elements / Nvfp4.BLOCK);
      try {
        requantized += Mxfp4.cast(recipe, piece.codes(), piece.scales(), piece.rows(), cols, kmax, packedPiece,
            scalesPiece, sums == null ? null : sums[piece.segment()]);
      } catch (NonFiniteException e) {
        throw relocated(e, piece.segment(), piece.firstRow() * cols);
      }

      elementsBefore += elements;
    }

    return requantized;
  }

  @Override
  public void dequantizeToBf16(WeightScheme scheme, long codes, long scales, long rows, long cols, long out) {
    Segments.checkTensor(codes, scales, rows, cols);
    long[][] tensor = {{codes}, {scales}, {rows}};
    for (QuantizedPiece piece : pieces(scheme, tensor[0], tensor[1], tensor[2], cols)) {
      long before = ElementType.BF16.bytes() * piece.firstRow() * cols;
      ByteBuffer target = buffer(out + before, ElementType.BF16.bytes() * piece.rows() * cols);
      try {
        Dequantizer.toBf16(scheme, piece.codes(), piece.scales(), piece.rows(), cols, target);
      } catch (NonFiniteException e) {
        throw relocated(e, 0, piece.firstRow() * cols);
      }
    }
  }

  /** Some rows of a segment of a quantized source, which begin with a block of its scales. */
  private record QuantizedPiece(int segment, long firstRow, long rows, ByteBuffer codes, ByteBuffer scales) {}

  private List<QuantizedPiece> pieces(WeightScheme scheme, long[] codes, long[] scales, long[] rows, long cols) {
    long step = Math.max(1, scheme.blockRows());
    long rowsOfPiece = Math.max(1, piece / Math.max(1, cols) / step) * step;
    List<QuantizedPiece> pieces = new ArrayList<>();
    for (int segment = 0; segment < rows.length; segment++) {
      for (long row = 0; row < rows[segment]; row += rowsOfPiece) {
        long count = Math.min(rowsOfPiece, rows[segment] - row);
        long scaleRow = scheme.blockRows() == 0 ? 0 : row / scheme.blockRows();
        long scalesBefore = scaleRow * scheme.scaleCols(cols) * scheme.scales().bytes();
        pieces.add(new QuantizedPiece(segment, row, count,
            buffer(codes[segment] + scheme.codeBytes(row, cols), scheme.codeBytes(count, cols)),
            buffer(scales[segment] + scalesBefore, scheme.scaleBytes(count, cols))));
      }
    }

    return pieces;
  }

  private static ByteBuffer buffer(long address, long bytes) {
    return MemoryUtil.directBuffer(address, Math.toIntExact(bytes));
  }

  private static NonFiniteException relocated(NonFiniteException inPiece, int segment, long start) {
    return new NonFiniteException(segment, start + inPiece.index(), inPiece.value());
  }
}
