#include "host_parts.h"

#include "results.h"

namespace sparkfp4::cuda {
namespace {

// A part of a source that is read once anyhow, so that a call holds little device memory.
constexpr int64_t kPart = int64_t{128} << 20;
constexpr int64_t kLeastPart = int64_t{1} << 20;
constexpr int kMaxParts = 64;

Part part_at(const void *array, int64_t i) {
  return static_cast<const Part *>(array)[i];
}

// Rows of several segments, as many as fit at once.
struct Cursor {
  int64_t segment;
  int64_t row;
};

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
  // Waits for the part, and brings its results where they belong.
  cudaError_t bring_back(const Operation &operation, int64_t rows, bool is_last, sparkfp4_cuda_outcome *outcome);

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

cudaError_t Run::bring_back(const Operation &operation, int64_t rows, bool is_last, sparkfp4_cuda_outcome *outcome) {
  int64_t packed_bytes = outputs_.packed == nullptr ? 0 : rows * outputs_.packed_row;
  int64_t scales_bytes = outputs_.scales == nullptr ? 0 : rows * outputs_.scales_row;
  bool packed_direct = Results::is_direct(outputs_.packed, packed_bytes);
  bool scales_direct = Results::is_direct(outputs_.scales, scales_bytes);
  cudaError_t error;
  {
    Results results(context_->staging);
    error = results.add(outcome, reinterpret_cast<unsigned char *>(operation.outcome), sizeof *outcome);
    if (error == cudaSuccess && operation.sums != nullptr && is_last) {
      error = results.add(outputs_.sums, reinterpret_cast<unsigned char *>(operation.sums),
                          unit_.segment_count * static_cast<int64_t>(sizeof(sparkfp4_error_sums)));
    }

    if (error == cudaSuccess && packed_direct) {
      error = results.add(outputs_.packed, operation.encode.packed, packed_bytes);
    }

    if (error == cudaSuccess && scales_direct) {
      error = results.add(outputs_.scales, operation.encode.scales, scales_bytes);
    }

    if (error == cudaSuccess) {
      error = results.wait();
    }
  }

  bool is_good = error == cudaSuccess && outcome->status == SPARKFP4_CUDA_OK;
  if (is_good && packed_bytes > 0 && !packed_direct) {
    error = context_->staging.download(outputs_.packed, operation.encode.packed, packed_bytes);
  }

  if (is_good && error == cudaSuccess && scales_bytes > 0 && !scales_direct) {
    error = context_->staging.download(outputs_.scales, operation.encode.scales, scales_bytes);
  }

  outputs_.packed += packed_bytes;
  outputs_.scales += scales_bytes;
  return error;
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
      error = bring_back(operation, rows, cursor.segment == unit_.segment_count, outcome);
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

}  // namespace

sparkfp4_cuda_status run_whole(sparkfp4_cuda_context *context, const HostUnit &unit, const Operation &operation,
                               const HostOutputs &outputs, int64_t importance_bytes, sparkfp4_cuda_outcome *outcome) {
  DeviceScope scope(context->device);
  if (scope.error() != cudaSuccess) {
    return failed(scope.error());
  }

  sparkfp4_cuda_status status =
      Run(context, unit, operation, outputs, importance_bytes).run(INT64_MAX / 4, true, outcome);
  return status == Run::kDoesNotFit ? SPARKFP4_CUDA_OUT_OF_MEMORY : status;
}

sparkfp4_cuda_status run_parts(sparkfp4_cuda_context *context, const HostUnit &unit, const Operation &operation,
                               const HostOutputs &outputs, int64_t importance_bytes, sparkfp4_cuda_outcome *outcome) {
  DeviceScope scope(context->device);
  if (scope.error() != cudaSuccess) {
    return failed(scope.error());
  }

  sparkfp4_cuda_status status = SPARKFP4_CUDA_OUT_OF_MEMORY;
  for (int64_t bytes = kPart; bytes >= kLeastPart && status == SPARKFP4_CUDA_OUT_OF_MEMORY; bytes /= 2) {
    status = Run(context, unit, operation, outputs, importance_bytes).run(bytes, false, outcome);
  }

  return status;
}

}  // namespace sparkfp4::cuda
