package org.sparkfp4.formats;

import java.util.function.IntUnaryOperator;

/**
 * How the E4M3 block scales of a matrix lie in memory: a scale for every 16 codes of a row, [rows, columns] with
 * columns = k / 16. Source tensors are row-major. Padding is zero.
 */
public enum BlockScaleLayout {
  /** [rows, columns]: checkpoints. */
  ROW_MAJOR(1, 1, false) {
    @Override
    public long position(long row, long column, long rows, long columns) {
      return row * columns + column;
    }
  },

  /**
   * Atoms of 128 rows by 4 columns, 512 bytes: byte {@code (m mod 32) 16 + (m mod 128) / 32 4 + c mod 4}; atoms of the
   * same rows follow each other. Edge-LLM's [mT, kT, 32, 4, 4], cuBLAS's and CUTLASS's block scaling factors,
   * FlashInfer's interleaved scales.
   */
  ATOM_128X4(128, 4, true) {
    @Override
    public long position(long row, long column, long rows, long columns) {
      return (row / 128 * (columns / 4) + column / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column % 4;
    }
  },

  /** Tiles of 8 rows by 4 columns, row-major, tiles of the same rows one after another. */
  ATOM_8X4(8, 4, true) {
    @Override
    public long position(long row, long column, long rows, long columns) {
      return (row / 8 * (columns / 4) + column / 4) * 32 + row % 8 * 4 + column % 4;
    }
  },

  /** Edge-LLM's BLACKWELL_MOE_N128_K64_V1 and BLACKWELL_N128_K64_V1, [rows / 128, columns / 4, 128, 4]. */
  BLACKWELL_N128_K64(128, 4, false) {
    @Override
    public long position(long row, long column, long rows, long columns) {
      return (row / 128 * (columns / 4) + column / 4) * 512 + row % 128 * 4 + column % 4;
    }
  },

  /** Marlin's [columns, rows], rows permuted in blocks of 64, as Edge-LLM has it: E4M3 bytes. */
  MARLIN_E4M3(64, 1, false) {
    @Override
    public long position(long row, long column, long rows, long columns) {
      return marlin(row, column, rows);
    }
  },

  /** The same positions as vLLM has it: bytes of {@link MarlinScale}. */
  MARLIN_S0E5M3(64, 1, false) {
    @Override
    public long position(long row, long column, long rows, long columns) {
      return marlin(row, column, rows);
    }
  };

  private final int tileRows;
  private final int tileColumns;
  private final boolean padsColumns;

  BlockScaleLayout(int tileRows, int tileColumns, boolean padsColumns) {
    this.tileRows = tileRows;
    this.tileColumns = tileColumns;
    this.padsColumns = padsColumns;
  }

  /** Of what the rows in memory are a multiple. */
  public int tileRows() {
    return tileRows;
  }

  /** The rows in memory. */
  public long rows(long rows) {
    return (rows + tileRows - 1) / tileRows * tileRows;
  }

  /**
   * The columns in memory.
   *
   * @throws IllegalArgumentException if the layout needs a multiple of 4 and does not pad
   */
  public long columns(long columns) {
    if (columns < 0 || !padsColumns && columns % tileColumns != 0) {
      throw new IllegalArgumentException("Invalid columns of block scales: " + columns + ", layout " + this
          + " needs a multiple of " + tileColumns);
    }

    return (columns + tileColumns - 1) / tileColumns * tileColumns;
  }

  /** Bytes of a matrix of scales, padding included. */
  public long bytes(long rows, long columns) {
    if (rows < 0) {
      throw new IllegalArgumentException("Invalid rows of block scales: " + rows + ", must not be negative");
    }

    return Math.multiplyExact(rows(rows), columns(columns));
  }

  /**
   * Where a scale's byte is.
   *
   * @param rows in memory, as {@link #rows} gives them
   * @param columns in memory, as {@link #columns} gives them
   */
  public abstract long position(long row, long column, long rows, long columns);

  /**
   * Checks a factor of {@link MarlinScale}.
   *
   * @throws IllegalArgumentException if it is none, or not 1 for a layout other than {@link #MARLIN_S0E5M3}
   */
  public void checkFactor(float factor) {
    if (this == MARLIN_S0E5M3) {
      new MarlinScale(factor);
    } else if (factor != 1) {
      throw new IllegalArgumentException("Invalid factor: " + factor + ", layout " + this + " takes 1 alone");
    }
  }

  /**
   * Arranges the block scales of a unit. Whether each is one that runtimes take is the caller's to ask, see {@link
   * #firstAbove}.
   *
   * @param members row-major scales of each, {@link Arrangement#memberScales} bytes
   * @param factor of {@link MarlinScale}; 1 for layouts other than {@link #MARLIN_S0E5M3}
   * @param out takes {@link #bytes} of the matrix's rows and padded columns
   * @throws IllegalArgumentException if the arrangement does not fit the layout, or a buffer the arrangement
   */
  public void arrange(Arrangement shape, Bytes[] members, float factor, Bytes out) {
    byte[] encoding = encoding(factor);
    long size = check(shape, members, out);
    for (long i = 0; i < size; i++) {
      out.set(i, (byte) 0);
    }

    long rows = rows(shape.matrixRows());
    long columns = columns(shape.paddedColumns());
    for (int member = 0; member < members.length; member++) {
      for (long row = 0; row < shape.rows(); row++) {
        long target = shape.position(member, row);
        for (long column = 0; column < shape.columns(); column++) {
          int scale = members[member].get(row * shape.columns() + column) & 0xFF;
          out.set(position(target, column, rows, columns), encoding[scale]);
        }
      }
    }
  }

  /**
   * Takes the block scales of a unit out again; padding is not looked at.
   *
   * @param arranged as {@link #arrange} leaves it
   * @param members each takes row-major E4M3 scales, {@link Arrangement#memberScales} bytes
   * @throws IllegalArgumentException as {@link #arrange}
   */
  public void restore(Arrangement shape, Bytes arranged, float factor, Bytes[] members) {
    byte[] decoding = decoding(factor);
    check(shape, members, arranged);
    long rows = rows(shape.matrixRows());
    long columns = columns(shape.paddedColumns());
    for (int member = 0; member < members.length; member++) {
      for (long row = 0; row < shape.rows(); row++) {
        long source = shape.position(member, row);
        for (long column = 0; column < shape.columns(); column++) {
          int scale = arranged.get(position(source, column, rows, columns)) & 0xFF;
          members[member].set(row * shape.columns() + column, decoding[scale]);
        }
      }
    }
  }

  /**
   * The first byte that is no scale from 0 to a limit, or -1. With the limit 0x7E these are the negative scales, -0
   * included, and the NaNs: no runtime takes them.
   *
   * @param limit the largest E4M3 byte to be taken, 0x7E at most
   */
  public static long firstAbove(Bytes scales, int limit) {
    long index = 0;
    while (index < scales.size() && (scales.get(index) & 0xFF) <= limit) {
      index++;
    }

    return index < scales.size() ? index : -1;
  }

  private long check(Arrangement shape, Bytes[] members, Bytes arranged) {
    shape.check(members.length);
    long size = bytes(shape.matrixRows(), shape.paddedColumns());
    Bytes.require("arranged block scales", arranged, size);
    for (Bytes member : members) {
      Bytes.require("block scales", member, shape.memberScales());
    }

    return size;
  }

  private static long marlin(long row, long column, long rows) {
    long block = row % 64 / 8;
    // Bits 0 and 1 of the block of 8 change places.
    long swapped = block & 4 | (block & 1) << 1 | block >> 1 & 1;
    return column * rows + row / 64 * 64 + row % 8 * 8 + swapped;
  }

  /** The byte that stands for each E4M3 byte. */
  private byte[] encoding(float factor) {
    checkFactor(factor);
    return table(this == MARLIN_S0E5M3 ? new MarlinScale(factor)::encode : IntUnaryOperator.identity());
  }

  /** The E4M3 byte that each byte stands for. */
  private byte[] decoding(float factor) {
    checkFactor(factor);
    return table(this == MARLIN_S0E5M3 ? new MarlinScale(factor)::decode : IntUnaryOperator.identity());
  }

  private static byte[] table(IntUnaryOperator code) {
    byte[] table = new byte[256];
    for (int i = 0; i < table.length; i++) {
      table[i] = (byte) code.applyAsInt(i);
    }

    return table;
  }
}
