"""What the terminal shows of the embedded datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.cli.console import show_table
from experiments.paper.text import plain_table
from factormodels import datasets

if TYPE_CHECKING:
    from rich.console import Console


def show_all(console: Console) -> None:
    """Print every embedded dataset with what it holds, counted from the data, and its licence."""
    table = plain_table()
    table.add_column("dataset", no_wrap=True)
    for title in ("responses", "atoms", "labelled", "contexts", "relations"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("licence", no_wrap=True)
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


def show_one(console: Console, name: str) -> None:
    """Print the card of a dataset.

    Raises:
        InputError: if there is no dataset of that name.
    """
    card = datasets.card(name)
    console.print(f"{card.name}: {card.title}\n\n{card.description}\n")
    console.print(f"source:  {card.source}\nlicence: {card.licence}\n")
    table = plain_table()
    table.add_column("holds")
    table.add_column("count", justify="right")
    for what, count in card.counts.items():
        table.add_row(what.replace("_", " "), f"{count:,}")
    show_table(console, table)
    for note in card.notes:
        console.print(f"\n- {note}")
