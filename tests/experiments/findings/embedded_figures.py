"""The figures of commands and of embedded studies, as the tests of their looks draw them."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import calibration
from calibration.figures import reliability_diagram
from experiments import apply, draw, estimate, fastfact, fit, score, select, self_knowledge
from experiments.findings.artifacts import PaperFigure
from experiments.findings.figures.trace_figure import distances, trace_figure
from experiments.findings.table import data_frame
from experiments.networks.frontier_figure import frontier_figure
from experiments.pages.study_page import posteriors_figure, scores_figure
from factormodels.datasets import load
from factormodels.synthetic import grid
from inference import infer
from tests.experiments.findings.study_figures import kept_figures

DOCS = Path(__file__).resolve().parents[3] / "docs"


def of_commands(*, whole: bool = True) -> dict[str, PaperFigure]:
    """Draw the figures of all commands that have any; of `score` those of few and many models.

    Args:
        whole: whether also figures are drawn that differ from others in their data alone.
    """
    generator = np.random.default_rng(0)
    models = ["a", "a longer name of a model", *"bcdef"]
    rows = [
        {"model": model, "response": number // 6, "claim": number, "p": p, "label": bar < 0.5}
        for number, (*each, bar) in enumerate(generator.random((120, len(models) + 1)))
        for model, p in zip(models, each, strict=True)
    ]
    made: dict[str, PaperFigure] = {}
    for number in (2, len(models)) if whole else (2,):
        shown = [row for row in rows if row["model"] in models[:number]]
        figures = score(shown, scores=["brier"], n_bootstrap=20, resamples=20).draw()
        made |= {f"{name}-of-{number}": figure for name, figure in figures.items()}
    few = [row | {"label": row["label"] if at % 4 else None} for at, row in enumerate(rows[::7])]
    made |= estimate(few).draw()
    made |= select("demonstration", domain="things").draw()
    with TemporaryDirectory() as folder:
        made |= _of_annotated(Path(folder))
        made |= _of_a_judge(Path(folder))
    made |= _of_self_knowledge()
    for graph in load("demonstration").graphs[: 2 if whole else 0]:
        made[graph.id] = draw(graph).draw()["graph"]
    made["at-odds"] = draw(load("at-odds").graphs[0]).draw()["graph"]
    network = draw(grid(3, 3, coupling=1.0, field=1.0, seed=0))
    return {**made, "network": network.draw()["graph"]}


def _of_annotated(folder: Path) -> dict[str, PaperFigure]:
    """Draw what `fastfact --annotated` does, of responses of which every other has one claim."""
    claim = {"claim": "It is so.", "pre-label": "supported", "annotator_label": "supported"}
    details = {"action": "kept", "modification": "unchanged", "agreement": "agreed"}
    claims = [{**claim, "annotation_status_details": details}] * 9
    path = folder / "annotated.jsonl"
    lines = [
        {"question": "Is it?", "response": "It is so.", "model": f"m{at}",
         "prompt_source": "bench", "claims_lst": claims[: 1 + 4 * (at % 3)]}
        for at in range(6)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return {**fastfact(path, annotated=True).draw()}


def _of_a_judge(folder: Path) -> dict[str, PaperFigure]:
    """Draw the law of evidence that `apply` tests."""
    graphs = list(load("factscore").graphs)
    fit(graphs[:8], penalty=30.0, folds=0, save=folder / "judge.json")
    return {**apply(folder / "judge.json", graphs[8:14], n_bootstrap=20).draw()}


def _of_self_knowledge() -> dict[str, PaperFigure]:
    """Draw every figure of `self_knowledge`, of three models and two settings."""
    generator = np.random.default_rng(0)
    drawn = generator.random((3 * 60, 3)) < 0.6
    rows = [
        {
            "model": ("a", "a longer name of a model", "c")[at // 60],
            "response": at // 6,
            "sentence": 1 + at % 3,
            "label": "S" if supported else "NS",
            "question_answering": "correct" if direct else "incorrect",
            "none_of_the_above": "correct" if other else "none",
        }
        for at, (supported, direct, other) in enumerate(drawn)
    ]
    measured = self_knowledge(data_frame(rows), n_bootstrap=5, n_splits=5)
    return {f"self-knowledge-{name}": shown for name, shown in measured.draw().items()}


def of_functions(*, whole: bool = True) -> dict[str, PaperFigure]:
    """Draw what a program draws of scores, the trace of an answer, and the page of a study.

    Args:
        whole: whether also figures are drawn that differ from others in their data alone.
    """
    generator = np.random.default_rng(0)
    p = generator.random(200)
    labels = (generator.random(200) < p).astype(float)
    bins = {name: calibration.reliability_bins(p**power, labels) for name, power in _POWERS.items()}
    made = {
        **calibration.score(p, labels, np.arange(200) // 4).figures(),
        "reliability-of-bins": reliability_diagram(bins),
        "posteriors": posteriors_figure(p, np.where(p < 0.9, labels, np.nan)),
        "scores": scores_figure(_answers(), {"brier": "Brier", "log_loss": "log loss"}),
    }
    made["trace"] = trace_figure(*_bracket())
    posterior = infer(grid(12, 12, coupling=1.5, field=0.5, seed=1), "lbp", trace=True)
    assert posterior.trace is not None
    distance = distances(posterior.trace.marginals_frame(), posterior.marginals.flat)
    made["trace-of-one-answer"] = trace_figure(posterior.trace.to_frame(), distance)
    for count in (1, 2, 4) if whole else (4,):
        made[f"frontier-of-{count}-tiny"] = frontier_figure(tiny_networks(count))
    return {name: PaperFigure(figure, data_frame([]), name) for name, figure in made.items()}


def tiny_networks(count: int) -> pd.DataFrame:
    """Summarize networks that two backends answer at once, with errors of rounding alone."""
    return data_frame(
        [
            {"dataset": f"tiny {at}", "backend": backend, "seconds": seconds * (1 + at / 9)}
            | {"mean_error": error, "log_z_error": (-1) ** at * error}
            | dict.fromkeys(("lower_error", "upper_error"), bound)
            for at in range(count)
            for backend, seconds, error, bound in (
                ("exact", 2.3e-5, 0.0, 0.0),
                ("lbp", 3.9e-5, 8.3e-18, math.nan),
            )
        ]
    )


_POWERS: Mapping[str, float] = {"as given": 1.0, "squared": 2.0, "a longer name, rooted": 0.5}


def _bracket() -> tuple[pd.DataFrame, pd.Series]:
    """Return a trace of `auto`, and the distances of its marginals.

    As data, because an answer within some seconds may spend them on compiling. A real trace is
    drawn in tests/experiments/cli/test_infer_trace.py.
    """
    missing = math.nan
    # Algorithm, processor seconds, lower and upper bound, Bethe's estimate, distance of marginals.
    steps = [
        ("lbp", 0.225, missing, missing, 184.87, 0.0),
        ("cavi", 0.226, 168.70, missing, missing, 0.318),
        ("trw", 0.304, missing, 211.06, missing, 0.096),
        ("clamping(table_limit=6)", 0.363, 172.73, missing, missing, 0.293),
        ("cavi", 0.371, 169.99, missing, missing, 0.332),
        ("trw", 0.427, missing, 210.95, missing, 0.094),
        ("cavi", 0.435, 172.12, missing, missing, 0.330),
        ("clamping(table_limit=6)", 0.488, 174.61, missing, missing, 0.295),
        ("cavi", 0.494, 169.92, missing, missing, 0.319),
        ("clamping(table_limit=6)", 0.573, 174.65, missing, missing, 0.296),
        ("trw", 0.638, missing, 210.87, missing, 0.096),
        ("clamping(table_limit=6)", 0.726, 173.44, missing, missing, 0.299),
    ]
    columns = ["algorithm", "processor_seconds", "lower", "upper", "bethe", "distance"]
    frame = pd.DataFrame(steps, columns=columns).rename_axis("step").reset_index()
    return (
        frame.assign(
            estimate=missing,
            error=missing,
            best_lower=frame["lower"].cummax().ffill().fillna(-math.inf),
            best_upper=frame["upper"].cummin().ffill().fillna(math.inf),
        ),
        frame.set_index("step")["distance"],
    )


def _answers() -> list[dict[str, Any]]:
    """Return answers of backends with their scores, one without an interval."""
    names = (
        "exact",
        "lbp damped",
        "FR1 = FR2, implication, exact = lbp = lbp damped = cavi",
        "$x_1$",
    )
    return [
        {"name": name, "exact": name == "exact"}
        | {f"{measure}{end}": value + 0.1 * at if at != 1 or not end else math.nan
           for measure in ("brier", "log_loss")
           for end, value in (("", 0.2), ("_lower", 0.15), ("_upper", 0.3))}
        for at, name in enumerate(names)
    ]  # fmt: skip


def of_studies(*, whole: bool = True) -> dict[str, PaperFigure]:
    """Draw the figures of studies from what is kept in docs/results or beside this file.

    Args:
        whole: whether all of the kept figures are drawn, or one of each function.
    """
    make_draft = _make_draft()
    kept = make_draft.KeptResults()
    made = {name: make(kept) for name, make in make_draft.FIGURES.items()}
    made |= {
        name.replace("/", "-").replace(" ", "-"): shown
        for name, shown in kept_figures(whole=whole).items()
    }
    return {name: PaperFigure(figure, data_frame([]), name) for name, figure in made.items()}


def _make_draft() -> Any:
    """Return what draws the figures of the findings from the kept results of studies."""
    sys.path.insert(0, str(DOCS))
    try:
        return import_module("make_draft")
    finally:
        sys.path.remove(str(DOCS))
        sys.modules.pop("make_draft", None)
