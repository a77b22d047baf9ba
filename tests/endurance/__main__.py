"""`python -m tests.endurance [PART ...] --out FOLDER`: every part, or those named, one by one.

Each part is a module of this package and prints its table; together they take hours.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

PARTS = ("kills", "disturbances", "sizes", "hostile_day", "two_hundred_responses")


def main() -> int:
    """Run the parts, keep what each prints, and return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.endurance")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--out", type=Path, default=Path("results/endurance"))
    given = parser.parse_args()
    for part in given.parts:
        if part not in PARTS:
            parser.error(f"{part!r} is no part; the parts are {', '.join(PARTS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for part in given.parts or PARTS:
        sys.stderr.write(f"{part}\n")
        with (given.out / f"{part}.md").open("w", encoding="utf-8") as told:
            done = subprocess.run(
                [sys.executable, "-m", f"tests.endurance.{part}"], stdout=told, check=False
            )
        sys.stdout.write(f"## {part}\n\n{(given.out / f'{part}.md').read_text()}\n")
        failed += [part] if done.returncode else []
    if failed:
        sys.stderr.write(f"failed: {', '.join(failed)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
