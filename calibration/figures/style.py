"""Style of figures for papers, and their files, without windows or global state."""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from factormodels.control_characters import printable
from factormodels.errors import InputError
from factormodels.io.source.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette for all types of color vision, darker colors first."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h", "*")
"""Markers of methods: eleven markers and seven colors give 77 different pairs."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (5, 1.5, 1, 1.5)))
"""Dash styles of methods, in matplotlib's format."""

PAPER_STYLE: Mapping[Any, Any] = {
    # Fonts by name, because "serif" would be resolved when the figure is drawn, which may be after
    # these settings were restored. The second font has letters that the first lacks.
    "font.family": ["STIXGeneral", "DejaVu Sans"],
    "mathtext.fontset": "stix",
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "axes.titlesize": 8.5,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.0,
    "lines.markersize": 4.0,
    "legend.frameon": False,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
    "svg.hashsalt": "factormodels",
}
"""Settings of a figure with the width of a column; fonts come with matplotlib and are embedded."""

_FORMATS = ("pdf", "png", "svg")
_RUNS = 3
"""zlib's strategy Z_RLE, run-length encoding; figures have many runs of equal pixels."""
_DOCUMENT_KEYS = ("Title", "Author", "Subject", "Keywords")


@contextmanager
def paper_style() -> Iterator[None]:
    """Apply matplotlib's defaults and `PAPER_STYLE` within the block, then restore the settings.

    The user's matplotlib configuration does not affect the figure, which looks the same everywhere.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        for name, value in PAPER_STYLE.items():
            matplotlib.rcParams[name] = value
        yield


def save_figure(
    figure: Figure,
    path_without_suffix: str | os.PathLike[str],
    formats: Sequence[str] = ("pdf", "png"),
    metadata: Mapping[str, str] | None = None,
) -> tuple[Path, ...]:
    """Write a figure atomically in each format, and return the paths.

    The files contain no time stamp: writing the same figure again gives the same bytes.

    Args:
        figure: the figure.
        path_without_suffix: path to which ``.pdf`` and so on are appended.
        formats: some of ``pdf``, ``png`` and ``svg``.
        metadata: texts to save in the files. Title, Author, Subject and Keywords fill the fields of
            these names; other entries, such as study and hash, become keywords.

    Raises:
        InputError: for an unknown format, a path with the suffix of a format, metadata that are not
            texts, or a folder that cannot be written.
    """
    if isinstance(formats, str) or not formats or not set(formats) <= set(_FORMATS):
        raise InputError(f"formats is {formats!r}; give some of {', '.join(_FORMATS)} in a list")
    base = Path(path_without_suffix)
    if base.suffix.lstrip(".") in _FORMATS:
        raise InputError(f"{base}: the name ends in {base.suffix}; leave the suffix out")
    entries = dict(metadata or {})
    for key, value in entries.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InputError(f"metadata[{key!r}] is {value!r}; give texts by name")
    paths = tuple(base.with_name(f"{base.name}.{suffix}") for suffix in formats)
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        # Characters that no font has would raise an error or leave a blank.
        if (shown := printable(text.get_text())) != text.get_text():
            text.set_text(shown)
    # This takes two thirds of the default's time, and the file is a tenth larger.
    packing: dict[str, dict[str, Any]] = {"png": {"pil_kwargs": {"compress_type": _RUNS}}}
    with paper_style(), laid_out(figure):
        for suffix, path in zip(formats, paths, strict=True):
            # Write to memory first: matplotlib fails badly if the disk is full during writing.
            drawn = io.BytesIO()
            fields = _metadata(suffix, entries)
            figure.savefig(drawn, format=suffix, metadata=fields, **packing.get(suffix, {}))
            with atomic_path(path) as temporary:
                temporary.write_bytes(drawn.getvalue())
    return paths


@runtime_checkable
class Arranged(Protocol):
    """A figure that places its own texts and panels, as `ShownFigure` does."""

    def arrange(self) -> None:
        """Place the texts and panels for the current width of the figure."""


@contextmanager
def laid_out(figure: Figure) -> Iterator[None]:
    """Compute the layout of a figure once, and keep it for all drawing within the block.

    Labels and titles that would exceed the figure are wrapped. After the block, the figure has its
    original texts and layout engine, so that it can be drawn at another width.
    """
    engine, dpi = figure.get_layout_engine(), figure.get_dpi()
    # On few pixels letters have whole widths, and labels are up to a tenth narrower than in a file.
    figure.set_dpi(PAPER_STYLE["savefig.dpi"])
    if isinstance(figure, Arranged):
        figure.arrange()
    if engine is not None:
        engine.execute(figure)
    broken = _break_texts_that_leave(figure)
    if engine is not None:
        if broken:
            engine.execute(figure)
        # Use None instead of "none", whose placeholder engine would draw every file twice.
        figure.set_layout_engine(None)
    figure.set_dpi(dpi)
    try:
        yield
    finally:
        for text, whole in broken:
            text.set_text(whole)
        if engine is not None:
            figure.set_layout_engine(engine)


def _break_texts_that_leave(figure: Figure) -> list[tuple[Text, str]]:
    """Wrap axis labels and titles that exceed the figure or touch each other.

    Constrained layout makes room for the height of a label along an axis, but not for its length.

    Returns:
        The wrapped texts, with their original strings.
    """
    broken = []
    titles = [axes.title for axes in figure.axes]
    across = [axes.xaxis.label for axes in figure.axes]
    upright = [axes.yaxis.label for axes in figure.axes]
    for axes in figure.axes:
        labels: tuple[tuple[Text, int, list[Text]], ...] = (
            (axes.title, 0, titles),
            (axes.xaxis.label, 0, across),
            (axes.yaxis.label, 1, [*upright, *across]),
        )
        for text, along, alike in labels:
            whole, characters = text.get_text(), len(text.get_text())
            while (
                whole and characters > 1 and (_leaves(text, figure, along) or _touches(text, alike))
            ):
                characters -= 1
                lines = textwrap.wrap(whole, characters, break_long_words=False)
                text.set_text("\n".join(lines))
            if text.get_text() != whole:
                broken.append((text, whole))
    return broken


def _touches(text: Text, others: Sequence[Text]) -> bool:
    """Return whether a text overlaps another text."""
    box = text.get_window_extent()
    return any(
        other is not text and other.get_text() and box.overlaps(other.get_window_extent())
        for other in others
    )


def _leaves(text: Text, figure: Figure, along: int) -> bool:
    """Return whether a text exceeds a figure along an axis (0: horizontal, 1: vertical)."""
    first, last = text.get_window_extent().get_points()[:, along]
    start, end = figure.bbox.get_points()[:, along]
    # Letters are slightly wider at the resolution of some files.
    slack = 0.01 * (end - start)
    return bool(first < start + slack or last > end - slack)


def _metadata(suffix: str, entries: Mapping[str, str]) -> dict[str, str | None]:
    """Metadata for matplotlib, without the time stamp that it would add."""
    fields: dict[str, str | None] = {key: entries[key] for key in _DOCUMENT_KEYS if key in entries}
    others = [f"{key}={value}" for key, value in entries.items() if key not in _DOCUMENT_KEYS]
    if suffix == "png":
        return {**entries}
    if others:
        fields["Keywords"] = "; ".join(
            [entries["Keywords"], *others] if "Keywords" in entries else others
        )
    if suffix == "pdf":
        return {**fields, "CreationDate": None}
    names = {"Author": "Creator", "Subject": "Description"}
    return {**{names.get(key, key): value for key, value in fields.items()}, "Date": None}
