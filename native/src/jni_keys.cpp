// The binding of org.sparkfp4.kernels.KeyBinding.
#include "jni_key_calls.h"

extern "C" {

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_KeyBinding_quantize(
    JNIEnv *env, jclass, jint tier, jint rule, jint type, jlong data, jlong rows, jlong cols, jlong packed,
    jlong scales, jlongArray bad_row) {
  return quantize(env, sparkfp4_mxfp4_quantize, static_cast<sparkfp4_tier>(tier), rule, type, data, rows, cols, packed,
                  scales, bad_row);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_KeyBinding_insert(
    JNIEnv *env, jclass, jint tier, jint rule, jlong dim, jfloatArray weight, jfloatArray bias, jfloat eps,
    jboolean round_to_bf16, jboolean hadamard, jint type, jlong keys, jlong tokens, jlong slots, jlong pages,
    jlong page_count, jlong page_tokens, jlong stride, jlongArray bad_row) {
  return insert(env, sparkfp4_key_insert, static_cast<sparkfp4_tier>(tier), rule, dim, weight, bias, eps, round_to_bf16,
                hadamard, type, keys, tokens, slots, pages_of(pages, page_count, page_tokens, stride), bad_row);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_KeyBinding_query(
    JNIEnv *env, jclass, jint tier, jint rule, jint type, jlong queries, jint weight_type, jlong weights,
    jfloat weight_scale, jlong tokens, jlong heads, jlong padded_heads, jlong packed, jlong scales, jlong weights_out,
    jlongArray bad_row) {
  return query(env, sparkfp4_query_quantize, static_cast<sparkfp4_tier>(tier), rule, type, queries, weight_type,
               weights, weight_scale, tokens, heads, padded_heads, packed, scales, weights_out, bad_row);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_KeyBinding_normalise(
    JNIEnv *env, jclass, jint tier, jint type, jlong data, jlong rows, jfloatArray weight, jfloat eps, jlong out,
    jlongArray bad_row) {
  return normalise(env, sparkfp4_rms_norm, static_cast<sparkfp4_tier>(tier), type, data, rows, weight, eps, out,
                   bad_row);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_KeyBinding_latents(
    JNIEnv *env, jclass, jint tier, jint type, jlong data, jlong rope, jlong tokens, jfloatArray weight, jfloat eps,
    jboolean round_to_bf16, jlong out, jlong slots, jlong slot_count, jlong pages, jlong page_count, jlong page_tokens,
    jlong stride, jlongArray bad_row) {
  return latents(env, sparkfp4_latent_insert, static_cast<sparkfp4_tier>(tier), type, data, rope, tokens, weight, eps,
                 round_to_bf16, out, slots, slot_count, pages_of(pages, page_count, page_tokens, stride), bad_row);
}

}  // extern "C"
