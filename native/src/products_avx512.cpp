// The AVX-512 tier.
#include "products.h"

namespace sparkfp4 {

const ProductFunction kAvx512Products = Products<64, 4>::add;

}  // namespace sparkfp4
