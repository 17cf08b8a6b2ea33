// Arrays of Java, copied: no array is pinned while a kernel runs.
#pragma once

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
inline bool read_segments(JNIEnv *env, jlongArray addresses, jlongArray counts, jsize size,
                          sparkfp4_segment *segments) {
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

inline sparkfp4_scheme scheme_of(jint codes, jint scales, jlong block_rows, jlong block_cols) {
  return {static_cast<sparkfp4_codes>(codes), static_cast<sparkfp4_scale_type>(scales), block_rows, block_cols};
}

// The same of a quantized source.
inline bool read_segments(JNIEnv *env, jlongArray codes, jlongArray scales, jlongArray rows, jsize size,
                   sparkfp4_quantized_segment *segments) {
  Scratch<jlong> values(3 * size);
  if (segments == nullptr || values.data() == nullptr) {
    return false;
  }

  env->GetLongArrayRegion(codes, 0, size, values.data());
  env->GetLongArrayRegion(scales, 0, size, values.data() + size);
  env->GetLongArrayRegion(rows, 0, size, values.data() + 2 * size);
  for (jsize i = 0; i < size; i++) {
    segments[i].codes = reinterpret_cast<const void *>(values.data()[i]);
    segments[i].scales = reinterpret_cast<const void *>(values.data()[size + i]);
    segments[i].rows = values.data()[2 * size + i];
  }

  return true;
}

inline void write_position(JNIEnv *env, const sparkfp4_position &position, jlongArray where, jfloatArray value) {
  jlong place[2] = {position.segment, position.index};
  env->SetLongArrayRegion(where, 0, 2, place);
  env->SetFloatArrayRegion(value, 0, 1, &position.value);
}

// Nothing where sums are not wanted.
inline void write_sums(JNIEnv *env, const sparkfp4_error_sums *totals, jsize size, jdoubleArray sums) {
  static_assert(sizeof(sparkfp4_error_sums) == 2 * sizeof(jdouble));
  if (sums != nullptr) {
    env->SetDoubleArrayRegion(sums, 0, 2 * size, reinterpret_cast<const jdouble *>(totals));
  }
}

}  // namespace
