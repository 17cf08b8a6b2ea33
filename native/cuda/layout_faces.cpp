// The C interface of layouts: over device memory it checks arguments and enqueues; over host memory a unit is staged to
// the device and back.
#include "context.h"
#include "layouts.h"

namespace sparkfp4::cuda {
namespace {

constexpr int64_t kAlignment = 256;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

sparkfp4_cuda_status told(cudaError_t error) { return error == cudaSuccess ? SPARKFP4_CUDA_OK : failed(error); }

// The kernels write members or the matrix, never both.
LayoutTask task_of(const RowShape &shape, const void *const *members, const void *arranged) {
  LayoutTask task = {};
  task.shape = shape;
  for (int64_t i = 0; i < shape.members; i++) {
    task.members[i] = static_cast<unsigned char *>(const_cast<void *>(members[i]));
  }

  task.arranged = static_cast<unsigned char *>(const_cast<void *>(arranged));
  return task;
}

// What moves codes or scales, once its arguments are found to be right.
struct CodeMove {
  sparkfp4_code_layout layout;

  bool shape(const sparkfp4_arrangement *arrangement, RowShape *result) const {
    return code_shape(layout, arrangement, result);
  }
  cudaError_t launch(bool restores, const LayoutTask &task, cudaStream_t stream) const {
    return launch_codes(layout, restores, task, stream);
  }
};

struct ScaleMove {
  sparkfp4_scale_layout layout;
  float factor;

  bool shape(const sparkfp4_arrangement *arrangement, RowShape *result) const {
    return scale_shape(layout, arrangement, result) && factor_exponent(layout, factor) >= 0;
  }
  cudaError_t launch(bool restores, const LayoutTask &task, cudaStream_t stream) const {
    return launch_scales(layout, restores, task, factor_exponent(layout, factor), stream);
  }
};

template <typename Kind>
sparkfp4_cuda_status enqueue(const Kind &kind, bool restores, const sparkfp4_arrangement *arrangement,
                             const void *const *members, const void *arranged, cudaStream_t stream) {
  RowShape shape;
  if (!kind.shape(arrangement, &shape) || !valid_members(shape, members, arranged)) {
    return SPARKFP4_CUDA_INVALID;
  }

  return told(kind.launch(restores, task_of(shape, members, arranged), stream));
}

// A unit's members and its matrix, one after another in the context's memory.
template <typename Kind>
sparkfp4_cuda_status staged(sparkfp4_cuda_context *context, const Kind &kind, bool restores, const RowShape &shape,
                            const void *const *members, const void *arranged) {
  int64_t member_bytes = shape.rows * shape.row_bytes;
  sparkfp4_cuda_status status = context->reserve(shape.members * aligned(member_bytes) + aligned(shape.bytes()));
  if (status != SPARKFP4_CUDA_OK) {
    return status;
  }

  LayoutTask task = {};
  task.shape = shape;
  unsigned char *next = context->memory;
  for (int64_t i = 0; i < shape.members; i++) {
    task.members[i] = next;
    next += aligned(member_bytes);
  }

  task.arranged = next;
  Staging &staging = context->staging;
  cudaError_t error = restores ? staging.upload(task.arranged, arranged, shape.bytes()) : cudaSuccess;
  for (int64_t i = 0; i < shape.members && !restores && error == cudaSuccess; i++) {
    error = staging.upload(task.members[i], members[i], member_bytes);
  }

  if (error == cudaSuccess) {
    error = kind.launch(restores, task, staging.stream());
  }

  if (error == cudaSuccess && !restores) {
    error = staging.download(const_cast<void *>(arranged), task.arranged, shape.bytes());
  }

  for (int64_t i = 0; i < shape.members && restores && error == cudaSuccess; i++) {
    error = staging.download(const_cast<void *>(members[i]), task.members[i], member_bytes);
  }

  return told(error);
}

template <typename Kind>
sparkfp4_cuda_status move(sparkfp4_cuda_context *context, const Kind &kind, bool restores,
                          const sparkfp4_arrangement *arrangement, const void *const *members, const void *arranged) {
  RowShape shape;
  if (context == nullptr || !kind.shape(arrangement, &shape) || !valid_members(shape, members, arranged)) {
    return SPARKFP4_CUDA_INVALID;
  }

  DeviceScope scope(context->device);
  return scope.error() == cudaSuccess ? staged(context, kind, restores, shape, members, arranged)
                                      : failed(scope.error());
}

bool is_aligned(const void *address, uintptr_t to) { return reinterpret_cast<uintptr_t>(address) % to == 0; }

DecodeTask decode_task(const sparkfp4_tensor &tensor, sparkfp4_dtype dtype, void *out) {
  return {view_of(tensor), tensor.is_activation != 0, tensor.experts,
          tensor.rows,     tensor.k,                  dtype,
          static_cast<unsigned char *>(out)};
}

// One expert of a tensor.
sparkfp4_cuda_status decode_expert(sparkfp4_cuda_context *context, const sparkfp4_tensor &tensor, int64_t expert,
                                   int64_t scale_bytes, sparkfp4_dtype dtype, unsigned char *out) {
  int64_t code_bytes = tensor.rows * tensor.k / 2;
  int64_t out_bytes = tensor.rows * tensor.k * (dtype == SPARKFP4_F32 ? 4 : 2);
  sparkfp4_cuda_status status =
      context->reserve(aligned(code_bytes) + aligned(scale_bytes) + kAlignment + aligned(out_bytes));
  if (status != SPARKFP4_CUDA_OK) {
    return status;
  }

  unsigned char *codes = context->memory;
  unsigned char *scales = codes + aligned(code_bytes);
  unsigned char *global = scales + aligned(scale_bytes);
  unsigned char *result = global + kAlignment;
  sparkfp4_tensor on_device = tensor;
  on_device.experts = 1;
  on_device.codes = codes;
  on_device.scales = scales;
  on_device.global_scale = tensor.global_scale == nullptr ? nullptr : reinterpret_cast<const float *>(global);
  Staging &staging = context->staging;
  cudaError_t error =
      staging.upload(codes, static_cast<const unsigned char *>(tensor.codes) + expert * code_bytes, code_bytes);
  if (error == cudaSuccess) {
    error = staging.upload(scales, static_cast<const unsigned char *>(tensor.scales) + expert * scale_bytes,
                           scale_bytes);
  }

  if (error == cudaSuccess && tensor.global_scale != nullptr) {
    error = staging.upload(global, tensor.global_scale + expert, sizeof(float));
  }

  if (error == cudaSuccess) {
    error = launch_decode(decode_task(on_device, dtype, result), staging.stream());
  }

  if (error == cudaSuccess) {
    error = staging.download(out + expert * out_bytes, result, out_bytes);
  }

  return told(error);
}

}  // namespace
}  // namespace sparkfp4::cuda

