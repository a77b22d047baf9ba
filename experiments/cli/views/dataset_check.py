"""What the terminal shows of checked files of datasets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.paper.text import counted
from factormodels.io.checking import FileReport

if TYPE_CHECKING:
    from rich.console import Console

_PARTS = {
    "atoms": ("true", "false", "unlabelled"),
    "relations": ("entailment", "contradiction", "equivalence", "neutral"),
}


def show(
    console: Console, reports: Sequence[FileReport], passed: Sequence[Path], most: int
) -> None:
    """Print one paragraph per file, then what was passed over and the number of wrong files.

    Args:
        console: where to.
        reports: what the check found.
        passed: files of the folders that are no data.
        most: number of wrong lines shown of each file.
    """
    for report in reports:
        _show_one(console, report, most)
        console.print()
    if passed:
        names = ", ".join(dict.fromkeys(path.name for path in passed))
        console.print(f"not looked at, being no data: {names}", soft_wrap=True)
    wrong = sum(bool(report.problems) for report in reports)
    verdict = f"{wrong:,} with something wrong" if wrong else "nothing wrong"
    console.print(f"{counted(len(reports), 'file')}, {verdict}")


def _show_one(console: Console, report: FileReport, most: int) -> None:
    form = report.format
    what = "of no known format" if form is None else f"{form.title} ({form.name}; {form.owner})"
    console.print(f"{report.path}: {what}", style="bold", soft_wrap=True)
    if report.records:
        console.print(f"  holds    {_holds(report)}", soft_wrap=True)
    for lacks in report.missing:
        console.print(f"  missing  {lacks}", soft_wrap=True)
    for problem in report.problems[:most]:
        place = f"{report.path}:{problem.line}" if problem.line else f"{report.path}"
        console.print(f"  wrong    {place}: {problem.message}", soft_wrap=True)
    more = len(report.problems) - most
    if more > 0:
        console.print(f"  wrong    and {more:,} more", soft_wrap=True)


def _holds(report: FileReport) -> str:
    parts = {name for names in _PARTS.values() for name in names}
    pieces = [counted(report.records, "record")]
    for name, count in report.counts.items():
        if name in parts:
            continue
        noun = name if count != 1 else name.removesuffix("s")
        inner = [f"{report.counts[p]:,} {p}" for p in _PARTS.get(name, ()) if p in report.counts]
        pieces.append(f"{count:,} {noun}" + (f" ({', '.join(inner)})" if inner else ""))
    return ", ".join(pieces)
