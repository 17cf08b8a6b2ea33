// The C interface over host memory: a unit is staged to the device whole, or in parts where it finds no room.
#include "context.h"
#include "scale.h"

namespace sparkfp4::cuda {
namespace {

constexpr int64_t kAlignment = 256;
// A part of a source that is read once anyhow, so that a call holds little device memory.
constexpr int64_t kPart = int64_t{128} << 20;
constexpr int64_t kLeastPart = int64_t{1} << 20;

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// A unit in host memory.
struct HostUnit {
  const sparkfp4_segment *plain;  // or null
  const sparkfp4_quantized_segment *quantized;
  int64_t segment_count;
  const sparkfp4_scheme *scheme;  // of quantized
  int64_t cols;                   // 0: a count is in elements
  int64_t element_bytes;          // of plain
  Source source;

  int64_t rows(int64_t segment) const {
    return plain != nullptr ? plain[segment].count : quantized[segment].rows;
  }

  int64_t row_bytes() const {
    return plain != nullptr ? (cols == 0 ? 1 : cols) * element_bytes : code_row_bytes(scheme->codes, cols);
  }

  const unsigned char *data(int64_t segment) const {
    return static_cast<const unsigned char *>(plain != nullptr ? plain[segment].data : quantized[segment].codes);
  }

  // The rows of scales of so many rows.
  int64_t scale_rows(int64_t rows) const {
    return scheme->block_rows == 0 ? (rows > 0 ? 1 : 0) : (rows + scheme->block_rows - 1) / scheme->block_rows;
  }

  int64_t scale_row_bytes() const {
    return scheme == nullptr ? 0 : static_cast<int64_t>(source.row_scales) * scale_bytes(scheme->scales);
  }

  // What rows of a segment take on the device.
  int64_t part_bytes(int64_t rows) const {
    return aligned(rows * row_bytes()) + (scheme == nullptr ? 0 : aligned(scale_rows(rows) * scale_row_bytes()));
  }
};

// Where results go.
struct HostOutputs {
  int64_t packed_row;  // bytes of a row of packed
  int64_t scales_row;
  unsigned char *packed;
  unsigned char *scales;
  sparkfp4_error_sums *sums;
};

// Rows of several segments, as many as fit at once.
struct Cursor {
  int64_t segment;
  int64_t row;
};

constexpr int kMaxParts = 64;

Part part_at(const void *array, int64_t i) {
  return static_cast<const Part *>(array)[i];
}

class Run {
 public:
  Run(sparkfp4_cuda_context *context, const HostUnit &unit, const Operation &operation, const HostOutputs &outputs,
      int64_t importance_bytes)
      : context_(context), unit_(unit), operation_(operation), outputs_(outputs), importance_bytes_(importance_bytes) {}

  // All of the unit, part_bytes of its source at most at once. SPARKFP4_CUDA_OUT_OF_MEMORY where those find no room;
  // kDoesNotFit, before anything, where whole is asked for and more than one part is needed.
  sparkfp4_cuda_status run(int64_t part_bytes, bool whole, sparkfp4_cuda_outcome *outcome);

  static constexpr sparkfp4_cuda_status kDoesNotFit = static_cast<sparkfp4_cuda_status>(-1);

 private:
  int64_t fixed_bytes() const {
    return aligned(sparkfp4_cuda_workspace_bytes(unit_.segment_count)) + kAlignment +
           aligned(unit_.segment_count * static_cast<int64_t>(sizeof(sparkfp4_error_sums))) +
           aligned(importance_bytes_);
  }

  int64_t output_bytes(int64_t rows) const {
    return aligned(rows * outputs_.packed_row) + aligned(rows * outputs_.scales_row);
  }

  // The parts from cursor on that fit; those rows in all.
  int64_t plan(Cursor *cursor, int64_t part_bytes, Part *parts, int *count, int64_t *source_bytes) const;
  cudaError_t upload(const Part *parts, int count, unsigned char *to, Part *on_device);
  cudaError_t enqueue_parts(const Part *parts, int count, bool resumes);

