// The layout kernels on random shapes, in buffers that end with their last byte, against the places that
// org.sparkfp4.formats gives each code and scale, one by one: to be built with AddressSanitizer and
// UndefinedBehaviorSanitizer.
//
// usage: layouts [ROUNDS [SEED]]
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "layout_places.h"
#include "sparkfp4_layouts.h"

namespace {

constexpr int kRounds = 2000;
constexpr sparkfp4_tier kTiers[] = {SPARKFP4_SCALAR, SPARKFP4_AVX2, SPARKFP4_AVX512};

// Bytes so far from the beginning of a line, with nothing that may be touched behind them.
class Exact {
 public:
  Exact(size_t bytes, size_t misalignment) : memory_(allocated(bytes + misalignment)), bytes_(bytes) {
    data_ = memory_.get() + misalignment;
    std::memset(data_, 0xa5, bytes);
  }
  unsigned char *data() const { return data_; }
  size_t size() const { return bytes_; }
  bool operator==(const Exact &other) const {
    return bytes_ == other.bytes_ && (bytes_ == 0 || std::memcmp(data_, other.data_, bytes_) == 0);
  }

 private:
  struct Free {
    void operator()(unsigned char *memory) const { std::free(memory); }
  };

  static unsigned char *allocated(size_t bytes) {
    void *memory = nullptr;
    if (posix_memalign(&memory, 64, bytes) != 0) {
      std::abort();
    }

    return static_cast<unsigned char *>(memory);
  }

  std::unique_ptr<unsigned char, Free> memory_;
  unsigned char *data_;
  size_t bytes_;
};

[[noreturn]] void fail(const char *what, int round, int layout, const sparkfp4_arrangement &shape) {
  std::fprintf(stderr,
               "FAILED: round %d, %s, layout %d, order %d, %" PRId64 " members of [%" PRId64 ", %" PRId64
               "] padded to [%" PRId64 ", %" PRId64 "]\n",
               round, what, layout, shape.order, shape.members, shape.rows, shape.k, shape.padded_rows, shape.padded_k);
  std::exit(1);
}

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}
  int64_t below(int64_t limit) { return static_cast<int64_t>(bits_() % static_cast<uint64_t>(limit)); }
  Exact empty(int64_t bytes) {
    return Exact(static_cast<size_t>(bytes), aligned_ ? 0 : static_cast<size_t>(below(16)));
  }
  Exact filled(int64_t bytes) {
    Exact buffer = empty(bytes);
    for (size_t i = 0; i < buffer.size(); i++) {
      buffer.data()[i] = static_cast<unsigned char>(bits_());
    }

    return buffer;
  }

  // Whether buffers begin with a line.
  void align(bool aligned) { aligned_ = aligned; }

 private:
  std::mt19937_64 bits_;
  bool aligned_ = false;
};

