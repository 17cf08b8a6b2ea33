// The AVX2 tier.
#define SPARKFP4_WIDTH 8
#include "key_rows.h"

namespace sparkfp4 {

const KeyKernel kAvx2Keys = key_kernel();

}  // namespace sparkfp4
