// The binding of org.sparkfp4.kernels.LayoutBinding.
#include "jni_layout_arguments.h"

extern "C" {

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_LayoutBinding_arrangeCodes(JNIEnv *env, jclass, jint tier, jint layout,
                                                                           jlongArray shape, jlongArray members,
                                                                           jlong out) {
  LayoutArguments arguments(env, shape, members);
  return !arguments.is_valid()
             ? SPARKFP4_INVALID
             : sparkfp4_arrange_codes(static_cast<sparkfp4_tier>(tier), static_cast<sparkfp4_code_layout>(layout),
                                      arguments.shape(), arguments.members(), layout_target(out));
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_LayoutBinding_restoreCodes(JNIEnv *env, jclass, jint tier, jint layout,
                                                                           jlongArray shape, jlong arranged,
                                                                           jlongArray members) {
  LayoutArguments arguments(env, shape, members);
  return !arguments.is_valid()
             ? SPARKFP4_INVALID
             : sparkfp4_restore_codes(static_cast<sparkfp4_tier>(tier), static_cast<sparkfp4_code_layout>(layout),
                                      arguments.shape(), layout_source(arranged), arguments.members());
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_LayoutBinding_arrangeScales(JNIEnv *env, jclass, jint tier,
                                                                            jint layout, jlongArray shape,
                                                                            jlongArray members, jfloat factor,
                                                                            jlong out) {
  LayoutArguments arguments(env, shape, members);
  return !arguments.is_valid()
             ? SPARKFP4_INVALID
             : sparkfp4_arrange_scales(static_cast<sparkfp4_tier>(tier), static_cast<sparkfp4_scale_layout>(layout),
                                       arguments.shape(), arguments.members(), factor, layout_target(out));
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_LayoutBinding_restoreScales(JNIEnv *env, jclass, jint tier,
                                                                            jint layout, jlongArray shape,
                                                                            jlong arranged, jfloat factor,
                                                                            jlongArray members) {
  LayoutArguments arguments(env, shape, members);
  return !arguments.is_valid()
             ? SPARKFP4_INVALID
             : sparkfp4_restore_scales(static_cast<sparkfp4_tier>(tier), static_cast<sparkfp4_scale_layout>(layout),
                                       arguments.shape(), layout_source(arranged), factor, arguments.members());
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_LayoutBinding_firstAbove(JNIEnv *env, jclass, jlong scales,
                                                                         jlong count, jint limit, jlongArray where) {
  int64_t index = -1;
  sparkfp4_status status = sparkfp4_first_above(layout_source(scales), count, limit, &index);
  jlong found = index;
  env->SetLongArrayRegion(where, 0, 1, &found);
  return status;
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_LayoutBinding_decode(JNIEnv *env, jclass, jint tier,
                                                                     jboolean is_activation, jlong experts, jlong rows,
                                                                     jlong k, jlong codes, jlong scales,
                                                                     jfloatArray global, jint type, jlong out) {
  TensorArguments arguments(env, is_activation, experts, rows, k, codes, scales, global);
  return arguments.failed() ? kOutOfMemory
                            : sparkfp4_decode_tensor(static_cast<sparkfp4_tier>(tier), arguments.tensor(),
                                                     static_cast<sparkfp4_dtype>(type), layout_target(out));
}

}  // extern "C"
