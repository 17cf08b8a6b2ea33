// The C interface of payloads: checks arguments and enqueues.
#include <cfloat>

#include "enqueue.h"
#include "values.h"

namespace sparkfp4::cuda {
namespace {

sparkfp4_cuda_status enqueue(const ValuesTask &task, cudaStream_t stream) {
  bool is_there = task.codes != nullptr && task.scales != nullptr && task.out != nullptr;
  if (task.blocks < 0 || task.blocks > INT64_MAX / 128 || (task.blocks > 0 && !is_there)) {
    return SPARKFP4_CUDA_INVALID;
  }

  cudaError_t error = launch_values(task, stream);
  return error == cudaSuccess ? SPARKFP4_CUDA_OK : failed(error);
}

}  // namespace
}  // namespace sparkfp4::cuda

using namespace sparkfp4;
using namespace sparkfp4::cuda;

sparkfp4_cuda_status sparkfp4_cuda_enqueue_nvfp4_values(sparkfp4_recipe recipe, const void *codes, const void *scales,
                                                        int64_t blocks, float global_scale, void *out,
                                                        sparkfp4_cuda_stream stream) {
  bool multiplies = recipe == SPARKFP4_MODELOPT;
  if ((!multiplies && recipe != SPARKFP4_COMPRESSED_TENSORS) || !(global_scale > 0 && global_scale <= FLT_MAX)) {
    return SPARKFP4_CUDA_INVALID;
  }

  return enqueue({multiplies ? Factor::kTimesGlobal : Factor::kOverGlobal, static_cast<const unsigned char *>(codes),
                  static_cast<const unsigned char *>(scales), blocks, global_scale, static_cast<unsigned char *>(out)},
                 stream);
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_mxfp4_values(const void *codes, const void *scales, int64_t blocks,
                                                        void *out, sparkfp4_cuda_stream stream) {
  return enqueue({Factor::kPowerOfTwo, static_cast<const unsigned char *>(codes),
                  static_cast<const unsigned char *>(scales), blocks, 1, static_cast<unsigned char *>(out)},
                 stream);
}
