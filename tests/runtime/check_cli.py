# SPDX-License-Identifier: Apache-2.0
"""growpage-run and growpage_text.py from the outside: flags, files, exit codes, on a tiny model.

check_cli.py GROWPAGE_RUN
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from array import array
from pathlib import Path

HIDDEN, MID, VOCABULARY, HEADS, KV_HEADS, DIM = 32, 48, 61, 4, 2, 16


def write_model(folder):
    """A one-layer Llama."""
    config = {
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": MID,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": DIM,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 256,
        "tie_word_embeddings": True,
    }
    shapes = {
        "model.embed_tokens.weight": [VOCABULARY, HIDDEN],
        "model.norm.weight": [HIDDEN],
        "model.layers.0.input_layernorm.weight": [HIDDEN],
        "model.layers.0.post_attention_layernorm.weight": [HIDDEN],
        "model.layers.0.self_attn.q_proj.weight": [HEADS * DIM, HIDDEN],
        "model.layers.0.self_attn.k_proj.weight": [KV_HEADS * DIM, HIDDEN],
        "model.layers.0.self_attn.v_proj.weight": [KV_HEADS * DIM, HIDDEN],
        "model.layers.0.self_attn.o_proj.weight": [HIDDEN, HEADS * DIM],
        "model.layers.0.mlp.gate_proj.weight": [MID, HIDDEN],
        "model.layers.0.mlp.up_proj.weight": [MID, HIDDEN],
        "model.layers.0.mlp.down_proj.weight": [HIDDEN, MID],
    }
    numbers = random.Random(1)
    header, data = {}, b""
    for name, shape in shapes.items():
        size = shape[0] * (shape[1] if len(shape) > 1 else 1)
        part = array("f", [numbers.gauss(0, 0.3) for _ in range(size)]).tobytes()
        offsets = [len(data), len(data) + len(part)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
        data += part
    text = json.dumps(header).encode()
    folder.joinpath("config.json").write_text(json.dumps(config), encoding="utf-8")
    folder.joinpath("model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


TEXT_HELPER = Path(__file__).parents[2] / "examples" / "runtime" / "growpage_text.py"
# Stands for the package: a token is a letter.
TOKENIZERS = """
class Tokenizer:
    @classmethod
    def from_file(cls, path):
        assert open(path).read() == "letters"
        return cls()
    def encode(self, text):
        self.ids = [ord(letter) - ord("A") for letter in text]
        return self
    def decode(self, tokens):
        return "".join(chr(ord("A") + token) for token in tokens)
"""


def check_text(program, folder, expected):
    """The text helper gives the letters of the tokens that growpage-run gives."""
    folder.joinpath("tokenizer.json").write_text("letters", encoding="utf-8")
    folder.joinpath("tokenizers.py").write_text(TOKENIZERS, encoding="utf-8")
    command = [sys.executable, TEXT_HELPER, "--program", program, "--model", folder]
    flags = ["--max-new-tokens", "30", "--policy", "full", "--quiet"]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run(command + ["--prompt", "BCD", "--"] + flags, env=environment,
                          capture_output=True, text=True)
    letters = "".join(chr(ord("A") + token) for token in expected)
    assert done.returncode == 0 and done.stdout == f"BCD\n{letters}\n\n", done
    done = subprocess.run(command + ["--prompt", "B", "--", "--policy", "none"], env=environment,
                          capture_output=True, text=True)
    assert done.returncode == 2 and "--policy" in done.stderr + done.stdout, done


def main():
    program = sys.argv[1]

    def run(*flags, stdin=""):
        return subprocess.run([program, *flags], input=stdin, capture_output=True, text=True)

    def refused(expected, *flags, stdin=""):
        done = run(*flags, stdin=stdin)
        assert done.returncode == 2, (flags, done)
        assert expected in done.stderr + done.stdout, (expected, done)

    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        write_model(folder)
        model = ("--model", path)

        # Two prompts: greedy tokens are the argmax of the logits that were written.
        done = run(*model, "--prompt", "1,2,3", "--prompt", "9", "--max-new-tokens", "30",
                   "--policy", "full", "--page-size", "16", "--logits", path + "/logits")
        assert done.returncode == 0, done
        assert "2 requests" in done.stderr and "tokens/s" in done.stderr, done
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert sorted(answer["tag"] for answer in answers) == [0, 1]
        logits = array("f", folder.joinpath("logits").read_bytes())
        rows = [logits[i : i + VOCABULARY] for i in range(0, len(logits), VOCABULARY)]
        tokens = [token for answer in answers for token in answer["tokens"]]
        assert tokens == [row.index(max(row)) for row in rows] and len(rows) == 60

        # The same from a file to a file, on two threads, in bits.
        requests = '{"prompt": [9], "tag": 1}\n{"prompt": [1, 2, 3], "tag": 0}\n'
        folder.joinpath("requests").write_text(requests, encoding="utf-8")
        done = run(*model, "--requests", path + "/requests", "--output", path + "/out", "--quiet",
                   "--max-new-tokens", "30", "--policy", "full", "--threads", "2")
        assert done.returncode == 0 and done.stdout + done.stderr == "", done
        again = [json.loads(line) for line in folder.joinpath("out").read_text().splitlines()]
        key = lambda answer: answer["tag"]
        assert sorted(again, key=key) == sorted(answers, key=key)

        check_text(program, folder, next(a["tokens"] for a in answers if a["tag"] == 0))

        # Decisions: a fixed budget of 3 pages compacts whenever they are full.
        done = run(*model, "--requests", "-", "--policy", "fixed", "--budget", "48",
                   "--page-size", "16", "--decisions", path + "/log",
                   stdin='{"prompt": [1], "max_new_tokens": 99}')
        assert done.returncode == 0, done
        log = [json.loads(line) for line in folder.joinpath("log").read_text().splitlines()]
        assert log and {entry["decision"] for entry in log} == {"compact"}, log

        assert run("--help").returncode == 0
        refused("--prompt", *model)
        refused("--policy", *model, "--prompt", "1", "--policy", "none")
        refused("config.json", "--model", "/nonexistent", "--prompt", "1")
        refused("token ids", *model, "--prompt", "1,x")
        refused("request 0: ", *model, "--prompt", "61")
        refused("line 2", *model, "--requests", "-", stdin='{"prompt": [1]}\n{}\n')
        refused("/nonexistent", *model, "--requests", "/nonexistent")
        refused("output file", *model, "--prompt", "1", "--output", "/nonexistent/out")


if __name__ == "__main__":
    main()
