// The AVX2 tier.
#include "products.h"

namespace sparkfp4 {

const ProductFunction kAvx2Products = Products<32, 2>::add;

}  // namespace sparkfp4
