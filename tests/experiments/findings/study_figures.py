"""Figures of embedded studies as data: what was drawn of each, to be drawn again.

    python -m tests.experiments.findings.study_figures papers/datasets encodings 'frontier graphs=1'

runs studies, with words that change their settings, and scripts of notebooks/questions by their
names, and keeps anew beside this file the frames from
which their figures were drawn. Studies whose tables are in docs/results are drawn from those.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

from matplotlib.figure import Figure

from experiments.analyses.study import load_analysis
from experiments.findings.table import data_frame
from experiments.networks import output
from experiments.study.reading import is_of_networks, read_raw
from factormodels.io.json import jsonable
from tests.experiments.findings.study_tables import artifacts_of

KEPT = Path(__file__).with_suffix(".json")

DRAWING = ("line_figure", "estimate_figure", "frontier_figure", "curve_figure", "width_figure")
"""Names of the functions that draw figures of studies from a frame."""


def kept_calls() -> dict[str, dict[str, Any]]:
    """Return what each kept figure is drawn from, by study and number."""
    kept = json.loads(KEPT.read_text("utf-8"))
    return {f"{call['study']} {at}": call for at, call in enumerate(kept, 1)}


def kept_figures(*, whole: bool = True) -> dict[str, Figure]:
    """Draw the figures that are kept, by study and number.

    Args:
        whole: whether to draw all, or the first of each function.
    """
    calls = kept_calls()
    firsts: dict[tuple[str, str], str] = {}
    for name, call in calls.items():
        firsts.setdefault((call["module"], call["function"]), name)
    drawn = calls if whole else [*firsts.values()]
    return {
        name: getattr(import_module(call["module"]), call["function"])(
            data_frame(call["frame"]), *call["given"], **call["named"]
        )
        for name, call in ((name, calls[name]) for name in drawn)
    }


def main(studies: list[str]) -> None:
    """Run studies, and keep what their figures are drawn from in place of what is kept of them."""
    calls: list[dict[str, Any]] = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else []
    for words in studies:
        study, *overrides = words.split(" ")
        calls = [call for call in calls if call["study"] != study]
        script = f"notebooks.questions.{study.replace('-', '_')}"
        if find_spec(script) is not None:
            module = import_module(script)
            answer = getattr(module, script.rpartition(".")[2])
        else:
            raw = read_raw(study, overrides)
            if is_of_networks(raw):
                module = output
            else:
                module = sys.modules[load_analysis(raw).analysis.run.__module__]
            answer = partial(artifacts_of, study, overrides)
        recorders: dict[str, Any] = {
            name: partial(_recorded, getattr(module, name), study, calls)
            for name in DRAWING
            if hasattr(module, name)
        }
        with patch.multiple(module, **recorders):
            answer()
    text = ",\n".join(json.dumps(call, ensure_ascii=False) for call in calls)
    KEPT.write_text(f"[\n{text}\n]\n", "utf-8")


def _recorded(
    draw: Callable[..., Figure],
    study: str,
    calls: list[dict[str, Any]],
    frame: Any,
    *given: Any,
    **named: Any,
) -> Figure:
    """Draw a figure, and add what it was drawn from to the calls."""
    call = {"study": study, "module": draw.__module__, "function": draw.__name__}
    if not any(call.items() <= other.items() for other in calls):
        rows = jsonable(frame.map(_short).to_dict("list"))
        calls.append({**call, "frame": rows, "given": given, "named": named})
    return draw(frame, *given, **named)


def _short(value: Any) -> Any:
    """Return a number with as many digits as can be seen in a figure."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main(sys.argv[1:])
