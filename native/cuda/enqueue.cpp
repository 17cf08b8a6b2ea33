// Cuts parts into batches and enqueues the kernels of an operation over them.
#include "enqueue.h"

#include "scale.h"

namespace sparkfp4::cuda {
namespace {

constexpr int kTop = 8;
constexpr int kBias = 127;

enum class Tiles { kBytes, kBlocks, kSourceBlocks, kStrips, kRows };

int64_t ceiling(int64_t n, int64_t divisor) {
  return n / divisor + (n % divisor != 0);
}

int64_t greatest_common_divisor(int64_t a, int64_t b) {
  return b == 0 ? a : greatest_common_divisor(b, a % b);
}

int element_bytes(const Source &source) {
  return source.kind == SPARKFP4_F32 ? 4 : source.kind < kCodeSources ? 2 : 1;
}

int64_t tiles_of(Tiles kind, const Source &source, int64_t elements) {
  switch (kind) {
    case Tiles::kBytes:
      return ceiling(elements * element_bytes(source), kAmaxTileBytes);
    case Tiles::kBlocks:
      return ceiling(elements / kBlock, kTileBlocks);
    case Tiles::kSourceBlocks:
      return ceiling(elements / (2 * kBlock), kThreads);
    case Tiles::kStrips: {
      int64_t row_blocks = source.row_blocks.divisor;
      int64_t strips = ceiling(elements / kBlock / row_blocks, kStripRows) * ceiling(row_blocks, 32);
      return ceiling(strips, kThreads / 32);
    }
    default:
      return ceiling(elements / kBlock / source.row_blocks.divisor, kThreads) * source.row_blocks.divisor;
  }
}

// A segment of a batch: rows of a part, from done on.
DeviceSegment segment_of(const Operation &operation, const Part &part, int64_t done, int64_t rows) {
  const Source &source = operation.encode.source;
  int64_t row_elements = operation.cols == 0 ? 1 : operation.cols;
  DeviceSegment segment = {};
  segment.data = part.data;
  segment.scales = part.scales;
  segment.elements = rows * row_elements;
  segment.blocks = static_cast<uint32_t>(segment.elements / kBlock);
  segment.first_element = (part.first_row + done) * row_elements;
  segment.number = part.number;
  if (source.kind < kCodeSources || operation.cols == 0) {
    segment.data += done * row_elements * element_bytes(source);
  } else {
    segment.data += done * code_row_bytes(static_cast<sparkfp4_codes>(source.kind - kCodeSources), operation.cols);
    int64_t scale_row = source.block_rows.divisor == 0 ? 0 : done / source.block_rows.divisor;
    segment.scales += scale_row * source.row_scales * scale_bytes(source.scale_type);
  }

  return segment;
}

// Calls launch(batch) for batches of all parts, in order; once, of none, where there are no elements.
template <typename Launch>
cudaError_t each_batch(const Operation &operation, const Parts &parts, Tiles tiles, Launch launch) {
  int64_t row_elements = operation.cols == 0 ? 1 : operation.cols;
  int64_t most_rows = kMaxSegmentBlocks * kBlock / row_elements;
  if (most_rows >= operation.granule) {
    most_rows -= most_rows % operation.granule;
  }

  Batch batch = {};
  int64_t first_block = 0;
  bool launched = false;
  for (int64_t i = 0; i < parts.count; i++) {
    Part part = parts.at(parts.array, i);
    if (part.rows > most_rows && most_rows % operation.granule != 0) {
      return cudaErrorInvalidValue;
    }

    for (int64_t done = 0; done < part.rows && row_elements > 0;) {
      int64_t rows = part.rows - done < most_rows ? part.rows - done : most_rows;
      DeviceSegment segment = segment_of(operation, part, done, rows);
      segment.first_block = first_block;
      segment.first_tile = batch.tiles;
      batch.segments[batch.count++] = segment;
      batch.tiles += static_cast<uint32_t>(tiles_of(tiles, operation.encode.source, segment.elements));
      first_block += segment.elements / kBlock;
      done += rows;
      if (batch.count == kMaxSegments) {
        cudaError_t error = launch(batch);
        if (error != cudaSuccess) {
          return error;
        }

        launched = true;
        batch = {};
      }
    }
  }

  return batch.count > 0 || !launched ? launch(batch) : cudaSuccess;
}

cudaError_t conclude(const Operation &operation, const Batch &batch, cudaStream_t stream) {
  Conclusion conclusion = {};
  conclusion.kind = operation.kind;
  conclusion.encode = operation.encode;
  conclusion.kmax = operation.kmax;
  conclusion.row_elements = operation.cols;
  conclusion.in_order = operation.kind == Conclusion::kEncode &&
                        operation.encode.search == SPARKFP4_WEIGHTED_HESSIAN;
  conclusion.sums = operation.sums;
  conclusion.outcome = operation.outcome;
  return launch_conclude(batch, conclusion, stream);
}

// Launches of an amax begin the workspace by themselves.
bool begins_with_amax(const Operation &operation) {
  return operation.kind == Conclusion::kAmax || (operation.kind == Conclusion::kEncode && operation.encode.of_unit);
}

cudaError_t launch_largest(const Operation &operation, const Parts &parts, cudaStream_t stream, bool concludes) {
  const Source &source = operation.encode.source;
  Tiles tiles = source.kind < kCodeSources || operation.cols == 0 ? Tiles::kBytes : Tiles::kBlocks;
  Beginning beginning = {!operation.resumes, operation.segments, operation.sums, operation.outcome};
  return each_batch(operation, parts, tiles, [&](const Batch &batch) {
    cudaError_t error = cudaSuccess;
    if (operation.kind == Conclusion::kExponent) {
      error = batch.tiles > 0 ? launch_exponent(batch, operation.encode.workspace, stream) : cudaSuccess;
    } else if (batch.tiles > 0 || beginning.first) {
      error = launch_amax(batch, operation.encode, beginning, stream);
      beginning.first = false;
    }

    return error == cudaSuccess && concludes ? conclude(operation, batch, stream) : error;
  });
}

cudaError_t launch_blocks(const Operation &asked, const Parts &parts, cudaStream_t stream) {
  Operation operation = asked;
  if (!operation.encode.of_unit) {
    operation.encode.rule = known_rule(operation.encode);
  }

  // Without sums the encode's own launch concludes.
  bool by_itself = operation.kind == Conclusion::kEncode && operation.sums == nullptr;
  operation.encode.outcome = by_itself ? operation.outcome : nullptr;

  bool hessian = operation.encode.search == SPARKFP4_WEIGHTED_HESSIAN;
  bool cast = operation.kind == Conclusion::kCast;
  bool source_blocks = cast || takes_source_blocks(operation.encode);
  Tiles tiles = source_blocks                    ? Tiles::kSourceBlocks
                : hessian                        ? Tiles::kRows
                : takes_strips(operation.encode) ? Tiles::kStrips
                                                 : Tiles::kBlocks;
  return each_batch(operation, parts, tiles, [&](const Batch &batch) {
    cudaError_t error = cudaSuccess;
    if (batch.tiles == 0) {
      return conclude(operation, batch, stream);
    }

    if (cast) {
      const Encode &encode = operation.encode;
      error = launch_cast(batch,
                          {encode.recipe, operation.kmax, encode.global_scale, encode.packed, encode.scales,
                           encode.with_sums, encode.workspace},
                          stream);
    } else if (hessian) {
      error = launch_hessian(batch, operation.encode, stream);
    } else if (operation.encode.search == SPARKFP4_RTN) {
      error = launch_encode(batch, operation.encode, stream);
    } else {
      error = launch_search(batch, operation.encode, stream);
    }

    return error == cudaSuccess && !by_itself ? conclude(operation, batch, stream) : error;
  });
}

cudaError_t launch_dequantized(const Operation &operation, const Parts &parts, cudaStream_t stream) {
  Part part = parts.at(parts.array, 0);
  const Source &source = operation.encode.source;
  Batch batch = {};
  if (part.rows > 0 && operation.cols > 0) {
    Dequantize task = {};
    task.source = source;
    task.codes = part.data;
    task.scales = part.scales;
    task.rows = part.rows;
    task.cols = operation.cols;
    task.row_bytes = code_row_bytes(static_cast<sparkfp4_codes>(source.kind - kCodeSources), operation.cols);
    task.run = source.row_blocks.divisor;
    task.row_scales = source.row_scales;
    task.block_rows = source.block_rows.divisor;
    task.out = operation.encode.packed;
    task.workspace = operation.encode.workspace;
    cudaError_t error = launch_dequantize(task, stream);
    if (error != cudaSuccess) {
      return error;
    }

    batch.count = 1;
    batch.segments[0].data = part.data;
    batch.segments[0].scales = part.scales;
    batch.segments[0].elements = part.rows * operation.cols;
    batch.segments[0].first_element = part.first_row * operation.cols;
  }

  return conclude(operation, batch, stream);
}

}  // namespace

Source plain_source(sparkfp4_dtype dtype, int64_t cols) {
  Source source = {};
  source.kind = dtype;
  source.row_blocks = fast_divisor(cols / kBlock);
  return source;
}

Source quantized_source(const sparkfp4_scheme &scheme, int64_t cols) {
  Source source = {};
  source.kind = kCodeSources + scheme.codes;
  source.scale_type = scheme.scales;
  int64_t run = scheme.block_cols == 0 ? cols : scheme.block_cols;
  source.row_blocks = fast_divisor(cols / kBlock);
  source.block_rows = fast_divisor(scheme.block_rows);
  source.per_scale = fast_divisor(run / kBlock);
  source.row_scales = static_cast<int32_t>(cols == 0 ? 0 : ceiling(cols, run));
  return source;
}

Source dequantize_source(const sparkfp4_scheme &scheme, int64_t cols) {
  Source source = {};
  source.kind = kCodeSources + scheme.codes;
  source.scale_type = scheme.scales;
  int64_t run = scheme.block_cols == 0 || scheme.block_cols > cols ? cols : scheme.block_cols;
  source.row_blocks = fast_divisor(run);
  source.block_rows = fast_divisor(scheme.block_rows);
  source.row_scales = static_cast<int32_t>(cols == 0 ? 0 : ceiling(cols, run));
  return source;
}

int64_t cut_granule(const sparkfp4_scheme *scheme, int64_t cols) {
  // Strips of 256 source blocks of the cast are 512 blocks.
  constexpr int64_t kRound = 512;
  int64_t rows = cols == 0 ? kRound : kRound / greatest_common_divisor(kRound, cols / kBlock);
  int64_t block_rows = scheme == nullptr || scheme->block_rows == 0 ? 1 : scheme->block_rows;
  return rows / greatest_common_divisor(rows, block_rows) * block_rows;
}

cudaError_t enqueue(const Operation &operation, const Parts &parts, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  if (!operation.resumes && !begins_with_amax(operation)) {
    error = launch_begin(operation.encode.workspace, operation.segments, operation.sums, operation.outcome, stream);
  }

  if (error != cudaSuccess) {
    return error;
  }

  switch (operation.kind) {
    case Conclusion::kAmax:
    case Conclusion::kExponent:
      return launch_largest(operation, parts, stream, true);
    case Conclusion::kDequantize:
      return launch_dequantized(operation, parts, stream);
    default:
      if (operation.encode.of_unit) {
        error = launch_largest(operation, parts, stream, false);
      }

      return error == cudaSuccess ? launch_blocks(operation, parts, stream) : error;
  }
}

bool valid(const sparkfp4_cuda_choice *choice, int64_t cols) {
  if (cols >= int64_t{1} << 31) {
    return false;
  }

  if (choice == nullptr) {
    return true;
  }

  bool weighted = choice->search == SPARKFP4_WEIGHTED || choice->search == SPARKFP4_WEIGHTED_HESSIAN;
  return choice->search >= SPARKFP4_RTN && choice->search <= SPARKFP4_WEIGHTED_HESSIAN &&
         weighted == (choice->importance != nullptr);
}

bool valid(sparkfp4_dtype dtype, const sparkfp4_segment *segments, int64_t segment_count) {
  if (dtype < SPARKFP4_BF16 || dtype > SPARKFP4_F32 || segment_count < 0 || segment_count > INT32_MAX ||
      (segment_count > 0 && segments == nullptr)) {
    return false;
  }

  for (int64_t i = 0; i < segment_count; i++) {
    if (segments[i].count < 0 || segments[i].count > INT64_MAX / 8 ||
        (segments[i].count > 0 && segments[i].data == nullptr)) {
      return false;
    }
  }

  return true;
}

bool valid_dequantize(const sparkfp4_scheme *scheme, const sparkfp4_quantized_segment *segment, int64_t cols,
                      const void *out) {
  int64_t elements;
  return sparkfp4::valid(scheme) && segment != nullptr && segment->rows >= 0 && cols >= 0 &&
         cols < int64_t{1} << 31 && !__builtin_mul_overflow(segment->rows, cols, &elements) &&
         elements <= INT64_MAX / 4 &&
         (elements == 0 || (segment->codes != nullptr && segment->scales != nullptr && out != nullptr));
}

bool valid_kmax(int32_t kmax) {
  return kmax >= -126 + kTop && kmax <= 124;
}

float cast_scale(sparkfp4_recipe recipe, int32_t kmax) {
  int m = kmax - kTop;
  return bits_as<float>(static_cast<uint32_t>(kBias + (recipe == SPARKFP4_MODELOPT ? m : -m)) << 23);
}

}  // namespace sparkfp4::cuda
