# SPDX-License-Identifier: Apache-2.0
"""growpage-run's logits against transformers', on random tiny models that transformers writes.

compare_transformers.py GROWPAGE_RUN [FOLDER...]: the models in FOLDERs too. Exit code 77 (skipped)
where torch or transformers is missing.
"""

import json
import subprocess
import sys
import tempfile
from array import array
from pathlib import Path

try:
    import torch
    from transformers import AutoModelForCausalLM
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TOLERANCE = 1e-3
NEW_TOKENS = 40
PROMPT_LENGTHS = (5, 70, 200)
SIZES = {
    "vocab_size": 211,
    "hidden_size": 96,
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


def tiny_models():
    """(name, model) of every kind this runtime computes."""
    ropes = {"plain": None, "linear": {"rope_type": "linear", "factor": 2.0}, "llama3": LLAMA3_ROPE}
    for name, rope in ropes.items():
        yield f"llama, {name}", LlamaForCausalLM(LlamaConfig(**SIZES, rope_scaling=rope))
    for tied in (False, True):
        config = Qwen3Config(**{**SIZES, "head_dim": 32}, tie_word_embeddings=tied)
        yield f"qwen3, tied {tied}", Qwen3ForCausalLM(config)


def random_prompts(vocabulary):
    generator = torch.Generator().manual_seed(2)
    return [
        torch.randint(vocabulary, (length,), generator=generator).tolist()
        for length in PROMPT_LENGTHS
    ]


def largest_difference(program, model, folder):
    """Of the logits of all output tokens of a batch; `folder` holds `model`."""
    prompts = random_prompts(model.config.vocab_size)
    requests = "".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts)
    with tempfile.NamedTemporaryFile() as logits_file:
        command = [program, "--model", folder, "--requests", "-", "--logits", logits_file.name]
        command += ["--policy", "full", "--page-size", "16", "--prefill-chunk", "33", "--quiet"]
        command += ["--max-new-tokens", str(NEW_TOKENS), "--ignore-eos", "--max-length", "512"]
        answers = subprocess.run(
            command, input=requests, stdout=subprocess.PIPE, text=True, check=True
        )
        ours = array("f", Path(logits_file.name).read_bytes())
    largest, at = 0.0, 0
    for line in answers.stdout.splitlines():
        answer = json.loads(line)
        prompt, tokens = prompts[answer["tag"]], answer["tokens"]
        with torch.no_grad():
            theirs = model(torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1 : -1]
        size = theirs.numel()
        mine = torch.tensor(ours[at : at + size]).reshape(theirs.shape)
        largest = max(largest, (mine - theirs).abs().max().item())
        at += size
    assert at == len(ours) == len(prompts) * NEW_TOKENS * model.config.vocab_size
    return largest


def compare(program, name, model, folder):
    """Whether they agree."""
    difference = largest_difference(program, model.eval().float(), folder)
    print(f"{name}: largest difference {difference:.2e}, allowed {TOLERANCE:.0e}", flush=True)
    return difference < TOLERANCE  # not so for NaN


def main():
    program, folders = sys.argv[1], sys.argv[2:]
    good = True
    torch.manual_seed(1)
    for name, model in tiny_models():
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            good = compare(program, name, model, folder) and good
    for folder in folders:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        good = compare(program, folder, model, folder) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
