"""`factormodels datasets`: the data that come with the package, and checks of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli import help_text
from experiments.cli.console import output, plain_table, show_table
from experiments.findings.text import counted
from factormodels.claims import RelationKind

if TYPE_CHECKING:
    from rich.console import Console

    from factormodels.io.file_report import FileReport


class _Datasets(help_text.Group):
    """The group of commands; a first word that is none of them is the name of a dataset."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_Datasets, rich_markup_mode="rich", add_completion=False)


@app.callback(invoke_without_command=True)
def _datasets(context: typer.Context) -> None:
    """List the embedded datasets with counts and licence; show one; check files of your own.

    With a name, shows the card of that dataset: what it holds, where it comes from,
    and what to know before you rely on it.

    [b]Examples[/b]

      factormodels datasets
      factormodels datasets factcheck-bench
      factormodels datasets check longfact wiki_factor.csv
      factormodels run compare datasets='\\[demonstration]'
    """
    if context.invoked_subcommand is None:
        _show_all(output())


@app.command("show", cls=help_text.Command)
def _show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An embedded dataset.")],
) -> None:
    """Show the card of an embedded dataset.

    [b]Examples[/b]

      factormodels datasets show demonstration
    """
    _show_card(output(), name)


@app.command("check", cls=help_text.Command)
def _check(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files, or folders of them.")
    ],
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME", help="Their format; recognised by content if not given."
        ),
    ] = None,
    most: Annotated[
        int, typer.Option("--show", min=1, help="How many wrong lines of each file to show.")
    ] = 20,
) -> None:
    """Say what dataset files are, hold and lack, and which lines are wrong.

    Knows the published files of FActScore, FactReasoner, Factcheck-Bench,
    FaStfact-Bench, ConflictBank, FACTOR, LongFact, UNLI, SelfCheckGPT and
    conformal-factual-lm, and prompts such as those of ELI5, AskHistorians and
    Books: JSON, JSON Lines or CSV, compressed with gzip or not.
    Exits with 0 if nothing is wrong, else with 2; missing contents are not wrong.

    [b]Examples[/b]

      factormodels datasets check expert_factor.csv
      factormodels datasets check longfact --format longfact
    """
    from factormodels.io.file_report import check_paths

    reports, passed = check_paths(paths, format_name)
    _show_reports(output(), reports, passed, most)
    # As the code of an error, so that a script may check its files.
    if any(report.problems for report in reports):
        raise typer.Exit(2)


def _show_all(console: Console) -> None:
    """Print every embedded dataset with what it holds, counted from the data, and its licence."""
    from factormodels import datasets

    counted_things = ("responses", "atoms", "labelled", "contexts", "relations")
    table = plain_table(["dataset"], counted_things, ["licence"])
    titles = []
    for name in datasets.names():
        dataset = datasets.load(name)
        atoms = [atom for graph in dataset.graphs for atom in graph.atoms]
        counts = (
            len(dataset.graphs),
            len(atoms),
            sum(atom.label is not None for atom in atoms),
            sum(len(graph.contexts) for graph in dataset.graphs),
            sum(len(graph.relations) for graph in dataset.graphs),
        )
        card = dataset.card
        table.add_row(name, *(f"{count:,}" for count in counts), card.licence)
        titles.append(f"{name}: {card.title}")
    show_table(console, table)
    console.print()
    for title in titles:
        console.print(title)


def _show_card(console: Console, name: str) -> None:
    """Print the card of a dataset.

    Raises:
        InputError: if there is no dataset of that name.
    """
    from factormodels import datasets

    card = datasets.card(name)
    console.print(f"{card.name}: {card.title}\n\n{card.description}\n")
    console.print(f"source:  {card.source}\nlicence: {card.licence}\n")
    table = plain_table(["holds"], ["count"], wrap=True)
    for what, count in card.counts.items():
        table.add_row(what.replace("_", " "), f"{count:,}")
    show_table(console, table)
    for note in card.notes:
        console.print(f"\n- {note}")


_PARTS = {
    "atoms": ("true", "false", "unlabelled"),
    "relations": tuple(RelationKind),
    "claims": ("judged",),
}


def _show_reports(
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
        _show_report(console, report, most)
        console.print()
    if passed:
        names = ", ".join(dict.fromkeys(path.name for path in passed))
        console.print(f"not looked at, being no data: {names}", soft_wrap=True)
    wrong = sum(bool(report.problems) for report in reports)
    verdict = f"{wrong:,} with something wrong" if wrong else "nothing wrong"
    console.print(f"{counted(len(reports), 'file')}, {verdict}")


def _show_report(console: Console, report: FileReport, most: int) -> None:
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
        # Shown in brackets behind the whole that they are parts of.
        if name in parts:
            continue
        noun = name if count != 1 else name.removesuffix("s")
        inner = [f"{report.counts[p]:,} {p}" for p in _PARTS.get(name, ()) if p in report.counts]
        pieces.append(f"{count:,} {noun}" + (f" ({', '.join(inner)})" if inner else ""))
    return ", ".join(pieces)