int64_t up_to(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

sparkfp4_arrangement random_shape(Random &random, int64_t tile_k) {
  static const int64_t kMultiples[] = {1, 1, 64, 32, 16};
  sparkfp4_arrangement shape = {};
  shape.order = static_cast<sparkfp4_row_order>(random.below(5));
  shape.members = shape.order == SPARKFP4_PLAIN ? 1 : 1 + random.below(3);
  shape.rows = random.below(random.below(4) == 0 ? 300 : 40);
  shape.padded_rows = up_to(shape.rows + (random.below(2) == 0 ? 0 : random.below(70)), kMultiples[shape.order]);
  shape.k = 16 * random.below(30);
  shape.padded_k = up_to(shape.k + (random.below(2) == 0 ? 0 : 16 * random.below(9)), tile_k);
  return shape;
}

// One of more than 1 MiB, the rows of which have row_bytes each.
sparkfp4_arrangement large_shape(Random &random, int64_t tile_k, int64_t row_bytes, int64_t k_of_byte) {
  sparkfp4_arrangement shape = random_shape(random, tile_k);
  shape.rows = (1 << 20) / (shape.members * row_bytes) + 1 + random.below(70);
  shape.padded_rows = up_to(shape.rows, 64);
  shape.k = row_bytes * k_of_byte;
  shape.padded_k = up_to(shape.k + (random.below(2) == 0 ? 0 : 16 * random.below(9)), tile_k);
  return shape;
}

struct Unit {
  std::vector<Exact> members;
  std::vector<const void *> sources;

  Unit(Random &random, const sparkfp4_arrangement &shape, int64_t bytes) {
    for (int64_t i = 0; i < shape.members; i++) {
      members.push_back(random.filled(bytes));
      sources.push_back(members.back().data());
    }
  }
};

// Takes the members out again by every tier.
template <typename Run>
void restored(Random &random, const Unit &unit, const Run &run) {
  std::vector<Exact> members;
  std::vector<void *> targets;
  for (const Exact &member : unit.members) {
    members.push_back(random.empty(static_cast<int64_t>(member.size())));
    targets.push_back(members.back().data());
  }

  run(targets.data(), members);
}

void codes(Random &random, int round, int layout, bool is_large) {
  bool blackwell = layout == SPARKFP4_CODES_BLACKWELL_MOE_N128_K64 || layout == SPARKFP4_CODES_BLACKWELL_N128_K64;
  int64_t tile_k = blackwell ? 64 : 16;
  sparkfp4_arrangement shape = is_large ? large_shape(random, tile_k, 64 * (1 + random.below(20)), 2)
                                        : random_shape(random, tile_k);
  int64_t rows = up_to(shape.members * shape.padded_rows, blackwell ? 128 : layout == SPARKFP4_CODES_MARLIN ? 64 : 1);
  auto kind = static_cast<sparkfp4_code_layout>(layout);
  if (sparkfp4_arranged_code_bytes(kind, &shape) != rows * shape.padded_k / 2) {
    fail("bytes", round, layout, shape);
  }

  Unit unit(random, shape, shape.rows * shape.k / 2);
  Exact expected = random.empty(rows * shape.padded_k / 2);
  std::memset(expected.data(), 0, expected.size());
  for (int64_t member = 0; member < shape.members; member++) {
    for (int64_t i = 0; i < shape.rows * shape.k; i++) {
      int code = unit.members[member].data()[i / 2] >> (4 * (i % 2)) & 0xf;
      int64_t place = nibble(layout, position(shape, member, i / shape.k), i % shape.k, rows, shape.padded_k);
      expected.data()[place / 2] |= static_cast<unsigned char>(code << (4 * (place % 2)));
    }
  }

  for (sparkfp4_tier tier : kTiers) {
    if (sparkfp4_has_tier(tier)) {
      Exact out = random.empty(static_cast<int64_t>(expected.size()));
      if (sparkfp4_arrange_codes(tier, kind, &shape, unit.sources.data(), out.data()) != SPARKFP4_OK ||
          !(out == expected)) {
        fail("arrange codes", round, layout, shape);
      }

      restored(random, unit, [&](void *const *targets, const std::vector<Exact> &members) {
        if (sparkfp4_restore_codes(tier, kind, &shape, expected.data(), targets) != SPARKFP4_OK ||
            !(members == unit.members)) {
          fail("restore codes", round, layout, shape);
        }
      });
    }
  }
}

void scales(Random &random, int round, int layout, bool is_large) {
  static const int64_t kTileRows[] = {1, 128, 8, 128, 64, 64};
  bool words = layout >= SPARKFP4_SCALES_ATOM_128X4 && layout <= SPARKFP4_SCALES_BLACKWELL_N128_K64;
  int64_t tile_k = layout == SPARKFP4_SCALES_BLACKWELL_N128_K64 ? 64 : 16;
  sparkfp4_arrangement shape = is_large ? large_shape(random, tile_k, 64 * (1 + random.below(8)), 16)
                                        : random_shape(random, tile_k);
  int64_t rows = up_to(shape.members * shape.padded_rows, kTileRows[layout]);
  int64_t columns = up_to(shape.padded_k / 16, words ? 4 : 1);
  auto kind = static_cast<sparkfp4_scale_layout>(layout);
  if (sparkfp4_arranged_scale_bytes(kind, &shape) != rows * columns) {
    fail("bytes", round, layout, shape);
  }

  int exponent = layout == SPARKFP4_SCALES_MARLIN_S0E5M3 ? static_cast<int>(random.below(18)) : 0;
  auto factor = static_cast<float>(1 << exponent);
  int64_t own_columns = shape.k / 16;
  Unit unit(random, shape, shape.rows * own_columns);
  Exact expected = random.empty(rows * columns);
  std::memset(expected.data(), 0, expected.size());
  for (int64_t member = 0; member < shape.members; member++) {
    for (int64_t i = 0; i < shape.rows * own_columns; i++) {
      int64_t place = scale_place(layout, position(shape, member, i / own_columns), i % own_columns, rows, columns);
      unsigned char &scale = unit.members[member].data()[i];
      bool encodes = layout == SPARKFP4_SCALES_MARLIN_S0E5M3;
      expected.data()[place] = encodes ? marlin_byte(scale, exponent) : scale;
    }
  }

  for (sparkfp4_tier tier : kTiers) {
    if (sparkfp4_has_tier(tier)) {
      Exact out = random.empty(static_cast<int64_t>(expected.size()));
      if (sparkfp4_arrange_scales(tier, kind, &shape, unit.sources.data(), factor, out.data()) != SPARKFP4_OK ||
          !(out == expected)) {
        fail("arrange scales", round, layout, shape);
      }

      restored(random, unit, [&](void *const *targets, const std::vector<Exact> &members) {
        if (sparkfp4_restore_scales(tier, kind, &shape, expected.data(), factor, targets) != SPARKFP4_OK) {
          fail("restore scales", round, layout, shape);
        }

        for (size_t m = 0; m < members.size(); m++) {
          for (size_t i = 0; i < members[m].size(); i++) {
            unsigned char scale = unit.members[m].data()[i];
            bool is_lost = layout == SPARKFP4_SCALES_MARLIN_S0E5M3 && marlin_byte(scale, exponent) == 0xff;
            if (members[m].data()[i] != (is_lost ? 0x7f : scale)) {
              fail("restore scales", round, layout, shape);
            }
          }
        }
      });
    }
  }
}

float e4m3(int scale) {
  int field = scale >> 3 & 15;
  int significand = field == 0 ? (scale & 7) * 2 : (8 + (scale & 7)) * (1 << field);
  float value = static_cast<float>(significand) / 1024;
  value = (scale & 0x7f) == 0x7f ? __builtin_nanf("") : value;
  return scale < 128 ? value : -value;
}

void decode(Random &random, int round, sparkfp4_dtype dtype, bool is_large) {
  static const float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  bool is_activation = random.below(2) == 0;
  int64_t experts = is_activation || is_large ? 1 : random.below(3);
  int64_t rows = is_large ? 1000 + random.below(200) : random.below(200);
  int64_t k = 64 * (is_large ? 5 + random.below(70) : random.below(5));
  int64_t expert_scales = is_activation ? rows * k / 16 : up_to(rows, 128) * k / 16;
  Exact codes = random.filled(experts * rows * k / 2);
  Exact scales = random.filled(experts * expert_scales);
  float global[3] = {0.3f, 1.7e-3f, static_cast<float>(random.below(1000)) * 1e35f};
  bool has_global = random.below(3) > 0;
  sparkfp4_tensor tensor = {is_activation, experts,       rows,
                            k,             codes.data(),  scales.data(),
                            has_global ? global : nullptr};
  size_t bytes = dtype == SPARKFP4_F32 ? 4 : 2;
  Exact expected = random.empty(experts * rows * k * static_cast<int64_t>(bytes));
  for (int64_t i = 0; i < experts * rows * k; i++) {
    int64_t expert = i / k / rows;
    int64_t row = i / k % rows;
    int64_t column = i % k / 16;
    int64_t atom = scale_place(SPARKFP4_SCALES_ATOM_128X4, row, column, 0, k / 16);
    int64_t place = is_activation ? row * (k / 16) + column / 4 * 4 + "\0\2\1\3"[column % 4]
                                  : expert * expert_scales + atom;
    int code = codes.data()[i / 2] >> (4 * (i % 2)) & 0xf;
    float d = e4m3(scales.data()[place]) * (has_global ? global[expert] : 1.0f);
    float value = (code < 8 ? kValues[code] : -kValues[code - 8]) * d;
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits = value != value ? 0x7fc00000 : bits;
    uint32_t half = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    std::memcpy(expected.data() + static_cast<size_t>(i) * bytes, dtype == SPARKFP4_F32 ? &bits : &half, bytes);
  }

  for (sparkfp4_tier tier : kTiers) {
    if (sparkfp4_has_tier(tier)) {
      Exact out = random.empty(static_cast<int64_t>(expected.size()));
      if (sparkfp4_decode_tensor(tier, &tensor, dtype, out.data()) != SPARKFP4_OK || !(out == expected)) {
        fail("decode", round, is_activation, {});
      }
    }
  }
}

void first_above(Random &random, int round) {
  Exact bytes = random.filled(random.below(10000));
  int32_t limit = static_cast<int32_t>(random.below(255));
  int64_t clean = random.below(static_cast<int64_t>(bytes.size()) + 1);
  for (int64_t i = 0; i < clean; i++) {
    bytes.data()[i] = static_cast<unsigned char>(bytes.data()[i] % (limit + 1));
  }

  int64_t expected = clean;
  while (expected < static_cast<int64_t>(bytes.size()) && bytes.data()[expected] <= limit) {
    expected++;
  }

  int64_t index;
  if (sparkfp4_first_above(bytes.data(), static_cast<int64_t>(bytes.size()), limit, &index) != SPARKFP4_OK ||
      index != (expected < static_cast<int64_t>(bytes.size()) ? expected : -1)) {
    fail("first above", round, limit, {});
  }
}

void refusals() {
  char byte[1024];
  const void *members[] = {byte, byte};
  sparkfp4_arrangement good = {SPARKFP4_INTERLEAVED_64, 2, 1, 64, 64, 64};
  auto refused = [&](sparkfp4_arrangement shape, sparkfp4_code_layout layout) {
    if (sparkfp4_arranged_code_bytes(layout, &shape) != -1 ||
        sparkfp4_arrange_codes(SPARKFP4_SCALAR, layout, &shape, members, byte) != SPARKFP4_INVALID) {
      fail("refusal", 0, layout, shape);
    }
  };
  auto changed = [&](int64_t sparkfp4_arrangement::*field, int64_t value) {
    sparkfp4_arrangement shape = good;
    shape.*field = value;
    return shape;
  };
  refused(changed(&sparkfp4_arrangement::padded_rows, 96), SPARKFP4_CODES_ROW_MAJOR);
  refused(changed(&sparkfp4_arrangement::padded_rows, 0), SPARKFP4_CODES_ROW_MAJOR);
  refused(changed(&sparkfp4_arrangement::rows, -1), SPARKFP4_CODES_ROW_MAJOR);
  refused(changed(&sparkfp4_arrangement::padded_k, 80), SPARKFP4_CODES_BLACKWELL_N128_K64);
  refused(changed(&sparkfp4_arrangement::padded_k, 48), SPARKFP4_CODES_ROW_MAJOR);
  refused(changed(&sparkfp4_arrangement::k, 8), SPARKFP4_CODES_ROW_MAJOR);
  refused(changed(&sparkfp4_arrangement::members, 9), SPARKFP4_CODES_ROW_MAJOR);
  refused(changed(&sparkfp4_arrangement::padded_rows, INT64_MAX / 64 * 64), SPARKFP4_CODES_ROW_MAJOR);
  refused(good, static_cast<sparkfp4_code_layout>(4));
  if (sparkfp4_arrange_scales(SPARKFP4_SCALAR, SPARKFP4_SCALES_MARLIN_S0E5M3, &good, members, 3, byte) !=
          SPARKFP4_INVALID ||
      sparkfp4_arrange_scales(SPARKFP4_SCALAR, SPARKFP4_SCALES_ATOM_128X4, &good, members, 2, byte) !=
          SPARKFP4_INVALID) {
    fail("refusal of a factor", 0, 0, good);
  }
}

}  // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : kRounds;
  uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  Random random(seed);
  refusals();
  for (int round = 0; round < rounds; round++) {
    codes(random, round, static_cast<int>(random.below(4)), false);
    scales(random, round, static_cast<int>(random.below(6)), false);
    decode(random, round, random.below(2) == 0 ? SPARKFP4_F32 : SPARKFP4_BF16, false);
    first_above(random, round);
  }

  // Large results go another way where their lines are whole.
  random.align(true);
  for (int layout = 0; layout < 6; layout++) {
    scales(random, rounds, layout, true);
    if (layout < 4) {
      codes(random, rounds, layout, true);
    }
  }

  decode(random, rounds, SPARKFP4_F32, true);
  decode(random, rounds, SPARKFP4_BF16, true);

  std::printf("%d rounds of seed %" PRIu64 "\n", rounds, seed);
  return 0;
}
