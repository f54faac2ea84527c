#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the tiny reasoner on records.py's problems and writes a Hugging Face folder.

    examples/runtime/train/train.py --output FOLDER        # needs torch and safetensors; no GPU

Seeded: the same machine, torch and thread count give the same weights. Texts get longer over the
first `--ramp` of the steps. Two things stand in for what large models learn from much more text:

- In every text some old tokens that belong to no record cannot be attended, from none to all of
  them. Large models forgive the loss of old scratch work; a model of this size, trained without,
  leans on any token that happens to be there.
- The entropy of attention to old tokens is part of the loss, so that a head with nothing to look
  for far back attends to one token there. Large models do that by themselves (attention sinks);
  small ones stay diffuse, for nothing speaks against it.
"""

import argparse
import pathlib
import random
import time

import records
import torch
from reasoner import Attention, Config, Reasoner
from torch.nn import functional as F

PROMPT = 5


class Batches:
    """Texts of similar length, about `tokens` a batch, harder as `progress` goes from 0 to 1."""

    def __init__(self, tokens: int, seed: int) -> None:
        self.tokens = tokens
        self.random = random.Random(seed)
        self.queue: list[list[records.Problem]] = []

    def next(self, progress: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Tokens, which of them are learnt, and which belong to a record or the prompt."""
        if not self.queue:
            self.refill(progress)
        problems = self.queue.pop()
        length = max(len(p.prompt) + len(p.solution) for p in problems)
        tokens = torch.full((len(problems), length), records.PAD)
        learnt = torch.zeros((len(problems), length), dtype=torch.bool)
        lasting = torch.ones((len(problems), length), dtype=torch.bool)
        for i, p in enumerate(problems):
            end = len(p.prompt) + len(p.solution)
            tokens[i, :end] = torch.tensor(p.prompt + p.solution)
            learnt[i, PROMPT:end] = True
            lasting[i, PROMPT:end] = torch.tensor(p.lasting)
        return tokens, learnt, lasting

    def refill(self, progress: float) -> None:
        hardest = max(2, round(10 * progress)), max(2, round(12 * progress))
        problems = [records.draw(self.random, (1, hardest[0]), (1, hardest[1])) for _ in range(400)]
        problems.sort(key=lambda p: len(p.solution))
        batch: list[records.Problem] = []
        for p in problems:
            if batch and (len(batch) + 1) * (len(p.prompt) + len(p.solution)) > self.tokens:
                self.queue.append(batch)
                batch = []
            batch.append(p)
        self.queue.append(batch)
        self.random.shuffle(self.queue)


def attended(lasting: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Causal mask [text, 1, token, token] that has lost a random share of a text's old tokens."""
    texts, length = lasting.shape
    share = torch.rand(texts, 1, generator=generator) * 1.3 - 0.15
    lost = (torch.rand(texts, length, generator=generator) < share) & ~lasting
    age = torch.arange(length)[:, None] - torch.arange(length)[None]
    return ((age >= 0) & ~((age >= Attention.recent) & lost[:, None]))[:, None]


def learning_rate(step: int, options: argparse.Namespace) -> float:
    warm_up = min(1.0, (step + 1) / 100)
    progress = step / options.steps
    return options.lr * warm_up * (1 if progress < 0.6 else max(0.01, (1 - progress) / 0.4))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--tokens", type=int, default=4096, help="of a step")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--ramp", type=float, default=0.5)
    parser.add_argument("--entropy", type=float, default=0.02, help="weight in the loss, per nat")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    generator = torch.Generator().manual_seed(options.seed)
    batches = Batches(options.tokens, options.seed)
    model = Reasoner(Config(vocab_size=records.VOCABULARY))
    count = sum(p.numel() for p in model.parameters())
    print(
        f"torch {torch.__version__}, {count} parameters,"
        f" {options.steps} steps of {options.tokens} tokens"
    )
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}],
        betas=(0.9, 0.98),
    )

    start, seen, loss_sum, right_sum = time.time(), 0, 0.0, 0.0
    for step in range(options.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, options)
        progress = min(1.0, 0.15 + step / options.steps / options.ramp)
        tokens, learnt, lasting = batches.next(progress)
        mask = attended(lasting[:, :-1], generator)
        logits, entropy = model(tokens[:, :-1], mask)
        logits = logits[learnt[:, 1:]]
        wanted = tokens[:, 1:][learnt[:, 1:]]
        loss = F.cross_entropy(logits, wanted)
        optimizer.zero_grad()
        (loss + options.entropy * entropy).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen += tokens.numel()
        loss_sum += loss.item()
        right_sum += (logits.argmax(-1) == wanted).float().mean().item()
        if (step + 1) % 100 == 0:
            seconds = time.time() - start
            print(
                f"step {step + 1} loss {loss_sum / 100:.4f} right {right_sum / 100:.4f}"
                f" entropy {entropy.item():.3f} tokens {seen} tokens/s {seen / seconds:.0f}"
                f" seconds {seconds:.0f}",
                flush=True,
            )
            loss_sum = right_sum = 0.0
            model.save(options.output)
    model.save(options.output)


if __name__ == "__main__":
    main()
