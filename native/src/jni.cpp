// The binding of org.sparkfp4.kernels.NativeBinding for plain sources.
#include "jni_arrays.h"

extern "C" {

JNIEXPORT jstring JNICALL Java_org_sparkfp4_kernels_NativeBinding_version(JNIEnv *env, jclass) {
  return env->NewStringUTF(sparkfp4_version());
}

JNIEXPORT jboolean JNICALL Java_org_sparkfp4_kernels_NativeBinding_hasTier(JNIEnv *, jclass, jint tier) {
  return sparkfp4_has_tier(static_cast<sparkfp4_tier>(tier)) ? JNI_TRUE : JNI_FALSE;
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_NativeBinding_amax(JNIEnv *env, jclass, jint tier, jint dtype,
                                                                   jlongArray addresses, jlongArray elements,
                                                                   jfloatArray value, jlongArray where) {
  jsize size = env->GetArrayLength(addresses);
  Scratch<sparkfp4_segment> segments(size);
  if (!read_segments(env, addresses, elements, size, segments.data())) {
    return kOutOfMemory;
  }

  float amax = 0;
  sparkfp4_position non_finite = {};
  sparkfp4_status status = sparkfp4_amax(static_cast<sparkfp4_tier>(tier), static_cast<sparkfp4_dtype>(dtype),
                                         segments.data(), size, &amax, &non_finite);
  if (status == SPARKFP4_OK) {
    env->SetFloatArrayRegion(value, 0, 1, &amax);
  } else if (status == SPARKFP4_NON_FINITE) {
    write_position(env, non_finite, where, value);
  }

  return status;
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_NativeBinding_encode(
    JNIEnv *env, jclass, jint tier, jint recipe, jint search, jlong importance, jint dtype, jlongArray addresses,
    jlongArray rows, jlong cols, jfloat global_scale, jlong packed, jlong scales, jdoubleArray sums, jfloatArray value,
    jlongArray where) {
  jsize size = env->GetArrayLength(addresses);
  Scratch<sparkfp4_segment> segments(size);
  Scratch<sparkfp4_error_sums> totals(size);
  if (totals.data() == nullptr || !read_segments(env, addresses, rows, size, segments.data())) {
    return kOutOfMemory;
  }

  sparkfp4_position non_finite = {};
  sparkfp4_status status =
      sparkfp4_encode(static_cast<sparkfp4_tier>(tier), static_cast<sparkfp4_recipe>(recipe),
                      static_cast<sparkfp4_search>(search), reinterpret_cast<const float *>(importance),
                      static_cast<sparkfp4_dtype>(dtype), segments.data(), size, cols, global_scale,
                      reinterpret_cast<void *>(packed), reinterpret_cast<void *>(scales),
                      sums == nullptr ? nullptr : totals.data(), &non_finite);
  if (status == SPARKFP4_NON_FINITE) {
    write_position(env, non_finite, where, value);
  } else if (status == SPARKFP4_OK) {
    write_sums(env, totals.data(), size, sums);
  }

  return status;
}

JNIEXPORT void JNICALL Java_org_sparkfp4_kernels_NativeBinding_prefetch(JNIEnv *, jclass, jlong address, jlong bytes) {
  sparkfp4_prefetch(reinterpret_cast<const void *>(address), static_cast<size_t>(bytes));
}

JNIEXPORT void JNICALL Java_org_sparkfp4_kernels_NativeBinding_letGo(JNIEnv *, jclass, jlong address, jlong bytes) {
  sparkfp4_let_go(reinterpret_cast<const void *>(address), static_cast<size_t>(bytes));
}

}  // extern "C"
