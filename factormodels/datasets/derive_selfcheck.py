"""Derive the embedded votes of SelfCheckGPT from the published ones, leaving every text out.

    python -m factormodels.datasets.derive_selfcheck RAW OUT

RAW is `selfcheck_wikibio.jsonl` of KAIST-CS584-HCI/selfcheckgpt-replication.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from factormodels.datasets.deriving import run_derivation
from factormodels.io.fact_graph_json import fact_graph_text
from factormodels.io.files import write_text
from factormodels.io.json_text import read_json_lines
from factormodels.io.published.self_judgements import parse_selfcheck


def derive(raw: str | os.PathLike[str], out: str | os.PathLike[str]) -> int:
    """Write the passages of `raw` to `out`, whole or not at all, and return their number.

    Raises:
        InputError: if `raw` is malformed or `out` cannot be written.
    """
    graphs = [parse_selfcheck(obj, raw, line) for line, obj in read_json_lines(raw)]
    lines = [
        fact_graph_text(
            replace(graph, response="", atoms=tuple(replace(atom, text="") for atom in graph.atoms))
        )
        for graph in graphs
    ]
    write_text(out, "".join(f"{line}\n" for line in lines))
    return len(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 2 for bad input."""
    return run_derivation(
        "factormodels.datasets.derive_selfcheck",
        "Derive the embedded votes, without text, from SelfCheckGPT's.",
        {"raw": "selfcheck_wikibio.jsonl of the replication"},
        derive,
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
