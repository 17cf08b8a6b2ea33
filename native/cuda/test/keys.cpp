// Keys and queries, with norms and latents: both faces beside the CPU, in caches with bytes that belong to nobody.
#include "key_calls.h"

namespace {

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
