// Keys, queries, norms and latents: both faces beside the CPU, in caches with bytes that belong to nobody.
#include <algorithm>
#include <numeric>

#include "check.h"
#include "sparkfp4_cuda_keys.h"

namespace {

constexpr int64_t kEntryBytes = 656;
constexpr sparkfp4_dtype kTypes[] = {SPARKFP4_BF16, SPARKFP4_F16, SPARKFP4_F32};

// What a call came to: its status, the bad row, and all that it may have written.
struct Written {
  int status = 0;
  int64_t bad = -1;
  std::vector<Bytes> outputs;
};

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

Bytes random_bytes(size_t size, Random &random) {
  Bytes bytes(size);
  for (unsigned char &byte : bytes) {
    byte = static_cast<unsigned char>(random.next() >> 56);
  }

  return bytes;
}

std::vector<float> draw_floats(int64_t count, float mean, Random &random) {
  std::vector<float> values(count);
  for (float &value : values) {
    value = mean + 0.2f * random.normal();
  }

  return values;
}

// Of many rows, the first are repeated.
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

// Makes an element NaN or infinite.
void spoil(sparkfp4_dtype dtype, Bytes *data, Random &random) {
  size_t i = random.below(static_cast<uint32_t>(data->size() / element_bytes(dtype)));
  uint32_t bits = dtype == SPARKFP4_F32 ? 0x7f800000 : dtype == SPARKFP4_BF16 ? 0x7f80 : 0x7c00;
  bits |= random.below(2);
  std::memcpy(data->data() + i * element_bytes(dtype), &bits, element_bytes(dtype));
}

struct Cache {
  int64_t count;
  int64_t tokens;
  int64_t stride;
  Bytes bytes;
  std::vector<int64_t> slots;

