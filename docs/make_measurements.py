"""Puts what studies of networks found into docs/appendix/measurements.md, below their commands.

    python docs/make_measurements.py          # of the results that there are
    python docs/make_measurements.py --run    # run the commands first; `make bench`

A comment `<!-- measured: STEM, STEM -->` stands before a command whose `--out` is the folder of its
results. Below the command, up to `<!-- end -->`, stand the tables of STEM.md and the figures of
STEM.png there, which are copied to docs/images. A command whose data are absent is not run.
"""

from __future__ import annotations

import logging
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from factormodels.io.source.files import read_text, write_text

PAGE = Path(__file__).resolve().parent / "appendix" / "measurements.md"
IMAGES = "../images"
"""Folder of the figures, relative to that of the page."""

logger = logging.getLogger(__name__)

BLOCK = re.compile(
    r"<!-- measured: (?P<stems>[\w, -]+?) -->\n\n(?:<!-- not run: [^>]* -->\n)?"
    r"```sh\nfactormodels (?P<command>[^`]*)```\n\n(?P<found>(?:.*\n)*?)<!-- end -->\n"
)


def words(block: re.Match[str]) -> list[str]:
    """The words of a block's command."""
    return shlex.split(block["command"].replace("\\\n", " "))


def updated(text: str, folder: Path, page: Path = PAGE) -> str:
    """The page with what every command found whose results there are.

    Args:
        text: the page.
        folder: where the paths of its commands start.
        page: its file, beside whose folder of images figures are copied.
    """
    for block in reversed(list(BLOCK.finditer(text))):
        results = folder / words(block)[-1]
        parts = [_part(results, stem, page) for stem in block["stems"].split(", ")]
        if not all(parts):
            logger.info("%s lacks results: what the page says stays", results)
            continue
        start, end = block.span("found")
        text = text[:start] + "\n".join(filter(None, parts)) + "\n" + text[end:]
    return text


def _part(results: Path, stem: str, page: Path) -> str | None:
    """A table or a figure of results as the page has it; None where there is none."""
    table, figure = results / f"{stem}.md", results / f"{stem}.png"
    if table.exists():
        # A comment says where it comes from; headings of groups would be headings of the page.
        _, _, body = read_text(table).partition("-->\n\n")
        title, _, rest = body.partition("\n")
        return f"### {title}\n" + re.sub(r"(?m)^## (.*)$", r"**\1**", rest)
    if figure.exists():
        name = f"{results.name}-{stem}.png"
        (page.parent / IMAGES).mkdir(exist_ok=True)
        shutil.copyfile(figure, page.parent / IMAGES / name)
        return f"![{stem}: accuracy against time]({IMAGES}/{name})\n"
    return None


def main(arguments: list[str]) -> None:
    """Make what docs/appendix/measurements.md says of results anew."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    text = read_text(PAGE)
    for block in BLOCK.finditer(text) if arguments == ["--run"] else ():
        command = words(block)
        data = [Path(path) for path in re.findall(r"(?<=path: )[^,}\]]+", " ".join(command))]
        if absent := [path for path in data if not path.exists()]:
            logger.info("not run, since %s is absent: %s", absent[0], shlex.join(command))
            continue
        subprocess.run([sys.executable, "-m", "experiments", *command, "--overwrite"], check=True)
    write_text(PAGE, updated(text, Path()))


if __name__ == "__main__":
    main(sys.argv[1:])
