// All functions of the C interface on random arguments, in buffers that end with their last byte: to be built with
// AddressSanitizer and UndefinedBehaviorSanitizer, which see the first byte that is touched beyond one. Every tier must
// give the scalar one's status, bytes, sums and position.
//
// usage: kernels [ROUNDS [SEED]]
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "sparkfp4.h"

namespace {

constexpr int kRounds = 5000;
constexpr sparkfp4_tier kTiers[] = {SPARKFP4_SCALAR, SPARKFP4_AVX2, SPARKFP4_AVX512};

// Bytes at an address of any alignment, with nothing that may be touched behind them.
class Exact {
 public:
  Exact(size_t bytes, size_t misalignment) : memory_(std::malloc(bytes + misalignment)), bytes_(bytes) {
    data_ = static_cast<unsigned char *>(memory_) + misalignment;
  }
  Exact(Exact &&other) noexcept : memory_(other.memory_), data_(other.data_), bytes_(other.bytes_) {
    other.memory_ = nullptr;
  }
  Exact(const Exact &) = delete;
  Exact &operator=(const Exact &) = delete;
  ~Exact() { std::free(memory_); }

  unsigned char *data() const { return data_; }
  size_t size() const { return bytes_; }
  bool operator!=(const Exact &other) const {
    return bytes_ != other.bytes_ || (bytes_ > 0 && std::memcmp(data_, other.data_, bytes_) != 0);
  }

 private:
  void *memory_;
  unsigned char *data_;
  size_t bytes_;
};

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}
  // 0 to below.
  int64_t below(int64_t limit) { return static_cast<int64_t>(bits_() % static_cast<uint64_t>(limit)); }
  bool once_in(int n) { return below(n) == 0; }
  Exact buffer(size_t bytes) { return Exact(bytes, static_cast<size_t>(below(16))); }

  // Any bits, of which `mask` takes away those that make an element infinite or NaN, most of the time.
  Exact source(size_t bytes, uint32_t mask) { return masked(bytes, once_in(8) ? ~0u : mask); }

  // Any bits that are in `keep`.
  Exact masked(size_t bytes, uint32_t keep) {
    Exact buffer = this->buffer(bytes);
    for (size_t i = 0; i < bytes; i++) {
      buffer.data()[i] = static_cast<unsigned char>(bits_()) & static_cast<unsigned char>(keep >> (8 * (i % 4)));
    }

    return buffer;
  }

 private:
  std::mt19937_64 bits_;
};

// What a call came to: all that it may have written.
struct Outcome {
  sparkfp4_status status = SPARKFP4_OK;
  Exact packed;
  Exact scales;
  std::vector<sparkfp4_error_sums> sums;
  sparkfp4_position position = {-1, -1, 0};
  int64_t number = 0;
  float amax = 0;

  Outcome(Random &random, size_t packed_bytes, size_t scales_bytes, size_t segments)
      : packed(random.buffer(packed_bytes)), scales(random.buffer(scales_bytes)), sums(segments) {
    std::memset(packed.data(), 0, packed_bytes);
    std::memset(scales.data(), 0, scales_bytes);
  }

  // Bits, for a value may be NaN.
  bool same(const Outcome &other) const {
    if (status != other.status) {
      return false;
    }

    if (status == SPARKFP4_NON_FINITE) {
      return position.segment == other.position.segment && position.index == other.position.index &&
             std::memcmp(&position.value, &other.position.value, sizeof position.value) == 0;
    }

    return !(packed != other.packed) && !(scales != other.scales) && number == other.number &&
           std::memcmp(&amax, &other.amax, sizeof amax) == 0 &&
           (sums.empty() || std::memcmp(sums.data(), other.sums.data(), sums.size() * sizeof sums[0]) == 0);
  }
};

// How scales are chosen, and what a weighted search weighs by: finite, and not negative where it stands for one column.
struct Search {
  sparkfp4_search kind;
  Exact memory;

  Search(Random &random, int64_t cols)
      : kind(random.once_in(20) ? SPARKFP4_WEIGHTED_HESSIAN : static_cast<sparkfp4_search>(random.below(4))),
        memory(random.masked(static_cast<size_t>(4 * values(cols)),
                             kind == SPARKFP4_WEIGHTED_HESSIAN ? 0xbfffffff : 0x3fffffff)) {
    if (kind == SPARKFP4_WEIGHTED_HESSIAN && !random.once_in(4)) {
      add_products(random, cols / 16);
    }
  }

  const float *importance() const { return values(1) == 0 ? nullptr : reinterpret_cast<const float *>(memory.data()); }

