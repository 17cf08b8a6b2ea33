// The AVX-512 tier.
#define SPARKFP4_WIDTH 16
#include "key_rows.h"

namespace sparkfp4 {

const KeyKernel kAvx512Keys = key_kernel();

}  // namespace sparkfp4
