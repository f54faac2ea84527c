#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""growpage-run on text: the model's tokenizer in front of it and behind it.

    growpage_text.py --model FOLDER --prompt "Why is the sky blue?" --chat -- --policy growpage
    growpage_text.py --model FOLDER --file prompts.txt -- --max-new-tokens 200 --threads 2

What follows -- goes to growpage-run. Needs the package tokenizers, or with --chat transformers,
for the model's chat template.
"""
import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path


class PlainTokenizer:
    """The folder's tokenizer.json."""

    def __init__(self, folder):
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))

    def encode(self, text):
        return self._tokenizer.encode(text).ids

    def decode(self, tokens):
        return self._tokenizer.decode(tokens)


class ChatTokenizer:
    """A user's message in the model's chat template."""

    def __init__(self, folder):
        from transformers import AutoTokenizer

        self._tokenizer = AutoTokenizer.from_pretrained(folder)

    def encode(self, text):
        prompt = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False
        )
        return self._tokenizer.encode(prompt, add_special_tokens=False)

    def decode(self, tokens):
        return self._tokenizer.decode(tokens, skip_special_tokens=True)


def run(program, model, prompts, flags):
    """The generated token ids by tag, in the order of finishing."""
    command = [program, "--model", model, "--requests", "-", *flags]
    requests = "".join(
        json.dumps({"tag": tag, "prompt": prompt}) + "\n" for tag, prompt in enumerate(prompts)
    )
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write(requests)
        process.stdin.close()
        for line in process.stdout:
            answer = json.loads(line)
            yield answer["tag"], answer["tokens"]
    if process.returncode != 0:
        sys.exit(process.returncode)


def main():
    arguments = sys.argv[1:]
    flags = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, flags = arguments[:at], arguments[at + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True, help="Hugging Face folder")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt", action="append", help="may be repeated")
    source.add_argument("--file", help="one prompt a line")
    parser.add_argument("--chat", action="store_true", help="prompts are a user's messages")
    parser.add_argument("--program", default="growpage-run", help="growpage-run [the one in PATH]")
    options = parser.parse_args(arguments)
    if shutil.which(options.program) is None:
        parser.error(f"{options.program} is not there: build it, and name it with --program")

    prompts = options.prompt or Path(options.file).read_text(encoding="utf-8").splitlines()
    tokenizer = (ChatTokenizer if options.chat else PlainTokenizer)(options.model)
    encoded = [tokenizer.encode(prompt) for prompt in prompts]
    for tag, tokens in run(options.program, options.model, encoded, flags):
        print(f"{prompts[tag]}\n{tokenizer.decode(tokens)}\n", flush=True)


if __name__ == "__main__":
    main()
