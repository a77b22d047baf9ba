"""Derive the law of answers by which `assess --spend` asks, from embedded relations.

    python -m experiments.analyses.ours.shared.derive_answer_law OUT

One law from both Factcheck-Bench, whose stances are of own passages, and every eighth biography, so
that neither has many more supports; lexical relations of the biographies are of every claim with
every passage. Relations less probable than 1/2 are neutral, as they are for `assess`. How far risks
of such a law hold on responses that it was not learned from:

    factormodels run ours/few-calls settings.together=true settings.least=0.5 settings.folds=5 \\
        'settings.datasets=[{name: factscore, subset: {sample: 20}, variants: [FR2]},
                            {name: factcheck-bench, variants: [FR1]}]'
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from experiments.analyses.ours.shared.recorded_calls import learned, recorded
from experiments.evaluators.spending import ANSWER_LAW
from factormodels import datasets
from factormodels.claims import LEAST_PROBABILITY
from factormodels.errors import FactormodelsError
from factormodels.io.files import write_text
from factormodels.io.learned_files import learned_content
from factormodels.nouns import counted

LEARNED_FROM = (("factscore", "FR2", 8), ("factcheck-bench", "FR1", 1))
"""Names of the embedded data, which of their pairs count, and of every how many responses."""

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
        recorded(datasets.load(name).graphs[::step][:limit], variant, 2, 0, LEAST_PROBABILITY)
        for name, variant, step in LEARNED_FROM
    ]
    law = {name: value.round(_DIGITS).tolist() for name, value in asdict(learned(data)).items()}
    content = learned_content(ANSWER_LAW, law)
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items()]
    write_text(out, "{\n" + ",\n".join(lines) + "\n}\n")
    return sum(len(one.graphs) for one in data)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 2 for a file that cannot be written."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.analyses.ours.shared.derive_answer_law",
        description="Derive the law of answers of assess --spend from embedded relations.",
    )
    parser.add_argument("out", help="the file to write")
    out = parser.parse_args(arguments).out
    try:
        count = derive(out)
    except FactormodelsError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(f"{out}: {counted(count, 'response')}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
