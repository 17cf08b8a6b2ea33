// The binding of org.sparkfp4.kernels.CudaLayoutBinding.
#include "jni_layout_arguments.h"
#include "sparkfp4_cuda_layouts.h"

namespace {

sparkfp4_cuda_context *context_at(jlong address) { return reinterpret_cast<sparkfp4_cuda_context *>(address); }

}  // namespace

extern "C" {

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaLayoutBinding_arrangeCodes(
    JNIEnv *env, jclass, jlong context, jint layout, jlongArray shape, jlongArray members, jlong out) {
  LayoutArguments arguments(env, shape, members);
  return !arguments.is_valid()
             ? static_cast<jint>(SPARKFP4_CUDA_INVALID)
             : sparkfp4_cuda_arrange_codes(context_at(context), static_cast<sparkfp4_code_layout>(layout),
                                                arguments.shape(), arguments.members(), layout_target(out));
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaLayoutBinding_restoreCodes(
    JNIEnv *env, jclass, jlong context, jint layout, jlongArray shape, jlong arranged, jlongArray members) {
  LayoutArguments arguments(env, shape, members);
  return !arguments.is_valid()
             ? static_cast<jint>(SPARKFP4_CUDA_INVALID)
             : sparkfp4_cuda_restore_codes(context_at(context), static_cast<sparkfp4_code_layout>(layout),
                                                arguments.shape(), layout_source(arranged), arguments.members());
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaLayoutBinding_arrangeScales(
    JNIEnv *env, jclass, jlong context, jint layout, jlongArray shape, jlongArray members, jfloat factor,
    jlong out) {
  LayoutArguments arguments(env, shape, members);
  return !arguments.is_valid()
             ? static_cast<jint>(SPARKFP4_CUDA_INVALID)
             : sparkfp4_cuda_arrange_scales(context_at(context), static_cast<sparkfp4_scale_layout>(layout),
                                                 arguments.shape(), arguments.members(), factor, layout_target(out));
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaLayoutBinding_restoreScales(
    JNIEnv *env, jclass, jlong context, jint layout, jlongArray shape, jlong arranged, jfloat factor,
    jlongArray members) {
  LayoutArguments arguments(env, shape, members);
  return !arguments.is_valid()
             ? static_cast<jint>(SPARKFP4_CUDA_INVALID)
             : sparkfp4_cuda_restore_scales(context_at(context), static_cast<sparkfp4_scale_layout>(layout),
                                            arguments.shape(), layout_source(arranged), factor,
                                            arguments.members());
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaLayoutBinding_decode(
    JNIEnv *env, jclass, jlong context, jboolean is_activation, jlong experts, jlong rows, jlong k, jlong codes,
    jlong scales, jfloatArray global, jint type, jlong out) {
  TensorArguments arguments(env, is_activation, experts, rows, k, codes, scales, global);
  return arguments.failed() ? kOutOfMemory
                            : sparkfp4_cuda_decode_tensor(context_at(context), arguments.tensor(),
                                                     static_cast<sparkfp4_dtype>(type), layout_target(out));
}

}  // extern "C"
