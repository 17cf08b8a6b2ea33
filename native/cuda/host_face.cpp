// The C interface over host memory.
#include <cstring>

#include "host_parts.h"
#include "scale.h"

namespace sparkfp4::cuda {
namespace {

sparkfp4_cuda_status refuse(sparkfp4_cuda_status status, const sparkfp4_cuda_outcome &outcome,
                            sparkfp4_position *non_finite) {
  if (status == SPARKFP4_CUDA_NON_FINITE) {
    *non_finite = outcome.non_finite;
  }

  return status;
}

Operation operation_of(Conclusion::Kind kind, const HostUnit &unit) {
  Operation operation = {};
  operation.kind = kind;
  operation.encode.source = unit.source;
  operation.cols = unit.cols;
  operation.granule = unit.cols == 0 ? 8192 : cut_granule(unit.scheme, unit.cols);
  operation.segments = unit.segment_count;
  return operation;
}

HostUnit plain_unit(sparkfp4_dtype dtype, const sparkfp4_segment *segments, int64_t count, int64_t cols) {
  return {segments, nullptr, count, nullptr, cols, dtype == SPARKFP4_F32 ? 4 : 2, plain_source(dtype, cols)};
}

HostUnit quantized_unit(const sparkfp4_scheme *scheme, const sparkfp4_quantized_segment *segments, int64_t count,
                        int64_t cols) {
  return {nullptr, segments, count, scheme, cols, 0, quantized_source(*scheme, cols)};
}

sparkfp4_cuda_status amax_of(sparkfp4_cuda_context *context, const HostUnit &unit, float *amax,
                             sparkfp4_position *non_finite) {
  sparkfp4_cuda_outcome outcome = {};
  sparkfp4_cuda_status status =
      run_parts(context, unit, operation_of(Conclusion::kAmax, unit), {0, 0, nullptr, nullptr, nullptr}, 0, &outcome);
  if (status == SPARKFP4_CUDA_OK) {
    *amax = outcome.amax;
  }

  return refuse(status, outcome, non_finite);
}

int64_t importance_bytes(const sparkfp4_cuda_choice *choice, int64_t cols) {
  switch (search_of(choice)) {
    case SPARKFP4_WEIGHTED:
      return cols * static_cast<int64_t>(sizeof(float));
    case SPARKFP4_WEIGHTED_HESSIAN:
      return cols * kBlock * static_cast<int64_t>(sizeof(float));
    default:
      return 0;
  }
}

void write_zeros(const HostUnit &unit, sparkfp4_recipe recipe, const HostOutputs &outputs) {
  int64_t rows = 0;
  for (int64_t i = 0; i < unit.segment_count; i++) {
    rows += unit.rows(i);
    if (outputs.sums != nullptr) {
      outputs.sums[i] = {0, 0};
    }
  }

  std::memset(outputs.packed, 0, rows * outputs.packed_row);
  std::memset(outputs.scales, zero_scale(recipe), rows * outputs.scales_row);
}

// amax is null where the scale is known, global_scale where it is not.
sparkfp4_cuda_status encode_unit(sparkfp4_cuda_context *context, sparkfp4_recipe recipe,
                                 const sparkfp4_cuda_choice *choice, const HostUnit &unit, const float *global_scale,
                                 void *packed, void *scales, sparkfp4_error_sums *sums, float *amax,
                                 sparkfp4_position *non_finite) {
  Operation operation = operation_of(Conclusion::kEncode, unit);
  operation.encode.recipe = recipe;
  operation.encode.search = search_of(choice);
  operation.encode.importance = choice == nullptr ? nullptr : choice->importance;
  operation.encode.with_sums = sums != nullptr;
  HostOutputs outputs = {unit.cols / 2, unit.cols / kBlock, static_cast<unsigned char *>(packed),
                         static_cast<unsigned char *>(scales), sums};
  sparkfp4_cuda_outcome outcome = {};
  if (global_scale == nullptr) {
    // Whole on the device, if it fits.
    operation.encode.of_unit = true;
    operation.encode.backwards = true;
    sparkfp4_cuda_status status =
        run_whole(context, unit, operation, outputs, importance_bytes(choice, unit.cols), &outcome);
    if (status == SPARKFP4_CUDA_OK) {
      *amax = outcome.amax;
    }

    if (status != SPARKFP4_CUDA_OUT_OF_MEMORY) {
      return refuse(status, outcome, non_finite);
    }

    operation.encode.of_unit = false;
    operation.encode.backwards = false;
    float largest;
    status = amax_of(context, unit, &largest, non_finite);
    if (status != SPARKFP4_CUDA_OK) {
      return status;
    }

    *amax = largest;
    if (largest < kSmallestAmax) {
      write_zeros(unit, recipe, outputs);
      return SPARKFP4_CUDA_OK;
    }

    operation.encode.global_scale = unit_scale(recipe, operation.encode.search != SPARKFP4_RTN,
                                               unit.source.kind == SPARKFP4_BF16, largest);
  } else {
    operation.encode.global_scale = *global_scale;
  }

  sparkfp4_cuda_status status =
      run_parts(context, unit, operation, outputs, importance_bytes(choice, unit.cols), &outcome);
  return refuse(status, outcome, non_finite);
}

}  // namespace
}  // namespace sparkfp4::cuda

