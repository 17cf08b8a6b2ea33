package org.sparkfp4.kernels;

/** The native library, on a tier of the processor. */
record CpuKeyCalls(NativeKernel.Tier level) implements KeyCalls {
  @Override
  public String tier() {
    return level.title();
  }

  @Override
  public int quantize(int rule, int type, long data, long rows, long cols, long packed, long scales, long[] badRow) {
    return KeyBinding.quantize(level.ordinal(), rule, type, data, rows, cols, packed, scales, badRow);
  }

  @Override
  public int insert(int rule, long dim, float[] weight, float[] bias, float eps, boolean roundToBf16, boolean hadamard,
      int type, long keys, long tokens, long slots, KeyPages pages, long[] badRow) {
    return KeyBinding.insert(level.ordinal(), rule, dim, weight, bias, eps, roundToBf16, hadamard, type, keys,
        tokens, slots, pages.address(), pages.count(), pages.tokens(), pages.stride(), badRow);
  }

  @Override
  public int query(int rule, int type, long query, int weightType, long weights, float weightScale, long tokens,
      long heads, long paddedHeads, long packed, long scales, long weightsOut, long[] badRow) {
    return KeyBinding.query(level.ordinal(), rule, type, query, weightType, weights, weightScale, tokens, heads,
        paddedHeads, packed, scales, weightsOut, badRow);
  }

  @Override
  public int normalise(int type, long data, long rows, float[] weight, float eps, long out, long[] badRow) {
    return KeyBinding.normalise(level.ordinal(), type, data, rows, weight, eps, out, badRow);
  }

  @Override
  public int latents(int type, long latents, long rope, long tokens, float[] weight, float eps, boolean roundToBf16,
      long latentsOut, long slots, long slotCount, KeyPages pages, long[] badRow) {
    return KeyBinding.latents(level.ordinal(), type, latents, rope, tokens, weight, eps, roundToBf16, latentsOut,
        slots, slotCount, pages.address(), pages.count(), pages.tokens(), pages.stride(), badRow);
  }

  @Override
  public RuntimeException failure(int status) {
    if (status == NativeBinding.OUT_OF_MEMORY) {
      throw new OutOfMemoryError("Cannot allocate the weights of a native norm");
    }

    return new IllegalStateException("Cannot run the " + tier() + " kernel of keys: status " + status);
  }
}
