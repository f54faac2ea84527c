#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passages of Jane Austen's six novels (in the public domain) as token ids, to score a model on.

    novel_texts.py [--model FOLDER] [--texts 16] [--prompt-tokens 64] [--solution-tokens 1500]

Writes a line {"tag", "prompt": [ids], "solution": [ids]} for every passage to --output, for
growpage-eval, and prints that file. Passages begin with a chapter, are spread evenly over the
novels and do not overlap; the same flags give the same file. The novels come from the Debian and
Ubuntu package r-cran-janeaustenr, unpacked in the cache and not installed. Needs the package
tokenizers; examples/runtime/fetch_smollm2.sh makes an environment that has it, and the model:

    ~/.cache/growpage/venv/bin/python examples/eval/text/novel_texts.py
"""

import argparse
import json
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

try:
    from tokenizers import Tokenizer
except ImportError as missing:
    sys.exit(f"novel_texts.py: {missing}: run it in the environment of fetch_smollm2.sh")

PACKAGE = "r-cran-janeaustenr"
NOVELS = 6
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "growpage"


def refuse(message):
    sys.exit(f"novel_texts.py: {message}")


def unpacked_package():
    """The file with the R package's data."""
    folder = CACHE / PACKAGE
    data = folder / "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb"
    if not data.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Without the sandbox user, who may not write into the cache of root.
        download = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", PACKAGE]
        try:
            subprocess.run(download, cwd=folder, check=True)
            subprocess.run(["dpkg-deb", "-x", max(folder.glob("*.deb")), folder], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            refuse(f"{PACKAGE}: {error}. It needs apt, its package lists (apt-get update) and net")
    return data


def novels_of(data):
    """The lines of each novel.

    An R package keeps its data as objects one behind the other: the size when unpacked in four
    bytes, then zlib. In it is R's serialisation (manual "R Internals", section 1.8).
    """
    novels = []
    while data:
        unpack = zlib.decompressobj()
        novels.append(strings_of(unpack.decompress(data[4:])))
        data = unpack.unused_data
    if len(novels) != NOVELS:
        refuse(f"{PACKAGE}: has {len(novels)} novels; needed: {NOVELS}")
    return novels


def strings_of(data):
    """Of a vector of strings in R's serialisation, format XDR, version 3."""
    string_vector, string = 16, 9
    at = 2

    def integer():
        nonlocal at
        at += 4
        return int.from_bytes(data[at - 4 : at], "big", signed=True)

    def text():
        nonlocal at
        size = integer()
        at += size
        return data[at - size : at].decode("utf-8")

    def expect(kind):
        found = integer() & 0xFF  # the other bits say what follows
        if found != kind:
            refuse(f"{PACKAGE}: has an object of kind {found} where a novel needs {kind}")

    version = integer()
    if data[:2] != b"X\n" or version != 3:
        refuse(f"{PACKAGE}: R's serialisation {data[:1]}, version {version}; needed: X, 3")
    integer(), integer()  # the R that wrote it, the oldest that can read it
    text()  # the encoding, UTF-8
    expect(string_vector)
    strings = []
    for _ in range(integer()):
        expect(string)
        strings.append(text())
    return strings


def chapters_of(lines):
    """The chapters' texts, a paragraph a line, from the first heading on."""
    paragraphs = [" ".join(p.split("\n")) for p in re.split(r"\n{2,}", "\n".join(lines).strip())]
    starts = [i for i, p in enumerate(paragraphs) if re.match(r"chapter \w+\.?$", p, re.IGNORECASE)]
    ends = starts[1:] + [len(paragraphs)]
    return ["\n\n".join(paragraphs[start:end]) for start, end in zip(starts, ends)]


def passages(tokenizer, novels, count, size):
    """`count` lists of `size` token ids."""
    result = [None] * count
    for novel, chapters in enumerate(novels):
        tags = range(novel, count, len(novels))
        for i, tag in enumerate(tags):
            first, behind = (len(chapters) * k // len(tags) for k in (i, i + 1))
            ids = tokenizer.encode("\n\n".join(chapters[first:behind])).ids[:size]
            if len(ids) < size:
                refuse(f"--texts {count} of {size} tokens: the novels are too short for so many")
            result[tag] = ids
    return result


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=CACHE / "SmolLM2-135M-Instruct")
    parser.add_argument("--texts", type=int, default=16)
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--solution-tokens", type=int, default=1500)
    parser.add_argument("--output", type=Path, default=CACHE / "texts.jsonl")
    options = parser.parse_args()
    for name in ("texts", "prompt_tokens", "solution_tokens"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')}: {getattr(options, name)}; allowed: from 1")
    tokenizer_file = options.model / "tokenizer.json"
    if not tokenizer_file.exists():
        parser.error(f"--model: {options.model} has no tokenizer.json; see fetch_smollm2.sh")
    tokenizer = Tokenizer.from_file(str(tokenizer_file))

    novels = [chapters_of(lines) for lines in novels_of(unpacked_package().read_bytes())]
    prompt = options.prompt_tokens
    size = prompt + options.solution_tokens
    lines = [
        json.dumps({"tag": tag, "prompt": ids[:prompt], "solution": ids[prompt:]})
        for tag, ids in enumerate(passages(tokenizer, novels, options.texts, size))
    ]
    options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(options.output)


if __name__ == "__main__":
    main()