  sparkfp4_cuda_context *context_;
  const HostUnit &unit_;
  Operation operation_;
  HostOutputs outputs_;
  int64_t importance_bytes_;
};

int64_t Run::plan(Cursor *cursor, int64_t part_bytes, Part *parts, int *count, int64_t *source_bytes) const {
  int64_t rows_in_all = 0;
  *count = 0;
  *source_bytes = 0;
  while (cursor->segment < unit_.segment_count && *count < kMaxParts) {
    int64_t left = unit_.rows(cursor->segment) - cursor->row;
    int64_t room = part_bytes - *source_bytes;
    int64_t rows = left;
    if (unit_.part_bytes(left) > room) {
      int64_t row_bytes = unit_.row_bytes() + unit_.scale_row_bytes() + 1;
      rows = room < 2 * kAlignment ? 0 : (room - 2 * kAlignment) / row_bytes;
      rows -= rows % operation_.granule;
      if (rows == 0 && *count == 0) {
        rows = operation_.granule < left ? operation_.granule : left;
      }
    }

    if (rows == 0 && left > 0) {
      break;
    }

    parts[*count] = {nullptr, nullptr, rows, cursor->row, static_cast<int32_t>(cursor->segment)};
    *count += 1;
    *source_bytes += unit_.part_bytes(rows);
    rows_in_all += rows;
    cursor->row += rows;
    if (cursor->row == unit_.rows(cursor->segment)) {
      *cursor = {cursor->segment + 1, 0};
    } else {
      break;
    }
  }

  return rows_in_all;
}

cudaError_t Run::upload(const Part *parts, int count, unsigned char *to, Part *on_device) {
  for (int i = 0; i < count; i++) {
    const Part &part = parts[i];
    on_device[i] = part;
    on_device[i].data = to;
    int64_t bytes = part.rows * unit_.row_bytes();
    const unsigned char *from = unit_.data(part.number) + part.first_row * unit_.row_bytes();
    cudaError_t error = context_->staging.upload(to, from, bytes);
    to += aligned(bytes);
    if (error == cudaSuccess && unit_.scheme != nullptr) {
      on_device[i].scales = to;
      int64_t first = unit_.scheme->block_rows == 0 ? 0 : part.first_row / unit_.scheme->block_rows;
      bytes = unit_.scale_rows(part.rows) * unit_.scale_row_bytes();
      from = static_cast<const unsigned char *>(unit_.quantized[part.number].scales) + first * unit_.scale_row_bytes();
      error = context_->staging.upload(to, from, bytes);
      to += aligned(bytes);
    }

    if (error != cudaSuccess) {
      return error;
    }
  }

  return cudaSuccess;
}

sparkfp4_cuda_status Run::run(int64_t part_bytes, bool whole, sparkfp4_cuda_outcome *outcome) {
  Part parts[kMaxParts];
  Part on_device[kMaxParts];
  Cursor cursor = {0, 0};
  bool resumes = false;
  cudaStream_t stream = context_->staging.stream();
  do {
    int count;
    int64_t source_bytes;
    int64_t rows = plan(&cursor, part_bytes, parts, &count, &source_bytes);
    if (whole && cursor.segment < unit_.segment_count) {
      return kDoesNotFit;
    }

    int64_t bytes = fixed_bytes() + output_bytes(rows) + source_bytes;
    if (bytes > context_->memory_bytes && resumes) {
      // What has begun must not lose its workspace.
      return failed(cudaErrorMemoryAllocation);
    }

    if (cursor.segment < unit_.segment_count) {
      // Room for later parts, which may be of more rows.
      int64_t most = part_bytes / (unit_.row_bytes() > 0 ? unit_.row_bytes() : 1) + 1;
      int64_t later = part_bytes > source_bytes ? part_bytes : source_bytes;
      bytes = fixed_bytes() + output_bytes(most > rows ? most : rows) + later;
    }

    sparkfp4_cuda_status status = context_->reserve(bytes);
    if (status != SPARKFP4_CUDA_OK) {
      return status;
    }

    unsigned char *next = context_->memory;
    Operation operation = operation_;
    operation.resumes = resumes;
    operation.encode.workspace = reinterpret_cast<Workspace *>(next);
    next += aligned(sparkfp4_cuda_workspace_bytes(unit_.segment_count));
    operation.outcome = reinterpret_cast<sparkfp4_cuda_outcome *>(next);
    next += kAlignment;
    operation.sums = outputs_.sums == nullptr ? nullptr : reinterpret_cast<sparkfp4_error_sums *>(next);
    next += aligned(unit_.segment_count * static_cast<int64_t>(sizeof(sparkfp4_error_sums)));
    cudaError_t error = cudaSuccess;
    if (importance_bytes_ > 0) {
      operation.encode.importance = reinterpret_cast<const float *>(next);
      error = resumes ? cudaSuccess : context_->staging.upload(next, operation_.encode.importance, importance_bytes_);
      next += aligned(importance_bytes_);
    }

    operation.encode.packed = next;
    next += aligned(rows * outputs_.packed_row);
    operation.encode.scales = next;
    next += aligned(rows * outputs_.scales_row);
    if (error == cudaSuccess) {
      error = upload(parts, count, next, on_device);
    }

    if (error == cudaSuccess) {
      error = enqueue(operation, {on_device, count, part_at}, stream);
    }

    if (error == cudaSuccess) {
      error = context_->staging.download(outcome, reinterpret_cast<unsigned char *>(operation.outcome),
                                         sizeof *outcome);
    }

    if (error == cudaSuccess && outcome->status == SPARKFP4_CUDA_OK && outputs_.packed != nullptr) {
      error = context_->staging.download(outputs_.packed, operation.encode.packed, rows * outputs_.packed_row);
      outputs_.packed += rows * outputs_.packed_row;
    }

    if (error == cudaSuccess && outcome->status == SPARKFP4_CUDA_OK && outputs_.scales != nullptr) {
      error = context_->staging.download(outputs_.scales, operation.encode.scales, rows * outputs_.scales_row);
      outputs_.scales += rows * outputs_.scales_row;
    }

    if (error == cudaSuccess && operation.sums != nullptr && cursor.segment == unit_.segment_count) {
      error = context_->staging.download(outputs_.sums, reinterpret_cast<unsigned char *>(operation.sums),
                                         unit_.segment_count * static_cast<int64_t>(sizeof(sparkfp4_error_sums)));
    }

    if (error != cudaSuccess) {
      return failed(error);
    }

    if (outcome->status != SPARKFP4_CUDA_OK) {
      return static_cast<sparkfp4_cuda_status>(outcome->status);
    }

    resumes = true;
  } while (cursor.segment < unit_.segment_count);
  return SPARKFP4_CUDA_OK;
}

// The caller's device, until the end of a scope.
class DeviceScope {
 public:
  explicit DeviceScope(int device) {
    error_ = cudaGetDevice(&previous_);
    if (error_ == cudaSuccess && previous_ != device) {
      error_ = cudaSetDevice(device);
    }
  }

