// The encode of BF16, F16 and F32 sources.
#include "encode.cuh"
#include "encode_codes.h"

namespace sparkfp4::cuda {

cudaError_t launch_encode(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  switch (encode.source.kind) {
    case SPARKFP4_BF16:
      return launch_encode_of<Bf16>(batch, encode, stream);
    case SPARKFP4_F16:
      return launch_encode_of<F16>(batch, encode, stream);
    case SPARKFP4_F32:
      return launch_encode_of<F32>(batch, encode, stream);
    default:
      return launch_encode_codes(batch, encode, stream);
  }
}

}  // namespace sparkfp4::cuda
