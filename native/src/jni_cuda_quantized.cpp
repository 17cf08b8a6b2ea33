// The binding of org.sparkfp4.kernels.CudaBinding for quantized sources.
#include "jni_cuda.h"

extern "C" {

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaBinding_quantizedAmax(
    JNIEnv *env, jclass, jlong context, jlong scratch, jint code_type, jint scale_type, jlong block_rows,
    jlong block_cols, jlongArray codes, jlongArray scales, jlongArray rows, jlong cols, jfloatArray value,
    jlongArray where) {
  jsize size = env->GetArrayLength(rows);
  Scratch<sparkfp4_quantized_segment> segments(size);
  if (!read_segments(env, codes, scales, rows, size, segments.data())) {
    return kOutOfMemory;
  }

  sparkfp4_scheme scheme = scheme_of(code_type, scale_type, block_rows, block_cols);
  sparkfp4_cuda_outcome found = {};
  DeviceCall call(scratch, size, nullptr);
  int status = run(
      context, call, &found,
      [&](sparkfp4_cuda_context *host) {
        return sparkfp4_cuda_quantized_amax(host, &scheme, segments.data(), size, cols, &found.amax,
                                            &found.non_finite);
      },
      [&] {
        return sparkfp4_cuda_enqueue_quantized_amax(&scheme, segments.data(), size, cols, call.outcome(),
                                                    call.workspace(), call.stream());
      });
  return told_amax(env, status, found, value, where);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaBinding_quantizedEncode(
    JNIEnv *env, jclass, jlong context, jlong scratch, jint recipe_code, jint search, jlong importance, jint code_type,
    jint scale_type, jlong block_rows, jlong block_cols, jlongArray codes, jlongArray scales, jlongArray rows,
    jlong cols, jfloat global_scale, jlong packed, jlong scales_out, jdoubleArray sums, jfloatArray value,
    jlongArray where) {
  EncodeCall<sparkfp4_quantized_segment> call(env, scratch, env->GetArrayLength(rows), packed, scales_out, sums);
  if (!call.read(codes, scales, rows)) {
    return kOutOfMemory;
  }

  sparkfp4_recipe recipe = static_cast<sparkfp4_recipe>(recipe_code);
  sparkfp4_scheme scheme = scheme_of(code_type, scale_type, block_rows, block_cols);
  sparkfp4_cuda_choice choice = choice_of(search, importance);
  sparkfp4_cuda_outcome found = {};
  int status = call.run(
      context, &found,
      [&](sparkfp4_cuda_context *host) {
        return sparkfp4_cuda_quantized_encode(host, recipe, &choice, &scheme, call.segments(), call.size(), cols,
                                              global_scale, call.packed(), call.scales(), call.sums(),
                                              &found.non_finite);
      },
      [&](const DeviceCall &device) {
        return sparkfp4_cuda_enqueue_quantized_encode(recipe, &choice, &scheme, call.segments(), call.size(), cols,
                                                      global_scale, call.packed(), call.scales(), device.sums(),
                                                      device.outcome(), device.workspace(), device.stream());
      });
  return told_number(env, status, found, 0, value, where);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaBinding_quantizedEncodeUnit(
    JNIEnv *env, jclass, jlong context, jlong scratch, jint recipe_code, jint search, jlong importance, jint code_type,
    jint scale_type, jlong block_rows, jlong block_cols, jlongArray codes, jlongArray scales, jlongArray rows,
    jlong cols, jlong packed, jlong scales_out, jdoubleArray sums, jfloatArray value, jlongArray where) {
  EncodeCall<sparkfp4_quantized_segment> call(env, scratch, env->GetArrayLength(rows), packed, scales_out, sums);
  if (!call.read(codes, scales, rows)) {
    return kOutOfMemory;
  }

  sparkfp4_recipe recipe = static_cast<sparkfp4_recipe>(recipe_code);
  sparkfp4_scheme scheme = scheme_of(code_type, scale_type, block_rows, block_cols);
  sparkfp4_cuda_choice choice = choice_of(search, importance);
  sparkfp4_cuda_outcome found = {};
  int status = call.run(
      context, &found,
      [&](sparkfp4_cuda_context *host) {
        return sparkfp4_cuda_quantized_encode_unit(host, recipe, &choice, &scheme, call.segments(), call.size(), cols,
                                                   call.packed(), call.scales(), call.sums(), &found.amax,
                                                   &found.non_finite);
      },
      [&](const DeviceCall &device) {
        return sparkfp4_cuda_enqueue_quantized_encode_unit(recipe, &choice, &scheme, call.segments(), call.size(), cols,
                                                           call.packed(), call.scales(), device.sums(),
                                                           device.outcome(), device.workspace(), device.stream());
      });
  return told_amax(env, status, found, value, where);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaBinding_castMxfp4(
    JNIEnv *env, jclass, jlong context, jlong scratch, jint recipe_code, jlongArray codes, jlongArray scales,
    jlongArray rows, jlong cols, jint kmax, jlong packed, jlong scales_out, jdoubleArray sums, jfloatArray value,
    jlongArray where) {
  EncodeCall<sparkfp4_quantized_segment> call(env, scratch, env->GetArrayLength(rows), packed, scales_out, sums);
  if (!call.read(codes, scales, rows)) {
    return kOutOfMemory;
  }

  sparkfp4_recipe recipe = static_cast<sparkfp4_recipe>(recipe_code);
  sparkfp4_cuda_outcome found = {};
  int status = call.run(
      context, &found,
      [&](sparkfp4_cuda_context *host) {
        return sparkfp4_cuda_cast_mxfp4(host, recipe, call.segments(), call.size(), cols, kmax, call.packed(),
                                        call.scales(), call.sums(), &found.requantized, &found.non_finite);
      },
      [&](const DeviceCall &device) {
        return sparkfp4_cuda_enqueue_cast_mxfp4(recipe, call.segments(), call.size(), cols, kmax, call.packed(),
                                                call.scales(), device.sums(), device.outcome(), device.workspace(),
                                                device.stream());
      });
  return told_number(env, status, found, found.requantized, value, where);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaBinding_dequantizeToBf16(
    JNIEnv *env, jclass, jlong context, jlong scratch, jint code_type, jint scale_type, jlong block_rows,
    jlong block_cols, jlong codes, jlong scales, jlong rows, jlong cols, jlong out_address, jfloatArray value,
    jlongArray where) {
  sparkfp4_scheme scheme = scheme_of(code_type, scale_type, block_rows, block_cols);
  sparkfp4_quantized_segment segment = {reinterpret_cast<const void *>(codes), reinterpret_cast<const void *>(scales),
                                        rows};
  void *out = reinterpret_cast<void *>(out_address);
  sparkfp4_cuda_outcome found = {};
  DeviceCall call(scratch, 1, nullptr);
  int status = run(
      context, call, &found,
      [&](sparkfp4_cuda_context *host) {
        return sparkfp4_cuda_dequantize_bf16(host, &scheme, &segment, cols, out, &found.non_finite);
      },
      [&] {
        return sparkfp4_cuda_enqueue_dequantize_bf16(&scheme, &segment, cols, out, call.outcome(), call.workspace(),
                                                     call.stream());
      });
  return told_number(env, status, found, 0, value, where);
}

}  // extern "C"
