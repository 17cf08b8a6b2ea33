// A warp's rows of keys of 128 in shared memory: fetched, taken as matrices of pairs, exchanged between its threads.
#pragma once

#include "fetch.cuh"
#include "words.cuh"

namespace sparkfp4::cuda {

constexpr int kRowElements = kFour * kKeyBlock;
constexpr int kQuad = 4;
constexpr int kPieces = kRowElements / kEight;
constexpr int kPairs = kPieces;              // of a row that a thread has
constexpr int kMatrixRows = 8;
constexpr int kMatrices = 4;                 // that are loaded at once
constexpr int kGroups = 2;                   // of kMatrixRows rows, a warp's
constexpr int kTurnRows = kGroups * kMatrixRows;
constexpr int kExchangedRow = kRowElements * 2;

__device__ __forceinline__ int quad_lane() { return threadIdx.x % kQuad; }

// Matrix m of four is that of 8 halves of each row whose addresses threads 8 m to 8 m + 7 give; of each a thread gets
// pair t of row r, where 4 r + t is its number.
__device__ __forceinline__ void load_matrices(uint32_t address, uint32_t *pairs) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void store_matrices(uint32_t address, const uint32_t *pairs) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(pairs[0]),
               "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
               : "memory");
#else
#pragma unroll
  for (int m = 0; m < kMatrices; m++) {
    uint32_t row = __shfl_sync(0xffffffffu, address, m * kMatrixRows + threadIdx.x % kWarp / kQuad);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(row + 4 * quad_lane()), "r"(pairs[m]) : "memory");
  }
#endif
}

// What thread lane tells of where matrices are, of rows of so many bytes whose words are in place i ^ r % 8.
__device__ __forceinline__ uint32_t matrix_offset(int lane, int row_bytes) {
  int row = lane % kMatrixRows;
  return row * row_bytes + (lane / kMatrixRows ^ row) * kWordBytes;
}

__device__ __forceinline__ uint4 load_word(uint32_t address) {
  uint4 word;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
               : "r"(address)
               : "memory");
  return word;
}

// A warp's rows in shared memory, at a multiple of a row's size. Words of 16 bytes have other places in each of 8 rows,
// so that those which are read or written at once are not in the same banks: word i of row r is in place i ^ r % 8.
template <typename Type>
struct FetchedRows {
  static constexpr int kRowBytes = kRowElements * sizeof(typename Type::Bits);
  static constexpr int kRowWords = kRowBytes / kWordBytes;
  static constexpr int kAtOnce = kWarp / kRowWords;  // rows that a warp copies at once
  static constexpr int kGroupBytes = kMatrixRows * kRowBytes;

  // Where the thread's first word is, in memory and in a turn's rows.
  static __device__ __forceinline__ int64_t source_offset(int lane) {
    return lane / kRowWords * kRowBytes + lane % kRowWords * kWordBytes;
  }
  static __device__ __forceinline__ uint32_t target_offset(int lane) {
    int within = lane / kRowWords;
    return within * kRowBytes + (lane % kRowWords ^ within) * kWordBytes;
  }

  // Starts to copy a turn's rows, of which so many are present.
  static __device__ __forceinline__ void fetch(const unsigned char *source, uint32_t target, int64_t present) {
    auto copy = [&](int i) {
      fetch_word((target ^ i % kMatrixRows * kWordBytes) + i * kRowBytes, source + i * kRowBytes);
    };
    if (present >= kTurnRows) {
#pragma unroll
      for (int i = 0; i < kTurnRows; i += kAtOnce) {
        copy(i);
      }

      return;
    }

    const int within = threadIdx.x % kWarp / kRowWords;
#pragma unroll 1
    for (int i = 0; i + within < present; i += kAtOnce) {
      copy(i);
    }
  }

  // Where the thread reads first.
  static __device__ __forceinline__ uint32_t own_offset(int lane) {
    if constexpr (Type::kSource == F32::kSource) {
      int row = lane / kQuad;
      return row * kRowBytes + (lane % kQuad / 2 ^ row) * kWordBytes + lane % 2 * 8;
    } else {
      return matrix_offset(lane, kRowBytes);
    }
  }

  // The thread's pairs of its row of a group.
  static __device__ __forceinline__ void values(uint32_t own, int group, float *x) {
    if constexpr (Type::kSource == F32::kSource) {
#pragma unroll
      for (int p = 0; p < kPairs; p++) {
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                     : "=f"(x[2 * p]), "=f"(x[2 * p + 1])
                     : "r"((own ^ p * 2 * kWordBytes) + group * kGroupBytes)
                     : "memory");
      }
    } else {
#pragma unroll
      for (int p = 0; p < kPairs; p += kMatrices) {
        uint32_t pairs[kMatrices];
        load_matrices((own ^ p * kWordBytes) + group * kGroupBytes, pairs);
#pragma unroll
        for (int m = 0; m < kMatrices; m++) {
          x[2 * (p + m)] = low_half<Type>(pairs[m]);
          x[2 * (p + m) + 1] = high_half<Type>(pairs[m]);
        }
      }
    }
  }
};

// The same as bfloat16, on their way to other threads: word i of row r is in place i ^ r % 8 ^ 6 (i / 8).
struct ExchangedRows {
  static __device__ __forceinline__ uint32_t own_offset(int lane) { return matrix_offset(lane, kExchangedRow); }

  // The thread's pairs of its row of a group.
  static __device__ __forceinline__ void put(uint32_t own, int group, const uint32_t *pairs) {
#pragma unroll
    for (int p = 0; p < kPairs; p += kMatrices) {
      const int place = p ^ p / 8 * 6;
      store_matrices((own ^ place * kWordBytes) + group * (kMatrixRows * kExchangedRow), pairs + p);
    }
  }

  // Where words from first on are, of row r; word first + i is at i * kWordBytes ^ that.
  static __device__ __forceinline__ uint32_t words_offset(int row, int first) {
    return row * kExchangedRow + (first ^ row % kMatrixRows ^ first / 8 * 6) * kWordBytes;
  }
};

}  // namespace sparkfp4::cuda
