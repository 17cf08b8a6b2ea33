package org.sparkfp4.formats;

import java.util.Objects;

/**
 * A view of an NVFP4 tensor as TensorRT Edge-LLM's kernels see it; nothing is copied. Names are those of its
 * documentation.
 *
 * <p>A tile is 64 consecutive codes of a row: 32 bytes, two int4 of four 32-bit lanes, 8 codes a lane, the first in the
 * lowest bits. Three tile indices address it, and strides are in int4, 16 bytes. Beside each tile is a word of four
 * E4M3 scales, one for every 16 codes: those of weights in atoms of 128 rows by 4 words ({@link
 * BlockScaleLayout#ATOM_128X4}), those of activations one after another.
 *
 * <p>Marlin's decoding takes the scales of a word in the order {s0, s2, s1, s3}. Weights are stored {s0, s1, s2, s3}
 * and exchanged on read; activations are stored exchanged.
 */
public final class NVFP4Tensor {
  /** Codes of a tile. */
  public static final int ELEMS_PER_TILE = 64;

  /** int4 of a tile. */
  public static final int INT4_PER_TILE_PAYLOAD = 2;

  private static final int INT4_BYTES = 16;
  private static final int INT4_ELEMS = 32;
  private static final int WORD_BYTES = 4;
  private static final int LANE_ELEMS = 8;

  private final Bytes quantizedData;
  private final Bytes blockScale;
  private final float[] globalScale;
  private final long[] strides;
  private final int scaleNumKTiles;
  private final long scaleExpertStride;
  private final int scaleMDimIdx;
  private final int scaleKDimIdx;
  private final boolean linearScales;
  private final Dim3 extent;

  private NVFP4Tensor(Bytes quantizedData, Bytes blockScale, float[] globalScale, long[] strides, int scaleNumKTiles,
      long scaleExpertStride, int scaleMDimIdx, int scaleKDimIdx, boolean linearScales, Dim3 extent) {
    this.quantizedData = quantizedData;
    this.blockScale = blockScale;
    this.globalScale = globalScale == null ? null : globalScale.clone();
    this.strides = strides;
    this.scaleNumKTiles = scaleNumKTiles;
    this.scaleExpertStride = scaleExpertStride;
    this.scaleMDimIdx = scaleMDimIdx;
    this.scaleKDimIdx = scaleKDimIdx;
    this.linearScales = linearScales;
    this.extent = extent;
  }

  /**
   * Stacked weights, as Edge-LLM's plugins take them: x is the expert, y the row, z the tile of the row.
   *
   * @param rows M of an expert, as they are in memory
   * @param k elements of a row, a multiple of 64
   * @param quantizedData [experts, rows, k / 2]
   * @param blockScale [experts, ceil(rows / 128), k / 64, 32, 4, 4]
   * @param globalScale one an expert, which its weights are multiplied by, or null for 1
   * @throws IllegalArgumentException if the sizes do not agree
   */
  public static NVFP4Tensor weights(int experts, int rows, int k, Bytes quantizedData, Bytes blockScale,
      float[] globalScale) {
    int kTiles = tiles(experts, rows, k);
    long expertScales = BlockScaleLayout.ATOM_128X4.bytes(rows, k / Nvfp4.BLOCK);
    Bytes.require("quantized data", quantizedData, Math.multiplyExact((long) experts * rows, (long) k / 2));
    Bytes.require("block scales", blockScale, Math.multiplyExact(experts, expertScales));
    if (globalScale != null && globalScale.length != experts) {
      throw new IllegalArgumentException(
          "Invalid global scales: " + globalScale.length + " for " + experts + " experts, must be as many");
    }

    long rowInt4 = k / INT4_ELEMS;
    return new NVFP4Tensor(quantizedData, blockScale, globalScale,
        new long[] {rows * rowInt4, rowInt4, INT4_PER_TILE_PAYLOAD}, kTiles, expertScales / WORD_BYTES, 1, 2, false,
        new Dim3(experts, rows, kTiles));
  }

  /**
   * Activations: x is the token, y the tile of its row, z is 0.
   *
   * @param k elements of a row, a multiple of 64
   * @param quantizedData [tokens, k / 2]
   * @param blockScale [tokens, k / 64] words, each {s0, s2, s1, s3}
   * @param globalScale which activations are multiplied by
   * @throws IllegalArgumentException if the sizes do not agree
   */
  public static NVFP4Tensor activations(int tokens, int k, Bytes quantizedData, Bytes blockScale, float globalScale) {
    int kTiles = tiles(1, tokens, k);
    Bytes.require("quantized data", quantizedData, (long) tokens * (k / 2));
    Bytes.require("block scales", blockScale, (long) tokens * (k / Nvfp4.BLOCK));
    long rowInt4 = k / INT4_ELEMS;
    return new NVFP4Tensor(quantizedData, blockScale, new float[] {globalScale},
        new long[] {rowInt4, INT4_PER_TILE_PAYLOAD, 0}, kTiles, 0, 0, 1, true, new Dim3(tokens, kTiles, 1));
  }

  /** How many tiles there are in each direction. */
  public Dim3 extent() {
    return extent;
  }

  /** Distance in int4 from a tile to the next of component d. */
  public long stride(int d) {
    return strides[d];
  }

  /** Words of scales of a row of atoms' 32 rows: ceil(k / 64). */
  public int scaleNumKTiles() {
    return scaleNumKTiles;
  }

