// The binding of org.sparkfp4.kernels.ProductBinding. Its arrays are not copied, which would take as long as the work:
// they are held while it lasts, and the collector waits. Java has checked the places, and keeps each call to some
// milliseconds.
#include <jni.h>

#include "sparkfp4_products.h"

namespace {

constexpr jsize kNumbers = 5;  // of a matrix: offset, rows, cols, row stride, column stride

// An array of Java while no other function of JNI is called.
class Held {
 public:
  Held(JNIEnv *env, jdoubleArray array, jint release)
      : env_(env), array_(array), release_(release), data_(env->GetPrimitiveArrayCritical(array, nullptr)) {}
  ~Held() {
    if (data_ != nullptr) {
      env_->ReleasePrimitiveArrayCritical(array_, data_, release_);
    }
  }
  Held(const Held &) = delete;
  Held &operator=(const Held &) = delete;
  double *data() const { return static_cast<double *>(data_); }

 private:
  JNIEnv *env_;
  jdoubleArray array_;
  jint release_;
  void *data_;
};

sparkfp4_matrix matrix(const Held &array, const jlong *numbers) {
  return {array.data() + numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

}  // namespace

extern "C" {

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_ProductBinding_add(JNIEnv *env, jclass, jint tier, jdoubleArray a,
                                                                   jdoubleArray b, jdoubleArray c,
                                                                   jlongArray places) {
  constexpr jint kOutOfMemory = -1;
  jlong numbers[3 * kNumbers];
  env->GetLongArrayRegion(places, 0, 3 * kNumbers, numbers);
  Held left(env, a, JNI_ABORT);
  Held right(env, b, JNI_ABORT);
  Held sums(env, c, 0);
  if (left.data() == nullptr || right.data() == nullptr || sums.data() == nullptr) {
    return kOutOfMemory;
  }

  sparkfp4_matrix left_matrix = matrix(left, numbers);
  sparkfp4_matrix right_matrix = matrix(right, numbers + kNumbers);
  sparkfp4_matrix sums_matrix = matrix(sums, numbers + 2 * kNumbers);
  return sparkfp4_add_products(static_cast<sparkfp4_tier>(tier), &left_matrix, &right_matrix, &sums_matrix);
}

}  // extern "C"
