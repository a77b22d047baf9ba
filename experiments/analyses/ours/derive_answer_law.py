"""Derive the law of answers by which `assess --spend` asks, from embedded relations.

    python -m experiments.analyses.ours.derive_answer_law OUT

One law from the biographies, whose relations are lexical and of every claim with every passage, and
Factcheck-Bench, whose stances are a language model's and of own passages. How far its risks hold on
responses that it was not learned from: `factormodels run ours/few-calls settings.together=true`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from experiments.analyses.ours.few_calls import learned, recorded
from factormodels import datasets
from factormodels.datasets.deriving import run_derivation
from factormodels.io.files import write_text

LEARNED_FROM = (("factscore", "FR2"), ("factcheck-bench", "FR1"))
"""Names of the embedded data, and which of their pairs count."""

_DIGITS = 5


def derive(out: str | os.PathLike[str], limit: int | None = None) -> int:
    """Write the law, and return the number of responses that it is learned from.

    Args:
        out: the file.
        limit: learn from so many responses of each data alone.

    Raises:
        InputError: if the file cannot be written.
    """
    data = [
        recorded(datasets.load(name).graphs[:limit], variant, 2, 0)
        for name, variant in LEARNED_FROM
    ]
    law = {name: value.round(_DIGITS).tolist() for name, value in asdict(learned(data)).items()}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in law.items()]
    write_text(out, "{\n" + ",\n".join(lines) + "\n}\n")
    return sum(len(one.graphs) for one in data)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 2 for a file that cannot be written."""
    return run_derivation(
        "experiments.analyses.ours.derive_answer_law",
        "Derive the law of answers of assess --spend from embedded relations.",
        {},
        derive,
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
