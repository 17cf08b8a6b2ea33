package org.sparkfp4.formats;

/**
 * How the E2M1 codes of a matrix [rows, k] lie in memory. Positions are in half bytes: nibble {@code 2 b} is the low
 * half of byte b, {@code 2 b + 1} its high half. Source tensors are row-major, the even element in the low half.
 */
public enum CodeLayout {
  /** [rows, k / 2]: checkpoints, Edge-LLM's plugins for FP4 tensor cores, CUTLASS, TRTLLM-gen. */
  ROW_MAJOR(1, Nvfp4.BLOCK) {
    @Override
    public long nibble(long row, long column, long rows, long k) {
      return row * k + column;
    }
  },

  /**
   * Edge-LLM's BLACKWELL_MOE_N128_K64_V1, [rows / 128, k / 64, 128, 32] bytes: in rows 4 to 7 of every 8 the two pieces
   * of 16 bytes change places, which is TMA's 32-byte swizzle.
   */
  BLACKWELL_MOE_N128_K64(128, 64) {
    @Override
    public long nibble(long row, long column, long rows, long k) {
      long half = column % 64 / 32 ^ row >> 2 & 1;
      return (tileRow(row, column, k) * 2 + half) * 32 + column % 32;
    }
  },

  /** Edge-LLM's BLACKWELL_N128_K64_V1: the same without that exchange. */
  BLACKWELL_N128_K64(128, 64) {
    @Override
    public long nibble(long row, long column, long rows, long k) {
      return tileRow(row, column, k) * 64 + column % 64;
    }
  },

  /**
   * Marlin, [k / 16, 2 rows] words of 32 bits, little-endian. A tile of 16 columns by 64 rows is 128 words; word 4 i +
   * j holds rows 16 j + i / 4 and 8 below, columns 2 (i mod 4), the next, and 8 behind each: nibbles 0 to 3 are the
   * even columns, 4 to 7 the odd ones; in each four the first two are of the upper row, and of two the first is the
   * lower column.
   */
  MARLIN(64, 16) {
    @Override
    public long nibble(long row, long column, long rows, long k) {
      long n = row % 64;
      long c = column % 16;
      long i = n % 8 * 4 + c % 8 / 2;
      long j = n / 16;
      long t = c % 2 * 4 + n % 16 / 8 * 2 + c / 8;
      long word = (column / 16 * (rows / 64) + row / 64) * 128 + 4 * i + j;
      return word * 8 + t;
    }
  };

  private final int tileRows;
  private final int tileColumns;

  CodeLayout(int tileRows, int tileColumns) {
    this.tileRows = tileRows;
    this.tileColumns = tileColumns;
  }

  /** Of what the rows in memory are a multiple; a matrix is padded with zeros to it. */
  public int tileRows() {
    return tileRows;
  }

  /** Of what k must be a multiple; it is never padded. */
  public int tileColumns() {
    return tileColumns;
  }

  /** The rows in memory. */
  public long rows(long rows) {
    return (rows + tileRows - 1) / tileRows * tileRows;
  }

  /**
   * Bytes of a matrix, padding included.
   *
   * @throws IllegalArgumentException if k is no multiple of {@link #tileColumns}, or rows are negative
   */
  public long bytes(long rows, long k) {
    if (rows < 0 || k < 0 || k % tileColumns != 0) {
      throw new IllegalArgumentException("Invalid matrix of codes: [" + rows + ", " + k + "], layout " + this
          + " needs columns that are a multiple of " + tileColumns);
    }

    return Math.multiplyExact(rows(rows), k) / 2;
  }

  /**
   * Where the code of an element is, in half bytes.
   *
   * @param rows in memory, a multiple of {@link #tileRows}
   */
  public abstract long nibble(long row, long column, long rows, long k);

  /**
   * Arranges the codes of a unit. What no code fills is zero.
   *
   * @param members row-major codes of each, {@link Arrangement#memberCodes} bytes
   * @param out takes {@link #bytes} of the matrix
   * @throws IllegalArgumentException if the arrangement does not fit the layout, or a buffer the arrangement
   */
  public void arrange(Arrangement shape, Bytes[] members, Bytes out) {
    long size = check(shape, members, out);
    for (long i = 0; i < size; i++) {
      out.set(i, (byte) 0);
    }

    long k = shape.k();
    long rows = rows(shape.matrixRows());
    for (int member = 0; member < members.length; member++) {
      for (long row = 0; row < shape.rows(); row++) {
        long target = shape.position(member, row);
        for (long column = 0; column < k; column++) {
          setNibble(out, nibble(target, column, rows, shape.paddedK()), nibbleAt(members[member], row * k + column));
        }
      }
    }
  }

  /**
   * Takes the codes of a unit out again; padding is not looked at.
   *
   * @param arranged as {@link #arrange} leaves it
   * @param members each takes row-major codes, {@link Arrangement#memberCodes} bytes
   * @throws IllegalArgumentException as {@link #arrange}
   */
  public void restore(Arrangement shape, Bytes arranged, Bytes[] members) {
    check(shape, members, arranged);
    long k = shape.k();
    long rows = rows(shape.matrixRows());
    for (int member = 0; member < members.length; member++) {
      for (long row = 0; row < shape.rows(); row++) {
        long source = shape.position(member, row);
        for (long column = 0; column < k; column++) {
          int code = nibbleAt(arranged, nibble(source, column, rows, shape.paddedK()));
          setNibble(members[member], row * k + column, code);
        }
      }
    }
  }

  private long check(Arrangement shape, Bytes[] members, Bytes arranged) {
    shape.check(members.length);
    long size = bytes(shape.matrixRows(), shape.paddedK());
    Bytes.require("arranged codes", arranged, size);
    for (Bytes member : members) {
      Bytes.require("codes", member, shape.memberCodes());
    }

    return size;
  }

  private static long tileRow(long row, long column, long k) {
    return (row / 128 * (k / 64) + column / 64) * 128 + row % 128;
  }

  private static int nibbleAt(Bytes bytes, long nibble) {
    return bytes.get(nibble / 2) >> 4 * (nibble % 2) & 0xF;
  }

  private static void setNibble(Bytes bytes, long nibble, int code) {
    int other = bytes.get(nibble / 2) & 0xF0 >> 4 * (nibble % 2);
    bytes.set(nibble / 2, (byte) (other | code << 4 * (nibble % 2)));
  }
}
