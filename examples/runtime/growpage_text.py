#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""growpage-run on text: the model's tokenizer in front of it and behind it.

    growpage_text.py --model FOLDER --prompt "Why is the sky blue?" --chat -- --policy growpage
    growpage_text.py --model FOLDER --file prompts.txt -- --max-new-tokens 200 --threads 2

What follows -- goes to growpage-run. Needs the package tokenizers, and with --chat jinja2 for the
model's chat template; the environment that fetch_smollm2.sh makes has both.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

try:
    from tokenizers import Tokenizer
except ImportError as missing:
    sys.exit(f"growpage_text.py: {missing}: pip install tokenizers jinja2")


def text_of(path):
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"growpage_text.py: {path}: {getattr(error, 'strerror', None) or error}")


class PlainTokenizer:
    """The folder's tokenizer.json."""

    def __init__(self, folder):
        file = folder / "tokenizer.json"
        if not file.exists():
            sys.exit(f"growpage_text.py: --model: {folder}; allowed: a folder with {file.name}")
        self._tokenizer = Tokenizer.from_file(str(file))

    def encode(self, text):
        return self._tokenizer.encode(text).ids

    def decode(self, tokens):
        return self._tokenizer.decode(tokens)


class ChatTokenizer(PlainTokenizer):
    """A user's message in the model's chat template, which names the special tokens itself."""

    def __init__(self, folder):
        super().__init__(folder)
        try:
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError as missing:
            sys.exit(f"growpage_text.py: --chat: {missing}: pip install jinja2")
        config = json.loads(text_of(folder / "tokenizer_config.json"))
        template_file = folder / "chat_template.jinja"  # where newer folders keep it
        template = text_of(template_file) if template_file.exists() else config.get("chat_template")
        if not isinstance(template, str):
            sys.exit(f"growpage_text.py: --chat: {folder} has no chat template")
        # The settings that templates are written for.
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = self._refuse
        self._template = environment.from_string(template)
        # A special token is text, or an object with the text in it.
        tokens = {name: config.get(name) for name in ("bos_token", "eos_token")}
        self._special = {
            name: token.get("content") if isinstance(token, dict) else token
            for name, token in tokens.items()
        }

    @staticmethod
    def _refuse(message):
        sys.exit(f"growpage_text.py: chat template: {message}")

    def encode(self, text):
        messages = [{"role": "user", "content": text}]
        prompt = self._template.render(
            messages=messages, add_generation_prompt=True, **self._special
        )
        return self._tokenizer.encode(prompt, add_special_tokens=False).ids


def run(program, model, prompts, flags):
    """The generated token ids by tag, in the order of finishing."""
    command = [program, "--model", str(model), "--requests", "-", *flags]
    requests = "".join(
        json.dumps({"tag": tag, "prompt": prompt}) + "\n" for tag, prompt in enumerate(prompts)
    )
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            process.stdin.write(requests)
            process.stdin.close()
        except BrokenPipeError:
            pass  # it ended before reading, and has said why
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
    parser.add_argument("--model", required=True, type=Path, help="Hugging Face folder")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt", action="append", help="may be repeated")
    source.add_argument("--file", type=Path, help="one prompt a line")
    parser.add_argument("--chat", action="store_true", help="prompts are a user's messages")
    parser.add_argument("--program", default="growpage-run", help="growpage-run [the one in PATH]")
    options = parser.parse_args(arguments)
    if shutil.which(options.program) is None:
        parser.error(f"{options.program} is not there: build it, and name it with --program")

    prompts = options.prompt or text_of(options.file).splitlines()
    prompts = [prompt for prompt in prompts if prompt.strip()]
    if not prompts:
        parser.error("all prompts are empty: at least one word is needed")
    tokenizer = (ChatTokenizer if options.chat else PlainTokenizer)(options.model)
    encoded = [tokenizer.encode(prompt) for prompt in prompts]
    for tag, tokens in run(options.program, options.model, encoded, flags):
        print(f"{prompts[tag]}\n{tokenizer.decode(tokens)}\n", flush=True)


if __name__ == "__main__":
    main()
