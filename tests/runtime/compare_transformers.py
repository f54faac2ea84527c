# SPDX-License-Identifier: Apache-2.0
"""growpage-run's logits against transformers', on random tiny models that transformers writes.

compare_transformers.py GROWPAGE_RUN; exit code 77 (skipped) where torch or transformers is missing.
"""
import json
import subprocess
import sys
import tempfile
from array import array
from pathlib import Path

try:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TOLERANCE = 1e-3
VOCABULARY = 211
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 112,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,  # far from uniform attention
    "bos_token_id": None,
    "eos_token_id": None,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def models():
    """(name, model) of every kind this runtime computes."""
    ropes = {"plain": None, "linear": {"rope_type": "linear", "factor": 2.0}, "llama3": LLAMA3_ROPE}
    for name, rope in ropes.items():
        yield f"llama, {name}", LlamaForCausalLM(LlamaConfig(**SIZES, rope_scaling=rope))
    for tied in (False, True):
        config = Qwen3Config(**SIZES, tie_word_embeddings=tied)
        yield f"qwen3, tied {tied}", Qwen3ForCausalLM(config)


def prompts():
    generator = torch.Generator().manual_seed(2)
    for length in (5, 70, 200):
        yield torch.randint(VOCABULARY, (length,), generator=generator).tolist()


def largest_difference(program, model, folder):
    """Of the logits of all output tokens of a batch."""
    model.save_pretrained(folder, safe_serialization=True)
    requests = "".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts())
    logits_file = Path(folder) / "logits"
    command = [program, "--model", folder, "--requests", "-", "--logits", logits_file]
    command += ["--policy", "full", "--page-size", "16", "--prefill-chunk", "33", "--quiet"]
    command += ["--max-new-tokens", "40", "--ignore-eos"]
    answers = subprocess.run(command, input=requests, capture_output=True, text=True, check=True)
    ours = array("f", logits_file.read_bytes())
    largest, at = 0.0, 0
    for line in answers.stdout.splitlines():
        answer = json.loads(line)
        prompt, tokens = list(prompts())[answer["tag"]], answer["tokens"]
        with torch.no_grad():
            theirs = model(torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1 : -1]
        size = theirs.numel()
        mine = torch.tensor(ours[at : at + size]).reshape(theirs.shape)
        largest = max(largest, (mine - theirs).abs().max().item())
        at += size
    assert at == len(ours) and at == 3 * 40 * VOCABULARY
    return largest


def main():
    good = True
    torch.manual_seed(1)
    for name, model in models():
        with tempfile.TemporaryDirectory() as folder:
            difference = largest_difference(sys.argv[1], model.eval().float(), folder)
        good = good and difference < TOLERANCE
        print(f"{name}: largest difference {difference:.2e}, allowed {TOLERANCE:.0e}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
