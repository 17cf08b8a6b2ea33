// The binding of org.sparkfp4.kernels.CudaValuesBinding.
#include <cuda_runtime_api.h>
#include <jni.h>

#include "../cuda/enqueue.h"
#include "sparkfp4_cuda.h"

namespace {

const void *source(jlong address) { return reinterpret_cast<const void *>(address); }
void *target(jlong address) { return reinterpret_cast<void *>(address); }

}  // namespace

extern "C" {

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaValuesBinding_nvfp4(JNIEnv *, jclass, jint recipe, jlong codes,
                                                                         jlong scales, jlong blocks,
                                                                         jfloat global_scale, jlong out) {
  return sparkfp4_cuda_enqueue_nvfp4_values(static_cast<sparkfp4_recipe>(recipe), source(codes), source(scales),
                                            blocks, global_scale, target(out), cudaStreamPerThread);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaValuesBinding_mxfp4(JNIEnv *, jclass, jlong codes, jlong scales,
                                                                         jlong blocks, jlong out) {
  return sparkfp4_cuda_enqueue_mxfp4_values(source(codes), source(scales), blocks, target(out), cudaStreamPerThread);
}

JNIEXPORT jint JNICALL Java_org_sparkfp4_kernels_CudaValuesBinding_finish(JNIEnv *, jclass) {
  cudaError_t error = cudaStreamSynchronize(cudaStreamPerThread);
  return error == cudaSuccess ? SPARKFP4_CUDA_OK : sparkfp4::cuda::failed(error);
}

}  // extern "C"