using namespace sparkfp4;
using namespace sparkfp4::cuda;

sparkfp4_cuda_status sparkfp4_cuda_amax(sparkfp4_cuda_context *context, sparkfp4_dtype dtype,
                                        const sparkfp4_segment *segments, int64_t segment_count, float *amax,
                                        sparkfp4_position *non_finite) {
  if (context == nullptr || !valid(dtype, segments, segment_count) || amax == nullptr || non_finite == nullptr) {
    return SPARKFP4_CUDA_INVALID;
  }

  return amax_of(context, plain_unit(dtype, segments, segment_count, 0), amax, non_finite);
}

sparkfp4_cuda_status sparkfp4_cuda_encode(sparkfp4_cuda_context *context, sparkfp4_recipe recipe,
                                          const sparkfp4_cuda_choice *choice, sparkfp4_dtype dtype,
                                          const sparkfp4_segment *segments, int64_t segment_count, int64_t cols,
                                          float global_scale, void *packed, void *scales, sparkfp4_error_sums *sums,
                                          sparkfp4_position *non_finite) {
  if (context == nullptr || !valid(dtype, segments, segment_count) || !valid(recipe) || !valid(choice, cols) ||
      !valid_scale(global_scale) || non_finite == nullptr ||
      !writable(sparkfp4::total_elements(segments, segment_count, cols), packed, scales)) {
    return SPARKFP4_CUDA_INVALID;
  }

  return encode_unit(context, recipe, choice, plain_unit(dtype, segments, segment_count, cols), &global_scale, packed,
                     scales, sums, nullptr, non_finite);
}

sparkfp4_cuda_status sparkfp4_cuda_encode_unit(sparkfp4_cuda_context *context, sparkfp4_recipe recipe,
                                               const sparkfp4_cuda_choice *choice, sparkfp4_dtype dtype,
                                               const sparkfp4_segment *segments, int64_t segment_count, int64_t cols,
                                               void *packed, void *scales, sparkfp4_error_sums *sums, float *amax,
                                               sparkfp4_position *non_finite) {
  if (context == nullptr || !valid(dtype, segments, segment_count) || !valid(recipe) || !valid(choice, cols) ||
      amax == nullptr || non_finite == nullptr ||
      !writable(sparkfp4::total_elements(segments, segment_count, cols), packed, scales)) {
    return SPARKFP4_CUDA_INVALID;
  }

  return encode_unit(context, recipe, choice, plain_unit(dtype, segments, segment_count, cols), nullptr, packed, scales,
                     sums, amax, non_finite);
}

sparkfp4_cuda_status sparkfp4_cuda_quantized_amax(sparkfp4_cuda_context *context, const sparkfp4_scheme *scheme,
                                                  const sparkfp4_quantized_segment *segments, int64_t segment_count,
                                                  int64_t cols, float *amax, sparkfp4_position *non_finite) {
  if (context == nullptr || !valid(scheme) || !valid(nullptr, cols) ||
      sparkfp4::total_elements(segments, segment_count, cols) < 0 || amax == nullptr || non_finite == nullptr) {
    return SPARKFP4_CUDA_INVALID;
  }

  return amax_of(context, quantized_unit(scheme, segments, segment_count, cols), amax, non_finite);
}

sparkfp4_cuda_status sparkfp4_cuda_quantized_encode(sparkfp4_cuda_context *context, sparkfp4_recipe recipe,
                                                    const sparkfp4_cuda_choice *choice, const sparkfp4_scheme *scheme,
                                                    const sparkfp4_quantized_segment *segments, int64_t segment_count,
                                                    int64_t cols, float global_scale, void *packed, void *scales,
                                                    sparkfp4_error_sums *sums, sparkfp4_position *non_finite) {
  if (context == nullptr || !valid(scheme) || !valid(recipe) || !valid(choice, cols) || !valid_scale(global_scale) ||
      non_finite == nullptr || !writable(sparkfp4::total_elements(segments, segment_count, cols), packed, scales)) {
    return SPARKFP4_CUDA_INVALID;
  }

  return encode_unit(context, recipe, choice, quantized_unit(scheme, segments, segment_count, cols), &global_scale,
                     packed, scales, sums, nullptr, non_finite);
}

