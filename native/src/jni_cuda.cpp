// The binding of org.sparkfp4.kernels.CudaBinding for plain sources.
#include "jni_cuda.h"

extern "C" {

JNIEXPORT jstring JNICALL Java_org_sparkfp4_kernels_CudaBinding_version(JNIEnv *env, jclass) {
  return env->NewStringUTF(sparkfp4_cuda_version());
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaBinding_deviceCount(JNIEnv *, jclass) {
  return sparkfp4_cuda_device_count();
}

JNIEXPORT jstring JNICALL Java_org_sparkfp4_kernels_CudaBinding_deviceName(JNIEnv *env, jclass, jint device) {
  cudaDeviceProp properties;
  return env->NewStringUTF(cudaGetDeviceProperties(&properties, device) == cudaSuccess ? properties.name : "unnamed");
}

JNIEXPORT jstring JNICALL Java_org_sparkfp4_kernels_CudaBinding_error(JNIEnv *env, jclass) {
  return env->NewStringUTF(sparkfp4_cuda_error());
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaBinding_create(JNIEnv *env, jclass, jint device,
                                                                    jlongArray context) {
  sparkfp4_cuda_context *created = nullptr;
  sparkfp4_cuda_status status = sparkfp4_cuda_create(device, nullptr, &created);
  if (status == SPARKFP4_CUDA_OK) {
    jlong address = reinterpret_cast<jlong>(created);
    env->SetLongArrayRegion(context, 0, 1, &address);
  }

  return status;
}

JNIEXPORT void JNICALL Java_org_sparkfp4_kernels_CudaBinding_destroy(JNIEnv *, jclass, jlong context) {
  sparkfp4_cuda_destroy(context_at(context));
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaBinding_pin(JNIEnv *env, jclass, jint device, jlong bytes,
                                                                 jlongArray address) {
  void *memory = nullptr;
  sparkfp4_cuda_status status = sparkfp4_cuda_pin(device, bytes, &memory);
  if (status == SPARKFP4_CUDA_OK) {
    jlong pinned = reinterpret_cast<jlong>(memory);
    env->SetLongArrayRegion(address, 0, 1, &pinned);
  }

  return status;
}

JNIEXPORT void JNICALL Java_org_sparkfp4_kernels_CudaBinding_unpin(JNIEnv *, jclass, jint device, jlong address) {
  sparkfp4_cuda_unpin(device, reinterpret_cast<void *>(address));
}

JNIEXPORT jlong JNICALL Java_org_sparkfp4_kernels_CudaBinding_scratchBytes(JNIEnv *, jclass, jint segments) {
  return outcome_bytes() + sums_bytes(segments) + sparkfp4_cuda_workspace_bytes(segments);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaBinding_fill(JNIEnv *, jclass, jlong address, jlong bytes,
                                                                  jbyte value) {
  cudaError_t error = cudaMemsetAsync(reinterpret_cast<void *>(address), static_cast<unsigned char>(value),
                                      static_cast<size_t>(bytes), cudaStreamPerThread);
  return error == cudaSuccess ? SPARKFP4_CUDA_OK : sparkfp4::cuda::failed(error);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaBinding_amax(JNIEnv *env, jclass, jlong context, jlong scratch,
                                                                  jint type, jlongArray addresses,
                                                                  jlongArray elements, jfloatArray value,
                                                                  jlongArray where) {
  jsize size = env->GetArrayLength(addresses);
  Scratch<sparkfp4_segment> segments(size);
  if (!read_segments(env, addresses, elements, size, segments.data())) {
    return kOutOfMemory;
  }

  sparkfp4_dtype dtype = static_cast<sparkfp4_dtype>(type);
  sparkfp4_cuda_outcome found = {};
  DeviceCall call(scratch, size, nullptr);
  int status = run(
      context, call, &found,
      [&](sparkfp4_cuda_context *host) {
        return sparkfp4_cuda_amax(host, dtype, segments.data(), size, &found.amax, &found.non_finite);
      },
      [&] {
        return sparkfp4_cuda_enqueue_amax(dtype, segments.data(), size, call.outcome(), call.workspace(),
                                          call.stream());
      });
  return told_amax(env, status, found, value, where);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaBinding_encode(
    JNIEnv *env, jclass, jlong context, jlong scratch, jint recipe_code, jint search, jlong importance, jint type,
    jlongArray addresses, jlongArray rows, jlong cols, jfloat global_scale, jlong packed, jlong scales,
    jdoubleArray sums, jfloatArray value, jlongArray where) {
  EncodeCall<sparkfp4_segment> call(env, scratch, env->GetArrayLength(addresses), packed, scales, sums);
  if (!call.read(addresses, rows)) {
    return kOutOfMemory;
  }

  sparkfp4_recipe recipe = static_cast<sparkfp4_recipe>(recipe_code);
  sparkfp4_dtype dtype = static_cast<sparkfp4_dtype>(type);
  sparkfp4_cuda_choice choice = choice_of(search, importance);
  sparkfp4_cuda_outcome found = {};
  int status = call.run(
      context, &found,
      [&](sparkfp4_cuda_context *host) {
        return sparkfp4_cuda_encode(host, recipe, &choice, dtype, call.segments(), call.size(), cols, global_scale,
                                    call.packed(), call.scales(), call.sums(), &found.non_finite);
      },
      [&](const DeviceCall &device) {
        return sparkfp4_cuda_enqueue_encode(recipe, &choice, dtype, call.segments(), call.size(), cols, global_scale,
                                            call.packed(), call.scales(), device.sums(), device.outcome(),
                                            device.workspace(), device.stream());
      });
  return told_number(env, status, found, 0, value, where);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaBinding_encodeUnit(
    JNIEnv *env, jclass, jlong context, jlong scratch, jint recipe_code, jint search, jlong importance, jint type,
    jlongArray addresses, jlongArray rows, jlong cols, jlong packed, jlong scales, jdoubleArray sums,
    jfloatArray value, jlongArray where) {
  EncodeCall<sparkfp4_segment> call(env, scratch, env->GetArrayLength(addresses), packed, scales, sums);
  if (!call.read(addresses, rows)) {
    return kOutOfMemory;
  }

  sparkfp4_recipe recipe = static_cast<sparkfp4_recipe>(recipe_code);
  sparkfp4_dtype dtype = static_cast<sparkfp4_dtype>(type);
  sparkfp4_cuda_choice choice = choice_of(search, importance);
  sparkfp4_cuda_outcome found = {};
  int status = call.run(
      context, &found,
      [&](sparkfp4_cuda_context *host) {
        return sparkfp4_cuda_encode_unit(host, recipe, &choice, dtype, call.segments(), call.size(), cols,
                                         call.packed(), call.scales(), call.sums(), &found.amax, &found.non_finite);
      },
      [&](const DeviceCall &device) {
        return sparkfp4_cuda_enqueue_encode_unit(recipe, &choice, dtype, call.segments(), call.size(), cols,
                                                 call.packed(), call.scales(), device.sums(), device.outcome(),
                                                 device.workspace(), device.stream());
      });
  return told_amax(env, status, found, value, where);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaBinding_largestExponent(JNIEnv *env, jclass, jlong context,
                                                                             jlong scratch, jlongArray scales,
                                                                             jlongArray counts, jfloatArray value,
                                                                             jlongArray where) {
  jsize size = env->GetArrayLength(scales);
  Scratch<sparkfp4_segment> segments(size);
  if (!read_segments(env, scales, counts, size, segments.data())) {
    return kOutOfMemory;
  }

  sparkfp4_cuda_outcome found = {};
  DeviceCall call(scratch, size, nullptr);
  int status = run(
      context, call, &found,
      [&](sparkfp4_cuda_context *host) {
        return sparkfp4_cuda_largest_exponent(host, segments.data(), size, &found.exponent, &found.non_finite);
      },
      [&] {
        return sparkfp4_cuda_enqueue_largest_exponent(segments.data(), size, call.outcome(), call.workspace(),
                                                      call.stream());
      });
  return told_number(env, status, found, found.exponent, value, where);
}

}  // extern "C"
