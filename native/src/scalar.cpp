// The tier for every processor, and the vector tiers' refuge outside the range where their shortcuts are proved.
#include "search.h"
#include "to_bf16.h"

namespace sparkfp4 {
namespace {

template <typename Type>
uint32_t amax(const unsigned char *source, int64_t elements) {
  typename Type::Bits largest = 0;
  for (int64_t i = 0; i < elements; i++) {
    typename Type::Bits magnitude = load_bits<Type>(source, i) & Type::kMagnitude;
    largest = magnitude > largest ? magnitude : largest;
  }

  return largest;
}

template <typename Type>
void add_errors(const float *w, const uint32_t *indices, float d, int lane, ErrorLanes *sums) {
  float squares[kBlock];
  float errors[kBlock];
  for (int i = 0; i < kBlock; i++) {
    // The sign does not matter to the square.
    float magnitude = __builtin_fabsf(w[i]);
    float error = magnitude - e2m1_magnitude(indices[i]) * d;
    squares[i] = magnitude * magnitude;
    errors[i] = error * error;
  }

  sums->squares[lane] += sum_tree(squares);
  sums->errors[lane] += sum_tree(errors);
}

template <sparkfp4_recipe kRecipe, typename Type>
uint32_t encode(const EncodeTask &task) {
  uint32_t largest = 0;
  for (int64_t block = 0; block < task.blocks; block++) {
    const unsigned char *source = task.source + block * Type::kBlockBytes;
    float source_scale = Type::kCodes ? task.block_scales[block] : 1.0f;
    typename Type::Bits block_amax = 0;
    float w[kBlock];
    for (int i = 0; i < kBlock; i++) {
      typename Type::Bits bits = load_element<Type>(source, i, source_scale);
      typename Type::Bits magnitude = bits & Type::kMagnitude;
      block_amax = magnitude > block_amax ? magnitude : block_amax;
      w[i] = widen<Type>(bits);
    }

    largest = block_amax > largest ? block_amax : largest;
    float amax = widen<Type>(block_amax);
    float scale = task.search == SPARKFP4_RTN ? block_scale<kRecipe, Type>(amax, 6.0f, task.global_scale)
                                              : searched_scale<kRecipe, Type>(w, amax, task, block);
    float d = dequant_factor<kRecipe>(scale, task.global_scale);
    uint32_t indices[kBlock];
    uint32_t codes[kBlock];
    for (int i = 0; i < kBlock; i++) {
      // A true division: the product with 1 / d rounds twice and gives other codes now and then.
      float x = w[i] / d;
      indices[i] = e2m1_index(__builtin_fabsf(x));
      codes[i] = indices[i] + (x < 0 ? 8 : 0);
    }

    unsigned char *packed = task.packed + block * kPackedBlock;
    for (int i = 0; i < kPackedBlock; i++) {
      packed[i] = static_cast<unsigned char>(codes[2 * i] | codes[2 * i + 1] << 4);
    }

    task.scales[block] = e4m3_byte(scale);
    if (task.sums != nullptr) {
      add_errors<Type>(w, indices, d, static_cast<int>(block % kLanes), task.sums);
    }
  }

  return largest;
}

template <typename Type>
uint32_t code_amax(const unsigned char *source, const float *block_scales, int64_t blocks) {
  uint32_t largest = 0;
  for (int64_t block = 0; block < blocks; block++) {
    for (int i = 0; i < kBlock; i++) {
      uint32_t bits = load_element<Type>(source + block * Type::kBlockBytes, i, block_scales[block]);
      uint32_t magnitude = bits & Type::kMagnitude;
      largest = magnitude > largest ? magnitude : largest;
    }
  }

  return largest;
}

void squares(const unsigned char *codes, const unsigned char *scales, int64_t blocks, double *lanes) {
  for (int64_t block = 0; block < 2 * blocks; block++) {
    float terms[kBlock];
    float scale = bits_as<float>(static_cast<uint32_t>(scales[block / 2]) << 23);
    for (int i = 0; i < kBlock; i++) {
      float w = code_value<E2m1>(codes + block * kPackedBlock, i) * scale;
      terms[i] = w * w;
    }

    lanes[block % kLanes] += sum_tree(terms);
  }
}

}  // namespace

const Kernel kScalarKernel = {
    {amax<Bf16>, amax<F16>, amax<F32>},
    {{encode<SPARKFP4_MODELOPT, Bf16>, encode<SPARKFP4_MODELOPT, F16>, encode<SPARKFP4_MODELOPT, F32>,
      encode<SPARKFP4_MODELOPT, E4m3>, encode<SPARKFP4_MODELOPT, Int4>, encode<SPARKFP4_MODELOPT, E2m1>},
     {encode<SPARKFP4_COMPRESSED_TENSORS, Bf16>, encode<SPARKFP4_COMPRESSED_TENSORS, F16>,
      encode<SPARKFP4_COMPRESSED_TENSORS, F32>, encode<SPARKFP4_COMPRESSED_TENSORS, E4m3>,
      encode<SPARKFP4_COMPRESSED_TENSORS, Int4>, encode<SPARKFP4_COMPRESSED_TENSORS, E2m1>}},
    {code_amax<E4m3>, code_amax<Int4>, code_amax<E2m1>},
    {to_bf16<E4m3>, to_bf16<Int4>, to_bf16<E2m1>},
    squares};

}  // namespace sparkfp4
