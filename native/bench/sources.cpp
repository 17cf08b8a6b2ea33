// Elements a second of every source, by tier, and what they are of the bytes that memcpy moves in the same run.
#include <cmath>
#include <cstring>
#include <random>

#include "harness.h"

namespace {

constexpr int64_t kCols = 7168;
constexpr double kOutput = 0.5 + 1 / 16.0;  // bytes an element

struct Source {
  const char *name;
  sparkfp4_scheme scheme;
  double bytes;  // an element, with its share of a scale
  bool any_scale = false;
};

const Source kSources[] = {
    {"FP8 128x128, F32 scales", {SPARKFP4_E4M3, SPARKFP4_SCALE_F32, 128, 128}, 1},
    {"FP8 per channel, F32 scales", {SPARKFP4_E4M3, SPARKFP4_SCALE_F32, 1, 0}, 1},
    {"INT4 groups of 32, BF16 scales", {SPARKFP4_INT4, SPARKFP4_SCALE_BF16, 1, 32}, 0.5 + 2 / 32.0},
    {"INT4 groups of 32, 4096 BF16 scales", {SPARKFP4_INT4, SPARKFP4_SCALE_BF16, 1, 32}, 0.5 + 2 / 32.0, true},
    {"MXFP4, by amax", {SPARKFP4_E2M1, SPARKFP4_SCALE_E8M0, 1, 32}, 0.5 + 1 / 32.0},
};

// Random codes and scales; each source reads as many bytes of them as it has.
struct Data {
  std::vector<unsigned char> bf16;
  std::vector<unsigned char> codes;
  std::vector<float> f32_scales;
  std::vector<uint16_t> bf16_scales;
  std::vector<uint16_t> any_scales;
  std::vector<unsigned char> e8m0_scales;

  explicit Data(int64_t elements)
      : bf16(2 * elements), codes(elements), f32_scales(elements / 32), bf16_scales(elements / 32),
        any_scales(elements / 32), e8m0_scales(elements / 32) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 1);
    // Bytes whose E4M3 values are Gaussian to a few per cent, the largest at 448, and whose nibbles are all kinds.
    for (int64_t i = 0; i < elements; i++) {
      float w = normal(random);
      uint32_t bits;
      float scaled = std::fmin(std::fabs(w) * 110 * 0x1p-120f, 448 * 0x1p-120f);
      std::memcpy(&bits, &scaled, sizeof bits);
      codes[i] = static_cast<unsigned char>((bits >> 20 & 0x7f) | (w < 0 ? 0x80 : 0));
      std::memcpy(&bits, &w, sizeof bits);
      bf16[2 * i] = static_cast<unsigned char>(bits >> 16);
      bf16[2 * i + 1] = static_cast<unsigned char>(bits >> 24);
    }

    for (size_t i = 0; i < e8m0_scales.size(); i++) {
      f32_scales[i] = 1e-4f * (1 + (i % 7) / 8.0f);
      // As groups of tensors have them, some 400, and too many for any table.
      float scale = 0.01f * std::exp(0.4f * normal(random));
      uint32_t bits;
      std::memcpy(&bits, &scale, sizeof bits);
      bf16_scales[i] = static_cast<uint16_t>(bits >> 16);
      any_scales[i] = static_cast<uint16_t>(0x3000 + random() % 4096);
      e8m0_scales[i] = static_cast<unsigned char>(112 + i % 8);
    }
  }

  const void *scales(const Source &source) const {
    sparkfp4_scale_type type = source.scheme.scales;
    return source.any_scale              ? static_cast<const void *>(any_scales.data())
           : type == SPARKFP4_SCALE_F32  ? static_cast<const void *>(f32_scales.data())
           : type == SPARKFP4_SCALE_BF16 ? static_cast<const void *>(bf16_scales.data())
                                         : e8m0_scales.data();
  }
};

class Bench {
 public:
  Bench(const Data &data, int64_t rows)
      : data_(data), rows_(rows), elements_(rows * kCols), copy_(2 * elements_), packed_(elements_ / 2),
        scales_(elements_ / 16) {}

