package org.sparkfp4.functions;

import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.formats.Weighting;
import org.sparkfp4.gptq.Compensation;
import org.sparkfp4.gptq.LayerInputs;
import org.sparkfp4.kernels.ProductKernels;

/** Makes units of rows that GPTQ may encode. */
final class GptqUnit {
  private GptqUnit() {}

  /**
   * A unit; what it knows of its inputs is in the importance, if that is long enough.
   *
   * @param tier of the processor, which multiplies matrices
   * @throws IllegalArgumentException as {@link WeightUnit} does, or if a value of a Hessian cannot be
   */
  static WeightUnit of(
      Segments segments,
      Long cols,
      Float amax,
      ImportanceBytes importance,
      double damping,
      String tier,
      NativeScratch scratch) {
    if (cols == null || importance == null || importance.length() != LayerInputs.bytes(cols)) {
      return new WeightUnit(segments, cols, amax, importance);
    }

    LayerInputs inputs = new LayerInputs(importance.address(), cols);
    long bytes = Float.BYTES * Weighting.HESSIAN.values(cols);
    ArrowBuf local = scratch.take(bytes);
    inputs.writeLocal(MemoryUtil.directBuffer(local.memoryAddress(), Math.toIntExact(bytes)));
    return new WeightUnit(
        segments, cols, amax, new ImportanceBytes(local.memoryAddress(), bytes),
        () -> new Compensation(inputs, damping, ProductKernels.forTier(tier), scratch.allocator()));
  }
}
