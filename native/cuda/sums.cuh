// Error sums. The definition adds a segment's blocks one after the other in 16 lanes of doubles; kernels add them in
// any order. Both give the same bits as long as no addition rounds, for which it is enough that the sum of a lane is
// below 2^53 units in the last place of the smallest square that was added, a binary32 number. A lane that fails this
// is added anew, in order: conclude.cu.
#pragma once

#include "batch.h"
#include "e2m1.cuh"
#include "walk.cuh"

namespace sparkfp4::cuda {

struct Squares {
  float weight;
  float error;
};

// The squares of a block by the fixed tree; weight(i) is |w| or w of an element, half_d is d / 2.
template <typename Weight>
__device__ __forceinline__ Squares block_squares(Weight weight, uint2 codes, float half_d) {
  Squares sums[8];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    uint32_t word = half == 0 ? codes.x : codes.y;
#pragma unroll
    for (int quarter = 0; quarter < 2; quarter++) {
      uint32_t bytes = twice_magnitudes(word >> 16 * quarter);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int i = 4 * quarter + j;
        float w = fabsf(weight(8 * half + i));
        float error = __fsub_rn(w, __fmul_rn(byte_value(bytes, j), half_d));
        Squares squares = {__fmul_rn(w, w), __fmul_rn(error, error)};
        if (half == 0) {
          sums[i] = squares;
        } else {
          sums[i].weight = __fadd_rn(sums[i].weight, squares.weight);
          sums[i].error = __fadd_rn(sums[i].error, squares.error);
        }
      }
    }
  }

#pragma unroll
  for (int half = 4; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; i++) {
      sums[i].weight = __fadd_rn(sums[i].weight, sums[i + half].weight);
      sums[i].error = __fadd_rn(sums[i].error, sums[i + half].error);
    }
  }

  return sums[0];
}

// A thread's part of a segment's sums; its blocks are all of one lane, threadIdx.x % kLanes.
struct ThreadSums {
  double sums[2] = {0, 0};
  uint32_t smallest[2] = {0, 0};

  // unit: the bits of a float whose unit in the last place divides the weights' square; 0 stands for that square.
  __device__ __forceinline__ void add(Squares squares, uint32_t unit = 0) {
    sums[0] += static_cast<double>(squares.weight);
    sums[1] += static_cast<double>(squares.error);
    // Minus the bits: zero, which rounds nothing, stays the least.
    uint32_t weight = __float_as_uint(squares.weight);
    smallest[0] = max(smallest[0], 0u - (unit == 0 || weight == 0 ? weight : unit));
    smallest[1] = max(smallest[1], 0u - __float_as_uint(squares.error));
  }

  // Adds those of all threads of the block, which all call it, to the segment's.
  __device__ void flush(SegmentSums *segment) {
    __shared__ double lanes[2][kThreads / 32][kLanes];
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    wait_for_earlier_launches();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; i++) {
      sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], kLanes);
      smallest[i] = __reduce_max_sync(0xffffffffu, smallest[i]);
      if (lane < kLanes) {
        lanes[i][warp][lane] = sums[i];
      }

      if (lane == 0 && smallest[i] != 0) {
        atomicMax(&segment->smallest[i], smallest[i]);
      }
    }

    __syncthreads();
    if (threadIdx.x < 2 * kLanes) {
      int which = threadIdx.x / kLanes;
      double sum = 0;
      for (int i = 0; i < kThreads / 32; i++) {
        sum += lanes[which][i][threadIdx.x % kLanes];
      }

      if (sum != 0) {
        atomicAdd(&segment->added[which][threadIdx.x % kLanes], sum);
      }
    }

    *this = ThreadSums();
  }
};

// Those of a thread whose blocks are 2 t and 2 t + 1 of a tile.
struct PairSums {
  ThreadSums sums[2];

  __device__ __forceinline__ void add(int which, Squares squares, uint32_t unit = 0) {
    sums[which].add(squares, unit);
  }

  __device__ void flush(SegmentSums *segment) {
    __shared__ double exchange[2][2 * kThreads];
    ThreadSums own;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int j = 0; j < 2; j++) {
        exchange[j][2 * threadIdx.x + i] = sums[i].sums[j];
        own.smallest[j] = max(own.smallest[j], sums[i].smallest[j]);
      }

      sums[i] = ThreadSums();
    }

    __syncthreads();
#pragma unroll
    for (int j = 0; j < 2; j++) {
      own.sums[j] = exchange[j][threadIdx.x] + exchange[j][threadIdx.x + kThreads];
    }

    own.flush(segment);
  }
};

}  // namespace sparkfp4::cuda
