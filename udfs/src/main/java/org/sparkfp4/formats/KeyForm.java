package org.sparkfp4.formats;

/**
 * What is done to a token's indexer key before its codes are chosen: LayerNorm or nothing, then the rotation or nothing.
 *
 * @param dim values of a key, D: a multiple of 32, at most 1024
 * @param norm null for keys that are normalised already
 * @param roundToBf16 whether each of the two steps' results is rounded to bfloat16, as a chain of separate operations
 *     stores them; fused writers do not
 * @param hadamard whether the key is rotated by the Hadamard transform times D^-1/2; D is then a power of two
 * @param rule of the block scales
 */
public record KeyForm(int dim, LayerNorm norm, boolean roundToBf16, boolean hadamard, ScaleRule rule) {
  /** The largest D. */
  public static final int MAX_DIM = 1024;

  public KeyForm {
    if (dim <= 0 || dim > MAX_DIM || dim % Mxfp4Codec.BLOCK != 0) {
      throw new IllegalArgumentException(
          "Invalid key size: " + dim + ", must be a multiple of " + Mxfp4Codec.BLOCK + " up to " + MAX_DIM);
    }

    if (hadamard && Integer.bitCount(dim) != 1) {
      throw new IllegalArgumentException(
          "Invalid key size: " + dim + ", must be a power of two for the Hadamard transform");
    }

    if (norm != null && norm.weight().length != dim) {
      throw new IllegalArgumentException(
          "Invalid norm: " + norm.weight().length + " weights for keys of " + dim + " values, must be as many");
    }
  }

  /** Keys that are normalised already, with the default rule. */
  public static KeyForm plain(int dim) {
    return new KeyForm(dim, null, false, false, ScaleRule.CEIL);
  }

  /** Makes of a source row what is encoded, in place. */
  public void prepare(float[] key) {
    if (norm != null) {
      norm.apply(key);
    }

    round(key);
    if (hadamard) {
      Hadamard.rotate(key);
      round(key);
    }
  }

  private void round(float[] key) {
    if (roundToBf16) {
      for (int i = 0; i < key.length; i++) {
        key[i] = BFloat16.round(key[i]);
      }
    }
  }
}
