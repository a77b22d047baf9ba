"""Puts the tables that studies have written into docs/measurements.md, below their commands.

    python docs/make_measurements.py          # the tables of the results that there are
    python docs/make_measurements.py --run    # run the commands first; `make bench`

A comment `<!-- measured: STEM -->` stands before a command whose `--out` is the folder of its
results; the table is that of STEM.md there. A command whose data are absent is not run.
"""

from __future__ import annotations

import logging
import re
import shlex
import subprocess
import sys
from pathlib import Path

from factormodels.io.source.files import read_text, write_text

PAGE = Path(__file__).resolve().parent / "measurements.md"

logger = logging.getLogger(__name__)

BLOCK = re.compile(
    r"<!-- measured: (?P<stem>[\w-]+) -->\n\n(?:<!-- not run: [^>]* -->\n)?"
    r"```sh\nfactormodels (?P<command>[^`]*)```\n\n(?P<table>(?:(?:\||\*\*).*\n|\n(?=\||\*\*))+)"
)


def words(block: re.Match[str]) -> list[str]:
    """The words of a block's command."""
    return shlex.split(block["command"].replace("\\\n", " "))


def updated(text: str, folder: Path) -> str:
    """The page with the table of every command whose results there are.

    Args:
        text: the page.
        folder: where the paths of its commands start.
    """
    for block in reversed(list(BLOCK.finditer(text))):
        results = folder / words(block)[-1] / f"{block['stem']}.md"
        if not results.exists():
            logger.info("%s is absent: its table stays", results)
            continue
        # Headings of groups would be headings of the page.
        lines = re.sub(r"(?m)^## (.*)$", r"**\1**", read_text(results)).splitlines()
        kept = [line for line in lines if line.startswith(("|", "**"))]
        table = "".join(f"\n{line}\n\n" if line.startswith("**") else f"{line}\n" for line in kept)
        start, end = block.span("table")
        text = text[:start] + table.lstrip("\n") + text[end:]
    return text


def main(arguments: list[str]) -> None:
    """Make the tables of docs/measurements.md anew."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    text = read_text(PAGE)
    for block in BLOCK.finditer(text) if arguments == ["--run"] else ():
        command = words(block)
        named = re.findall(r"settings\.networks=\[(.*?)\]", " ".join(command))
        if named and not Path(named[0]).exists():
            logger.info("not run, since %s is absent: %s", named[0], shlex.join(command))
            continue
        subprocess.run([sys.executable, "-m", "experiments", *command, "--overwrite"], check=True)
    write_text(PAGE, updated(text, Path()))


if __name__ == "__main__":
    main(sys.argv[1:])
