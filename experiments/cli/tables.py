"""Tables on the terminal: of a paper, of a study, and of what language models were asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from calibration.scores.registry import DEFAULT_MEASURES
from experiments.cli.console import ANY_WIDTH, heading, plain_table, show_table
from experiments.findings.table import Cell, Column, Table, blocks, is_right
from experiments.findings.text import duration
from experiments.paper.study_table import AGREEMENT, TIMES, chosen, keys, size_of, troubles
from experiments.results.agreement import short_table
from factormodels.errors import LimitReachedError
from factormodels.extraction.language_model.accounting import Ledger

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table as TerminalTable

    from experiments.results.agreement import AgreeingCells


def show_paper_table(console: Console, table: Table, most: int | None = None) -> None:
    """Print a table of a paper, its caption above and its note below.

    Args:
        console: where to.
        table: the table.
        most: about how many rows to print, whole blocks if it has any; None prints all.
    """
    heading(console, table.caption)
    left_out = 0
    room = len(table.frame) if most is None else most
    for title, every in blocks(table):
        # A table of one block is cut within it, another between blocks.
        rows = every if title and room > 0 else every[: max(room, 0)]
        room -= len(rows)
        left_out += len(every) - len(rows)
        if not rows:
            continue
        if title:
            heading(console, title)
        texts = [[_line(cell) for cell in row] for row in rows]
        for places in _side_by_side(table, texts, console.width):
            shown = plain_table()
            for place in places:
                column = table.columns[place]
                if is_right(column):
                    width = max(row[place].cell_len for row in texts)
                    shown.add_column(column.title, justify="right", no_wrap=True, min_width=width)
                else:
                    shown.add_column(column.title, overflow="fold")
            for row in texts:
                shown.add_row(*(row[place] for place in places))
            console.print(shown)
    if left_out:
        console.print(
            f"and {left_out:,} more of {len(table.frame):,} rows: --out DIR or --report FILE has "
            "them all",
            soft_wrap=True,
        )
    if table.note:
        console.print(table.note, soft_wrap=True)
    console.print()


FOLDED = 16
"""The width that a text is given at least before a table is parted."""


def _side_by_side(table: Table, texts: Sequence[Sequence[Text]], width: int) -> list[list[int]]:
    """Places of the columns that fit beside each other, the first texts of rows in every part."""
    needed = []
    for place, column in enumerate(table.columns):
        widest = max(cell_len(column.title), *(row[place].cell_len for row in texts))
        needed.append(2 + (widest if is_right(column) else min(widest, FOLDED)))
    first = [place for place, column in enumerate(table.columns) if is_right(column)][:1]
    keys = list(range(first[0] if first else 1))
    parts, room = [[*keys]], width - sum(needed[place] for place in keys)
    left = room
    for place in range(len(keys), len(table.columns)):
        if needed[place] > left and len(parts[-1]) > len(keys):
            parts.append([*keys])
            left = room
        parts[-1].append(place)
        left -= needed[place]
    return parts


def _line(cell: Cell) -> Text:
    text = f"{cell.text}{cell.stars} {cell.interval}".rstrip()
    return Text(text, style="bold" if cell.bold else "")


ABSENT = "absent"
"""What the row of a backend shows whose library is not installed."""


def show_study_table(
    console: Console,
    cells: pd.DataFrame,
    measures: Iterable[str] = DEFAULT_MEASURES,
    absent: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Print the summary of a study, a table per dataset; two where the terminal is narrow.

    Args:
        console: where to.
        cells: the summary.
        measures: names of the measures to show.
        absent: labels of backends whose library is not installed, with the sentence that says so
            and how to install it, which stands below the tables that have them.
    """
    measured, own = chosen(measures), keys(cells)
    present = cells[~cells["backend_label"].isin(absent.keys())]
    computation = (*AGREEMENT, *troubles(present), *TIMES)
    for dataset, group in cells.groupby("dataset", sort=False):
        facts = f"{dataset}: {size_of(group)}"
        whole = _flat_table(group, own, (*measured, *computation), absent)
        unbounded = console.options.update(max_width=ANY_WIDTH)
        # Measured without bounds: within them, rich reports what it would squeeze the table to.
        if console.measure(whole, options=unbounded).maximum <= console.width:
            parts = {facts: whole}
        else:
            parts = {
                facts: _grouped_table(group, own, measured, absent),
                f"{dataset}: computation": _grouped_table(group, own, computation, absent),
            }
        for title, table in parts.items():
            heading(console, title)
            show_table(console, table)
            console.print()
        _say_absent(console, group, absent)


def _say_absent(console: Console, group: pd.DataFrame, absent: Mapping[str, str]) -> None:
    """Say of each backend whose library is not installed how to install it."""
    for label in group["backend_label"].unique():
        if label in absent:
            console.print(f"{label} is absent: {absent[label]}", soft_wrap=True)
            console.print()


