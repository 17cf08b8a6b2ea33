package org.sparkfp4.kernels;

/** The CUDA library, on host memory. */
record CudaKeyCalls(CudaMemory memory) implements KeyCalls {
  @Override
  public String tier() {
    return "cuda";
  }

  @Override
  public int quantize(int rule, int type, long data, long rows, long cols, long packed, long scales, long[] badRow) {
    return memory.run((context, scratch) -> CudaKeyBinding.quantize(
        context, rule, type, data, rows, cols, packed, scales, badRow));
  }

  @Override
  public int insert(int rule, long dim, float[] weight, float[] bias, float eps, boolean roundToBf16, boolean hadamard,
      int type, long keys, long tokens, long slots, KeyPages pages, long[] badRow) {
    return memory.run((context, scratch) -> CudaKeyBinding.insert(
        context, rule, dim, weight, bias, eps, roundToBf16, hadamard, type, keys, tokens, slots, pages.address(),
        pages.count(), pages.tokens(), pages.stride(), badRow));
  }

  @Override
  public int query(int rule, int type, long query, int weightType, long weights, float weightScale, long tokens,
      long heads, long paddedHeads, long packed, long scales, long weightsOut, long[] badRow) {
    return memory.run((context, scratch) -> CudaKeyBinding.query(
        context, rule, type, query, weightType, weights, weightScale, tokens, heads, paddedHeads, packed, scales,
        weightsOut, badRow));
  }

  @Override
  public int normalise(int type, long data, long rows, float[] weight, float eps, long out, long[] badRow) {
    return memory.run((context, scratch) -> CudaKeyBinding.normalise(
        context, type, data, rows, weight, eps, out, badRow));
  }

  @Override
  public int latents(int type, long latents, long rope, long tokens, float[] weight, float eps, boolean roundToBf16,
      long latentsOut, long slots, long slotCount, KeyPages pages, long[] badRow) {
    return memory.run((context, scratch) -> CudaKeyBinding.latents(
        context, type, latents, rope, tokens, weight, eps, roundToBf16, latentsOut, slots, slotCount,
        pages.address(), pages.count(), pages.tokens(), pages.stride(), badRow));
  }

  @Override
  public RuntimeException failure(int status) {
    CudaStatus.check(status);
    return new IllegalStateException("Cannot run the CUDA kernel of keys: status " + status);
  }
}
