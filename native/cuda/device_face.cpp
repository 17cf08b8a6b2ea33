// The C interface over device memory: checks arguments and enqueues.
#include "enqueue.h"

namespace sparkfp4::cuda {
namespace {

Part plain_part(const void *array, int64_t i) {
  const sparkfp4_segment &segment = static_cast<const sparkfp4_segment *>(array)[i];
  return {static_cast<const unsigned char *>(segment.data), nullptr, segment.count, 0, static_cast<int32_t>(i)};
}

Part quantized_part(const void *array, int64_t i) {
  const sparkfp4_quantized_segment &segment = static_cast<const sparkfp4_quantized_segment *>(array)[i];
  return {static_cast<const unsigned char *>(segment.codes), static_cast<const unsigned char *>(segment.scales),
          segment.rows, 0, static_cast<int32_t>(i)};
}

Parts parts_of(const sparkfp4_segment *segments, int64_t count) {
  return {segments, count, plain_part};
}

Parts parts_of(const sparkfp4_quantized_segment *segments, int64_t count) {
  return {segments, count, quantized_part};
}

Operation operation_of(Conclusion::Kind kind, const Source &source, int64_t cols, int64_t segments,
                       sparkfp4_cuda_outcome *outcome, void *workspace) {
  Operation operation = {};
  operation.kind = kind;
  operation.encode.source = source;
  operation.encode.workspace = static_cast<Workspace *>(workspace);
  operation.cols = cols;
  operation.granule = 1;
  operation.outcome = outcome;
  operation.segments = segments;
  return operation;
}

void set_outputs(Operation *operation, sparkfp4_recipe recipe, const sparkfp4_cuda_choice *choice, void *packed,
                 void *scales, sparkfp4_error_sums *sums) {
  Encode &encode = operation->encode;
  encode.recipe = recipe;
  encode.search = search_of(choice);
  encode.importance = choice == nullptr ? nullptr : choice->importance;
  encode.packed = static_cast<unsigned char *>(packed);
  encode.scales = static_cast<unsigned char *>(scales);
  encode.with_sums = sums != nullptr;
  operation->sums = sums;
}

bool usable(const sparkfp4_cuda_outcome *outcome, const void *workspace) {
  return outcome != nullptr && workspace != nullptr;
}

sparkfp4_cuda_status run(const Operation &operation, const Parts &parts, cudaStream_t stream) {
  cudaError_t error = enqueue(operation, parts, stream);
  return error == cudaSuccess ? SPARKFP4_CUDA_OK : failed(error);
}

// encode_unit where global_scale is null.
sparkfp4_cuda_status encode(sparkfp4_recipe recipe, const sparkfp4_cuda_choice *choice, const Source &source,
                            const sparkfp4_scheme *scheme, const Parts &parts, int64_t cols, const float *global_scale,
                            void *packed, void *scales, sparkfp4_error_sums *sums, sparkfp4_cuda_outcome *outcome,
                            void *workspace, cudaStream_t stream) {
  Operation operation = operation_of(Conclusion::kEncode, source, cols, parts.count, outcome, workspace);
  set_outputs(&operation, recipe, choice, packed, scales, sums);
  operation.granule = cut_granule(scheme, cols);
  operation.encode.of_unit = global_scale == nullptr;
  operation.encode.backwards = global_scale == nullptr;
  operation.encode.global_scale = global_scale == nullptr ? 0 : *global_scale;
  return run(operation, parts, stream);
}

}  // namespace
}  // namespace sparkfp4::cuda

using namespace sparkfp4;
using namespace sparkfp4::cuda;

