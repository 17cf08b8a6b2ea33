package org.sparkfp4.formats;

/** The weights of a tensor as binary32, whatever they are stored as, by blocks of {@link Nvfp4#BLOCK} in row order. */
interface BlockSource {
  /** Fills {@code w} with the weights of one block. */
  void load(int block, float[] w);
}