  // For so many tokens, some of which have no slot.
  Cache(int64_t token_bytes, int64_t inserted, Random &random) {
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

  sparkfp4_pages at(void *data) const { return {data, count, tokens, stride}; }
};

DeviceBytes floats_on_device(const std::vector<float> &values) {
  return DeviceBytes(values.size() * sizeof(float), 0, values.data());
}

DeviceBytes slots_on_device(const std::vector<int64_t> &slots) {
  return DeviceBytes(slots.size() * sizeof(int64_t), 0, slots.data());
}

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

void check_quantize(sparkfp4_cuda_context *context, sparkfp4_dtype dtype, int64_t rows, int64_t cols, bool bad,
                    Random &random) {
  Bytes data = draw_rows(dtype, rows, cols, random);
  if (bad) {
    spoil(dtype, &data, random);
  }

  for (int r = SPARKFP4_CEIL; r <= SPARKFP4_BEST_OF_TWO; r++) {
    sparkfp4_scale_rule rule = static_cast<sparkfp4_scale_rule>(r);
    Written expected;
    expected.outputs = {Bytes(rows * cols / 2), Bytes(rows * cols / 32)};
    Written host = expected;
    expected.status = sparkfp4_mxfp4_quantize(sparkfp4_best_tier(), rule, dtype, data.data(), rows, cols,
                                              expected.outputs[0].data(), expected.outputs[1].data(), &expected.bad);
    host.status = sparkfp4_cuda_mxfp4_quantize(context, rule, dtype, data.data(), rows, cols, host.outputs[0].data(),
                                               host.outputs[1].data(), &host.bad);
    std::string what = "quantize [" + std::to_string(rows) + ", " + std::to_string(cols) + "] of type " +
                       std::to_string(dtype) + ", rule " + std::to_string(rule);
    require_equal(expected, host, what + ", host");
    size_t offset = random.below(2) ? 0 : random.below(16);
    DeviceBytes source(data.size(), offset, data.data());
    DeviceBytes packed(rows * cols / 2, offset);
    DeviceBytes scales(rows * cols / 32, offset);
    BadRows found;
    Written device = finished(sparkfp4_cuda_enqueue_mxfp4_quantize(rule, dtype, source.data(), rows, cols,
                                                                   packed.data(), scales.data(), found.data(), nullptr),
                              found, {&packed, &scales});
    require_equal(expected, device, what + ", device");
  }
}

void check_insert(sparkfp4_cuda_context *context, sparkfp4_dtype dtype, int64_t tokens, int64_t dim, bool bad,
                  Random &random) {
  Bytes keys = draw_rows(dtype, tokens, dim, random);
  if (bad) {
    spoil(dtype, &keys, random);
  }

  std::vector<float> weight = draw_floats(dim, 1, random);
  std::vector<float> bias = draw_floats(dim, 0, random);
  bool norm = random.below(3) > 0;
  bool power = (dim & (dim - 1)) == 0;
  sparkfp4_key_form form = {dim,
                            norm ? weight.data() : nullptr,
                            norm ? bias.data() : nullptr,
                            1e-6f,
                            static_cast<int>(random.below(2)),
                            power && random.below(2),
                            static_cast<sparkfp4_scale_rule>(random.below(4))};
  Cache cache(dim / 2 + dim / 32, tokens, random);
  Written expected;
  expected.outputs = {cache.bytes};
  Written host = expected;
  sparkfp4_pages pages = cache.at(expected.outputs[0].data());
  expected.status = sparkfp4_key_insert(sparkfp4_best_tier(), &form, dtype, keys.data(), tokens, cache.slots.data(),
                                        &pages, &expected.bad);
  pages = cache.at(host.outputs[0].data());
  host.status = sparkfp4_cuda_key_insert(context, &form, dtype, keys.data(), tokens, cache.slots.data(), &pages,
                                         &host.bad);
  std::string what = "insert of " + std::to_string(tokens) + " keys of " + std::to_string(dim) + ", type " +
                     std::to_string(dtype) + ", rule " + std::to_string(form.rule) + (norm ? ", norm" : "") +
                     (form.round_to_bf16 ? ", bf16" : "") + (form.hadamard ? ", Hadamard" : "");
  require_equal(expected, host, what + ", host");
  size_t offset = random.below(2) ? 0 : random.below(16);
  DeviceBytes source(keys.size(), offset, keys.data());
  DeviceBytes slots = slots_on_device(cache.slots);
  DeviceBytes weight_on_device = floats_on_device(weight);
  DeviceBytes bias_on_device = floats_on_device(bias);
  DeviceBytes image(cache.bytes.size(), offset, cache.bytes.data());
  form.norm_weight = norm ? reinterpret_cast<const float *>(weight_on_device.data()) : nullptr;
  form.norm_bias = norm ? reinterpret_cast<const float *>(bias_on_device.data()) : nullptr;
  pages = cache.at(image.data());
  BadRows found;
  Written device = finished(
      sparkfp4_cuda_enqueue_key_insert(&form, dtype, source.data(), tokens,
                                       reinterpret_cast<const int64_t *>(slots.data()), &pages, found.data(), nullptr),
      found, {&image});
  require_equal(expected, device, what + ", device");
}

void check_query(sparkfp4_cuda_context *context, sparkfp4_dtype dtype, int64_t tokens, int64_t heads, int64_t padded,
                 bool bad, Random &random) {
  constexpr int64_t kDim = 128;
  sparkfp4_dtype weights_dtype = kTypes[random.below(3)];
  sparkfp4_scale_rule rule = static_cast<sparkfp4_scale_rule>(random.below(4));
  Bytes query = draw_rows(dtype, tokens * heads, kDim, random);
  Bytes weights = draw(weights_dtype, Kind::kBits, tokens * heads, heads, random);
  if (bad) {
    spoil(dtype, &query, random);
  }

  int64_t rows = tokens * padded;
  Written expected;
  expected.outputs = {Bytes(rows * kDim / 2), Bytes(rows * kDim / 32), Bytes(rows * 4)};
  Written host = expected;
  auto floats = [](Bytes &bytes) { return reinterpret_cast<float *>(bytes.data()); };
  expected.status = sparkfp4_query_quantize(sparkfp4_best_tier(), rule, dtype, query.data(), weights_dtype,
                                            weights.data(), 0.015f, tokens, heads, padded, expected.outputs[0].data(),
                                            expected.outputs[1].data(), floats(expected.outputs[2]), &expected.bad);
  host.status = sparkfp4_cuda_query_quantize(context, rule, dtype, query.data(), weights_dtype, weights.data(), 0.015f,
                                             tokens, heads, padded, host.outputs[0].data(), host.outputs[1].data(),
                                             floats(host.outputs[2]), &host.bad);
  std::string what = "query of " + std::to_string(tokens) + " x " + std::to_string(heads) + " of " +
                     std::to_string(padded) + " heads, type " + std::to_string(dtype) + ", rule " +
                     std::to_string(rule);
  require_equal(expected, host, what + ", host");
  size_t offset = random.below(2) ? 0 : random.below(16);
  DeviceBytes source(query.size(), offset, query.data());
  DeviceBytes of_heads(weights.size(), offset, weights.data());
  DeviceBytes packed(rows * kDim / 2, offset);
  DeviceBytes scales(rows * kDim / 32, offset);
  DeviceBytes out(rows * 4, offset);
  BadRows found;
  Written device = finished(
      sparkfp4_cuda_enqueue_query_quantize(rule, dtype, source.data(), weights_dtype, of_heads.data(), 0.015f, tokens,
                                           heads, padded, packed.data(), scales.data(),
                                           reinterpret_cast<float *>(out.data()), found.data(), nullptr),
      found, {&packed, &scales, &out});
  require_equal(expected, device, what + ", device");
}

void check_norm(sparkfp4_cuda_context *context, sparkfp4_dtype dtype, int64_t rows, int64_t cols, bool bad,
                Random &random) {
  Bytes data = draw_rows(dtype, rows, cols, random);
  if (bad) {
    spoil(dtype, &data, random);
  }

  std::vector<float> weight = draw_floats(cols, 1, random);
  Written expected;
  expected.outputs = {Bytes(data.size())};
  Written host = expected;
  expected.status = sparkfp4_rms_norm(sparkfp4_best_tier(), dtype, data.data(), rows, cols, weight.data(), 1e-6f,
                                      expected.outputs[0].data(), &expected.bad);
  host.status = sparkfp4_cuda_rms_norm(context, dtype, data.data(), rows, cols, weight.data(), 1e-6f,
                                       host.outputs[0].data(), &host.bad);
  std::string what =
      "norm of [" + std::to_string(rows) + ", " + std::to_string(cols) + "], type " + std::to_string(dtype);
  require_equal(expected, host, what + ", host");
  size_t offset = random.below(2) ? 0 : random.below(16);
  DeviceBytes source(data.size(), offset, data.data());
  DeviceBytes weight_on_device = floats_on_device(weight);
  DeviceBytes out(data.size(), offset);
  BadRows found;
  Written device = finished(
      sparkfp4_cuda_enqueue_rms_norm(dtype, source.data(), rows, cols,
                                     reinterpret_cast<const float *>(weight_on_device.data()), 1e-6f, out.data(),
                                     found.data(), nullptr),
      found, {&out});
  require_equal(expected, device, what + ", device");
}

void check_latents(sparkfp4_cuda_context *context, sparkfp4_dtype dtype, int64_t tokens, int bad, Random &random) {
  Bytes latents = draw_rows(dtype, tokens, 512, random);
  Bytes rope = draw_rows(dtype, tokens, 64, random);
  if (bad & 1) {
    spoil(dtype, &latents, random);
  }

  if (bad & 2) {
    spoil(dtype, &rope, random);
  }

  std::vector<float> weight = draw_floats(512, 1, random);
  int64_t slot_count = tokens - random.below(static_cast<uint32_t>(tokens < 9 ? tokens + 1 : 9));
  int round = static_cast<int>(random.below(2));
  Cache cache(kEntryBytes, slot_count, random);
  Written expected;
  expected.outputs = {Bytes(latents.size()), cache.bytes};
  Written host = expected;
  sparkfp4_pages pages = cache.at(expected.outputs[1].data());
  expected.status = sparkfp4_latent_insert(sparkfp4_best_tier(), dtype, latents.data(), rope.data(), tokens,
                                           weight.data(), 1e-6f, round, expected.outputs[0].data(),
                                           cache.slots.data(), slot_count, &pages, &expected.bad);
  pages = cache.at(host.outputs[1].data());
  host.status = sparkfp4_cuda_latent_insert(context, dtype, latents.data(), rope.data(), tokens, weight.data(), 1e-6f,
                                            round, host.outputs[0].data(), cache.slots.data(), slot_count, &pages,
                                            &host.bad);
  std::string what = "latents of " + std::to_string(tokens) + " tokens, type " + std::to_string(dtype) +
                     (round ? ", bf16" : "") + ", bad " + std::to_string(bad);
  require_equal(expected, host, what + ", host");
  size_t offset = random.below(2) ? 0 : random.below(16);
  DeviceBytes source(latents.size(), offset, latents.data());
  DeviceBytes of_rope(rope.size(), offset, rope.data());
  DeviceBytes weight_on_device = floats_on_device(weight);
  DeviceBytes slots = slots_on_device(cache.slots);
  DeviceBytes out(latents.size(), offset);
  DeviceBytes image(cache.bytes.size(), offset, cache.bytes.data());
  pages = cache.at(image.data());
  BadRows found;
  Written device = finished(
      sparkfp4_cuda_enqueue_latent_insert(dtype, source.data(), of_rope.data(), tokens,
                                          reinterpret_cast<const float *>(weight_on_device.data()), 1e-6f, round,
                                          out.data(), reinterpret_cast<const int64_t *>(slots.data()), slot_count,
                                          &pages, found.data(), nullptr),
      found, {&out, &image});
  require_equal(expected, device, what + ", device");
}

// Every bfloat16 beside an amax from one to sixteen times as large, in a block of its own, under every rule.
void check_all_bf16(sparkfp4_cuda_context *context, Random &random) {
  constexpr int64_t kBlocks = 1 << 16;
  std::vector<uint16_t> data(kBlocks * 32);
  for (uint32_t bits = 0; bits < kBlocks; bits++) {
    bool finite = (bits & 0x7f80) != 0x7f80;
    float larger = bits_float(bits << 16) * (1 + 15 * random.uniform());
    uint32_t other = float_bits(larger) >> 16;
    data[32 * bits + bits % 31] = static_cast<uint16_t>(finite ? bits : 0);
    data[32 * bits + 31] = static_cast<uint16_t>(finite && (other & 0x7f80) != 0x7f80 ? other : 0);
  }

  for (int rule = SPARKFP4_CEIL; rule <= SPARKFP4_BEST_OF_TWO; rule++) {
    Written expected;
    expected.outputs = {Bytes(kBlocks * 16), Bytes(kBlocks)};
    Written host = expected;
    expected.status = sparkfp4_mxfp4_quantize(sparkfp4_best_tier(), static_cast<sparkfp4_scale_rule>(rule),
                                              SPARKFP4_BF16, data.data(), kBlocks, 32, expected.outputs[0].data(),
                                              expected.outputs[1].data(), &expected.bad);
    host.status = sparkfp4_cuda_mxfp4_quantize(context, static_cast<sparkfp4_scale_rule>(rule), SPARKFP4_BF16,
                                               data.data(), kBlocks, 32, host.outputs[0].data(),
                                               host.outputs[1].data(), &host.bad);
    require(expected.status == SPARKFP4_OK, "all are finite");
    require_equal(expected, host, "all bfloat16, rule " + std::to_string(rule));
  }
}

// Slots past the pages: refused on the host, told of on the device.
void check_refusals(sparkfp4_cuda_context *context) {
  Bytes keys(4 * 128 * 2);
  Bytes cache(64 * 68);
  std::vector<int64_t> slots = {3, 64, -1, 1 << 20};
  sparkfp4_key_form form = {128, nullptr, nullptr, 0, 0, 0, SPARKFP4_CEIL};
  sparkfp4_pages pages = {cache.data(), 1, 64, 64 * 68};
  int64_t bad;
  require(sparkfp4_cuda_key_insert(context, &form, SPARKFP4_BF16, keys.data(), 4, slots.data(), &pages, &bad) ==
              SPARKFP4_CUDA_INVALID,
          "a slot past the pages");
  require(sparkfp4_cuda_mxfp4_quantize(context, SPARKFP4_CEIL, SPARKFP4_BF16, keys.data(), 1, 40, cache.data(),
                                       cache.data(), &bad) == SPARKFP4_CUDA_INVALID,
          "columns");
  DeviceBytes source(keys.size(), 0, keys.data());
  DeviceBytes of_slots = slots_on_device(slots);
  DeviceBytes image(cache.size(), 0, cache.data());
  pages.data = image.data();
  BadRows found;
  require(sparkfp4_cuda_enqueue_key_insert(&form, SPARKFP4_BF16, source.data(), 4,
                                           reinterpret_cast<const int64_t *>(of_slots.data()), &pages, found.data(),
                                           nullptr) == SPARKFP4_CUDA_OK,
          "enqueue");
  check(cudaDeviceSynchronize());
  sparkfp4_cuda_bad_rows rows = found.read();
  require(rows.slot == 1 && rows.encoded == -1 && rows.normalised == -1, "the first slot past the pages");
  require(image.read()[64 * 64 + 3 * 4] == 1, "the slot inside is written");
}

}  // namespace

void test_each_keys(sparkfp4_cuda_context *context) {
  Random random(11);
  for (sparkfp4_dtype dtype : kTypes) {
    check_quantize(context, dtype, 5, 160, false, random);
    check_insert(context, dtype, 37, 128, false, random);
    check_insert(context, dtype, 21, 96, false, random);
    check_query(context, dtype, 3, 5, 8, false, random);
    check_norm(context, dtype, 5, 1536, false, random);
    check_latents(context, dtype, 19, 0, random);
  }

  check_refusals(context);
}

void test_keys(sparkfp4_cuda_context *context) {
  Random random(12);
  check_all_bf16(context, random);
  for (int round = 0; round < 30; round++) {
    for (sparkfp4_dtype dtype : kTypes) {
      bool bad = random.below(6) == 0;
      int64_t rows = 1 + random.below(300);
      check_quantize(context, dtype, rows, 32 * (1 + random.below(9)), bad, random);
      check_insert(context, dtype, rows, 128, bad, random);
      check_insert(context, dtype, rows, 32 << random.below(6), bad, random);
      check_insert(context, dtype, rows, 32 * (1 + random.below(32)), bad, random);
      int64_t heads = 1 + random.below(40);
      check_query(context, dtype, 1 + random.below(20), heads, heads + random.below(3) * random.below(30), bad, random);
      check_norm(context, dtype, rows, 32 * (1 + random.below(60)), bad, random);
      check_latents(context, dtype, rows, bad ? 1 + static_cast<int>(random.below(3)) : 0, random);
    }
  }

  // More than a part, with bad rows in a later one.
  for (bool bad : {false, true}) {
    check_quantize(context, SPARKFP4_BF16, 4000, 7168, bad, random);
    check_insert(context, SPARKFP4_BF16, 300000, 128, bad, random);
    check_latents(context, SPARKFP4_F32, 20000, bad ? 3 : 0, random);
    check_query(context, SPARKFP4_F16, 8000, 32, 64, bad, random);
    check_norm(context, SPARKFP4_BF16, 20000, 1536, bad, random);
  }
}
