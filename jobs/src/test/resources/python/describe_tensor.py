"""Prints dtype, shape and finiteness of a tensor: describe_tensor.py FILE TENSOR"""

import sys

import numpy
from safetensors import safe_open

with safe_open(sys.argv[1], framework="numpy") as file:
    tensor = file.get_tensor(sys.argv[2])

print(tensor.dtype, tensor.shape, "finite" if numpy.isfinite(tensor).all() else "not finite")
