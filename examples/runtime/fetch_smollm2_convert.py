#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Llama model in GGUF as a Hugging Face folder: what fetch_smollm2.sh runs.

    fetch_smollm2_convert.py MODEL.gguf FOLDER

Writes config.json, model.safetensors (F16), tokenizer.json and tokenizer_config.json, and prints
FOLDER. A FOLDER that is there is left alone. Quantised weights are stored as the numbers that the
quantisation stands for. Needs gguf, numpy, safetensors and tokenizers.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy
from gguf import GGUFReader, dequantize
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

CONTROL_TOKEN = 3  # of tokenizer.ggml.token_type
LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OTHER_TENSORS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
# How text is cut before byte pairs are merged, by tokenizer.ggml.pre: every digit by itself, then
# GPT-2's words. Another cut would give other tokens without an error.
PRE_TOKENIZERS = {
    "smollm": lambda: [
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ]
}


def refuse(what, value, allowed):
    sys.exit(f"fetch_smollm2_convert.py: {what}: {value}; allowed: {allowed}")


class Metadata:
    """The fields of a GGUF file."""

    def __init__(self, reader):
        self._fields = reader.fields

    def __contains__(self, name):
        return name in self._fields

    def __getitem__(self, name):
        if name not in self._fields:
            refuse(name, "missing in the GGUF file", "present")
        return self._fields[name].contents()


def plain_float(value):
    """The shortest decimal of a 32-bit float: 1e-05, not 9.999999747378752e-06."""
    return float(str(numpy.float32(value)))


def config_of(metadata, tensors):
    """config.json, and checks that it says all that the model computes."""
    for name, allowed in {"general.architecture": "llama", "tokenizer.ggml.model": "gpt2"}.items():
        if metadata[name] != allowed:
            refuse(name, metadata[name], allowed)
    if "llama.rope.scaling.type" in metadata or "rope_freqs.weight" in tensors:
        refuse("rope scaling", "present", "none")
    heads = metadata["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float16",
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        "hidden_size": metadata["llama.embedding_length"],
        "intermediate_size": metadata["llama.feed_forward_length"],
        "num_hidden_layers": metadata["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": metadata["llama.attention.head_count_kv"],
        "head_dim": metadata["llama.embedding_length"] // heads,
        "max_position_embeddings": metadata["llama.context_length"],
        "rms_norm_eps": plain_float(metadata["llama.attention.layer_norm_rms_epsilon"]),
        "rope_theta": plain_float(metadata["llama.rope.freq_base"]),
        "tie_word_embeddings": "output.weight" not in tensors,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"],
        "eos_token_id": metadata["tokenizer.ggml.eos_token_id"],
    }


def expected_shapes(config):
    """The shape of every tensor of the folder, by name."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    queries = config["num_attention_heads"] * config["head_dim"]
    keys = config["num_key_value_heads"] * config["head_dim"]
    layer = {
        "input_layernorm": (hidden,),
        "self_attn.q_proj": (queries, hidden),
        "self_attn.k_proj": (keys, hidden),
        "self_attn.v_proj": (keys, hidden),
        "self_attn.o_proj": (hidden, queries),
        "post_attention_layernorm": (hidden,),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    shapes = {
        f"model.layers.{i}.{name}.weight": shape
        for i in range(config["num_hidden_layers"])
        for name, shape in layer.items()
    }
    shapes["model.embed_tokens.weight"] = (config["vocab_size"], hidden)
    shapes["model.norm.weight"] = (hidden,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], hidden)
    return shapes


def folder_name(name):
    """Of a GGUF tensor in the Hugging Face folder."""
    if name in OTHER_TENSORS:
        return OTHER_TENSORS[name]
    parts = name.split(".")  # blk.7.attn_q.weight
    if len(parts) != 4 or parts[0] != "blk" or parts[2] not in LAYER_TENSORS:
        refuse("tensor", name, "those of a Llama model without biases")
    return f"model.layers.{parts[1]}.{LAYER_TENSORS[parts[2]]}.{parts[3]}"


def halves_from_pairs(weight, heads):
    """The rows of each head in the order of Hugging Face's RoPE.

    llama.cpp rotates neighbours (2i, 2i+1) and its converter reorders the rows of q and k for
    that; Hugging Face rotates (i, i + head_dim/2).
    """
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def weights_of(tensors, config):
    weights = {}
    heads = {
        "q_proj": config["num_attention_heads"],
        "k_proj": config["num_key_value_heads"],
    }
    for tensor in tensors.values():
        name = folder_name(tensor.name)
        weight = dequantize(tensor.data, tensor.tensor_type)
        projection = name.split(".")[-2]
        if projection in heads:
            weight = halves_from_pairs(weight, heads[projection])
        half = numpy.ascontiguousarray(weight, dtype=numpy.float16)
        if not numpy.isfinite(half).all():
            refuse(f"tensor {tensor.name}", "not finite as F16", "numbers up to 65504")
        weights[name] = half
    shapes = expected_shapes(config)
    found = {name: weight.shape for name, weight in weights.items()}
    for name in sorted(shapes.keys() | found.keys()):
        if shapes.get(name) != found.get(name):
            refuse(f"shape of {name}", found.get(name, "missing"), shapes.get(name, "none"))
    return weights


def tokenizer_of(metadata):
    pre = metadata["tokenizer.ggml.pre"]
    if pre not in PRE_TOKENIZERS:
        refuse("tokenizer.ggml.pre", pre, ", ".join(PRE_TOKENIZERS))
    tokens = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(PRE_TOKENIZERS[pre]())
    tokenizer.decoder = decoders.ByteLevel()
    types = metadata["tokenizer.ggml.token_type"]
    special = [token for token, kind in zip(tokens, types) if kind == CONTROL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    text = "Text 1234 comes back as it was:\n\n  'it’s' – naïve, 東京, 🙂\t"
    ids = tokenizer.encode(text).ids
    if tokenizer.decode(ids) != text:
        refuse("tokenizer", f"made {tokenizer.decode(ids)!r} of {text!r}", "the text itself")
    return tokenizer


def tokenizer_config_of(metadata):
    tokens = metadata["tokenizer.ggml.tokens"]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[metadata["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[metadata["tokenizer.ggml.eos_token_id"]],
        "model_max_length": metadata["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "chat_template": metadata["tokenizer.chat_template"],
    }


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def convert(source, folder):
    reader = GGUFReader(source)
    metadata = Metadata(reader)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    config = config_of(metadata, tensors)
    weights = weights_of(tensors, config)
    # Under another name until it is whole, so that a run that was cut off leaves nothing to trust.
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    write_json(unfinished / "config.json", config)
    save_file(weights, unfinished / "model.safetensors", metadata={"format": "pt"})
    tokenizer_of(metadata).save(str(unfinished / "tokenizer.json"))
    write_json(unfinished / "tokenizer_config.json", tokenizer_config_of(metadata))
    unfinished.rename(folder)
    count = sum(weight.size for weight in weights.values())
    print(
        f"{metadata['general.name']}, licence {metadata['general.license']}: {len(weights)} "
        f"tensors, {count / 1e6:.1f} M parameters, {config['vocab_size']} tokens",
        file=sys.stderr,
    )


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, folder = sys.argv[1], Path(sys.argv[2])
    if folder.exists():
        print(f"{folder} is there already", file=sys.stderr)
    else:
        convert(source, folder)
    print(folder)


if __name__ == "__main__":
    main()
