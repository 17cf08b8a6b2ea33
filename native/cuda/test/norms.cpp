// Norms, and latents with their entries of a cache.
#include "key_calls.h"

namespace {

constexpr int64_t kEntryBytes = 656;

}  // namespace

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