 private:
  // In place of any bits: sums of x xᵀ of a few random vectors, more or less alike in their channels, some of them zero.
  void add_products(Random &random, int64_t blocks) {
    for (int64_t block = 0; block < blocks; block++) {
      float h[256] = {};
      for (int64_t count = 1 + random.below(40); count > 0; count--) {
        float x[16];
        float common = static_cast<float>(random.below(2001) - 1000) / 500;
        for (int i = 0; i < 16; i++) {
          x[i] = i == block % 23 ? 0 : common + static_cast<float>(random.below(2001) - 1000) / 1000;
        }

        for (int i = 0; i < 256; i++) {
          h[i] += x[i / 16] * x[i % 16];
        }
      }

      std::memcpy(memory.data() + block * static_cast<int64_t>(sizeof h), h, sizeof h);
    }
  }

  int64_t values(int64_t cols) const {
    return kind == SPARKFP4_WEIGHTED_HESSIAN ? 16 * cols : kind == SPARKFP4_WEIGHTED ? cols : 0;
  }
};

[[noreturn]] void fail(const char *what, int round, sparkfp4_tier tier) {
  std::fprintf(stderr, "%s: tier %d differs from the scalar one in round %d\n", what, tier, round);
  std::exit(1);
}

// Runs a call on every tier of this processor.
template <typename Call>
void on_every_tier(const char *what, int round, const Call &call) {
  Outcome expected = call(SPARKFP4_SCALAR);
  for (sparkfp4_tier tier : kTiers) {
    if (sparkfp4_has_tier(tier) && !call(tier).same(expected)) {
      fail(what, round, tier);
    }
  }
}

constexpr uint32_t kFiniteMasks[] = {0xbfffbfff, 0xbfffbfff, 0xbfffffff};  // an exponent's bit is always 0

void plain(Random &random, int round) {
  auto dtype = static_cast<sparkfp4_dtype>(random.below(3));
  auto recipe = static_cast<sparkfp4_recipe>(random.below(2));
  int64_t cols = 16 * random.below(random.once_in(4) ? 80 : 9);
  int64_t element_bytes = dtype == SPARKFP4_F32 ? 4 : 2;
  std::vector<Exact> sources;
  std::vector<sparkfp4_segment> rows;
  std::vector<sparkfp4_segment> elements;
  int64_t total = 0;
  for (int64_t n = 1 + random.below(3); n > 0; n--) {
    int64_t count = random.below(7);
    sources.push_back(random.source(static_cast<size_t>(count * cols * element_bytes), kFiniteMasks[dtype]));
    rows.push_back({sources.back().data(), count});
    elements.push_back({sources.back().data(), count * cols});
    total += count * cols;
  }

  auto segments = static_cast<int64_t>(rows.size());
  on_every_tier("sparkfp4_amax", round, [&](sparkfp4_tier tier) {
    Outcome outcome(random, 0, 0, 0);
    outcome.status = sparkfp4_amax(tier, dtype, elements.data(), segments, &outcome.amax, &outcome.position);
    return outcome;
  });
  float mantissa = 1.0f + static_cast<float>(random.below(1024)) / 1024;
  float global_scale = std::ldexp(mantissa, static_cast<int>(random.below(120)) - 60);
  bool with_sums = random.once_in(2);
  Search search(random, cols);
  on_every_tier("sparkfp4_encode", round, [&](sparkfp4_tier tier) {
    Outcome outcome(random, static_cast<size_t>(total / 2), static_cast<size_t>(total / 16), rows.size());
    outcome.status = sparkfp4_encode(tier, recipe, search.kind, search.importance(), dtype, rows.data(), segments, cols,
                                     global_scale, outcome.packed.data(), outcome.scales.data(),
                                     with_sums ? outcome.sums.data() : nullptr, &outcome.position);
    return outcome;
  });
}

int64_t blocks(int64_t length, int64_t block) {
  return block == 0 ? (length > 0) : (length + block - 1) / block;
}

size_t code_bytes(sparkfp4_codes codes, int64_t rows, int64_t cols) {
  int64_t row = codes == SPARKFP4_E4M3 ? cols : codes == SPARKFP4_INT4 ? (cols + 7) / 8 * 4 : (cols + 1) / 2;
  return static_cast<size_t>(rows * row);
}

