# SPDX-License-Identifier: Apache-2.0
"""The synthetic reasoning task of the tiny reasoner: work, records of it, reviews of all records.

A solution is a row of jobs. A job is work and two records; after every second job, and at the end
as the answer, all records so far are reviewed:

    work     w lines   [step][mention j][digit]      a sequence mod 10: needs the last two numbers
    record   2 lines   [set k][digit][digit][digit]  its next three numbers
    review   a line a  [name k][digit][digit][digit] record, repeated from where it was made
             record

Work is local and of any length. Its mentions (j is the number before) look like records and are
none. A review needs every record of the text, however long ago it was made, and the number of
records is what makes a problem hard: that is how much has to stay in its cache. How long a text is
says little of it.
"""

import argparse
import json
import random
from typing import NamedTuple

PAD, BOS, EOS, ANSWER, REVIEW = range(5)
RECORDS = 24
DIGIT, MENTION, STEP, NAME, SET = 8, 18, 28, 52, 76  # first tokens of their kinds
VOCABULARY = 100
JOB_RECORDS, JOBS_PER_REVIEW, DIGITS = 2, 2, 3


class Problem(NamedTuple):
    prompt: list[int]  # BOS, last record, w, two values
    solution: list[int]  # jobs, reviews, answer, EOS
    answer: list[int]  # the last review
    lasting: list[bool]  # [token of the solution] whether it belongs to a record
    records: int


def solve(jobs: int, work: int, a: int, b: int) -> Problem:
    records = jobs * JOB_RECORDS
    prompt = [BOS, NAME + records - 1, STEP + work, DIGIT + a, DIGIT + b]
    out: list[int] = []
    lasting: list[bool] = []
    made: list[list[int]] = []

    def put(tokens: list[int], lasts: bool = False) -> None:
        out.extend(tokens)
        lasting.extend([lasts] * len(tokens))

    for job in range(1, jobs + 1):
        for step in range(work, 0, -1):
            a, b = b, (a + b + 3) % 10
            put([STEP + step, MENTION + a, DIGIT + b])
        for _ in range(JOB_RECORDS):
            digits = []
            for _ in range(DIGITS):
                a, b = b, (a + b + 3) % 10
                digits.append(DIGIT + b)
            put([SET + len(made), *digits], lasts=True)
            made.append(digits)
        if job == jobs or job % JOBS_PER_REVIEW == 0:
            put([ANSWER if job == jobs else REVIEW])
            answer = []
            for k, digits in enumerate(made):
                answer += [NAME + k, *digits]
            put(answer)
    put([EOS])
    return Problem(prompt, out, answer, lasting, records)


def draw(
    rng: random.Random, jobs: tuple[int, int] = (1, 10), work: tuple[int, int] = (1, 12)
) -> Problem:
    """A problem whose jobs and w are drawn from the ranges."""
    return solve(rng.randint(*jobs), rng.randint(*work), rng.randrange(10), rng.randrange(10))


def main() -> None:
    """Problems as growpage-eval reads them."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--problems", type=int, default=256)
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    for tag in range(options.problems):
        problem = draw(rng)
        line = {
            "tag": tag,
            "difficulty": problem.records,
            "max_new_tokens": len(problem.solution) + 64,
            "answer_marker": ANSWER,
            "prompt": problem.prompt,
            "answer": problem.answer,
            "solution": problem.solution,
            "lasting": [place for place, lasts in enumerate(problem.lasting) if lasts],
        }
        print(json.dumps(line, separators=(",", ":")))


if __name__ == "__main__":
    main()
