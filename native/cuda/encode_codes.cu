// The encode of quantized sources.
#include "encode_codes.h"

#include "encode.cuh"

namespace sparkfp4::cuda {

cudaError_t launch_encode_codes(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  if (takes_strips(encode)) {
    return launch_encode_strips(batch, encode, stream);
  }

  if (takes_source_blocks(encode)) {
    return launch_encode_mxfp4(batch, encode, stream);
  }

  switch (encode.source.kind) {
    case E4m3::kSource:
      return launch_encode_of<E4m3>(batch, encode, stream);
    case Int4::kSource:
      return launch_encode_of<Int4>(batch, encode, stream);
    default:
      return launch_encode_of<E2m1>(batch, encode, stream);
  }
}

}  // namespace sparkfp4::cuda
