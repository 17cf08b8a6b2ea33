// The outcome of a call: the largest magnitude, the first element that is not finite.
#pragma once

#include "rounding.cuh"
#include "walk.cuh"

namespace sparkfp4::cuda {

// The first index that is wrong, count where none is; all threads call it and get the same.
template <typename Wrong>
__device__ int64_t first_wrong(int64_t count, Wrong wrong) {
  __shared__ unsigned long long found;
  if (threadIdx.x == 0) {
    found = count;
  }

  __syncthreads();
  for (int64_t start = 0; start < count; start += blockDim.x) {
    int64_t index = start + threadIdx.x;
    bool is_wrong = index < count && wrong(index);
    if (is_wrong) {
      atomicMin(&found, static_cast<unsigned long long>(index));
    }

    if (__syncthreads_or(is_wrong)) {
      break;
    }
  }

  __syncthreads();
  int64_t index = static_cast<int64_t>(found);
  __syncthreads();
  return index;
}

__device__ inline bool is_finite(float x) {
  return (__float_as_uint(x) & F32::kMagnitude) < F32::kInfinity;
}

__device__ inline float element_at(const Source &source, const DeviceSegment &segment, int64_t index) {
  switch (source.kind) {
    case SPARKFP4_BF16:
      return widen<Bf16>(load_bits<Bf16>(segment.data, index));
    case SPARKFP4_F16:
      return widen<F16>(load_bits<F16>(segment.data, index));
    case SPARKFP4_F32:
      return widen<F32>(load_bits<F32>(segment.data, index));
    default: {
      float scale = source_scale(source, segment.scales, static_cast<uint32_t>(index / kBlock));
      float code = source.kind == E4m3::kSource   ? code_value<E4m3>(segment.data, index)
                   : source.kind == Int4::kSource ? code_value<Int4>(segment.data, index)
                                                  : code_value<E2m1>(segment.data, index);
      return code * scale;
    }
  }
}

__device__ inline void refuse(sparkfp4_cuda_outcome *outcome, const DeviceSegment &segment, int64_t index, float value) {
  if (threadIdx.x == 0) {
    outcome->status = SPARKFP4_CUDA_NON_FINITE;
    outcome->non_finite = {segment.number, segment.first_element + index, value};
  }
}

__device__ inline void find_element(const Batch &batch, const Source &source, sparkfp4_cuda_outcome *outcome) {
  for (int i = 0; i < batch.count; i++) {
    const DeviceSegment &segment = batch.segments[i];
    int64_t index = first_wrong(segment.elements,
                                [&](int64_t j) { return !is_finite(element_at(source, segment, j)); });
    if (index < segment.elements) {
      return refuse(outcome, segment, index, element_at(source, segment, index));
    }
  }
}

// The global scale that blocks were encoded with.
__device__ inline float scale_of(const Encode &encode, float amax) {
  bool searched = encode.search != SPARKFP4_RTN;
  return encode.of_unit ? unit_scale(encode.recipe, searched, encode.source.kind == SPARKFP4_BF16, amax)
                        : encode.global_scale;
}

// Writes the outcome of an encode without sums, by one thread block.
__device__ __noinline__ inline void conclude_encode(const Batch &batch, const Encode &encode) {
  uint32_t largest = encode.of_unit ? largest_of_unit(encode.workspace)
                                    : *static_cast<volatile uint32_t *>(&encode.workspace->largest);
  bool wrong = largest >= infinity_bits(encode.source);
  float amax = largest_value(encode.source, largest);
  sparkfp4_cuda_outcome *outcome = encode.outcome;
  int32_t status = outcome->status;
  __syncthreads();
  if (threadIdx.x == 0) {
    outcome->amax = amax;
    outcome->global_scale = wrong ? encode.global_scale : scale_of(encode, amax);
    encode.workspace->finished = 0;
  }

  if (wrong && status == SPARKFP4_CUDA_OK) {
    find_element(batch, encode.source, outcome);
  }
}

// What a thread block of an encode ends with, once it has raised the largest: the last one concludes.
__device__ __forceinline__ void conclude_last(const Batch &batch, const Encode &encode) {
  __shared__ bool last;
  if (encode.outcome == nullptr) {
    return;
  }

  wait_for_earlier_launches();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&encode.workspace->finished, 1) == gridDim.x - 1;
    __threadfence();
  }

  __syncthreads();
  if (last) {
    conclude_encode(batch, encode);
  }
}

}  // namespace sparkfp4::cuda
