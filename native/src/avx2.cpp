// The AVX2 tier.
#include "avx2_tables.h"
#include "strip.h"

namespace sparkfp4 {

const Kernel kAvx2Kernel = kernel_of<Avx2>();

}  // namespace sparkfp4
