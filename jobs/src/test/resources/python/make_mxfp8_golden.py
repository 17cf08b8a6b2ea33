"""Writes the golden checkpoint minimax_m3_mxfp8, and what its routed experts become in NVFP4, into a folder.

The arithmetic is numpy's and the casts are those of ml_dtypes (E4M3 and E2M1, to nearest even): an opinion of MXFP8 and
of NVFP4 that shares nothing with the product. Weights are random; names, shapes and config.json are those of MiniMax-M3.
"""

import json
import pathlib
import sys

import ml_dtypes
import numpy
from safetensors import serialize_file

HIDDEN, WIDTH, DENSE, EXPERTS, VOCAB = 128, 96, 192, 3, 32
GROUP, BLOCK = 32, 16
random = numpy.random.default_rng(31)


def bf16(*shape):
    return (0.02 * random.standard_normal(shape)).astype(ml_dtypes.bfloat16)


def mxfp8(rows, cols, deviation):
    """Codes and a byte for 32 of them: the exponent that puts a group's largest value below 2^9, plus 127."""
    values = (deviation * random.standard_normal((rows, cols // GROUP, GROUP))).astype(numpy.float32)
    # a group of zeros, and one whose values are all small beside its scale, so that its codes are subnormal
    values[0, 0] = 0
    values[1, 1, 1:] *= numpy.float32(2.0**-12)
    largest = numpy.abs(values).max(axis=-1)
    exponents = numpy.where(largest == 0, -127, numpy.floor(numpy.log2(numpy.maximum(largest, 1e-30))) - 8)
    scaled = values / numpy.exp2(exponents)[..., None].astype(numpy.float32)
    codes = numpy.clip(scaled, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    return codes.reshape(rows, cols), (exponents + 127).astype(numpy.uint8)


def decode(codes, scales):
    factors = scales.view(ml_dtypes.float8_e8m0fnu).astype(numpy.float32)
    return codes.astype(numpy.float32) * numpy.repeat(factors, GROUP, axis=1)


def nvfp4(weights):
    """Packed codes and block scales of matrices that share a global scale, and that: binary32, one rounding each."""
    f32 = numpy.float32
    amax = max(numpy.abs(w).max() for w in weights)
    global_scale = f32(amax) / f32(2688)
    encoded = []
    for w in weights:
        blocks = w.reshape(w.shape[0], -1, BLOCK)
        ratio = numpy.abs(blocks).max(axis=-1) / (f32(6) * global_scale)
        ratio = numpy.where(ratio == 0, f32(1), ratio)
        scale = numpy.clip(ratio, f32(2.0**-9), f32(448)).astype(ml_dtypes.float8_e4m3fn)
        quotient = blocks / (scale.astype(f32) * global_scale)[..., None]
        codes = numpy.clip(numpy.abs(quotient), 0, 6).astype(ml_dtypes.float4_e2m1fn).view(numpy.uint8)
        codes = (codes | numpy.where(quotient < 0, 8, 0).astype(numpy.uint8)).reshape(w.shape)
        encoded.append((codes[:, 0::2] | codes[:, 1::2] << 4, scale))

    return encoded, global_scale


def entry(array):
    array = numpy.asarray(array, order="C")  # a scalar stays one
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": array.tobytes()}


def write(file, tensors):
    file.parent.mkdir(parents=True, exist_ok=True)
    serialize_file({name: entry(array) for name, array in tensors.items()}, str(file), {"format": "pt"})


def main(folder):
    # an expert's up, w3, is ten times its gate and lies in another shard, all its scales with it
    shards, expected = ({}, {}), {}
    model = "language_model.model."

    def matrix(module, rows, cols, deviation=0.02, shard=0, scale_shard=0):
        codes, scales = mxfp8(rows, cols, deviation)
        shards[shard][module + ".weight"] = codes
        shards[scale_shard][module + ".weight_scale_inv"] = scales
        return decode(codes, scales)

    shards[0][model + "embed_tokens.weight"] = bf16(VOCAB, HIDDEN)
    shards[0]["vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight"] = bf16(32, 32)
    shards[0]["patch_merge_mlp.linear_1.weight"] = bf16(32, 32)
    for layer in range(2):
        path = f"{model}layers.{layer}."
        shards[0][path + "input_layernorm.weight"] = bf16(HIDDEN)
        for name, rows in (("q", HIDDEN), ("k", 32), ("v", 32), ("o", HIDDEN)):
            matrix(path + f"self_attn.{name}_proj", rows, HIDDEN)

    for name, rows, cols in (("gate", DENSE, HIDDEN), ("up", DENSE, HIDDEN), ("down", HIDDEN, DENSE)):
        matrix(f"{model}layers.0.mlp.{name}_proj", rows, cols)

    layer = model + "layers.1."
    moe = layer + "block_sparse_moe."
    shards[0][layer + "self_attn.index_q_proj.weight"] = bf16(64, HIDDEN)
    shards[0][layer + "self_attn.index_k_proj.weight"] = bf16(32, HIDDEN)
    shards[0][moe + "gate.weight"] = bf16(EXPERTS, HIDDEN).astype(numpy.float32)
    shards[0][moe + "e_score_correction_bias"] = numpy.zeros(EXPERTS, numpy.float32)
    for name, rows, cols in (("gate", WIDTH, HIDDEN), ("up", WIDTH, HIDDEN), ("down", HIDDEN, WIDTH)):
        matrix(f"{moe}shared_experts.{name}_proj", rows, cols)

    for expert in range(EXPERTS):
        path = f"{moe}experts.{expert}."
        units = (
            (("w1", matrix(path + "w1", WIDTH, HIDDEN)), ("w3", matrix(path + "w3", WIDTH, HIDDEN, 0.2, 1, 0))),
            (("w2", matrix(path + "w2", HIDDEN, WIDTH, 0.02, 0, 1)),))
        for unit in units:
            encoded, global_scale = nvfp4([values for _, values in unit])
            for (name, _), (packed, scales) in zip(unit, encoded):
                expected[path + name + ".weight"] = packed
                expected[path + name + ".weight_scale"] = scales
                expected[path + name + ".weight_scale_2"] = numpy.array(global_scale, numpy.float32)

    shards[0][model + "norm.weight"] = bf16(HIDDEN)
    shards[0]["language_model.lm_head.weight"] = bf16(VOCAB, HIDDEN)
    source = folder / "minimax_m3_mxfp8"
    weight_map = {}
    for number, tensors in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        write(source / file, tensors)
        weight_map.update((name, file) for name in tensors)

    index = {"metadata": {}, "weight_map": dict(sorted(weight_map.items()))}
    (source / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    config = {
        "architectures": ["MiniMaxM3SparseForConditionalGeneration"],
        "model_type": "minimax_m3_vl",
        "text_config": {
            "architectures": ["MiniMaxM3SparseForCausalLM"],
            "model_type": "minimax_m2",
            "hidden_size": HIDDEN,
            "intermediate_size": WIDTH,
            "dense_intermediate_size": DENSE,
            "shared_intermediate_size": WIDTH,
            "num_local_experts": EXPERTS,
            "num_hidden_layers": 2,
            "moe_layer_freq": [0, 1],
            "num_mtp_modules": 7,
        },
        "quantization_config": {
            "quant_method": "mxfp8",
            "activation_scheme": "dynamic",
            "fmt": "e4m3",
            "weight_block_size": [1, GROUP],
            "ignored_layers": ["lm_head", "vision_tower", "patch_merge_mlp"],
        },
    }
    (source / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    write(folder / "minimax_m3_mxfp8.expected" / "modelopt_rtn.safetensors", expected)
    about = {
        "source": "F8_E4M3 with U8 weight_scale_inv for 32 columns, 2^(byte - 127), dequantised in fp32",
        "scheme": "NVFP4 rtn, gate (w1) and up (w3) share the global scale",
        "quantized": "block_sparse_moe.experts.*",
        "made by": "python/make_mxfp8_golden.py, numpy and ml_dtypes",
    }
    (folder / "minimax_m3_mxfp8.expected" / "README.json").write_text(json.dumps(about, indent=1) + "\n")


main(pathlib.Path(sys.argv[1]))