  void run(const char *title, int rounds) {
    works_.emplace_back("memcpy of 2 bytes an element", 4,
                        [this] { std::memcpy(copy_.data(), data_.bf16.data(), copy_.size()); });
    const char *names[] = {"scalar", "avx2", "avx512"};
    for (int t = SPARKFP4_SCALAR; t <= SPARKFP4_AVX512; t++) {
      sparkfp4_tier tier = static_cast<sparkfp4_tier>(t);
      if (is_measured(tier)) {
        add_bf16(tier, names[t]);
        for (const Source &source : kSources) {
          add_quantized(tier, names[t], source);
        }

        add_mxfp4(tier, names[t]);
      }
    }

    measure(works_, rounds, static_cast<int>(std::max<int64_t>(1, (4 << 20) / elements_)));
    double bound = works_[0].bytes_moved / works_[0].median();
    double best_bound = works_[0].bytes_moved / works_[0].best();
    std::printf("\n%s, %.1f million elements, [%ld, %ld]\n\n", title, elements_ / 1e6, static_cast<long>(rows_),
                static_cast<long>(kCols));
    std::printf("| work | bytes moved an element | 10^9 elements/s, median of %d | GB/s moved | of memcpy's | "
                "best of both |\n",
                rounds);
    std::printf("| --- | --- | --- | --- | --- | --- |\n");
    for (const Work &work : works_) {
      double rate = elements_ / kGiga / work.median();
      std::printf("| %s | %.3f | %.2f | %.1f | %.0f %% | %.0f %% |\n", work.name.c_str(), work.bytes_moved, rate,
                  rate * work.bytes_moved, 100 * work.bytes_moved / work.median() / bound,
                  100 * work.bytes_moved / work.best() / best_bound);
    }
  }

 private:
  void add_bf16(sparkfp4_tier tier, const std::string &name) {
    sparkfp4_segment all = {data_.bf16.data(), elements_};
    sparkfp4_segment rows = {data_.bf16.data(), rows_};
    float largest = 0;
    check(sparkfp4_amax(tier, SPARKFP4_BF16, &all, 1, &largest, &position_));
    works_.emplace_back(name + " BF16 amax", 2, [=] {
      float amax;
      check(sparkfp4_amax(tier, SPARKFP4_BF16, &all, 1, &amax, &position_));
    });
    for (bool with_sums : {false, true}) {
      works_.emplace_back(name + " BF16 encode" + (with_sums ? " + sums" : ""), 2 + kOutput, [=] {
        check(sparkfp4_encode(tier, SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, SPARKFP4_BF16, &rows, 1, kCols,
                              largest / 2688, packed_.data(),
                              scales_.data(), with_sums ? &sums_ : nullptr, &position_));
      });
    }
  }

  void add_quantized(sparkfp4_tier tier, const std::string &name, const Source &source) {
    const sparkfp4_scheme *scheme = &source.scheme;
    sparkfp4_quantized_segment segment = {data_.codes.data(), data_.scales(source), rows_};
    float largest = 0;
    check(sparkfp4_quantized_amax(tier, scheme, &segment, 1, kCols, &largest, &position_));
    std::string title = name + " " + source.name;
    works_.emplace_back(title + ", amax", source.bytes, [=] {
      float amax;
      check(sparkfp4_quantized_amax(tier, scheme, &segment, 1, kCols, &amax, &position_));
    });
    for (bool with_sums : {false, true}) {
      works_.emplace_back(title + (with_sums ? ", encode + sums" : ", encode"), source.bytes + kOutput, [=] {
        check(sparkfp4_quantized_encode(tier, SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, scheme, &segment, 1, kCols,
                                        largest / 2688,
                                        packed_.data(), scales_.data(), with_sums ? &sums_ : nullptr, &position_));
      });
    }

    works_.emplace_back(title + ", to bf16", source.bytes + 2, [=] {
      check(sparkfp4_dequantize_bf16(tier, scheme, &segment, kCols, copy_.data(), &position_));
    });
  }

  void add_mxfp4(sparkfp4_tier tier, const std::string &name) {
    sparkfp4_quantized_segment segment = {data_.codes.data(), data_.e8m0_scales.data(), rows_};
    double bytes = 0.5 + 1 / 32.0 + kOutput;
    for (bool with_sums : {false, true}) {
      works_.emplace_back(name + " MXFP4, cast" + (with_sums ? " + sums" : ""), bytes, [=] {
        int64_t requantized;
        check(sparkfp4_cast_mxfp4(tier, SPARKFP4_MODELOPT, &segment, 1, kCols, 119 - 127, packed_.data(),
                                  scales_.data(), with_sums ? &sums_ : nullptr, &requantized, &position_));
      });
    }
  }

  const Data &data_;
  int64_t rows_;
  int64_t elements_;
  std::vector<unsigned char> copy_;
  std::vector<unsigned char> packed_;
  std::vector<unsigned char> scales_;
  std::vector<Work> works_;
  sparkfp4_error_sums sums_;
  sparkfp4_position position_;
};

}  // namespace

void bench_sources(int rounds) {
  constexpr int64_t kLarge = 8192;
  Data data(kLarge * kCols);
  Bench(data, kLarge).run("From memory", rounds);
  Bench(data, 40).run("In the second-level cache", rounds);
}
