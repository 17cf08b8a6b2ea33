// What the bindings of keys share.
#pragma once

#include "jni_arrays.h"
#include "sparkfp4_keys.h"

namespace {

inline const void *source(jlong address) { return reinterpret_cast<const void *>(address); }
inline void *target(jlong address) { return reinterpret_cast<void *>(address); }

inline sparkfp4_pages pages_of(jlong address, jlong count, jlong tokens, jlong stride) {
  return {target(address), count, tokens, stride};
}

// A copy of an array of floats that may be null.
class Floats {
 public:
  Floats(JNIEnv *env, jfloatArray array)
      : scratch_(array == nullptr ? 0 : env->GetArrayLength(array)), given_(array != nullptr) {
    if (given_ && scratch_.data() != nullptr) {
      env->GetFloatArrayRegion(array, 0, env->GetArrayLength(array), scratch_.data());
    }
  }

  bool failed() { return given_ && scratch_.data() == nullptr; }
  const float *data() { return given_ ? scratch_.data() : nullptr; }

 private:
  Scratch<jfloat> scratch_;
  bool given_;
};

// status is of either library, which agree on this one.
inline jint result(JNIEnv *env, int status, int64_t bad, jlongArray bad_row) {
  if (status == SPARKFP4_NON_FINITE) {
    jlong row = bad;
    env->SetLongArrayRegion(bad_row, 0, 1, &row);
  }

  return status;
}

}  // namespace
