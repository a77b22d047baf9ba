"""Derive the embedded Factcheck-Bench file from the raw one, leaving every text out.

    python -m factormodels.datasets.derive_factcheck_bench RAW OUT

RAW is `factcheck-GPT-benchmark.jsonl` of the release (github.com/yuxiaw/Factcheck-GPT).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from factormodels.datasets.deriving import run_derivation
from factormodels.datasets.factcheck_file import record_line
from factormodels.io.files import write_text
from factormodels.io.json_text import read_json_lines
from factormodels.io.published.factcheck_bench import split_record


def derive(raw: str | os.PathLike[str], out: str | os.PathLike[str]) -> int:
    """Write the records of `raw` to `out`, whole or not at all, and return their number.

    Raises:
        InputError: if `raw` is malformed or `out` cannot be written.
    """
    lines = [record_line(split_record(obj, raw, line)[0]) for line, obj in read_json_lines(raw)]
    write_text(out, "".join(f"{line}\n" for line in lines))
    return len(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 2 for bad input."""
    return run_derivation(
        "factormodels.datasets.derive_factcheck_bench",
        "Derive the embedded Factcheck-Bench file, without text, from the raw one.",
        {"raw": "factcheck-GPT-benchmark.jsonl of the release"},
        derive,
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
