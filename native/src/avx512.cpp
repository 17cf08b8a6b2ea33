// The AVX-512 tier.
#include "avx512_tables.h"
#include "strip.h"

namespace sparkfp4 {

const Kernel kAvx512Kernel = kernel_of<Avx512>();

}  // namespace sparkfp4
