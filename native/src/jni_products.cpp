// The binding of org.sparkfp4.kernels.ProductBinding.
#include <jni.h>

#include "sparkfp4_products.h"

namespace {

constexpr jsize kNumbers = 5;  // of a matrix: offset, rows, cols, row stride, column stride

// In a direct buffer; without one, data stays null, which is no matrix.
sparkfp4_matrix matrix(JNIEnv *env, jobject buffer, const jlong *numbers) {
  double *data = static_cast<double *>(env->GetDirectBufferAddress(buffer));
  return {data == nullptr ? nullptr : data + numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

}  // namespace

extern "C" {

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_ProductBinding_add(JNIEnv *env, jclass, jint tier, jobject a,
                                                                   jobject b, jobject c, jlongArray places) {
  jlong numbers[3 * kNumbers];
  env->GetLongArrayRegion(places, 0, 3 * kNumbers, numbers);
  sparkfp4_matrix left = matrix(env, a, numbers);
  sparkfp4_matrix right = matrix(env, b, numbers + kNumbers);
  sparkfp4_matrix sums = matrix(env, c, numbers + 2 * kNumbers);
  return sparkfp4_add_products(static_cast<sparkfp4_tier>(tier), &left, &right, &sums);
}

}  // extern "C"
