# SPDX-License-Identifier: Apache-2.0
"""The tiny reasoner: Qwen3's architecture at 0.75 M parameters, saved as Hugging Face does."""

import dataclasses
import json
import math
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass
class Config:
    vocab_size: int
    hidden_size: int = 128
    intermediate_size: int = 384
    num_hidden_layers: int = 3
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    max_position_embeddings: int = 1024
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = True
    model_type: str = "qwen3"
    hidden_act: str = "silu"
    attention_bias: bool = False
    bos_token_id: int = 1
    eos_token_id: int = 2
    torch_dtype: str = "float16"
    architectures: list[str] = dataclasses.field(default_factory=lambda: ["Qwen3ForCausalLM"])


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float, weight: float = 1.0) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.full((size,), weight))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class Attention(nn.Module):
    # Logits of up to √d · w² can be sharp from the start; with w = 1 they are learned late.
    norm_weight = 1.5
    recent = 16

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.c = c
        self.q_proj = nn.Linear(c.hidden_size, c.num_attention_heads * c.head_dim, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, c.num_key_value_heads * c.head_dim, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, c.num_key_value_heads * c.head_dim, bias=False)
        self.o_proj = nn.Linear(c.num_attention_heads * c.head_dim, c.hidden_size, bias=False)
        self.q_norm = RMSNorm(c.head_dim, c.rms_norm_eps, self.norm_weight)
        self.k_norm = RMSNorm(c.head_dim, c.rms_norm_eps, self.norm_weight)

    def forward(self, x, cos, sin, mask):
        batch, tokens, _ = x.shape
        heads = lambda y: y.view(batch, tokens, -1, self.c.head_dim)  # noqa: E731
        q = rotate(self.q_norm(heads(self.q_proj(x))).transpose(1, 2), cos, sin)
        k = rotate(self.k_norm(heads(self.k_proj(x))).transpose(1, 2), cos, sin)
        v = heads(self.v_proj(x)).transpose(1, 2)
        group = self.c.num_attention_heads // self.c.num_key_value_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        logits = q @ k.transpose(-1, -2) / math.sqrt(self.c.head_dim)
        weights = logits.masked_fill(~mask, -1e4).softmax(-1)
        entropy = self.entropy_of_old(logits, mask)
        out = (weights @ v).transpose(1, 2).reshape(batch, tokens, -1)
        return self.o_proj(out), entropy

    def entropy_of_old(self, logits, mask):
        """Mean entropy of attention over the tokens before the last `recent` ones, renormalised."""
        age = torch.arange(logits.shape[-1])
        old = mask & (age[:, None] - age[None] >= self.recent)
        log_weights = logits.masked_fill(~old, -1e4).log_softmax(-1)
        return -(log_weights.exp() * log_weights).sum(-1)[..., self.recent :].mean()


class MLP(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.up_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.down_proj = nn.Linear(c.intermediate_size, c.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.mlp = MLP(c)

    def forward(self, x, cos, sin, mask):
        attended, entropy = self.self_attn(self.input_layernorm(x), cos, sin, mask)
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x)), entropy


class Reasoner(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.c = c
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.num_hidden_layers))
        self.norm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        nn.init.normal_(self.embed_tokens.weight, std=0.05)
        for name, weight in self.named_parameters():
            if name.endswith("proj.weight"):
                into_residual = "o_proj" in name or "down_proj" in name
                depth = math.sqrt(2 * c.num_hidden_layers) if into_residual else 1
                nn.init.normal_(weight, std=0.5 / math.sqrt(weight.shape[1]) / depth)
        frequency = c.rope_theta ** (-torch.arange(0, c.head_dim, 2) / c.head_dim)
        angle = torch.arange(c.max_position_embeddings)[:, None] * frequency[None]
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(
        self, tokens: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [text, token, vocabulary] and the mean entropy of attention in nats; mask
        [text, 1, token, token], True = attended."""
        count = tokens.shape[1]
        x = self.embed_tokens(tokens)
        entropy = torch.zeros(())
        for layer in self.layers:
            x, of_layer = layer(x, self.cos[:count], self.sin[:count], mask)
            entropy = entropy + of_layer / len(self.layers)
        return F.linear(self.norm(x), self.embed_tokens.weight), entropy

    def save(self, folder: pathlib.Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {
            f"model.{k}": v.detach().half().contiguous() for k, v in self.state_dict().items()
        }
        save_file(tensors, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(dataclasses.asdict(self.c), indent=1) + "\n")