int64_t sparkfp4_cuda_workspace_bytes(int64_t segment_count) {
  int64_t more = segment_count > 1 ? segment_count - 1 : 0;
  return static_cast<int64_t>(sizeof(Workspace)) + more * static_cast<int64_t>(sizeof(SegmentSums));
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_amax(sparkfp4_dtype dtype, const sparkfp4_segment *segments,
                                                int64_t segment_count, sparkfp4_cuda_outcome *outcome, void *workspace,
                                                sparkfp4_cuda_stream stream) {
  if (!valid(dtype, segments, segment_count) || !usable(outcome, workspace)) {
    return SPARKFP4_CUDA_INVALID;
  }

  Operation operation =
      operation_of(Conclusion::kAmax, plain_source(dtype, 0), 0, segment_count, outcome, workspace);
  return run(operation, parts_of(segments, segment_count), stream);
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_encode(sparkfp4_recipe recipe, const sparkfp4_cuda_choice *choice,
                                                  sparkfp4_dtype dtype, const sparkfp4_segment *segments,
                                                  int64_t segment_count, int64_t cols, float global_scale, void *packed,
                                                  void *scales, sparkfp4_error_sums *sums,
                                                  sparkfp4_cuda_outcome *outcome, void *workspace,
                                                  sparkfp4_cuda_stream stream) {
  if (!valid(dtype, segments, segment_count) || !valid(recipe) || !valid(choice, cols) || !valid_scale(global_scale) ||
      !writable(sparkfp4::total_elements(segments, segment_count, cols), packed, scales) || !usable(outcome, workspace)) {
    return SPARKFP4_CUDA_INVALID;
  }

  return encode(recipe, choice, plain_source(dtype, cols), nullptr, parts_of(segments, segment_count), cols,
                &global_scale, packed, scales, sums, outcome, workspace, stream);
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_encode_unit(sparkfp4_recipe recipe, const sparkfp4_cuda_choice *choice,
                                                       sparkfp4_dtype dtype, const sparkfp4_segment *segments,
                                                       int64_t segment_count, int64_t cols, void *packed, void *scales,
                                                       sparkfp4_error_sums *sums, sparkfp4_cuda_outcome *outcome,
                                                       void *workspace, sparkfp4_cuda_stream stream) {
  if (!valid(dtype, segments, segment_count) || !valid(recipe) || !valid(choice, cols) ||
      !writable(sparkfp4::total_elements(segments, segment_count, cols), packed, scales) || !usable(outcome, workspace)) {
    return SPARKFP4_CUDA_INVALID;
  }

  return encode(recipe, choice, plain_source(dtype, cols), nullptr, parts_of(segments, segment_count), cols, nullptr,
                packed, scales, sums, outcome, workspace, stream);
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_quantized_amax(const sparkfp4_scheme *scheme,
                                                          const sparkfp4_quantized_segment *segments,
                                                          int64_t segment_count, int64_t cols,
                                                          sparkfp4_cuda_outcome *outcome, void *workspace,
                                                          sparkfp4_cuda_stream stream) {
  if (!valid(scheme) || sparkfp4::total_elements(segments, segment_count, cols) < 0 || !valid(nullptr, cols) ||
      !usable(outcome, workspace)) {
    return SPARKFP4_CUDA_INVALID;
  }

  Operation operation = operation_of(Conclusion::kAmax, quantized_source(*scheme, cols), cols, segment_count, outcome,
                                     workspace);
  operation.granule = cut_granule(scheme, cols);
  return run(operation, parts_of(segments, segment_count), stream);
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_quantized_encode(
    sparkfp4_recipe recipe, const sparkfp4_cuda_choice *choice, const sparkfp4_scheme *scheme,
    const sparkfp4_quantized_segment *segments, int64_t segment_count, int64_t cols, float global_scale, void *packed,
    void *scales, sparkfp4_error_sums *sums, sparkfp4_cuda_outcome *outcome, void *workspace,
    sparkfp4_cuda_stream stream) {
  if (!valid(scheme) || !valid(recipe) || !valid(choice, cols) || !valid_scale(global_scale) ||
      !writable(sparkfp4::total_elements(segments, segment_count, cols), packed, scales) ||
      !usable(outcome, workspace)) {
    return SPARKFP4_CUDA_INVALID;
  }

  return encode(recipe, choice, quantized_source(*scheme, cols), scheme, parts_of(segments, segment_count), cols,
                &global_scale, packed, scales, sums, outcome, workspace, stream);
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_quantized_encode_unit(
    sparkfp4_recipe recipe, const sparkfp4_cuda_choice *choice, const sparkfp4_scheme *scheme,
    const sparkfp4_quantized_segment *segments, int64_t segment_count, int64_t cols, void *packed, void *scales,
    sparkfp4_error_sums *sums, sparkfp4_cuda_outcome *outcome, void *workspace, sparkfp4_cuda_stream stream) {
  if (!valid(scheme) || !valid(recipe) || !valid(choice, cols) ||
      !writable(sparkfp4::total_elements(segments, segment_count, cols), packed, scales) ||
      !usable(outcome, workspace)) {
    return SPARKFP4_CUDA_INVALID;
  }

  return encode(recipe, choice, quantized_source(*scheme, cols), scheme, parts_of(segments, segment_count), cols,
                nullptr, packed, scales, sums, outcome, workspace, stream);
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_dequantize_bf16(const sparkfp4_scheme *scheme,
                                                           const sparkfp4_quantized_segment *segment, int64_t cols,
                                                           void *out, sparkfp4_cuda_outcome *outcome, void *workspace,
                                                           sparkfp4_cuda_stream stream) {
  if (!valid_dequantize(scheme, segment, cols, out) || !usable(outcome, workspace)) {
    return SPARKFP4_CUDA_INVALID;
  }

  Operation operation = operation_of(Conclusion::kDequantize, dequantize_source(*scheme, cols), cols, 1, outcome,
                                     workspace);
  operation.encode.packed = static_cast<unsigned char *>(out);
  return run(operation, parts_of(segment, 1), stream);
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_largest_exponent(const sparkfp4_segment *scales, int64_t segment_count,
                                                            sparkfp4_cuda_outcome *outcome, void *workspace,
                                                            sparkfp4_cuda_stream stream) {
  if (!valid(SPARKFP4_BF16, scales, segment_count) || !usable(outcome, workspace)) {
    return SPARKFP4_CUDA_INVALID;
  }

  Operation operation = operation_of(Conclusion::kExponent, quantized_source(kMxfp4, 0), 0, segment_count, outcome,
                                     workspace);
  return run(operation, parts_of(scales, segment_count), stream);
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_cast_mxfp4(sparkfp4_recipe recipe,
                                                      const sparkfp4_quantized_segment *segments,
                                                      int64_t segment_count, int64_t cols, int32_t kmax, void *packed,
                                                      void *scales, sparkfp4_error_sums *sums,
                                                      sparkfp4_cuda_outcome *outcome, void *workspace,
                                                      sparkfp4_cuda_stream stream) {
  if (!valid(recipe) || cols % 32 != 0 || !valid(nullptr, cols) || !valid_kmax(kmax) ||
      !writable(sparkfp4::total_elements(segments, segment_count, cols), packed, scales) ||
      !usable(outcome, workspace)) {
    return SPARKFP4_CUDA_INVALID;
  }

  Operation operation = operation_of(Conclusion::kCast, quantized_source(kMxfp4, cols), cols, segment_count, outcome,
                                     workspace);
  set_outputs(&operation, recipe, nullptr, packed, scales, sums);
  operation.encode.global_scale = cast_scale(recipe, kmax);
  operation.kmax = kmax;
  operation.granule = cut_granule(&kMxfp4, cols);
  return run(operation, parts_of(segments, segment_count), stream);
}
