package org.sparkfp4.kernels;

/** A tier of the processor's library. */
record CpuLayoutCalls(NativeKernel.Tier kernel) implements LayoutCalls {
  @Override
  public String tier() {
    return kernel.title();
  }

  @Override
  public int arrangeCodes(int layout, long[] shape, long[] members, long out) {
    return LayoutBinding.arrangeCodes(kernel.ordinal(), layout, shape, members, out);
  }

  @Override
  public int restoreCodes(int layout, long[] shape, long arranged, long[] members) {
    return LayoutBinding.restoreCodes(kernel.ordinal(), layout, shape, arranged, members);
  }

  @Override
  public int arrangeScales(int layout, long[] shape, long[] members, float factor, long out) {
    return LayoutBinding.arrangeScales(kernel.ordinal(), layout, shape, members, factor, out);
  }

  @Override
  public int restoreScales(int layout, long[] shape, long arranged, float factor, long[] members) {
    return LayoutBinding.restoreScales(kernel.ordinal(), layout, shape, arranged, factor, members);
  }

  @Override
  public int decode(TensorMemory tensor, int type, long out) {
    return LayoutBinding.decode(kernel.ordinal(), tensor.isActivation(), tensor.experts(), tensor.rows(), tensor.k(),
        tensor.codes(), tensor.scales(), tensor.globalScale(), type, out);
  }

  @Override
  public RuntimeException failure(int status) {
    return new IllegalStateException("Cannot run the " + tier() + " kernel of layouts: status " + status);
  }
}
