// Copies into pinned memory that the device reads next and this processor never.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace sparkfp4::cuda {

#ifdef __SSE2__

// Past the caches: an ordinary store would first read the line that it is to overwrite, from memory that is the bound
// here, and the device would find the lines it reads dirty in a processor's cache. Four pages in turn, for each page is a
// stream of its own to the processor's prefetcher, which stops at its end.
// Of any alignment of from; to is aligned to 16.
inline void copy_to_pinned(unsigned char *to, const unsigned char *from, int64_t bytes) {
  constexpr int64_t kPage = 4096;
  constexpr int64_t kPages = 4;
  constexpr int64_t kStep = 128;
  int64_t done = 0;
  for (; bytes - done >= kPages * kPage; done += kPages * kPage) {
    for (int64_t at = done; at < done + kPage; at += kStep) {
      for (int64_t page = 0; page < kPages * kPage; page += kPage) {
        __m128i words[kStep / 16];
        for (int64_t i = 0; i < kStep / 16; i++) {
          words[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + at + page) + i);
        }

        for (int64_t i = 0; i < kStep / 16; i++) {
          _mm_stream_si128(reinterpret_cast<__m128i *>(to + at + page) + i, words[i]);
        }
      }
    }
  }

  std::memcpy(to + done, from + done, static_cast<size_t>(bytes - done));
  _mm_sfence();
}

#else

inline void copy_to_pinned(unsigned char *to, const unsigned char *from, int64_t bytes) {
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

#endif

}  // namespace sparkfp4::cuda
