#include "key_calls.h"

#include <algorithm>

namespace {

Bytes random_bytes(size_t size, Random &random) {
  Bytes bytes(size);
  for (unsigned char &byte : bytes) {
    byte = static_cast<unsigned char>(random.next() >> 56);
  }

  return bytes;
}

}  // namespace

void require_equal(const Written &expected, const Written &actual, const std::string &what) {
  if (expected.status != actual.status || expected.bad != actual.bad) {
    fail(what + ": status " + std::to_string(expected.status) + ", row " + std::to_string(expected.bad) + " and " +
         std::to_string(actual.status) + ", row " + std::to_string(actual.bad));
  }

  for (size_t o = 0; o < expected.outputs.size() && expected.status == SPARKFP4_OK; o++) {
    const Bytes &a = expected.outputs[o];
    const Bytes &b = actual.outputs[o];
    require(a.size() == b.size(), "outputs of one size");
    for (size_t i = 0; i < a.size(); i++) {
      if (a[i] != b[i]) {
        fail(what + ": output " + std::to_string(o) + ", byte " + std::to_string(i) + " of " +
             std::to_string(a.size()) + ": " + std::to_string(a[i]) + " and " + std::to_string(b[i]));
      }
    }
  }
}

std::vector<float> draw_floats(int64_t count, float mean, Random &random) {
  std::vector<float> values(count);
  for (float &value : values) {
    value = mean + 0.2f * random.normal();
  }

  return values;
}

Bytes draw_rows(sparkfp4_dtype dtype, int64_t rows, int64_t cols, Random &random) {
  int64_t drawn = std::min(rows, (int64_t{1} << 20) / cols + 1);
  Kind kind = static_cast<Kind>(random.below(static_cast<uint32_t>(Kind::kCount)));
  Bytes bytes = draw(dtype, kind, drawn * cols, cols, random);
  bytes.reserve(rows * cols * element_bytes(dtype));
  while (drawn < rows) {
    int64_t more = std::min(drawn, rows - drawn);
    bytes.resize((drawn + more) * cols * element_bytes(dtype));
    std::memcpy(bytes.data() + drawn * cols * element_bytes(dtype), bytes.data(), more * cols * element_bytes(dtype));
    drawn += more;
  }

  return bytes;
}

void spoil(sparkfp4_dtype dtype, Bytes *data, Random &random) {
  size_t i = random.below(static_cast<uint32_t>(data->size() / element_bytes(dtype)));
  uint32_t bits = dtype == SPARKFP4_F32 ? 0x7f800000 : dtype == SPARKFP4_BF16 ? 0x7f80 : 0x7c00;
  bits |= random.below(2);
  std::memcpy(data->data() + i * element_bytes(dtype), &bits, element_bytes(dtype));
}

Cache::Cache(int64_t token_bytes, int64_t inserted, Random &random) {
  static const int64_t kTokens[] = {64, 32, 7, 1};
  tokens = kTokens[random.below(4)];
  count = inserted / tokens + 1 + random.below(3);
  stride = tokens * token_bytes + random.below(3) * (random.below(2) ? 16 : 5);
  bytes = random_bytes(count * stride, random);
  std::vector<int64_t> all(count * tokens);
  std::iota(all.begin(), all.end(), 0);
  for (size_t i = all.size() - 1; i > 0; i--) {
    std::swap(all[i], all[random.below(static_cast<uint32_t>(i + 1))]);
  }

  slots.assign(all.begin(), all.begin() + inserted);
  for (int64_t &slot : slots) {
    slot = random.below(8) == 0 ? -1 - static_cast<int64_t>(random.next() >> 2) : slot;
  }
}

DeviceBytes floats_on_device(const std::vector<float> &values) {
  return DeviceBytes(values.size() * sizeof(float), 0, values.data());
}

DeviceBytes slots_on_device(const std::vector<int64_t> &slots) {
  return DeviceBytes(slots.size() * sizeof(int64_t), 0, slots.data());
}

Written finished(sparkfp4_cuda_status status, const BadRows &bad, const std::vector<const DeviceBytes *> &outputs) {
  require(status == SPARKFP4_CUDA_OK, "enqueue");
  check(cudaDeviceSynchronize());
  Written written;
  sparkfp4_cuda_bad_rows found = bad.read();
  require(found.slot == -1, "all slots are inside");
  written.bad = found.normalised >= 0 ? found.normalised : found.encoded;
  written.status = written.bad >= 0 ? SPARKFP4_NON_FINITE : SPARKFP4_OK;
  for (const DeviceBytes *output : outputs) {
    written.outputs.push_back(output->read());
  }

  return written;
}
