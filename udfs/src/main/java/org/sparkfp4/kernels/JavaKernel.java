package org.sparkfp4.kernels;

import java.nio.ByteBuffer;
import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;

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
  public void encode(Nvfp4Recipe recipe, ElementType type, long[] addresses, long[] rows, long cols, float amax,
      long packedAddress, long scalesAddress, ErrorSums[] sums) {
    long[] blocks = Segments.blocks(addresses, rows, cols, sums);
    if (Nvfp4.isZero(amax)) {
      Segments.encodeZero(recipe, blocks, packedAddress, scalesAddress);
      return;
    }

    float globalScale = recipe.globalScale(amax, type);
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
          Nvfp4.encode(recipe, type, data, size / Nvfp4.BLOCK, Nvfp4.BLOCK, globalScale, packedPiece, scalesPiece,
              segmentSums);
        } catch (NonFiniteException e) {
          throw relocated(e, segment, start);
        }

        packed += size / 2;
        scales += size / Nvfp4.BLOCK;
      }
    }
  }

  private static ByteBuffer buffer(long address, long bytes) {
    return MemoryUtil.directBuffer(address, Math.toIntExact(bytes));
  }

  private static NonFiniteException relocated(NonFiniteException inPiece, int segment, long start) {
    return new NonFiniteException(segment, start + inPiece.index(), inPiece.value());
  }
}
