"""Pages of Markdown whose blocks of code run: the README, the guides of `docs`.

A comment before a fenced block says what it is: `<!-- file: NAME -->` writes it to a file of that
name, `<!-- not run: REASON -->` leaves it alone, and `<!-- output -->` compares it with the output
of the commands before it, where a line `...` matches any number of lines. Any other block must
be Python, or `sh` with commands of ours alone; both run in the order of the page, in one folder and
one namespace.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.commands import called

_BLOCK = re.compile(
    r"^(?:<!-- (?:(?P<what>file|not run): (?P<remark>[^>]+?)|(?P<output>output)) -->\n+)?"
    r"(?P<fence>```+|~~~+)(?P<language>[^\n]*)\n(?P<code>.*?)^(?P=fence)$",
    re.M | re.S,
)


_DOCS = Path(__file__).resolve().parents[1] / "docs"


def findings() -> str:
    """Records of studies and the papers' numbers, one after the other, one level down."""
    pages = [_DOCS / "appendix" / "published-numbers.md", *sorted((_DOCS / "results").glob("*.md"))]
    return "\n".join(re.sub(r"^#", "##", page.read_text("utf-8"), flags=re.M) for page in pages)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        language: what stands after the fence.
        code: what it holds.
        file: the file that it is written to, or empty.
        not_run: why it is not run, or empty.
        line: where it begins, counted from 1.
        output: whether it is what the commands before it print.
    """

    language: str
    code: str
    file: str
    not_run: str
    line: int
    output: bool = False

    @property
    def directive(self) -> bool:
        """True if it is an instruction to the builder of the documentation."""
        return self.language.startswith("{")

    def commands(self) -> list[str]:
        """Return the commands of a block of `sh`, without their comments."""
        lines = self.code.replace("\\\n", " ").splitlines()
        return [line for line in (line.partition(" #")[0].strip() for line in lines) if line]


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    return [
        Block(
            language=match["language"].strip(),
            code=match["code"],
            file=match["remark"] if match["what"] == "file" else "",
            not_run=match["remark"] if match["what"] == "not run" else "",
            line=text.count("\n", 0, match.start()) + 1,
            output=bool(match["output"]),
        )
        for match in _BLOCK.finditer(text)
    ]


def faults(text: str) -> list[str]:
    """Return the blocks of a page that are neither run nor said not to be."""
    sentences = []
    for block in blocks(text):
        if block.file or block.not_run or block.directive or block.output:
            continue
        if block.language == "python":
            continue
        strange = [c for c in block.commands() if not c.startswith("factormodels ")]
        if block.language != "sh":
            sentences.append(f"line {block.line}: a block of {block.language or 'no language'}")
        elif strange:
            sentences.append(f"line {block.line}: {strange[0]}")
    return sentences


def run_command(command: str) -> str:
    """Run a command of ours in the current folder and return its output.

    Output that is sent to a file with `>` is written there.
    """
    command, _, target = (part.strip() for part in command.partition(" > "))
    with patch.dict(os.environ):
        # Pages show what a pipe gets. Workers of pytest-xdist have the width of a terminal.
        os.environ.pop("COLUMNS", None)
        result = called(*shlex.split(command)[1:])
    assert result.exit_code == 0, f"{command}\n{result.output}"
    if target:
        Path(target).write_text(result.stdout, encoding="utf-8")
    return result.output


def run_page(page: Path, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run a page in the current folder and return what its Python defined."""
    names = {"__name__": page.stem} if names is None else names
    printed = ""
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.not_run or block.directive:
            continue
        if block.output:
            differing = unprinted(block.code, printed)
            assert differing is None, f"line {block.line}: {differing!r} is not in\n{printed}"
        elif block.file:
            target = Path(block.file)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.code, encoding="utf-8")
        elif block.language == "python":
            # Empty lines put the code where it stands on the page, for the sake of tracebacks.
            exec(compile("\n" * block.line + block.code, str(page), "exec"), names)
        else:
            printed = "\n".join(run_command(command) for command in block.commands())
    return names


def unprinted(shown: str, printed: str) -> str | None:
    """Return the first line of a shown output that was not printed in its place, or None.

    Spaces and rules below headings do not count, since they depend on the width of the terminal;
    numbers agree as those of `agree`.
    """
    lines = iter(_words(printed))
    skipping = True
    for line in _words(shown):
        if line == "...":
            skipping = True
            continue
        following = lines if skipping else islice(lines, 1)
        if not any(agree(line, other) for other in following):
            return line
        skipping = False
    return None


def _words(text: str) -> list[str]:
    """Return the lines of an output, spaces collapsed, without empty lines and rules."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line.strip("─")]


Row = dict[str, str]


def table_rows(text: str) -> Iterator[Row]:
    """Yield the rows of the Markdown tables of a text, the heading above each under "where"."""
    block, titles = "", list[str]()
    for line in text.splitlines():
        if line.startswith("## "):
            block = line[3:]
        cells = [cell.strip().strip("*") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells:
            titles = []
        elif not titles:
            titles = cells
        elif not set(cells[0]) <= set("-: "):
            yield {"where": block, **dict(zip(titles, cells, strict=True))}


def numbers(text: str) -> tuple[str, list[str]]:
    """Return a text without its numbers, and these."""
    pattern = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
    return re.sub(pattern, "#", text), re.findall(pattern, text)


def agree(printed: str, computed: str) -> bool:
    """Say whether two cells are alike, numbers within two units of the last digit.

    Mathematical libraries of two machines differ in the last bits, which a search or a sampler
    carries into the last digit that is shown, seldom further.
    """
    (words, values), (other_words, others) = numbers(printed), numbers(computed)
    if words != other_words:
        return False
    for value, other in zip(values, others, strict=True):
        mantissa, _, exponent = value.partition("e")
        digits = len(mantissa.partition(".")[2])
        unit = 10.0 ** (int(exponent or 0) - digits)
        if abs(float(value) - float(other)) > 2.001 * unit:
            return False
    return True
