package org.sparkfp4.layouts;

import java.nio.ByteBuffer;
import org.sparkfp4.formats.Float16;
import org.sparkfp4.safetensors.DType;

/** How a runtime wants the factor that an expert's weights are multiplied by. */
enum GlobalForm {
  /** As it is. */
  F32(DType.F32),
  /** Times 2^7, as vLLM's Marlin kernel for float16 activations takes it. */
  F32_TIMES_128(DType.F32),
  /** Times 2^7, rounded to float16, as Edge-LLM's Marlin plugin takes it. */
  F16_TIMES_128(DType.F16);

  private static final float GAIN = 0x1p7f;
  private static final float SMALLEST_NORMAL_F16 = 0x1p-14f;

  private final DType dtype;

  GlobalForm(DType dtype) {
    this.dtype = dtype;
  }

  DType dtype() {
    return dtype;
  }

  /** Appends a factor. */
  void put(ByteBuffer out, float factor) {
    switch (this) {
      case F32 -> out.putFloat(factor);
      case F32_TIMES_128 -> out.putFloat(factor * GAIN);
      case F16_TIMES_128 -> out.putShort(Float16.fromFloat(factor * GAIN));
    }
  }

  /** Whether what is stored is the factor's value, and not one near it. */
  boolean keeps(float factor) {
    return this != F16_TIMES_128 || Float16.toFloat(Float16.fromFloat(factor * GAIN)) == factor * GAIN;
  }

  /**
   * Whether the kernel could multiply by what is stored: it is neither zero nor infinite, nor a subnormal float16, whose
   * few bits would change every weight of the expert by as much as half.
   */
  boolean holds(float factor) {
    return switch (this) {
      case F32 -> true;
      case F32_TIMES_128 -> factor * GAIN <= Float.MAX_VALUE;
      case F16_TIMES_128 -> {
        float stored = Float16.toFloat(Float16.fromFloat(factor * GAIN));
        yield stored >= SMALLEST_NORMAL_F16 && stored <= Float.MAX_VALUE;
      }
    };
  }
}