  ~DeviceScope() {
    if (previous_ >= 0) {
      cudaSetDevice(previous_);
    }
  }

  DeviceScope(const DeviceScope &) = delete;
  DeviceScope &operator=(const DeviceScope &) = delete;
  cudaError_t error() const { return error_; }

 private:
  int previous_ = -1;
  cudaError_t error_;
};

// Runs the operation with ever smaller parts until they find room.
sparkfp4_cuda_status run(sparkfp4_cuda_context *context, const HostUnit &unit, const Operation &operation,
                         const HostOutputs &outputs, int64_t importance_bytes, sparkfp4_cuda_outcome *outcome) {
  DeviceScope scope(context->device);
  if (scope.error() != cudaSuccess) {
    return failed(scope.error());
  }

  sparkfp4_cuda_status status = SPARKFP4_CUDA_OUT_OF_MEMORY;
  for (int64_t bytes = kPart; bytes >= kLeastPart && status == SPARKFP4_CUDA_OUT_OF_MEMORY; bytes /= 2) {
    Run parts(context, unit, operation, outputs, importance_bytes);
    status = parts.run(bytes, false, outcome);
  }

  return status;
}

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
      run(context, unit, operation_of(Conclusion::kAmax, unit), {0, 0, nullptr, nullptr, nullptr}, 0, &outcome);
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
    DeviceScope scope(context->device);
    if (scope.error() != cudaSuccess) {
      return failed(scope.error());
    }

    Run whole(context, unit, operation, outputs, importance_bytes(choice, unit.cols));
    sparkfp4_cuda_status status = whole.run(INT64_MAX / 4, true, &outcome);
    if (status == SPARKFP4_CUDA_OK) {
      *amax = outcome.amax;
    }

    if (status != SPARKFP4_CUDA_OUT_OF_MEMORY && status != Run::kDoesNotFit) {
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
      run(context, unit, operation, outputs, importance_bytes(choice, unit.cols), &outcome);
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
      !writable(cuda::total_elements(segments, segment_count, cols), packed, scales)) {
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
      !writable(cuda::total_elements(segments, segment_count, cols), packed, scales)) {
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
  return refuse(run(context, unit, operation, outputs, 0, &outcome), outcome, non_finite);
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
      run(context, unit, operation_of(Conclusion::kExponent, unit), {0, 0, nullptr, nullptr, nullptr}, 0, &outcome);
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
  sparkfp4_cuda_status status = run(context, unit, operation, outputs, 0, &outcome);
  if (status == SPARKFP4_CUDA_OK) {
    *requantized = outcome.requantized;
  }

  return refuse(status, outcome, non_finite);
}
