// Rates of the kernels of keys, queries and latents beside the device's own copy of as many bytes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>

#include "measure.h"
#include "sparkfp4_cuda_keys.h"

void bench_keys(int rounds);

namespace {

constexpr double kGiga = 1e9;
constexpr int64_t kDim = 128;
constexpr int64_t kPageTokens = 64;
constexpr int64_t kKeyBytes = kDim / 2 + kDim / 32;
constexpr int64_t kEntryBytes = 656;
constexpr int64_t kLatent = 512;
constexpr int64_t kRope = 64;
constexpr int64_t kHeads = 32;

// Device memory of a content, which is repeated.
template <typename T = unsigned char>
class Memory {
 public:
  explicit Memory(int64_t count, const std::vector<T> &content = {}) {
    int64_t bytes = count * static_cast<int64_t>(sizeof(T));
    require(cudaMalloc(reinterpret_cast<void **>(&data_), bytes), "allocate device memory");
    int64_t piece = static_cast<int64_t>(content.size() * sizeof(T));
    for (int64_t at = 0; piece > 0 && at < bytes; at += piece) {
      require(cudaMemcpy(reinterpret_cast<unsigned char *>(data_) + at, content.data(), std::min(piece, bytes - at),
                         cudaMemcpyHostToDevice),
              "copy to the device");
    }
  }

  ~Memory() { cudaFree(data_); }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  T *data() const { return data_; }

 private:
  T *data_;
};

std::vector<uint16_t> gaussian(int64_t count) {
  std::vector<uint16_t> values(count);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1);
  for (uint16_t &value : values) {
    float x = normal(random);
    std::memcpy(&value, reinterpret_cast<unsigned char *>(&x) + 2, 2);
  }

  return values;
}

// Pages in any order, tokens of a page in theirs.
std::vector<int64_t> shuffled_slots(int64_t tokens) {
  std::vector<int64_t> pages(tokens / kPageTokens);
  std::iota(pages.begin(), pages.end(), 0);
  std::mt19937 random(2);
  std::shuffle(pages.begin(), pages.end(), random);
  std::vector<int64_t> slots(tokens);
  for (int64_t i = 0; i < tokens; i++) {
    slots[i] = pages[i / kPageTokens] * kPageTokens + i % kPageTokens;
  }

  return slots;
}

