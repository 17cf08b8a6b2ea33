// The binding of org.sparkfp4.kernels.NativeBinding for quantized sources.
#include "jni_arrays.h"

extern "C" {

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_NativeBinding_quantizedAmax(
    JNIEnv *env, jclass, jint tier, jint code_type, jint scale_type, jlong block_rows, jlong block_cols,
    jlongArray codes, jlongArray scales, jlongArray rows, jlong cols, jfloatArray value, jlongArray where) {
  jsize size = env->GetArrayLength(rows);
  Scratch<sparkfp4_quantized_segment> segments(size);
  if (!read_segments(env, codes, scales, rows, size, segments.data())) {
    return kOutOfMemory;
  }

  sparkfp4_scheme scheme = scheme_of(code_type, scale_type, block_rows, block_cols);
  float amax = 0;
  sparkfp4_position non_finite = {};
  sparkfp4_status status = sparkfp4_quantized_amax(static_cast<sparkfp4_tier>(tier), &scheme, segments.data(), size,
                                                   cols, &amax, &non_finite);
  if (status == SPARKFP4_OK) {
    env->SetFloatArrayRegion(value, 0, 1, &amax);
  } else if (status == SPARKFP4_NON_FINITE) {
    write_position(env, non_finite, where, value);
  }

  return status;
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_NativeBinding_quantizedEncode(
    JNIEnv *env, jclass, jint tier, jint recipe, jint search, jlong importance, jint code_type, jint scale_type,
    jlong block_rows, jlong block_cols, jlongArray codes, jlongArray scales, jlongArray rows, jlong cols,
    jfloat global_scale, jlong packed, jlong scales_out, jdoubleArray sums, jfloatArray value, jlongArray where) {
  jsize size = env->GetArrayLength(rows);
  Scratch<sparkfp4_quantized_segment> segments(size);
  Scratch<sparkfp4_error_sums> totals(size);
  if (totals.data() == nullptr || !read_segments(env, codes, scales, rows, size, segments.data())) {
    return kOutOfMemory;
  }

  sparkfp4_scheme scheme = scheme_of(code_type, scale_type, block_rows, block_cols);
  sparkfp4_position non_finite = {};
  sparkfp4_status status = sparkfp4_quantized_encode(
      static_cast<sparkfp4_tier>(tier), static_cast<sparkfp4_recipe>(recipe), static_cast<sparkfp4_search>(search),
      reinterpret_cast<const float *>(importance), &scheme, segments.data(), size, cols, global_scale,
      reinterpret_cast<void *>(packed), reinterpret_cast<void *>(scales_out),
      sums == nullptr ? nullptr : totals.data(), &non_finite);
  if (status == SPARKFP4_NON_FINITE) {
    write_position(env, non_finite, where, value);
  } else if (status == SPARKFP4_OK) {
    write_sums(env, totals.data(), size, sums);
  }

  return status;
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_NativeBinding_largestExponent(JNIEnv *env, jclass, jlongArray scales,
                                                                               jlongArray counts, jfloatArray value,
                                                                               jlongArray where) {
  jsize size = env->GetArrayLength(scales);
  Scratch<sparkfp4_segment> segments(size);
  if (!read_segments(env, scales, counts, size, segments.data())) {
    return kOutOfMemory;
  }

  int32_t exponent = 0;
  sparkfp4_position non_finite = {};
  sparkfp4_status status = sparkfp4_largest_exponent(segments.data(), size, &exponent, &non_finite);
  if (status == SPARKFP4_OK) {
    jlong result = exponent;
    env->SetLongArrayRegion(where, 0, 1, &result);
  } else if (status == SPARKFP4_NON_FINITE) {
    write_position(env, non_finite, where, value);
  }

  return status;
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_NativeBinding_castMxfp4(
    JNIEnv *env, jclass, jint tier, jint recipe, jlongArray codes, jlongArray scales, jlongArray rows, jlong cols,
    jint kmax, jlong packed, jlong scales_out, jdoubleArray sums, jfloatArray value, jlongArray where) {
  jsize size = env->GetArrayLength(rows);
  Scratch<sparkfp4_quantized_segment> segments(size);
  Scratch<sparkfp4_error_sums> totals(size);
  if (totals.data() == nullptr || !read_segments(env, codes, scales, rows, size, segments.data())) {
    return kOutOfMemory;
  }

  int64_t requantized = 0;
  sparkfp4_position non_finite = {};
  sparkfp4_status status = sparkfp4_cast_mxfp4(
      static_cast<sparkfp4_tier>(tier), static_cast<sparkfp4_recipe>(recipe), segments.data(), size, cols, kmax,
      reinterpret_cast<void *>(packed), reinterpret_cast<void *>(scales_out),
      sums == nullptr ? nullptr : totals.data(), &requantized, &non_finite);
  if (status == SPARKFP4_NON_FINITE) {
    write_position(env, non_finite, where, value);
  } else if (status == SPARKFP4_OK) {
    write_sums(env, totals.data(), size, sums);
    jlong result = requantized;
    env->SetLongArrayRegion(where, 0, 1, &result);
  }

  return status;
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_NativeBinding_dequantizeToBf16(
    JNIEnv *env, jclass, jint tier, jint code_type, jint scale_type, jlong block_rows, jlong block_cols, jlong codes,
    jlong scales, jlong rows, jlong cols, jlong out, jfloatArray value, jlongArray where) {
  sparkfp4_scheme scheme = scheme_of(code_type, scale_type, block_rows, block_cols);
  sparkfp4_quantized_segment segment = {reinterpret_cast<const void *>(codes), reinterpret_cast<const void *>(scales),
                                        rows};
  sparkfp4_position non_finite = {};
  sparkfp4_status status = sparkfp4_dequantize_bf16(static_cast<sparkfp4_tier>(tier), &scheme, &segment, cols,
                                                    reinterpret_cast<void *>(out), &non_finite);
  if (status == SPARKFP4_NON_FINITE) {
    write_position(env, non_finite, where, value);
  }

  return status;
}

}  // extern "C"
