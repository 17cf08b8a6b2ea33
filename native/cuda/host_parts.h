// How a unit in host memory goes to the device: whole, or in parts where it finds no room.
#pragma once

#include "context.h"
#include "host_unit.h"

namespace sparkfp4::cuda {

// Runs the operation on all of the unit at once; SPARKFP4_CUDA_OUT_OF_MEMORY where the unit finds no room.
sparkfp4_cuda_status run_whole(sparkfp4_cuda_context *context, const HostUnit &unit, const Operation &operation,
                               const HostOutputs &outputs, int64_t importance_bytes, sparkfp4_cuda_outcome *outcome);

// Runs the operation with ever smaller parts until they find room.
sparkfp4_cuda_status run_parts(sparkfp4_cuda_context *context, const HostUnit &unit, const Operation &operation,
                               const HostOutputs &outputs, int64_t importance_bytes, sparkfp4_cuda_outcome *outcome);

}  // namespace sparkfp4::cuda
