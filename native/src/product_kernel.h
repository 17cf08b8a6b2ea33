// The interface of the products of an instruction set.
#pragma once

#include "sparkfp4_products.h"

namespace sparkfp4 {

// c += a b, of shapes that go together.
using ProductFunction = void (*)(const sparkfp4_matrix &a, const sparkfp4_matrix &b, const sparkfp4_matrix &c);

extern const ProductFunction kScalarProducts;
#ifdef SPARKFP4_X86
extern const ProductFunction kAvx2Products;
extern const ProductFunction kAvx512Products;
#endif

}  // namespace sparkfp4
