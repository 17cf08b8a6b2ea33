// The bindings of keys. Those of both libraries differ in the function that they call and in its first argument, the
// place: a tier of the processor or a context of a device.
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

template <typename Place, typename Function>
jint quantize(JNIEnv *env, Function function, Place place, jint rule, jint type, jlong data, jlong rows, jlong cols,
              jlong packed, jlong scales, jlongArray bad_row) {
  int64_t bad = 0;
  int status = function(place, static_cast<sparkfp4_scale_rule>(rule), static_cast<sparkfp4_dtype>(type), source(data),
                        rows, cols, target(packed), target(scales), &bad);
  return result(env, status, bad, bad_row);
}

template <typename Place, typename Function>
jint insert(JNIEnv *env, Function function, Place place, jint rule, jlong dim, jfloatArray weight, jfloatArray bias,
            jfloat eps, jboolean round_to_bf16, jboolean hadamard, jint type, jlong keys, jlong tokens, jlong slots,
            const sparkfp4_pages &pages, jlongArray bad_row) {
  Floats weights(env, weight);
  Floats biases(env, bias);
  if (weights.failed() || biases.failed()) {
    return kOutOfMemory;
  }

  sparkfp4_key_form form = {dim, weights.data(), biases.data(), eps, round_to_bf16, hadamard,
                            static_cast<sparkfp4_scale_rule>(rule)};
  int64_t bad = 0;
  int status = function(place, &form, static_cast<sparkfp4_dtype>(type), source(keys), tokens,
                        static_cast<const int64_t *>(source(slots)), &pages, &bad);
  return result(env, status, bad, bad_row);
}

template <typename Place, typename Function>
jint query(JNIEnv *env, Function function, Place place, jint rule, jint type, jlong queries, jint weight_type,
           jlong weights, jfloat weight_scale, jlong tokens, jlong heads, jlong padded_heads, jlong packed,
           jlong scales, jlong weights_out, jlongArray bad_row) {
  int64_t bad = 0;
  int status = function(place, static_cast<sparkfp4_scale_rule>(rule), static_cast<sparkfp4_dtype>(type),
                        source(queries), static_cast<sparkfp4_dtype>(weight_type), source(weights), weight_scale,
                        tokens, heads, padded_heads, target(packed), target(scales),
                        static_cast<float *>(target(weights_out)), &bad);
  return result(env, status, bad, bad_row);
}

template <typename Place, typename Function>
jint normalise(JNIEnv *env, Function function, Place place, jint type, jlong data, jlong rows, jfloatArray weight,
               jfloat eps, jlong out, jlongArray bad_row) {
  Floats weights(env, weight);
  if (weights.failed()) {
    return kOutOfMemory;
  }

  int64_t bad = 0;
  int status = function(place, static_cast<sparkfp4_dtype>(type), source(data), rows, env->GetArrayLength(weight),
                        weights.data(), eps, target(out), &bad);
  return result(env, status, bad, bad_row);
}

template <typename Place, typename Function>
jint latents(JNIEnv *env, Function function, Place place, jint type, jlong data, jlong rope, jlong tokens,
             jfloatArray weight, jfloat eps, jboolean round_to_bf16, jlong out, jlong slots, jlong slot_count,
             const sparkfp4_pages &pages, jlongArray bad_row) {
  Floats weights(env, weight);
  if (weights.failed()) {
    return kOutOfMemory;
  }

  int64_t bad = 0;
  int status = function(place, static_cast<sparkfp4_dtype>(type), source(data), source(rope), tokens, weights.data(),
                        eps, round_to_bf16, target(out), static_cast<const int64_t *>(source(slots)), slot_count,
                        &pages, &bad);
  return result(env, status, bad, bad_row);
}

}  // namespace
