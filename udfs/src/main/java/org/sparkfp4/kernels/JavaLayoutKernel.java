package org.sparkfp4.kernels;

import java.util.Arrays;
import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.formats.Arrangement;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.BlockScaleLayout;
import org.sparkfp4.formats.Bytes;
import org.sparkfp4.formats.CodeLayout;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.NVFP4Tensor;

/** The reference on native memory. */
final class JavaLayoutKernel implements LayoutKernel {
  @Override
  public String tier() {
    return "java";
  }

  @Override
  public void arrangeCodes(CodeLayout layout, Arrangement shape, long[] members, long out) {
    layout.arrange(shape, views(members, shape.memberCodes()),
        new AddressBytes(out, layout.bytes(shape.matrixRows(), shape.paddedK())));
  }

  @Override
  public void restoreCodes(CodeLayout layout, Arrangement shape, long arranged, long[] members) {
    layout.restore(shape, new AddressBytes(arranged, layout.bytes(shape.matrixRows(), shape.paddedK())),
        views(members, shape.memberCodes()));
  }

  @Override
  public void arrangeScales(BlockScaleLayout layout, Arrangement shape, long[] members, float factor, long out) {
    layout.arrange(shape, views(members, shape.memberScales()), factor,
        new AddressBytes(out, layout.bytes(shape.matrixRows(), shape.paddedColumns())));
  }

  @Override
  public void restoreScales(BlockScaleLayout layout, Arrangement shape, long arranged, float factor, long[] members) {
    layout.restore(shape, new AddressBytes(arranged, layout.bytes(shape.matrixRows(), shape.paddedColumns())), factor,
        views(members, shape.memberScales()));
  }

  @Override
  public long firstAbove(long scales, long count, int limit) {
    return BlockScaleLayout.firstAbove(new AddressBytes(scales, count), limit);
  }

  @Override
  public void decode(TensorMemory tensor, ElementType type, long out) {
    LayoutArguments.checkDecoded(type);
    Bytes codes = new AddressBytes(tensor.codes(), tensor.elements() / 2);
    Bytes scales = new AddressBytes(tensor.scales(), tensor.scaleBytes());
    float[] global = tensor.globalScale();
    NVFP4Tensor view = tensor.isActivation()
        ? NVFP4Tensor.activations(tensor.rows(), tensor.k(), codes, scales, global == null ? 1 : global[0])
        : NVFP4Tensor.weights(tensor.experts(), tensor.rows(), tensor.k(), codes, scales, global);
    float[] row = new float[tensor.k()];
    long at = out;
    for (int expert = 0; expert < tensor.experts(); expert++) {
      for (int r = 0; r < tensor.rows(); r++) {
        view.decodeRow(expert, r, row);
        for (float value : row) {
          if (type == ElementType.F32) {
            MemoryUtil.putInt(at, Float.floatToIntBits(value));
          } else {
            MemoryUtil.putShort(at, BFloat16.fromFloat(Float.intBitsToFloat(Float.floatToIntBits(value))));
          }

          at += type.bytes();
        }
      }
    }
  }

  private static Bytes[] views(long[] addresses, long size) {
    return Arrays.stream(addresses).mapToObj(address -> new AddressBytes(address, size)).toArray(Bytes[]::new);
  }
}