  /** Words of scales from an expert to the next. */
  public long scaleExpertStride() {
    return scaleExpertStride;
  }

  /** The component that is the row: 1 of weights, 0 of activations. */
  public int scaleMDimIdx() {
    return scaleMDimIdx;
  }

  /** The component that is the tile within the row: 2 of weights, 1 of activations. */
  public int scaleKDimIdx() {
    return scaleKDimIdx;
  }

  /** The factor of an expert, or of activations for 0; 1 where there is none. */
  public float scaleAt(int index) {
    return globalScale == null ? 1f : globalScale[index];
  }

  /** Where a tile begins, in int4. */
  public long tileOffsetInt4(Dim3 tile) {
    return tile.x() * strides[0] + tile.y() * strides[1] + tile.z() * strides[2];
  }

  /** Where the word of a weight tile's scales is, in words: 32 rows' words of four atom columns, swizzled. */
  public long tileScaleIndex(Dim3 tile) {
    // The documentation calls this component an SF column; it is a tile of 4 of them.
    long kTile = tile.component(scaleKDimIdx);
    long mRow = tile.component(scaleMDimIdx);
    long expert = tile.component(3 - scaleMDimIdx - scaleKDimIdx);
    return expert * scaleExpertStride + mRow / 128 * scaleNumKTiles * 128 + kTile * 128 + mRow % 32 * 4
        + mRow % 128 / 32;
  }

  /** The scales of a weight tile, {s0, s2, s1, s3} from the lowest byte on. */
  public int readBlockScaleWord(Dim3 tile) {
    return exchanged(blockScale.intAt(tileScaleIndex(tile) * WORD_BYTES));
  }

  /** The scales of an activation tile, as stored: {s0, s2, s1, s3} from the lowest byte on. */
  public int readBlockScaleWordLinear(Dim3 tile) {
    return blockScale.intAt(tileOffsetInt4(tile) / INT4_PER_TILE_PAYLOAD * WORD_BYTES);
  }

  /**
   * The four lanes of an int4 of a tile.
   *
   * @param chunk 0 or 1
   */
  public int[] loadTileUint4(Dim3 tile, int chunk) {
    int[] lanes = new int[4];
    for (int lane = 0; lane < lanes.length; lane++) {
      lanes[lane] = loadTileUint32Lane(tile, chunk, lane);
    }

    return lanes;
  }

  /**
   * A lane of 8 codes.
   *
   * @param chunk 0 or 1
   * @param lane 0 to 3 within it
   */
  public int loadTileUint32Lane(Dim3 tile, int chunk, int lane) {
    return quantizedData.intAt((tileOffsetInt4(tile) + chunk) * INT4_BYTES + lane * WORD_BYTES);
  }

  /**
   * The values of a tile, {@code e2m1(code) * (scale * globalScale)} with a rounding for each product as in {@link
   * Nvfp4#decode}. A runtime multiplies by the global scale last, which can differ in the last bit.
   *
   * @param out takes {@link #ELEMS_PER_TILE}
   * @param at where they begin in it
   * @throws IndexOutOfBoundsException if there is no such tile
   */
  public void decodeTile(Dim3 tile, float[] out, int at) {
    for (int d = 0; d < 3; d++) {
      Objects.checkIndex(tile.component(d), extent.component(d));
    }

    int word = exchanged(linearScales ? readBlockScaleWordLinear(tile) : readBlockScaleWord(tile));
    float global = scaleAt(linearScales ? 0 : tile.x());
    for (int i = 0; i < ELEMS_PER_TILE; i++) {
      int lane = loadTileUint32Lane(tile, i / INT4_ELEMS, i % INT4_ELEMS / LANE_ELEMS);
      float d = E4M3.decode(word >>> 8 * (i / Nvfp4.BLOCK)) * global;
      out[at + i] = E2M1.decode(lane >>> 4 * (i % LANE_ELEMS)) * d;
    }
  }

  /**
   * The values of a row.
   *
   * @param expert of weights; 0 for activations
   * @param out takes k
   */
  public void decodeRow(int expert, int row, float[] out) {
    for (int kTile = 0; kTile < scaleNumKTiles; kTile++) {
      decodeTile(tile(expert, row, kTile), out, kTile * ELEMS_PER_TILE);
    }
  }

  /**
   * The value of an element.
   *
   * @param expert of weights; 0 for activations
   */
  public float decode(int expert, int row, int column) {
    float[] tile = new float[ELEMS_PER_TILE];
    decodeTile(tile(expert, row, column / ELEMS_PER_TILE), tile, 0);
    return tile[column % ELEMS_PER_TILE];
  }

  /** The tile indices of a row's tile. */
  public Dim3 tile(int expert, int row, int kTile) {
    return linearScales ? new Dim3(row, kTile, expert) : new Dim3(expert, row, kTile);
  }

  /** Exchanges bytes 1 and 2: from memory's order to Marlin's and back. */
  private static int exchanged(int word) {
    return word & 0xFF0000FF | word << 8 & 0x00FF0000 | word >>> 8 & 0x0000FF00;
  }

  private static int tiles(int experts, int rows, int k) {
    if (experts < 0 || rows < 0 || k < 0 || k % ELEMS_PER_TILE != 0) {
      throw new IllegalArgumentException("Invalid tensor: [" + experts + ", " + rows + ", " + k
          + "], k must be a multiple of " + ELEMS_PER_TILE);
    }

    return k / ELEMS_PER_TILE;
  }
}
