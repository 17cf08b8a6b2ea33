// The tier for every processor, in vectors of two, which all of them have.
#include "products.h"

namespace sparkfp4 {

const ProductFunction kScalarProducts = Products<16, 2>::add;

}  // namespace sparkfp4
