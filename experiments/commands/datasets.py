"""`factormodels datasets`: the data that come with the package."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One dataset, with its card.")
    ] = None,
) -> None:
    """List the embedded datasets with counts and licence.

    With a name, shows that dataset's card: what it holds, where it is from and
    what to know before trusting it.

    [b]Examples[/b]

      factormodels datasets
      factormodels datasets factcheck-bench
      factormodels run compare datasets='\\[demonstration]'
    """
    from experiments import dataset_view
    from experiments.console import output

    if name is None:
        dataset_view.show_all(output())
    else:
        dataset_view.show_one(output(), name)