// Scales from 2^-4 to 2^4, as tensors have them, some of them with few bits.
void draw_near(Random &random, sparkfp4_scale_type type, const Exact &scales) {
  static const int kFractionBits[] = {23, 7, 10, 0};
  static const size_t kBytes[] = {4, 2, 2, 1};
  static const uint32_t kBias[] = {127, 127, 15, 127};
  for (size_t i = 0; i < scales.size(); i += kBytes[type]) {
    auto fraction = static_cast<uint32_t>(random.below(int64_t{1} << kFractionBits[type]));
    fraction = random.once_in(4) ? fraction & ((7u << kFractionBits[type]) >> 3) : fraction;
    uint32_t bits = (kBias[type] - 4 + static_cast<uint32_t>(random.below(8))) << kFractionBits[type] | fraction;
    std::memcpy(scales.data() + i, &bits, kBytes[type]);
  }
}

void stored(Random &random, int round) {
  sparkfp4_scheme scheme = {static_cast<sparkfp4_codes>(random.below(3)),
                            static_cast<sparkfp4_scale_type>(random.below(4)), random.below(4), 16 * random.below(5)};
  static const size_t kScaleBytes[] = {4, 2, 2, 1};
  static const uint32_t kScaleMasks[] = {0xbfffffff, 0xbfffbfff, 0xbfffbfff, 0x7f7f7f7f};
  int64_t cols = 16 * random.below(random.once_in(4) ? 40 : 9);
  // So many blocks a scale that they are encoded by tables.
  bool many = random.once_in(8);
  if (many) {
    scheme.block_rows = random.once_in(2) ? 0 : 32 + random.below(33);
    scheme.block_cols = random.once_in(2) ? 0 : 16 * (8 + random.below(4));
    cols = 16 * (8 + random.below(10));
  }

  bool near = random.once_in(2);
  uint32_t code_mask = scheme.codes == SPARKFP4_E4M3 ? 0xbfbfbfbf : ~0u;
  std::vector<Exact> memory;
  std::vector<sparkfp4_quantized_segment> segments;
  int64_t total = 0;
  for (int64_t n = 1 + random.below(3); n > 0; n--) {
    int64_t rows = many ? 32 + random.below(50) : random.below(7);
    size_t scales = static_cast<size_t>(blocks(rows, scheme.block_rows) * blocks(cols, scheme.block_cols));
    memory.push_back(random.source(code_bytes(scheme.codes, rows, cols), code_mask));
    memory.push_back(random.source(scales * kScaleBytes[scheme.scales], kScaleMasks[scheme.scales]));
    if (near) {
      draw_near(random, scheme.scales, memory.back());
    }

    segments.push_back({memory[memory.size() - 2].data(), memory.back().data(), rows});
    total += rows * cols;
  }

  auto count = static_cast<int64_t>(segments.size());
  auto recipe = static_cast<sparkfp4_recipe>(random.below(2));
  on_every_tier("sparkfp4_quantized_amax", round, [&](sparkfp4_tier tier) {
    Outcome outcome(random, 0, 0, 0);
    outcome.status = sparkfp4_quantized_amax(tier, &scheme, segments.data(), count, cols, &outcome.amax,
                                             &outcome.position);
    return outcome;
  });
  Search search(random, cols);
  on_every_tier("sparkfp4_quantized_encode", round, [&](sparkfp4_tier tier) {
    Outcome outcome(random, static_cast<size_t>(total / 2), static_cast<size_t>(total / 16), segments.size());
    outcome.status = sparkfp4_quantized_encode(tier, recipe, search.kind, search.importance(), &scheme,
                                               segments.data(), count, cols, 0.125f, outcome.packed.data(),
                                               outcome.scales.data(), outcome.sums.data(), &outcome.position);
    return outcome;
  });
}

// INT4 and MXFP4 of as many blocks as are looked up in tables: under few scales, so that they are found, or under more
// than there is room for; now and then one that no table is made for.
void looked_up(Random &random, int round) {
  bool int4 = random.once_in(2);
  sparkfp4_scheme scheme = {int4 ? SPARKFP4_INT4 : SPARKFP4_E2M1, int4 ? SPARKFP4_SCALE_BF16 : SPARKFP4_SCALE_E8M0, 1,
                            16 * (1 + random.below(4))};
  int64_t cols = 16 * (100 + random.below(150));
  int64_t rows = (int4 ? 1 << 19 : 1 << 17) / cols + 1 + random.below(8);
  Exact codes = random.source(static_cast<size_t>(rows * cols / 2), ~0u);
  int64_t count = rows * blocks(cols, scheme.block_cols);
  Exact scales = random.buffer(static_cast<size_t>(count * (int4 ? 2 : 1)));
  int64_t kinds = random.once_in(4) ? 0x4000 : random.once_in(2) ? 600 : 20;
  for (int64_t i = 0; i < count; i++) {
    bool odd = random.once_in(2000);
    if (int4) {
      int64_t bits = odd ? random.below(0xff80) & 0xff7f : 0x3a00 + random.below(kinds) % 0x2000;
      auto scale = static_cast<uint16_t>(bits);
      std::memcpy(scales.data() + 2 * i, &scale, sizeof scale);
    } else {
      scales.data()[i] = static_cast<unsigned char>(odd ? random.below(251) : 100 + random.below(kinds) % 60);
    }
  }

  sparkfp4_quantized_segment segment = {codes.data(), scales.data(), rows};
  auto recipe = static_cast<sparkfp4_recipe>(random.below(2));
  on_every_tier("sparkfp4_quantized_encode by tables", round, [&](sparkfp4_tier tier) {
    Outcome outcome(random, static_cast<size_t>(rows * cols / 2), static_cast<size_t>(rows * cols / 16), 1);
    outcome.status = sparkfp4_quantized_encode(tier, recipe, SPARKFP4_RTN, nullptr, &scheme, &segment, 1, cols, 0.01f,
                                               outcome.packed.data(), outcome.scales.data(),
                                               outcome.sums.data(), &outcome.position);
    return outcome;
  });
}

