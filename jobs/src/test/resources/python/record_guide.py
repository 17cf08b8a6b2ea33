"""Runs the scripts of jobs/RECORDING.md for real, on small models: record_guide.py FOLDER

The activations are those of the golden checkpoint qwen3_moe_bf16 with two experts a token, the keys those of a DeepSeek
V3.2 of random weights. Beside them goes the digest of the scripts, so that a test sees which of them made the files.
It takes torch, transformers and safetensors, and what it made is committed as src/test/resources/recording.
"""
import hashlib
import re
import sys
import types
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, DeepseekV32Config, DeepseekV32ForCausalLM

here = Path(__file__).resolve()
guide = (here.parents[4] / "RECORDING.md").read_text(encoding="utf-8")
scripts = re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL)
folder = Path(sys.argv[1])


def module(name, script):
    made = types.ModuleType(name)
    exec(compile(script, name, "exec"), made.__dict__)
    return made


record, record_keys = module("record", scripts[0]), module("record_keys", scripts[1])
torch.manual_seed(1)
golden = here.parents[1] / "golden" / "qwen3_moe_bf16"
model = AutoModelForCausalLM.from_pretrained(golden, dtype="auto", num_experts_per_tok=2).eval()
recorder = record.Recorder(model, folder / "activations")
with torch.no_grad():
    for tokens in (20, 12):
        model(input_ids=torch.randint(0, 64, (1, tokens)))
        recorder.write()

config = DeepseekV32Config(
    vocab_size=64, hidden_size=64, intermediate_size=64, moe_intermediate_size=32, num_hidden_layers=2,
    num_attention_heads=2, num_key_value_heads=2, n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1,
    first_k_dense_replace=1, q_lora_rank=32, kv_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16,
    index_n_heads=2, index_head_dim=32, index_topk=16)
indexed = DeepseekV32ForCausalLM(config).to(torch.bfloat16).eval()
record_keys.record_keys(indexed, torch.randint(0, 64, (1, 70)), folder / "keys")
(folder / "scripts.sha256").write_text(hashlib.sha256("".join(scripts).encode()).hexdigest() + "\n")
