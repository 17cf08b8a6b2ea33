// What the checks of keys, queries, norms and latents share: rows, caches, and what calls on them came to.
#pragma once

#include "check.h"
#include "sparkfp4_cuda_keys.h"

// What a call came to: its status, the bad row, and all that it may have written.
struct Written {
  int status = 0;
  int64_t bad = -1;
  std::vector<Bytes> outputs;
};

void require_equal(const Written &expected, const Written &actual, const std::string &what);

std::vector<float> draw_floats(int64_t count, float mean, Random &random);

// Of many rows, the first are repeated.
Bytes draw_rows(sparkfp4_dtype dtype, int64_t rows, int64_t cols, Random &random);

// Makes an element NaN or infinite.
void spoil(sparkfp4_dtype dtype, Bytes *data, Random &random);

// Pages with bytes that belong to nobody.
struct Cache {
  int64_t count;
  int64_t tokens;
  int64_t stride;
  Bytes bytes;
  std::vector<int64_t> slots;

  // For so many tokens, some of which have no slot.
  Cache(int64_t token_bytes, int64_t inserted, Random &random);

  sparkfp4_pages at(void *data) const { return {data, count, tokens, stride}; }
};

DeviceBytes floats_on_device(const std::vector<float> &values);
DeviceBytes slots_on_device(const std::vector<int64_t> &slots);

// Device memory of a call's bad rows.
class BadRows {
 public:
  sparkfp4_cuda_bad_rows *data() const { return reinterpret_cast<sparkfp4_cuda_bad_rows *>(memory_.data()); }

  sparkfp4_cuda_bad_rows read() const {
    sparkfp4_cuda_bad_rows bad;
    Bytes bytes = memory_.read();
    std::memcpy(&bad, bytes.data(), sizeof bad);
    return bad;
  }

 private:
  DeviceBytes memory_{sizeof(sparkfp4_cuda_bad_rows)};
};

// Reads what an enqueued call came to.
Written finished(sparkfp4_cuda_status status, const BadRows &bad, const std::vector<const DeviceBytes *> &outputs);

// Both faces beside the CPU. bad, of latents: 1 spoils them, 2 their rotary part, 3 both.
void check_norm(sparkfp4_cuda_context *context, sparkfp4_dtype dtype, int64_t rows, int64_t cols, bool bad,
                Random &random);
void check_latents(sparkfp4_cuda_context *context, sparkfp4_dtype dtype, int64_t tokens, int bad, Random &random);