// Of any number of columns, unlike the encodes.
void to_bf16(Random &random, int round) {
  sparkfp4_scheme scheme = {static_cast<sparkfp4_codes>(random.below(3)), SPARKFP4_SCALE_F32, random.below(4),
                            16 * random.below(5)};
  int64_t cols = 1 + random.below(150);
  int64_t rows = random.below(7);
  Exact codes = random.source(code_bytes(scheme.codes, rows, cols), scheme.codes == SPARKFP4_E4M3 ? 0xbfbfbfbf : ~0u);
  Exact scales = random.source(
      static_cast<size_t>(4 * blocks(rows, scheme.block_rows) * blocks(cols, scheme.block_cols)), 0xbfffffff);
  sparkfp4_quantized_segment segment = {codes.data(), scales.data(), rows};
  on_every_tier("sparkfp4_dequantize_bf16", round, [&](sparkfp4_tier tier) {
    Outcome outcome(random, static_cast<size_t>(2 * rows * cols), 0, 0);
    outcome.status = sparkfp4_dequantize_bf16(tier, &scheme, &segment, cols, outcome.packed.data(), &outcome.position);
    return outcome;
  });
}

void mxfp4(Random &random, int round) {
  int64_t cols = 32 * random.below(random.once_in(4) ? 40 : 9);
  std::vector<Exact> memory;
  std::vector<sparkfp4_quantized_segment> segments;
  std::vector<sparkfp4_segment> scales;
  int64_t total = 0;
  for (int64_t n = 1 + random.below(3); n > 0; n--) {
    int64_t rows = random.below(7);
    memory.push_back(random.source(static_cast<size_t>(rows * cols / 2), ~0u));
    memory.push_back(random.source(static_cast<size_t>(rows * cols / 32), 0x7f7f7f7f));
    segments.push_back({memory[memory.size() - 2].data(), memory.back().data(), rows});
    scales.push_back({memory.back().data(), rows * cols / 32});
    total += rows * cols;
  }

  auto count = static_cast<int64_t>(segments.size());
  int32_t largest = 0;
  sparkfp4_position position = {};
  sparkfp4_status status = sparkfp4_largest_exponent(scales.data(), count, &largest, &position);
  int32_t kmax = status == SPARKFP4_OK && largest >= -118 ? largest : static_cast<int32_t>(random.below(243)) - 118;
  auto recipe = static_cast<sparkfp4_recipe>(random.below(2));
  on_every_tier("sparkfp4_cast_mxfp4", round, [&](sparkfp4_tier tier) {
    Outcome outcome(random, static_cast<size_t>(total / 2), static_cast<size_t>(total / 16), segments.size());
    outcome.status = sparkfp4_cast_mxfp4(tier, recipe, segments.data(), count, cols, kmax, outcome.packed.data(),
                                         outcome.scales.data(), outcome.sums.data(), &outcome.number,
                                         &outcome.position);
    if (outcome.status == SPARKFP4_INVALID) {
      // how far it came before it met a scale above 2^kmax is nobody's business
      return Outcome(random, 0, 0, 0);
    }

    return outcome;
  });
}

}  // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : kRounds;
  uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  Random random(seed);
  for (int round = 0; round < rounds; round++) {
    plain(random, round);
    stored(random, round);
    to_bf16(random, round);
    mxfp4(random, round);
    if (round % 100 == 0) {
      looked_up(random, round);
    }
  }

  std::printf("%d rounds of seed %" PRIu64 "\n", rounds, seed);
  return 0;
}