using namespace sparkfp4;
using namespace sparkfp4::cuda;

sparkfp4_cuda_status sparkfp4_cuda_enqueue_arrange_codes(sparkfp4_code_layout layout,
                                                         const sparkfp4_arrangement *shape, const void *const *members,
                                                         void *out, sparkfp4_cuda_stream stream) {
  return enqueue(CodeMove{layout}, false, shape, members, out, stream);
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_restore_codes(sparkfp4_code_layout layout,
                                                         const sparkfp4_arrangement *shape, const void *arranged,
                                                         void *const *members, sparkfp4_cuda_stream stream) {
  return enqueue(CodeMove{layout}, true, shape, members, arranged, stream);
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_arrange_scales(sparkfp4_scale_layout layout,
                                                          const sparkfp4_arrangement *shape,
                                                          const void *const *members, float factor, void *out,
                                                          sparkfp4_cuda_stream stream) {
  return enqueue(ScaleMove{layout, factor}, false, shape, members, out, stream);
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_restore_scales(sparkfp4_scale_layout layout,
                                                          const sparkfp4_arrangement *shape, const void *arranged,
                                                          float factor, void *const *members,
                                                          sparkfp4_cuda_stream stream) {
  return enqueue(ScaleMove{layout, factor}, true, shape, members, arranged, stream);
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_decode_tensor(const sparkfp4_tensor *tensor, sparkfp4_dtype dtype, void *out,
                                                         sparkfp4_cuda_stream stream) {
  if (!valid_tensor(tensor, dtype, out) || !is_aligned(tensor->codes, 16) || !is_aligned(tensor->scales, 4) ||
      !is_aligned(tensor->global_scale, 4) || !is_aligned(out, 4)) {
    return SPARKFP4_CUDA_INVALID;
  }

  return told(launch_decode(decode_task(*tensor, dtype, out), stream));
}

sparkfp4_cuda_status sparkfp4_cuda_arrange_codes(sparkfp4_cuda_context *context, sparkfp4_code_layout layout,
                                                 const sparkfp4_arrangement *shape, const void *const *members,
                                                 void *out) {
  return move(context, CodeMove{layout}, false, shape, members, out);
}

sparkfp4_cuda_status sparkfp4_cuda_restore_codes(sparkfp4_cuda_context *context, sparkfp4_code_layout layout,
                                                 const sparkfp4_arrangement *shape, const void *arranged,
                                                 void *const *members) {
  return move(context, CodeMove{layout}, true, shape, members, arranged);
}

sparkfp4_cuda_status sparkfp4_cuda_arrange_scales(sparkfp4_cuda_context *context, sparkfp4_scale_layout layout,
                                                  const sparkfp4_arrangement *shape, const void *const *members,
                                                  float factor, void *out) {
  return move(context, ScaleMove{layout, factor}, false, shape, members, out);
}

sparkfp4_cuda_status sparkfp4_cuda_restore_scales(sparkfp4_cuda_context *context, sparkfp4_scale_layout layout,
                                                  const sparkfp4_arrangement *shape, const void *arranged,
                                                  float factor, void *const *members) {
  return move(context, ScaleMove{layout, factor}, true, shape, members, arranged);
}

sparkfp4_cuda_status sparkfp4_cuda_decode_tensor(sparkfp4_cuda_context *context, const sparkfp4_tensor *tensor,
                                                 sparkfp4_dtype dtype, void *out) {
  if (context == nullptr || !valid_tensor(tensor, dtype, out)) {
    return SPARKFP4_CUDA_INVALID;
  }

  DeviceScope scope(context->device);
  if (scope.error() != cudaSuccess) {
    return failed(scope.error());
  }

  int64_t scale_bytes = (tensor->is_activation ? tensor->rows : (tensor->rows + 127) / 128 * 128) * tensor->k / 16;
  sparkfp4_cuda_status status = SPARKFP4_CUDA_OK;
  for (int64_t expert = 0; expert < tensor->experts && status == SPARKFP4_CUDA_OK; expert++) {
    status = decode_expert(context, *tensor, expert, scale_bytes, dtype, static_cast<unsigned char *>(out));
  }

  return status;
}
