package org.sparkfp4.formats;

/**
 * Where the rows of a unit's members go in the matrix that a runtime multiplies by. A member is a tensor of the unit,
 * and the caller's order of members counts: TensorRT Edge-LLM's FC1 and TRTLLM-gen take up first, then gate; Marlin
 * takes gate first. Members have equally many rows and each is padded with rows of zeros first, so that padding lies
 * inside each member and not at the end of the matrix.
 *
 * <p>Codes and block scales of a matrix follow the same order.
 */
public enum RowOrder {
  /** One member as it is. */
  PLAIN(1) {
    @Override
    public long position(int member, long row, int members, long paddedRows) {
      return row;
    }
  },

  /** One member after another: Edge-LLM on SM120 and SM121, CUTLASS, Marlin. */
  CONCATENATED(1) {
    @Override
    public long position(int member, long row, int members, long paddedRows) {
      return member * paddedRows + row;
    }
  },

  /** 64 rows of each member in turn: Edge-LLM on SM100, SM101 and SM110. */
  INTERLEAVED_64(64) {
    @Override
    public long position(int member, long row, int members, long paddedRows) {
      return (row / 64 * members + member) * 64 + row % 64;
    }
  },

  /**
   * TRTLLM-gen with epilogue tiles of a multiple of 128 rows: a row of each member in turn, shuffled in blocks of 32.
   */
  TRTLLM_GEN_32(32) {
    @Override
    public long position(int member, long row, int members, long paddedRows) {
      long alternating = row * members + member;
      long inBlock = alternating % 32;
      return alternating - inBlock + inBlock % 4 * 8 + inBlock / 4;
    }
  },

  /** TRTLLM-gen with other epilogue tiles: a row of each member in turn, shuffled in blocks of 16. */
  TRTLLM_GEN_16(16) {
    @Override
    public long position(int member, long row, int members, long paddedRows) {
      long alternating = row * members + member;
      long inBlock = alternating % 16;
      return alternating - inBlock + inBlock % 2 * 8 + inBlock / 2;
    }
  };

  private final int multiple;

  RowOrder(int multiple) {
    this.multiple = multiple;
  }

  /** Of what the padded rows of a member must be a multiple. */
  public int multiple() {
    return multiple;
  }

  /**
   * The row of the arranged matrix, which has members times paddedRows.
   *
   * @param member from 0 to members - 1
   * @param row of that member, from 0 to paddedRows - 1
   */
  public abstract long position(int member, long row, int members, long paddedRows);
}
