// The encode of quantized sources, whose kernels are compiled apart.
#pragma once

#include "batch.h"

namespace sparkfp4::cuda {

cudaError_t launch_encode_codes(const Batch &batch, const Encode &encode, cudaStream_t stream);

// Of those encodes whose tiles are strips: takes_strips().
cudaError_t launch_encode_strips(const Batch &batch, const Encode &encode, cudaStream_t stream);

// Of those whose tiles are source blocks: takes_source_blocks().
cudaError_t launch_encode_mxfp4(const Batch &batch, const Encode &encode, cudaStream_t stream);

}  // namespace sparkfp4::cuda