sparkfp4_cuda_status sparkfp4_cuda_quantized_encode_unit(
    sparkfp4_cuda_context *context, sparkfp4_recipe recipe, const sparkfp4_cuda_choice *choice,
    const sparkfp4_scheme *scheme, const sparkfp4_quantized_segment *segments, int64_t segment_count, int64_t cols,
    void *packed, void *scales, sparkfp4_error_sums *sums, float *amax, sparkfp4_position *non_finite) {
  if (context == nullptr || !valid(scheme) || !valid(recipe) || !valid(choice, cols) || amax == nullptr ||
      non_finite == nullptr || !writable(sparkfp4::total_elements(segments, segment_count, cols), packed, scales)) {
    return SPARKFP4_CUDA_INVALID;
  }

  return encode_unit(context, recipe, choice, quantized_unit(scheme, segments, segment_count, cols), nullptr, packed,
                     scales, sums, amax, non_finite);
}

sparkfp4_cuda_status sparkfp4_cuda_dequantize_bf16(sparkfp4_cuda_context *context, const sparkfp4_scheme *scheme,
                                                   const sparkfp4_quantized_segment *segment, int64_t cols, void *out,
                                                   sparkfp4_position *non_finite) {
  if (context == nullptr || !valid_dequantize(scheme, segment, cols, out) || non_finite == nullptr) {
    return SPARKFP4_CUDA_INVALID;
  }

  if (cols == 0) {
    return SPARKFP4_CUDA_OK;
  }

  HostUnit unit = {nullptr, segment, 1, scheme, cols, 0, dequantize_source(*scheme, cols)};
  Operation operation = operation_of(Conclusion::kDequantize, unit);
  operation.granule = scheme->block_rows == 0 ? 1 : scheme->block_rows;
  sparkfp4_cuda_outcome outcome = {};
  HostOutputs outputs = {2 * cols, 0, static_cast<unsigned char *>(out), nullptr, nullptr};
  return refuse(run_parts(context, unit, operation, outputs, 0, &outcome), outcome, non_finite);
}

sparkfp4_cuda_status sparkfp4_cuda_largest_exponent(sparkfp4_cuda_context *context, const sparkfp4_segment *scales,
                                                    int64_t segment_count, int32_t *exponent,
                                                    sparkfp4_position *non_finite) {
  if (context == nullptr || !valid(SPARKFP4_BF16, scales, segment_count) || exponent == nullptr ||
      non_finite == nullptr) {
    return SPARKFP4_CUDA_INVALID;
  }

  HostUnit unit = {scales, nullptr, segment_count, nullptr, 0, 1, quantized_source(kMxfp4, 0)};
  sparkfp4_cuda_outcome outcome = {};
  sparkfp4_cuda_status status =
      run_parts(context, unit, operation_of(Conclusion::kExponent, unit), {0, 0, nullptr, nullptr, nullptr}, 0, &outcome);
  if (status == SPARKFP4_CUDA_OK) {
    *exponent = outcome.exponent;
  }

  return refuse(status, outcome, non_finite);
}

sparkfp4_cuda_status sparkfp4_cuda_cast_mxfp4(sparkfp4_cuda_context *context, sparkfp4_recipe recipe,
                                              const sparkfp4_quantized_segment *segments, int64_t segment_count,
                                              int64_t cols, int32_t kmax, void *packed, void *scales,
                                              sparkfp4_error_sums *sums, int64_t *requantized,
                                              sparkfp4_position *non_finite) {
  if (context == nullptr || !valid(recipe) || cols % 32 != 0 || !valid(nullptr, cols) || !valid_kmax(kmax) ||
      requantized == nullptr || non_finite == nullptr ||
      !writable(sparkfp4::total_elements(segments, segment_count, cols), packed, scales)) {
    return SPARKFP4_CUDA_INVALID;
  }

  HostUnit unit = quantized_unit(&kMxfp4, segments, segment_count, cols);
  Operation operation = operation_of(Conclusion::kCast, unit);
  operation.encode.recipe = recipe;
  operation.encode.with_sums = sums != nullptr;
  operation.encode.global_scale = cast_scale(recipe, kmax);
  operation.kmax = kmax;
  sparkfp4_cuda_outcome outcome = {};
  HostOutputs outputs = {cols / 2, cols / kBlock, static_cast<unsigned char *>(packed),
                         static_cast<unsigned char *>(scales), sums};
  sparkfp4_cuda_status status = run_parts(context, unit, operation, outputs, 0, &outcome);
  if (status == SPARKFP4_CUDA_OK) {
    *requantized = outcome.requantized;
  }

  return refuse(status, outcome, non_finite);
}
