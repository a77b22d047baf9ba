"""`factormodels datasets`: the data that come with the package, and checks of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli.commands import help_text


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

    Followed by a name, shows that dataset's card: what it holds, where it is from
    and what to know before trusting it.

    [b]Examples[/b]

      factormodels datasets
      factormodels datasets factcheck-bench
      factormodels datasets check ExpertQA/data wiki_factor.csv
      factormodels run compare datasets='\\[demonstration]'
    """
    if context.invoked_subcommand is None:
        from experiments.cli.console import output
        from experiments.cli.views import dataset as dataset_view

        dataset_view.show_all(output())


@app.command("show", cls=help_text.Command)
def _show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An embedded dataset.")],
) -> None:
    """Show the card of an embedded dataset.

    [b]Examples[/b]

      factormodels datasets show demonstration
    """
    from experiments.cli.console import output
    from experiments.cli.views import dataset as dataset_view

    dataset_view.show_one(output(), name)


@app.command("check", cls=help_text.Command)
def _check(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files, or folders of them.")
    ],
    format_name: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="What they are; else they tell.")
    ] = None,
    most: Annotated[
        int, typer.Option("--show", min=1, help="Wrong lines shown of each file.")
    ] = 20,
) -> None:
    """Say what files of datasets are, hold and lack, and what is wrong on which line.

    Knows what the owners of FActScore, FactReasoner, Factcheck-Bench,
    FaStfact-Bench, ExpertQA, ConflictBank, WikiContradict, FACTOR, LongFact
    and UNLI publish, and prompts such as those of ELI5, AskHistorians and
    Books: JSON, JSON Lines or CSV, compressed with gzip or not. Exits with 0
    if nothing is wrong, else with 2; what is missing is not wrong.

    [b]Examples[/b]

      factormodels datasets check r2_compiled_anon.jsonl
      factormodels datasets check longfact --format longfact
    """
    from experiments.cli.console import output
    from experiments.cli.views import dataset_check as dataset_check_view
    from factormodels.io.checking import check_paths

    reports, passed = check_paths(paths, format_name)
    dataset_check_view.show(output(), reports, passed, most)
    if any(report.problems for report in reports):
        raise typer.Exit(2)
