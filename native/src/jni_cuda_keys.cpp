// The binding of org.sparkfp4.kernels.CudaKeyBinding.
#include "jni_key_calls.h"
#include "sparkfp4_cuda_keys.h"

namespace {

sparkfp4_cuda_context *context_at(jlong address) { return reinterpret_cast<sparkfp4_cuda_context *>(address); }

}  // namespace

extern "C" {

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaKeyBinding_quantize(
    JNIEnv *env, jclass, jlong context, jint rule, jint type, jlong data, jlong rows, jlong cols, jlong packed,
    jlong scales, jlongArray bad_row) {
  return quantize(env, sparkfp4_cuda_mxfp4_quantize, context_at(context), rule, type, data, rows, cols, packed, scales,
                  bad_row);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaKeyBinding_insert(
    JNIEnv *env, jclass, jlong context, jint rule, jlong dim, jfloatArray weight, jfloatArray bias, jfloat eps,
    jboolean round_to_bf16, jboolean hadamard, jint type, jlong keys, jlong tokens, jlong slots, jlong pages,
    jlong page_count, jlong page_tokens, jlong stride, jlongArray bad_row) {
  return insert(env, sparkfp4_cuda_key_insert, context_at(context), rule, dim, weight, bias, eps, round_to_bf16,
                hadamard, type, keys, tokens, slots, pages_of(pages, page_count, page_tokens, stride), bad_row);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaKeyBinding_query(
    JNIEnv *env, jclass, jlong context, jint rule, jint type, jlong queries, jint weight_type, jlong weights,
    jfloat weight_scale, jlong tokens, jlong heads, jlong padded_heads, jlong packed, jlong scales, jlong weights_out,
    jlongArray bad_row) {
  return query(env, sparkfp4_cuda_query_quantize, context_at(context), rule, type, queries, weight_type, weights,
               weight_scale, tokens, heads, padded_heads, packed, scales, weights_out, bad_row);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaKeyBinding_normalise(
    JNIEnv *env, jclass, jlong context, jint type, jlong data, jlong rows, jfloatArray weight, jfloat eps, jlong out,
    jlongArray bad_row) {
  return normalise(env, sparkfp4_cuda_rms_norm, context_at(context), type, data, rows, weight, eps, out, bad_row);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaKeyBinding_latents(
    JNIEnv *env, jclass, jlong context, jint type, jlong data, jlong rope, jlong tokens, jfloatArray weight, jfloat eps,
    jboolean round_to_bf16, jlong out, jlong slots, jlong slot_count, jlong pages, jlong page_count, jlong page_tokens,
    jlong stride, jlongArray bad_row) {
  return latents(env, sparkfp4_cuda_latent_insert, context_at(context), type, data, rope, tokens, weight, eps,
                 round_to_bf16, out, slots, slot_count, pages_of(pages, page_count, page_tokens, stride), bad_row);
}

}  // extern "C"
