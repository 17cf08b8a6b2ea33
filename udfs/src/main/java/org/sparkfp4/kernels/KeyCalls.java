package org.sparkfp4.kernels;

/**
 * The functions of {@link KeyBinding} on a certain processor's tier, or a GPU. All give a status; {@link
 * NativeBinding#OK} and {@link NativeBinding#NON_FINITE} mean the same everywhere.
 */
interface KeyCalls {
  String tier();

  int quantize(int rule, int type, long data, long rows, long cols, long packed, long scales, long[] badRow);

  int insert(int rule, long dim, float[] weight, float[] bias, float eps, boolean roundToBf16, boolean hadamard,
      int type, long keys, long tokens, long slots, KeyPages pages, long[] badRow);

  int query(int rule, int type, long query, int weightType, long weights, float weightScale, long tokens, long heads,
      long paddedHeads, long packed, long scales, long weightsOut, long[] badRow);

  int normalise(int type, long data, long rows, float[] weight, float eps, long out, long[] badRow);

  int latents(int type, long latents, long rope, long tokens, float[] weight, float eps, boolean roundToBf16,
      long latentsOut, long slots, long slotCount, KeyPages pages, long[] badRow);

  /** The error that any other status means. */
  RuntimeException failure(int status);
}
