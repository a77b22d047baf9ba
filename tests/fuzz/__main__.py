"""`python -m tests.fuzz --mutants N --out FOLDER`: try damaged inputs; the same call goes on."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.fuzz import campaign


def main() -> int:
    """Try mutants, write their table, and return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--mutants", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/fuzz"))
    parser.add_argument("--only", nargs="*", default=(), help="names of targets")
    given = parser.parse_args()
    tally = campaign.run(given.out, given.mutants, seed=given.seed, only=given.only)
    (given.out / "report.md").write_text(tally.text() + "\n", encoding="utf-8")
    sys.stdout.write(tally.text() + "\n")
    for name, number, outcome, reason in tally.failures[:50]:
        sys.stdout.write(f"{name} {number}: {outcome}: {reason}\n")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
