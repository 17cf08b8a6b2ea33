"""Decodes the NVFP4 layers of a checkpoint and prints, for each, its name and the SHA-256 of its float32 bytes."""

import hashlib
import json
import pathlib
import sys

import ml_dtypes
import numpy
from safetensors import deserialize, safe_open

DTYPES = {"U8": numpy.uint8, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F32": numpy.float32}


def elements(packed):
    """E2M1 values of packed codes, the low half of a byte first."""
    codes = numpy.stack([packed & 15, packed >> 4], axis=-1).reshape(packed.shape[0], -1)
    return codes.view(ml_dtypes.float4_e2m1fn).astype(numpy.float32)


def decode(tensor, module, compressed_tensors):
    scales = tensor(module + ".weight_scale").astype(numpy.float32)
    if compressed_tensors:
        packed = tensor(module + ".weight_packed")
        factors = scales / tensor(module + ".weight_global_scale")
    else:
        packed = tensor(module + ".weight")
        factors = scales * tensor(module + ".weight_scale_2")

    assert packed.dtype == numpy.uint8 and factors.dtype == numpy.float32
    return elements(packed) * numpy.repeat(factors, 16, axis=1)


def main(folder):
    folder = pathlib.Path(folder)
    shards = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    files = {file: safe_open(folder / file, framework="numpy") for file in sorted(set(shards.values()))}
    for file, opened in files.items():
        assert opened.metadata() == {"format": "pt"}, file
        assert set(opened.keys()) == {name for name, shard in shards.items() if shard == file}, file

    # the library's own get_tensor looks for the 8-bit types in numpy, which has none
    tensors = {name: entry for file in files for name, entry in deserialize((folder / file).read_bytes())}

    def tensor(name):
        entry = tensors[name]
        return numpy.frombuffer(entry["data"], DTYPES[entry["dtype"]]).reshape(entry["shape"])

    suffix = ".weight_scale"
    for name in sorted(shards):
        if name.endswith(suffix):
            module = name[: -len(suffix)]
            values = decode(tensor, module, module + ".weight_packed" in shards)
            print(module, hashlib.sha256(values.astype("<f4").tobytes()).hexdigest())


main(sys.argv[1])
