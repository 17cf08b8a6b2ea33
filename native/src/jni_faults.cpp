// The binding of org.sparkfp4.kernels.FaultGuard.
#include <jni.h>

#include "faults.h"

extern "C" {

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_FaultGuard_watch0(JNIEnv *, jclass, jlong address, jlong bytes) {
  return sparkfp4::watch(reinterpret_cast<const void *>(address), static_cast<size_t>(bytes));
}

JNIEXPORT jboolean JNICALL Java_org_sparkfp4_kernels_FaultGuard_hasFaulted0(JNIEnv *, jclass, jint watch) {
  return sparkfp4::has_faulted(watch) ? JNI_TRUE : JNI_FALSE;
}

JNIEXPORT void JNICALL Java_org_sparkfp4_kernels_FaultGuard_unwatch0(JNIEnv *, jclass, jint watch) {
  sparkfp4::unwatch(watch);
}

}  // extern "C"
