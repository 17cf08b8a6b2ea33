// The binding of org.sparkfp4.kernels.NativeBinding. Arrays are copied: no array is pinned while a kernel runs.
#include <jni.h>

#include <cstdlib>

#include "sparkfp4.h"

namespace {

constexpr jint kOutOfMemory = -1;

// Heap memory that a call needs, freed with it; null where there is none left.
template <typename T>
class Scratch {
 public:
  explicit Scratch(jsize size) : data_(static_cast<T *>(std::calloc(size > 0 ? size : 1, sizeof(T)))) {}
  ~Scratch() { std::free(data_); }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  T *data() { return data_; }

 private:
  T *data_;
};

// False where memory ran out; Java has checked that the arrays are there and have the same length.
bool read_segments(JNIEnv *env, jlongArray addresses, jlongArray counts, jsize size, sparkfp4_segment *segments) {
  Scratch<jlong> values(2 * size);
  if (segments == nullptr || values.data() == nullptr) {
    return false;
  }

  env->GetLongArrayRegion(addresses, 0, size, values.data());
  env->GetLongArrayRegion(counts, 0, size, values.data() + size);
  for (jsize i = 0; i < size; i++) {
    segments[i].data = reinterpret_cast<const void *>(values.data()[i]);
    segments[i].count = values.data()[size + i];
  }

  return true;
}

void write_position(JNIEnv *env, const sparkfp4_position &position, jlongArray where, jfloatArray value) {
  jlong place[2] = {position.segment, position.index};
  env->SetLongArrayRegion(where, 0, 2, place);
  env->SetFloatArrayRegion(value, 0, 1, &position.value);
}

}  // namespace

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
    JNIEnv *env, jclass, jint tier, jint recipe, jint dtype, jlongArray addresses, jlongArray rows, jlong cols,
    jfloat global_scale, jlong packed, jlong scales, jdoubleArray sums, jfloatArray value, jlongArray where) {
  jsize size = env->GetArrayLength(addresses);
  Scratch<sparkfp4_segment> segments(size);
  Scratch<sparkfp4_error_sums> totals(size);
  if (totals.data() == nullptr || !read_segments(env, addresses, rows, size, segments.data())) {
    return kOutOfMemory;
  }

  sparkfp4_position non_finite = {};
  sparkfp4_status status =
      sparkfp4_encode(static_cast<sparkfp4_tier>(tier), static_cast<sparkfp4_recipe>(recipe),
                      static_cast<sparkfp4_dtype>(dtype), segments.data(), size, cols, global_scale,
                      reinterpret_cast<void *>(packed), reinterpret_cast<void *>(scales),
                      sums == nullptr ? nullptr : totals.data(), &non_finite);
  if (status == SPARKFP4_NON_FINITE) {
    write_position(env, non_finite, where, value);
  } else if (status == SPARKFP4_OK && sums != nullptr) {
    static_assert(sizeof(sparkfp4_error_sums) == 2 * sizeof(jdouble));
    env->SetDoubleArrayRegion(sums, 0, 2 * size, reinterpret_cast<const jdouble *>(totals.data()));
  }

  return status;
}

JNIEXPORT void JNICALL Java_org_sparkfp4_kernels_NativeBinding_prefetch(JNIEnv *, jclass, jlong address, jlong bytes) {
  sparkfp4_prefetch(reinterpret_cast<const void *>(address), static_cast<size_t>(bytes));
}

}  // extern "C"
