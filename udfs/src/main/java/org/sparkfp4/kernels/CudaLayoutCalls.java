package org.sparkfp4.kernels;

/** The CUDA library, on host memory. */
record CudaLayoutCalls(CudaMemory memory) implements LayoutCalls {
  @Override
  public String tier() {
    return "cuda";
  }

  @Override
  public int arrangeCodes(int layout, long[] shape, long[] members, long out) {
    return memory.run((context, scratch) -> CudaLayoutBinding.arrangeCodes(context, layout, shape, members, out));
  }

  @Override
  public int restoreCodes(int layout, long[] shape, long arranged, long[] members) {
    return memory.run((context, scratch) -> CudaLayoutBinding.restoreCodes(context, layout, shape, arranged, members));
  }

  @Override
  public int arrangeScales(int layout, long[] shape, long[] members, float factor, long out) {
    return memory.run(
        (context, scratch) -> CudaLayoutBinding.arrangeScales(context, layout, shape, members, factor, out));
  }

  @Override
  public int restoreScales(int layout, long[] shape, long arranged, float factor, long[] members) {
    return memory.run(
        (context, scratch) -> CudaLayoutBinding.restoreScales(context, layout, shape, arranged, factor, members));
  }

  @Override
  public int decode(TensorMemory tensor, int type, long out) {
    return memory.run((context, scratch) -> CudaLayoutBinding.decode(context, tensor.isActivation(), tensor.experts(),
        tensor.rows(), tensor.k(), tensor.codes(), tensor.scales(), tensor.globalScale(), type, out));
  }

  @Override
  public RuntimeException failure(int status) {
    CudaStatus.check(status);
    return new IllegalStateException("Cannot run the CUDA kernel of layouts: status " + status);
  }
}