void bench_device(int64_t tokens, int rounds) {
  cudaStream_t stream;
  require(cudaStreamCreate(&stream), "create a stream");
  // A latent has four keys' elements: a quarter as many of them.
  int64_t latents = tokens / 4;
  std::vector<uint16_t> drawn = gaussian(8 << 20);
  Memory<uint16_t> keys(tokens * kDim, drawn);
  Memory<uint16_t> rope(latents * kRope, drawn);
  Memory<uint16_t> head_weights(tokens, drawn);
  Memory<int64_t> slots(tokens, shuffled_slots(tokens));
  Memory<int64_t> latent_slots(latents, shuffled_slots(latents));
  Memory<float> weight(kLatent * 3, std::vector<float>(kLatent * 3, 1.25f));
  Memory<float> bias(kDim, std::vector<float>(kDim, 0.125f));
  Memory<> out(tokens * kDim * 8);
  Memory<> entries(latents * kEntryBytes);
  Memory<sparkfp4_cuda_bad_rows> bad(1);
  unsigned char *scales = out.data() + tokens * kDim / 2;
  float *weights_out = reinterpret_cast<float *>(scales + tokens * kDim / 32);
  sparkfp4_pages pages = {out.data(), tokens / kPageTokens, kPageTokens, kPageTokens * kKeyBytes};
  sparkfp4_pages latent_pages = {entries.data(), latents / kPageTokens, kPageTokens, kPageTokens * kEntryBytes};
  sparkfp4_key_form forms[] = {
      {kDim, nullptr, nullptr, 0, 0, 0, SPARKFP4_CEIL},
      {kDim, weight.data(), bias.data(), 1e-6f, 0, 0, SPARKFP4_CEIL},
      {kDim, weight.data(), bias.data(), 1e-6f, 1, 1, SPARKFP4_CEIL},
      {kDim, weight.data(), bias.data(), 1e-6f, 0, 0, SPARKFP4_BEST_OF_TWO},
  };
  const char *names[] = {"no norm", "LayerNorm", "LayerNorm, bf16, Hadamard", "LayerNorm, best of two"};
  std::vector<Work> works;
  works.push_back({"quantize, rows of 128", tokens * (2 * kDim + kKeyBytes),
                   [&] {
                     return sparkfp4_cuda_enqueue_mxfp4_quantize(SPARKFP4_CEIL, SPARKFP4_BF16, keys.data(), tokens,
                                                                 kDim, out.data(), scales, bad.data(), stream);
                   },
                   tokens});
  for (int f = 0; f < 4; f++) {
    works.push_back({std::string("key insert, ") + names[f], tokens * (2 * kDim + kKeyBytes + 8),
                     [&, f] {
                       return sparkfp4_cuda_enqueue_key_insert(&forms[f], SPARKFP4_BF16, keys.data(), tokens,
                                                               slots.data(), &pages, bad.data(), stream);
                     },
                     tokens});
  }

  works.push_back({"query, 32 heads", tokens * (2 * kDim + kKeyBytes + 2 + 4),
                   [&] {
                     return sparkfp4_cuda_enqueue_query_quantize(
                         SPARKFP4_CEIL, SPARKFP4_BF16, keys.data(), SPARKFP4_BF16, head_weights.data(), 0.015625f,
                         tokens / kHeads, kHeads, kHeads, out.data(), scales, weights_out, bad.data(), stream);
                   },
                   tokens});
  works.push_back({"RMSNorm of 1536", tokens / 12 * 4 * 3 * kLatent,
                   [&] {
                     return sparkfp4_cuda_enqueue_rms_norm(SPARKFP4_BF16, keys.data(), tokens / 12, 3 * kLatent,
                                                           weight.data(), 1e-6f, out.data(), bad.data(), stream);
                   },
                   tokens / 12});
  works.push_back({"latent insert", latents * (4 * kLatent + 2 * kRope + kEntryBytes + 8),
                   [&] {
                     return sparkfp4_cuda_enqueue_latent_insert(
                         SPARKFP4_BF16, keys.data(), rope.data(), latents, weight.data(), 1e-6f, 0, out.data(),
                         latent_slots.data(), latents, &latent_pages, bad.data(), stream);
                   },
                   latents});
  measure(works, rounds, stream, out.data(), out.data() + tokens * kDim * 4, "items");
  cudaStreamDestroy(stream);
}

void bench_host(int64_t tokens, int rounds) {
  std::vector<uint16_t> keys = gaussian(tokens * kDim);
  std::vector<int64_t> slots(tokens);
  for (int64_t i = 0; i < tokens; i++) {
    slots[i] = i;
  }

  std::vector<float> weight(kDim, 1.25f);
  std::vector<float> bias(kDim, 0.125f);
  std::vector<unsigned char> cache(tokens * kKeyBytes);
  sparkfp4_pages pages = {cache.data(), tokens / kPageTokens, kPageTokens, kPageTokens * kKeyBytes};
  sparkfp4_key_form form = {kDim, weight.data(), bias.data(), 1e-6f, 0, 0, SPARKFP4_CEIL};
  sparkfp4_cuda_context *context;
  require(sparkfp4_cuda_create(0, nullptr, &context), "create a context");
  std::vector<double> seconds;
  for (int round = -1; round < rounds; round++) {
    auto start = std::chrono::steady_clock::now();
    int64_t bad;
    require(sparkfp4_cuda_key_insert(context, &form, SPARKFP4_BF16, keys.data(), tokens, slots.data(), &pages, &bad),
            "insert keys");
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (round >= 0) {
      seconds.push_back(taken.count());
    }
  }

  sparkfp4_cuda_destroy(context);
  double of_call = median(seconds);
  std::printf("\nHost memory, one thread: key insert, LayerNorm, %.1f million keys: %.1f million keys/s, %.1f GB/s of "
              "bf16\n",
              tokens / 1e6, tokens / 1e6 / of_call, 2.0 * kDim * tokens / kGiga / of_call);
}

}  // namespace

void bench_keys(int rounds) {
  for (int64_t tokens : {int64_t{1} << 23, int64_t{1} << 18}) {
    std::printf("\nKeys: %.2f million of 128 bf16, pages of 64 in any order; a quarter as many latents\n\n",
                tokens / 1e6);
    bench_device(tokens, rounds);
  }

  bench_host(1 << 22, std::min(rounds, 5));
}