def show_short_table(
    console: Console,
    cells: pd.DataFrame,
    groups: Sequence[AgreeingCells],
    measures: Iterable[str],
    absent: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Print the summary of a study, cells whose posteriors agree as one row.

    Args:
        console: where to.
        cells: the summary.
        groups: its cells by whether they agree.
        measures: names of the measures to show.
        absent: as `show_study_table` takes it.
    """
    table = short_table(cells, groups, "", measures)
    records = table.frame.assign(times=[_times(cells, group) for group in groups])
    for title, own in records.groupby("block", sort=False):
        shown = plain_table()
        # The name takes what the numbers leave, and is broken between lines.
        shown.add_column(table.columns[0].title, overflow="fold", ratio=1)
        for column in table.columns[1:]:
            shown.add_column(column.title, justify="right", no_wrap=True)
        shown.add_column("per resp.", justify="right", no_wrap=True)
        for record in own.to_dict("records"):
            texts = [column.text(record[column.name]) for column in table.columns]
            shown.add_row(*texts, record["times"])
        heading(console, str(title))
        show_table(console, shown)
        console.print()
        _say_absent(console, cells[cells["dataset"] == own["dataset"].iloc[0]], absent)


def _times(cells: pd.DataFrame, group: AgreeingCells) -> str:
    """The median times per response of the fastest and the slowest of cells that agree."""
    seconds = cells["seconds_median"].iloc[list(group.rows)]
    least, most = duration(seconds.min()), duration(seconds.max())
    if least == most:
        return least
    # One unit is enough for both, and leaves its room to the names.
    return f"{least.removesuffix(most[most.rindex(' ') :])}–{most}"


def _flat_table(
    group: pd.DataFrame,
    own: Sequence[Column],
    columns: Sequence[Column],
    absent: Collection[str],
) -> TerminalTable:
    table = plain_table([column.title for column in own], [column.title for column in columns])
    before = ""
    for row in _texts(group, own, columns, absent):
        if before not in ("", row[0]):
            table.add_section()
        before = row[0]
        table.add_row(*row)
    return table


def _grouped_table(
    group: pd.DataFrame,
    own: Sequence[Column],
    columns: Sequence[Column],
    absent: Collection[str],
) -> TerminalTable:
    """A table with what backends share in lines of their own above them."""
    table = plain_table()
    rows = list(_texts(group, own, columns, absent))
    at = [column.name for column in own].index("backend_label")
    # Where it is narrow, headings break between words and names anywhere; numbers stay whole.
    table.add_column("backend", overflow="fold")
    for position, column in enumerate(columns, start=len(own)):
        whole = [*column.title.split(), *(row[position] for row in rows)]
        table.add_column(column.title, justify="right", min_width=max(map(len, whole)))
    before = ""
    for row in rows:
        shared = " ".join(row[:at])
        if shared != before:
            table.add_row(shared, style="bold")
        before = shared
        table.add_row(f"  {' '.join(row[at : len(own)])}", *row[len(own) :])
    return table


def _texts(
    group: pd.DataFrame,
    own: Sequence[Column],
    columns: Sequence[Column],
    absent: Collection[str],
) -> Iterator[list[str]]:
    for record in group.to_dict("records"):
        names = [column.text(record[column.name]) for column in own]
        if record["backend_label"] in absent:
            yield [*names, ABSENT, *[""] * (len(columns) - 1)]
        else:
            yield [*names, *(column.text(record[column.name]) for column in columns)]


@contextmanager
def ledger_at_limit(console: Console, ledger: Ledger) -> Iterator[None]:
    """Print what was asked and paid if the block ends since it may ask or pay no more."""
    try:
        yield
    except LimitReachedError:
        show_ledger(console, ledger)
        raise


def show_ledger(console: Console, ledger: Ledger) -> None:
    """Print what a run asked language models and paid, by stage; nothing if it asked nothing.

    What answers from the cache took when they were requested stands beside it.
    """
    if not ledger.stages:
        return
    titles = ["calls", "cached", "failed", "tokens in", "tokens out", "cost (US$)"]
    cached = bool(ledger.total.cached)
    if cached:
        titles += ["cached in", "cached out", "cached cost (US$)"]
    table = plain_table(["stage"], titles)
    rows = [*ledger.stages.items(), *([("all", ledger.total)] if len(ledger.stages) > 1 else [])]
    for stage, usage in rows:
        counts = (usage.calls, usage.cached, usage.failures)
        tokens = (usage.prompt_tokens, usage.completion_tokens)
        numbers = [f"{count:,}" for count in (*counts, *tokens)]
        numbers.append("unknown" if usage.unpriced else f"{usage.cost:.4f}")
        if cached:
            tokens = (usage.cached_prompt_tokens, usage.cached_completion_tokens)
            numbers += [f"{count:,}" for count in tokens]
            numbers.append("unknown" if usage.cached_unpriced else f"{usage.cached_cost:.4f}")
        table.add_row(stage, *numbers)
    show_table(console, table)
