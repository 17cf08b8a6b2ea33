// The binding of org.sparkfp4.kernels.KeyBinding.
#include "jni_key_arguments.h"

extern "C" {

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_KeyBinding_quantize(JNIEnv *env, jclass, jint tier, jint rule,
                                                                    jint type, jlong data, jlong rows, jlong cols,
                                                                    jlong packed, jlong scales, jlongArray bad_row) {
  int64_t bad = 0;
  sparkfp4_status status = sparkfp4_mxfp4_quantize(
      static_cast<sparkfp4_tier>(tier), static_cast<sparkfp4_scale_rule>(rule), static_cast<sparkfp4_dtype>(type),
      source(data), rows, cols, target(packed), target(scales), &bad);
  return result(env, status, bad, bad_row);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_KeyBinding_insert(
    JNIEnv *env, jclass, jint tier, jint rule, jlong dim, jfloatArray weight, jfloatArray bias, jfloat eps,
    jboolean round_to_bf16, jboolean hadamard, jint type, jlong keys, jlong tokens, jlong slots, jlong pages,
    jlong page_count, jlong page_tokens, jlong stride, jlongArray bad_row) {
  Floats weights(env, weight);
  Floats biases(env, bias);
  if (weights.failed() || biases.failed()) {
    return kOutOfMemory;
  }

  sparkfp4_key_form form = {dim, weights.data(), biases.data(), eps, round_to_bf16, hadamard,
                            static_cast<sparkfp4_scale_rule>(rule)};
  sparkfp4_pages cache = pages_of(pages, page_count, page_tokens, stride);
  int64_t bad = 0;
  sparkfp4_status status = sparkfp4_key_insert(static_cast<sparkfp4_tier>(tier), &form,
                                               static_cast<sparkfp4_dtype>(type), source(keys), tokens,
                                               static_cast<const int64_t *>(source(slots)), &cache, &bad);
  return result(env, status, bad, bad_row);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_KeyBinding_query(
    JNIEnv *env, jclass, jint tier, jint rule, jint type, jlong query, jint weight_type, jlong weights,
    jfloat weight_scale, jlong tokens, jlong heads, jlong padded_heads, jlong packed, jlong scales, jlong weights_out,
    jlongArray bad_row) {
  int64_t bad = 0;
  sparkfp4_status status = sparkfp4_query_quantize(
      static_cast<sparkfp4_tier>(tier), static_cast<sparkfp4_scale_rule>(rule), static_cast<sparkfp4_dtype>(type),
      source(query), static_cast<sparkfp4_dtype>(weight_type), source(weights), weight_scale, tokens, heads,
      padded_heads, target(packed), target(scales), static_cast<float *>(target(weights_out)), &bad);
  return result(env, status, bad, bad_row);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_KeyBinding_normalise(JNIEnv *env, jclass, jint tier, jint type,
                                                                     jlong data, jlong rows, jfloatArray weight,
                                                                     jfloat eps, jlong out, jlongArray bad_row) {
  Floats weights(env, weight);
  if (weights.failed()) {
    return kOutOfMemory;
  }

  int64_t bad = 0;
  sparkfp4_status status = sparkfp4_rms_norm(static_cast<sparkfp4_tier>(tier), static_cast<sparkfp4_dtype>(type),
                                             source(data), rows, env->GetArrayLength(weight), weights.data(), eps,
                                             target(out), &bad);
  return result(env, status, bad, bad_row);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_KeyBinding_latents(
    JNIEnv *env, jclass, jint tier, jint type, jlong latents, jlong rope, jlong tokens, jfloatArray weight, jfloat eps,
    jboolean round_to_bf16, jlong latents_out, jlong slots, jlong slot_count, jlong pages, jlong page_count,
    jlong page_tokens, jlong stride, jlongArray bad_row) {
  Floats weights(env, weight);
  if (weights.failed()) {
    return kOutOfMemory;
  }

  sparkfp4_pages cache = pages_of(pages, page_count, page_tokens, stride);
  int64_t bad = 0;
  sparkfp4_status status = sparkfp4_latent_insert(
      static_cast<sparkfp4_tier>(tier), static_cast<sparkfp4_dtype>(type), source(latents), source(rope), tokens,
      weights.data(), eps, round_to_bf16, target(latents_out), static_cast<const int64_t *>(source(slots)), slot_count,
      &cache, &bad);
  return result(env, status, bad, bad_row);
}

}  // extern "C"
