// The portable tier: the compiler's vectors of four lanes, which every processor has in some form.
#define SPARKFP4_WIDTH 4
#include "key_rows.h"

namespace sparkfp4 {

const KeyKernel kScalarKeys = key_kernel();

}  // namespace sparkfp4
