"""Figures for papers, drawn with matplotlib's objects: no window, no global state left behind."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibration.reliability import HISTOGRAM_BINS, ReliabilityBins
from factormodels.errors import InputError
from factormodels.io.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, which people with any colour vision tell apart, darker ones first."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
"""Shapes of the methods; nine to seven colours, so that no pair recurs before 63 methods."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (5, 1.5, 1, 1.5)))
"""Line styles of the methods, as matplotlib takes them."""

PAPER_STYLE: Mapping[Any, Any] = {
    # Named, not "serif": what that stands for would be looked up when the figure is drawn, which
    # may be after these settings are gone. The second has letters that the first lacks.
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
"""Settings of a figure that is one column wide; fonts come with matplotlib and are embedded."""

_FORMATS = ("pdf", "png", "svg")
_DOCUMENT_KEYS = ("Title", "Author", "Subject", "Keywords")


@contextmanager
def paper_style() -> Iterator[None]:
    """Set matplotlib's defaults and `PAPER_STYLE` within the block; restore what was set after.

    A reader's own matplotlib configuration does not reach the figure, so that it looks the same
    everywhere.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        for name, value in PAPER_STYLE.items():
            matplotlib.rcParams[name] = value
        yield


@dataclass(frozen=True)
class _Sheet:
    """The measurements of the reliability diagram, in inches."""

    n_strips: int
    legend_height: float
    title_height: float

    width: ClassVar[float] = 3.4
    left: ClassVar[float] = 0.56
    right: ClassVar[float] = 0.12
    side: ClassVar[float] = width - left - right
    bottom: ClassVar[float] = 0.40
    gap: ClassVar[float] = 0.09
    label: ClassVar[float] = 0.17

    @property
    def strip(self) -> float:
        return 0.34 if self.n_strips <= 3 else 0.22

    @property
    def strips_height(self) -> float:
        return self.n_strips * (self.strip + self.gap)

    @property
    def top_of_diagram(self) -> float:
        return self.bottom + self.strips_height + self.side

    @property
    def height(self) -> float:
        title = self.title_height + 0.03 if self.title_height else 0.0
        return self.top_of_diagram + self.legend_height + 0.14 + title

    def rectangle(self, bottom: float, height: float) -> tuple[float, float, float, float]:
        """Return the place of axes as matplotlib wants it, in fractions of the figure."""
        return (
            self.left / self.width,
            bottom / self.height,
            self.side / self.width,
            height / self.height,
        )


def reliability_diagram(
    methods: Mapping[str, ReliabilityBins], *, title: str | None = None
) -> Figure:
    """Return a reliability diagram of one or more methods, with histograms of P below.

    Points lie at the mean predicted probability and the observed share of true atoms of each bin,
    with their intervals; on the diagonal a method is calibrated. Under the diagram each method
    has a strip that counts its atoms in each of 21 equal parts of [0, 1]. Where methods agree,
    those drawn later have smaller points and gaps in their lines, so that the earlier ones stay
    in sight.

    Args:
        methods: reliability bins by the name that the legend shows, drawn in this order.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure 3.4 inches wide, the width of a column; `save_figure` writes it.

    Raises:
        InputError: if there is no method, or one is not given as ReliabilityBins.
    """
    if not methods:
        raise InputError("methods is empty; give at least one method's reliability bins by name")
    for name, bins in methods.items():
        if not isinstance(bins, ReliabilityBins):
            raise InputError(
                f"methods[{name!r}] is of type {type(bins).__name__}; give what reliability_bins "
                "returns"
            )
    from matplotlib.figure import Figure

    with paper_style():
        figure = Figure()
        diagram = figure.add_axes((0.0, 0.0, 1.0, 1.0), label="diagram")
        handles = _draw_diagram(diagram, list(methods.values()))
        # The figure is as high as legend and title need, which is known once their text is set.
        legend_height = _draw_legend(diagram, handles, _legend_entries(methods), figure.dpi)
        heading = figure.text(0.0, 0.0, "", ha="center", va="top", fontsize=8.5)
        _wrap([heading], [title or ""], heading, figure.dpi)
        title_height = heading.get_window_extent().height / figure.dpi if title else 0.0
        sheet = _Sheet(len(methods), legend_height, title_height)
        figure.set_size_inches(sheet.width, sheet.height)
        diagram.set_position(sheet.rectangle(sheet.bottom + sheet.strips_height, sheet.side))
        for row, bins in enumerate(methods.values()):
            bottom = sheet.bottom + (sheet.n_strips - 1 - row) * (sheet.strip + sheet.gap)
            strip = figure.add_axes(
                sheet.rectangle(bottom, sheet.strip), label="strip", sharex=diagram
            )
            _draw_strip(strip, bins, COLOURS[row % len(COLOURS)])
        last = figure.axes[-1]
        last.tick_params(labelbottom=True)
        last.set_xlabel("Predicted probability of being true")
        diagram.yaxis.set_label_coords(
            sheet.label / sheet.width,
            (sheet.top_of_diagram - sheet.side / 2) / sheet.height,
            transform=figure.transFigure,
        )
        figure.text(
            sheet.label / sheet.width,
            (sheet.bottom + (sheet.strips_height - sheet.gap) / 2) / sheet.height,
            "Atoms",
            rotation=90,
            ha="right",
            va="center",
        )
        middle = (sheet.left + sheet.side / 2) / sheet.width
        heading.set_position((middle, 1 - 0.06 / sheet.height))
    return figure


def save_figure(
    figure: Figure,
    path_without_suffix: str | os.PathLike[str],
    formats: Sequence[str] = ("pdf", "png"),
    metadata: Mapping[str, str] | None = None,
) -> tuple[Path, ...]:
    """Write a figure in each format, whole or not at all, and return the paths.

    The files hold no time: the same figure, written again, gives the same bytes.

    Args:
        figure: the figure.
        path_without_suffix: where to write; ``.pdf`` and so on are appended.
        formats: some of ``pdf``, ``png`` and ``svg``.
        metadata: texts to keep in the files. Title, Author, Subject and Keywords go in the
            fields of those names; others, such as study and hash, become keywords.

    Raises:
        InputError: for an unknown format, a path that ends in one, metadata that are not texts,
            or a folder that cannot be written.
    """
    if isinstance(formats, str) or not formats or not set(formats) <= set(_FORMATS):
        raise InputError(f"formats is {formats!r}; give some of {', '.join(_FORMATS)} in a list")
    base = Path(path_without_suffix)
    if base.suffix.lstrip(".") in _FORMATS:
        raise InputError(f"{base}: the name ends in {base.suffix}; leave the suffix out")
    given = dict(metadata or {})
    for key, value in given.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InputError(f"metadata[{key!r}] is {value!r}; give texts by name")
    paths = tuple(base.with_name(f"{base.name}.{suffix}") for suffix in formats)
    with paper_style():
        for suffix, path in zip(formats, paths, strict=True):
            with atomic_path(path) as temporary:
                figure.savefig(temporary, format=suffix, metadata=_metadata(suffix, given))
    return paths


def _metadata(suffix: str, given: Mapping[str, str]) -> dict[str, str | None]:
    """Return what matplotlib is told to write, without the time that it adds by itself."""
    fields: dict[str, str | None] = {key: given[key] for key in _DOCUMENT_KEYS if key in given}
    others = [f"{key}={value}" for key, value in given.items() if key not in _DOCUMENT_KEYS]
    if suffix == "png":
        return {**given}
    if others:
        fields["Keywords"] = "; ".join(
            [given["Keywords"], *others] if "Keywords" in given else others
        )
    if suffix == "pdf":
        return {**fields, "CreationDate": None}
    names = {"Author": "Creator", "Subject": "Description"}
    return {**{names.get(key, key): value for key, value in fields.items()}, "Date": None}


def _legend_entries(methods: Mapping[str, ReliabilityBins]) -> list[str]:
    """Return the name of each method, and last what the vertical lines are.

    What all methods share (number of atoms, kind of interval) is told once.
    """
    bins = list(methods.values())
    sizes = {each.n_atoms for each in bins}
    kinds = {(each.level, each.interval, each.n_responses) for each in bins}
    names = list(methods)
    note = "intervals"
    if len(kinds) == 1:
        level, interval, n_responses = kinds.pop()
        how = "Wilson, atoms independent"
        if interval == "bootstrap":
            how = f"bootstrap over {n_responses:,} responses"
        note = f"{100 * level:g}% intervals ({how})"
    if len(sizes) == 1:
        return [*names, f"{sizes.pop():,} atoms, {note}"]
    return [
        *(f"{name} ({each.n_atoms:,} atoms)" for name, each in methods.items()),
        note[0].upper() + note[1:],
    ]


def _draw_diagram(axes: Axes, methods: Sequence[ReliabilityBins]) -> list[Line2D]:
    """Draw the diagonal and the methods; return what the legend shows, the interval last."""
    from matplotlib.lines import Line2D as Line

    axes.plot([0, 1], [0, 1], color="0.55", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    handles = []
    for row, bins in enumerate(methods):
        colour, marker = COLOURS[row % len(COLOURS)], MARKERS[row % len(MARKERS)]
        earlier = (len(methods) - 1 - row) / max(len(methods) - 1, 1)
        axes.vlines(
            bins.mean_predicted,
            bins.lower,
            bins.upper,
            color=colour,
            linewidth=0.8 + 1.0 * earlier,
            alpha=0.6,
            clip_on=False,
            zorder=2,
        )
        (line,) = axes.plot(
            bins.mean_predicted,
            bins.observed,
            color=colour,
            linewidth=1.0,
            linestyle=DASHES[row % len(DASHES)],
            marker=marker,
            markersize=4.0 + 2.2 * earlier,
            markeredgecolor="white",
            markeredgewidth=0.5,
            clip_on=False,
            zorder=3,
        )
        handles.append(line)
    handles.append(
        Line([], [], color="0.4", linewidth=0.8, linestyle="none", marker="|", markersize=7)
    )
    axes.set(xlim=(0, 1), ylim=(0, 1), ylabel="Observed share of true atoms")
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.tick_params(labelbottom=False)
    return handles


def _draw_legend(
    axes: Axes, handles: Sequence[Line2D], entries: Sequence[str], dots_per_inch: float
) -> float:
    """Draw the legend above the axes and return its height in inches."""
    legend = axes.legend(
        handles,
        [str(row) for row in range(len(handles))],
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0 + 0.07 / _Sheet.side),
        borderaxespad=0.0,
        handlelength=2.0,
        labelspacing=0.25,
        borderpad=0.0,
    )
    # Names are set here: matplotlib would leave out one that begins with an underscore.
    _wrap(legend.get_texts(), entries, legend, dots_per_inch)
    return float(legend.get_window_extent().height / dots_per_inch)


def _wrap(
    texts: Sequence[Text], contents: Sequence[str], whole: Artist, dots_per_inch: float
) -> None:
    """Fill texts, as they are and in lines so short that `whole` is not wider than the diagram."""
    for columns in range(60, 9, -5):
        for text, content in zip(texts, contents, strict=True):
            # Two dollar signs in a name are not mathematics.
            text.set_parse_math(False)
            text.set_text(textwrap.fill(content, columns))
        if whole.get_window_extent().width <= _Sheet.side * dots_per_inch:
            return


def _draw_strip(axes: Axes, bins: ReliabilityBins, colour: str) -> None:
    edges = np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1)
    most = int(bins.histogram.max())
    axes.bar(
        edges[:-1],
        bins.histogram,
        width=1 / HISTOGRAM_BINS,
        align="edge",
        color=colour,
        edgecolor="white",
        linewidth=0.4,
    )
    axes.set_ylim(0, most * 1.08)
    axes.set_yticks([0, most], ["0", f"{most:,}" if most < 1_000_000 else f"{most / 1e6:.3g}M"])
    axes.tick_params(labelbottom=False)
