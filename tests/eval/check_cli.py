# SPDX-License-Identifier: Apache-2.0
"""growpage-eval from the outside: parts, files, claims, exit codes, on a tiny random model.

check_cli.py GROWPAGE_EVAL
"""
import importlib.util
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path


def model_writer():
    """The tiny model of growpage-run's own check."""
    path = Path(__file__).parents[1] / "runtime" / "check_cli.py"
    spec = importlib.util.spec_from_file_location("runtime_check_cli", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_problems(path, vocabulary):
    numbers = random.Random(2)
    with open(path, "w", encoding="utf-8") as file:
        for tag in range(4):
            solution = [numbers.randrange(vocabulary) for _ in range(70 + 20 * tag)]
            problem = {
                "tag": tag,
                "prompt": [1, 2 + tag],
                "solution": solution,
                "answer": solution[-3:-1],
                "answer_marker": solution[-4],
            }
            file.write(json.dumps(problem) + "\n")


def main():
    program = sys.argv[1]

    def run(*arguments, code=0):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True,
                              check=False)
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writer = model_writer()
        writer.write_model(folder)
        write_problems(folder / "problems.jsonl", writer.VOCABULARY)
        small = ("--quick", "--initial-pages", 2, "--budgets", "3,4", "--resamples", 20)

        results = folder / "results.json"
        done = run("--model", folder, "--part", "table", *small, "--output", results, "--check")
        assert "| growpage |" in done.stdout and "FAILED" not in done.stdout, done.stdout
        table = json.loads(results.read_text())["table"]
        names = [row["name"] for row in table["rows"]]
        assert names[:9] == ["full", "fixed 3", "fixed 4", "zipage 3", "zipage 4", "growpage",
                             "random", "inverse", "shrink"], names

        # Repeats, on any number of threads; only the time differs.
        again = folder / "again.json"
        run("--model", folder, "--part", "table", *small, "--threads", 3, "--output", again)
        rows = json.loads(again.read_text())["table"]["rows"]
        for one, other in zip(table["rows"], rows):
            assert one | {"tokens_per_s": 0} == other | {"tokens_per_s": 0}, (one, other)

        # Read back: the same tables; doctored: a claim fails, and only --check minds.
        assert run("--results", results, "--check").stdout == done.stdout
        text = json.loads(results.read_text())
        for row in text["table"]["differences"]:
            if row["policy"] == "shrink":
                row["difference"] = {"value": -0.01, "low": -0.02, "high": 0.01}
        doctored = folder / "doctored.json"
        doctored.write_text(json.dumps(text))
        assert "FAILED" in run("--results", doctored, "--check", code=1).stdout
        run("--results", doctored)

        # All parts; what a random model does need not bear the claims out.
        done = run("--model", folder, *small, "--output", results)
        parts = json.loads(results.read_text())
        for part in ("signal", "advantage", "table", "budget", "ablation", "timeline"):
            assert part in parts, part
        for part in ("Signal", "Growth advantage", "Policies", "Smallest", "Ablation", "Attention"):
            assert f"## {part}" in done.stdout, part
        # A timeline alone has no claim to check.
        run("--model", folder, "--part", "timeline", *small, "--check", code=1)

        assert "--model" in run(code=2).stderr
        assert "config.json" in run("--model", folder / "none", code=2).stderr
        missing = run("--model", folder, "--problems", folder / "none", code=2).stderr
        assert "--problems" in missing and "none" in missing, missing
        assert "--part" in run("--model", folder, "--part", "speed", code=2).stderr
        (folder / "broken.json").write_text("{")
        assert "--results" in run("--results", folder / "broken.json", code=2).stderr
        assert "--page-size" not in run("--help").stderr
        assert "page_size" in run("--model", folder, "--page-size", 17, code=1).stderr


if __name__ == "__main__":
    main()
