package org.sparkfp4.formats;

/**
 * A {@link RowOrder} and the sizes that it is applied to: members of [rows, k] become one matrix of members times
 * paddedRows by paddedK. What the members have not is zeros.
 *
 * @param order where rows go
 * @param members of the unit
 * @param rows that each member has
 * @param paddedRows rows that each member takes in the matrix
 * @param k elements of a member's row, a multiple of 16
 * @param paddedK elements of the matrix's row, a multiple of 16
 */
public record Arrangement(RowOrder order, int members, long rows, long paddedRows, long k, long paddedK) {
  /** The most members that a unit may have. */
  public static final int MAX_MEMBERS = 8;

  public Arrangement {
    int most = order == RowOrder.PLAIN ? 1 : MAX_MEMBERS;
    if (members < 1 || members > most) {
      throw new IllegalArgumentException(
          "Invalid members: " + members + " in row order " + order + ", must be from 1 to " + most);
    }

    if (rows < 0 || paddedRows < rows) {
      throw new IllegalArgumentException("Invalid rows: " + rows + " padded to " + paddedRows);
    }

    if (paddedRows % order.multiple() != 0) {
      throw new IllegalArgumentException("Invalid padded rows: " + paddedRows + ", row order " + order
          + " needs a multiple of " + order.multiple());
    }

    if (k < 0 || paddedK < k || k % Nvfp4.BLOCK != 0 || paddedK % Nvfp4.BLOCK != 0) {
      throw new IllegalArgumentException(
          "Invalid columns: " + k + " padded to " + paddedK + ", must be multiples of " + Nvfp4.BLOCK);
    }

    Math.multiplyExact(Math.multiplyExact(paddedRows, (long) members), paddedK);
  }

  /** One tensor as it is. */
  public static Arrangement plain(long rows, long k) {
    return new Arrangement(RowOrder.PLAIN, 1, rows, rows, k, k);
  }

  /** Rows of the matrix. */
  public long matrixRows() {
    return members * paddedRows;
  }

  /** Block scales of a member's row. */
  public long columns() {
    return k / Nvfp4.BLOCK;
  }

  /** Block scales of the matrix's row. */
  public long paddedColumns() {
    return paddedK / Nvfp4.BLOCK;
  }

  /** Bytes of a member's codes. */
  public long memberCodes() {
    return rows * k / 2;
  }

  /** Bytes of a member's block scales. */
  public long memberScales() {
    return rows * columns();
  }

  /** The row of the matrix where a member's row goes. */
  public long position(int member, long row) {
    return order.position(member, row, members, paddedRows);
  }

  void check(int buffers) {
    if (buffers != members) {
      throw new IllegalArgumentException("Invalid members: " + buffers + " buffers for " + members);
    }
  }
}
