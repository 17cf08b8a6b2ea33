// Layouts, beside memcpy of the same bytes: of experts of a large model, arranged and restored.
#include "sparkfp4_layouts.h"

#include <cstring>
#include <memory>
#include <random>

#include "harness.h"

namespace {

constexpr int64_t kRows = 2048;
constexpr int64_t kCols = 7168;
constexpr const char *kTiers[] = {"scalar", "avx2", "avx512"};

// Memory that begins a page, as a job's does.
class Pages {
 public:
  explicit Pages(size_t bytes, unsigned char fill = 0)
      : data_(static_cast<unsigned char *>(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage))),
        size_(bytes) {
    std::memset(data_.get(), fill, bytes);
  }

  unsigned char *data() { return data_.get(); }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kPage = 4096;
  struct Free {
    void operator()(unsigned char *data) const { std::free(data); }
  };

  std::unique_ptr<unsigned char, Free> data_;
  size_t size_;
};

// Gate and up of some experts, one after another, and the same arranged.
class Experts {
 public:
  Experts(int64_t count, sparkfp4_row_order order, int64_t member_bytes, int64_t arranged_bytes)
      : count(count),
        shape{order, 2, kRows, kRows, kCols, kCols},
        member_bytes_(member_bytes),
        arranged_bytes_(arranged_bytes),
        members_(2 * count * member_bytes),
        arranged_(count * arranged_bytes) {
    std::mt19937 random(1);
    for (size_t i = 0; i < members_.size(); i++) {
      members_.data()[i] = static_cast<unsigned char>(random() % 127);
    }

    std::memcpy(arranged_.data(), members_.data(), std::min(members_.size(), arranged_.size()));
  }

  void *member(int64_t expert, int m) { return members_.data() + (2 * expert + m) * member_bytes_; }
  void *arranged(int64_t expert) { return arranged_.data() + expert * arranged_bytes_; }
  double bytes() const { return 2.0 * static_cast<double>(members_.size()); }
  void copy() { std::memcpy(arranged_.data(), members_.data(), members_.size()); }

  template <typename Run>
  std::function<void()> each(Run run) {
    return [this, run] {
      for (int64_t expert = 0; expert < count; expert++) {
        void *members[] = {member(expert, 0), member(expert, 1)};
        check(run(members, arranged(expert)));
      }
    };
  }

  const int64_t count;
  const sparkfp4_arrangement shape;

 private:
  int64_t member_bytes_;
  int64_t arranged_bytes_;
  Pages members_;
  Pages arranged_;
};

void print(const std::string &title, std::vector<Work> &works, int rounds) {
  measure(works, rounds, 1);
  std::printf("\n%s\n\n| work | GB/s read and written, median of %d | best | share of memcpy |\n", title.c_str(),
              rounds);
  std::printf("| --- | --- | --- | --- |\n");
  // A work's copy is the one above it.
  double copy = 0;
  for (const Work &work : works) {
    double rate = work.bytes_moved / kGiga / work.median();
    copy = work.name == "memcpy" ? rate : copy;
    std::printf("| %s | %.2f | %.2f | %.0f %% |\n", work.name.c_str(), rate, work.bytes_moved / kGiga / work.best(),
                100 * rate / copy);
  }
}

// Calls add(its name, the tier) for each.
template <typename Add>
void each_tier(Add add) {
  for (int i = SPARKFP4_SCALAR; i <= SPARKFP4_AVX512; i++) {
    auto tier = static_cast<sparkfp4_tier>(i);
    if (is_measured(tier)) {
      add(std::string(kTiers[i]), tier);
    }
  }
}

void codes(const std::string &name, sparkfp4_tier tier, int rounds) {
  const int64_t bytes = kRows * kCols / 2;
  Experts experts(4, SPARKFP4_INTERLEAVED_64, bytes, 2 * bytes);
  std::vector<Work> works;
  works.emplace_back("memcpy", experts.bytes(), [&] { experts.copy(); });
  static const char *const kNames[] = {"row-major", "blackwell-moe", "blackwell", "marlin"};
  for (int i = 0; i < 4; i++) {
    auto layout = static_cast<sparkfp4_code_layout>(i);
    works.emplace_back(std::string(kNames[i]) + ", arrange", experts.bytes(),
                       experts.each([&experts, tier, layout](void *const *members, void *arranged) {
                         return sparkfp4_arrange_codes(tier, layout, &experts.shape, members, arranged);
                       }));
    works.emplace_back(std::string(kNames[i]) + ", restore", experts.bytes(),
                       experts.each([&experts, tier, layout](void *const *members, void *arranged) {
                         return sparkfp4_restore_codes(tier, layout, &experts.shape, arranged, members);
                       }));
  }

  print(name + ". Codes, 4 experts of up and gate [2048, 7168] interleaved by 64 rows, 58.7 MB", works, rounds);
}

void scales(const std::string &name, sparkfp4_tier tier, int rounds) {
  const int64_t bytes = kRows * kCols / 16;
  Experts experts(32, SPARKFP4_INTERLEAVED_64, bytes, 2 * bytes);
  std::vector<Work> works;
  works.emplace_back("memcpy", experts.bytes(), [&] { experts.copy(); });
  static const char *const kNames[] = {"row-major", "atoms 128x4", "tiles 8x4",
                                       "blackwell", "marlin",      "marlin of vLLM"};
  for (int i = 0; i < 6; i++) {
    auto layout = static_cast<sparkfp4_scale_layout>(i);
    works.emplace_back(std::string(kNames[i]) + ", arrange", experts.bytes(),
                       experts.each([&experts, tier, layout](void *const *members, void *arranged) {
                         return sparkfp4_arrange_scales(tier, layout, &experts.shape, members, 1, arranged);
                       }));
    works.emplace_back(std::string(kNames[i]) + ", restore", experts.bytes(),
                       experts.each([&experts, tier, layout](void *const *members, void *arranged) {
                         return sparkfp4_restore_scales(tier, layout, &experts.shape, arranged, 1, members);
                       }));
  }

  print(name + ". Block scales, 32 experts of up and gate [2048, 448] interleaved by 64 rows, 58.7 MB", works, rounds);
}

void decode(const std::string &name, sparkfp4_tier tier, int rounds) {
  const int64_t rows = kRows;
  Pages codes(rows * kCols / 2, 0x35);
  Pages scales(rows * kCols / 16, 0x38);
  Pages out(rows * kCols * 4);
  Pages copy(out.size());
  sparkfp4_tensor tensor = {0, 1, rows, kCols, codes.data(), scales.data(), nullptr};
  std::vector<Work> works;
  for (sparkfp4_dtype dtype : {SPARKFP4_F32, SPARKFP4_BF16}) {
    size_t elements = static_cast<size_t>(rows * kCols);
    size_t moved = codes.size() + scales.size() + elements * (dtype == SPARKFP4_F32 ? 4 : 2);
    works.emplace_back("memcpy", moved, [&, moved] { std::memcpy(copy.data(), out.data(), moved / 2); });
    works.emplace_back(dtype == SPARKFP4_F32 ? "decode to F32" : "decode to BF16", moved,
                       [&, dtype] { check(sparkfp4_decode_tensor(tier, &tensor, dtype, out.data())); });
  }

  print(name + ". Decode, weights [2048, 7168] with scales in atoms", works, rounds);
}

}  // namespace

void bench_layouts(int rounds) {
  each_tier([&](const std::string &name, sparkfp4_tier tier) {
    codes(name, tier, rounds);
    scales(name, tier, rounds);
    decode(name, tier, rounds);
  });
}
