"""Code that is kept beside a library or a simpler form, and the numbers for which it is kept."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import ExitStack
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GroupKFold

import experiments
from calibration.recalibration import IsotonicRecalibrator, cross_fit
from calibration.scores.logistic import fit_logistic
from experiments.findings.latex import PACKAGES, latex
from experiments.findings.table import Table, blocks
from experiments.study import runner
from experiments.study.packed_graphs import GraphBlock
from factormodels import datasets
from factormodels.extraction.stages.relations import relation_pairs
from factormodels.synthetic import each_labeled_response
from factormodels.variants import merge_duplicate_contexts, variant
from inference import infer_batch
from tests.endurance import Row
from tests.endurance.deadly_task import task
from tests.experiments.findings import study_tables

TASKS = 20


def kept() -> Iterator[Row]:
    """Rows of all measurements below, by the code that is kept."""
    measurements: dict[str, Callable[[], Iterator[Row]]] = {
        "study/prepared": prepared,
        "study/packed_graphs.py": packed,
        "parallel_map.py": dead_worker,
        "findings/latex.py": latex_tables,
        "recalibration/by_name.py": calibrators,
        "scores/logistic.py": logistic,
        "Wilson's interval, corrections": imported,
    }
    for code, measure in measurements.items():
        for row in measure():
            yield {"code": code, **row}


def prepared(variants: Sequence[str] = ("FR1", "FR2", "FR3"), folds: int = 5) -> Iterator[Row]:
    """Seconds of processor time for results before the units, in a run and in its continuation.

    The study has variants of the demonstration, lexical relations, learned priors, and Core.
    """
    seconds: dict[str, list[float]] = {"_ask": [], "fit_all": [], "select_all": []}

    def timed(name: str) -> Callable[..., Any]:
        function = getattr(runner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            start = time.process_time()
            result = function(*arguments, **options)
            seconds[name].append(time.process_time() - start)
            return result

        return call

    study = {
        "study": "prepared",
        "description": "Results before the units.",
        "datasets": ["demonstration"],
        "variants": [*variants],
        "backends": ["exact"],
        "relation_models": ["lexical"],
        "priors": [{}, {"learned": {"folds": folds}}],
        "selections": ["core"],
        "outputs": ["csv"],
    }
    with tempfile.TemporaryDirectory() as folder, ExitStack() as patches:
        for name in seconds:
            patches.enter_context(patch.object(runner, name, timed(name)))
        for resume in (False, True):
            experiments.run(study, out=Path(folder, "out"), resume=resume, workers=1)
    for name, (first, again) in seconds.items():
        yield {"measured": f"{name}, s", "simpler": round(first, 2), "kept": round(again, 3)}
    graphs = [merge_duplicate_contexts(graph) for graph in datasets.load("demonstration").graphs]
    pairs = [sum(len(relation_pairs(graph, name)) for graph in graphs) for name in variants]
    yield {"measured": "pairs that a local model judges", "simpler": sum(pairs), "kept": pairs[-1]}


def packed(responses: int = 10_000) -> Iterator[Row]:
    """Bytes per response as an object and in a packed block; 4.5 claims and 9 passages each."""
    tracemalloc.start()
    graphs = list(
        each_labeled_response(
            seed=0, n_responses=responses, n_atoms=(3, 6), contexts_per_atom=2, density=0.1
        )
    )
    objects = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    block = GraphBlock.of([pickle.dumps(graph, pickle.HIGHEST_PROTOCOL) for graph in graphs])
    yield {
        "measured": "bytes a response",
        "simpler": round(objects / responses),
        "kept": round(len(block.compressed) / responses),
    }


def dead_worker() -> Iterator[Row]:
    """Number of 20 tasks that fail if one of two processes dies: with loky, and as kept."""
    loky = import_module("joblib.externals.loky")
    failed = []
    for executor in (loky.ProcessPoolExecutor(2), ProcessPoolExecutor(2, get_context("spawn"))):
        with executor:
            futures = [executor.submit(task, number) for number in range(TASKS)]
            wait(futures)
        failed.append(sum(future.exception() is not None for future in futures))
    yield {"measured": f"failed tasks of {TASKS}", "simpler": failed[0], "kept": failed[1]}


def latex_tables() -> Iterator[Row]:
    """Number of tables of docs/results that do not fit a page of `article`, or stop LaTeX."""
    with patch.object(study_tables, "ROWS", 10_000):
        tables = study_tables.tables_of_results().values()
    styled = [_faults(_styled(table)) for table in tables]
    ours = [_faults(latex(table, "table")) for table in tables]
    for fault in ("wider than the text", "higher than the page", "stops LaTeX"):
        yield {
            "measured": f"{fault}, of {len(tables)} tables",
            "simpler": sum(fault in each for each in styled),
            "kept": sum(fault in each for each in ours),
        }


def _styled(table: Table) -> str:
    """Return a table by pandas' Styler, without the repeated widest rows at its head."""
    texts = [[cell.text for cell in row] for _, rows in blocks(table) for row in rows]
    titles = [column.title for column in table.columns]
    style = pd.DataFrame(texts[len(titles) :], columns=titles).style.hide()
    escaped = style.format(escape="latex").format_index(escape="latex", axis=1)
    text: str = escaped.to_latex(hrules=True, environment="table")
    return text


def _faults(body: str) -> set[str]:
    lines = [r"\documentclass{article}", *PACKAGES, r"\begin{document}", body, r"\end{document}"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "paper.tex").write_text("\n".join(lines), encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", check=False
        )
    return {
        *(["wider than the text"] if r"Overfull \hbox" in done.stdout else []),
        *(["higher than the page"] if re.search("Float too large", done.stdout) else []),
        *(["stops LaTeX"] if done.returncode else []),
    }


class Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The probabilities as they are."""

    def fit(self, X: Any, y: Any) -> Given:  # noqa: ARG002
        """Note the classes."""
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of both classes, (n, 2)."""
        return np.hstack([1 - X, X])


def calibrators(
    data: Sequence[tuple[str, str]] = (("factscore", "FR2"), ("factcheck-bench", "FR1")),
) -> Iterator[Row]:
    """Brier score of isotonic maps on the claims of all folds, by scikit-learn and by `cross_fit`.

    The probabilities are posteriors of the recorded relations under `exact`.

    Args:
        data: names of data sets and the views of their responses.
    """
    for name, view in data:
        graphs = datasets.load(name).graphs
        models = [variant(graph, view).to_factor_graph() for graph in graphs]
        claims = [
            (posterior.marginals[atom.id][1], atom.label, graph.id)
            for graph, posterior in zip(graphs, infer_batch(models, "exact"), strict=True)
            for atom in graph.atoms
            if atom.label is not None
        ]
        p, y, response = (np.array(column) for column in zip(*claims, strict=True))
        folds = list(GroupKFold(5).split(p, y, response))
        averaging = CalibratedClassifierCV(Given(), method="isotonic", cv=folds)
        averaged = averaging.fit(p[:, np.newaxis], y).predict_proba(p[:, np.newaxis])[:, 1]
        held_out = cross_fit(IsotonicRecalibrator(), p, y, response).p
        yield {
            "measured": f"Brier score of {len(p)} claims, {name}",
            "simpler": round(float(np.mean((averaged - y) ** 2)), 4),
            "kept": round(float(np.mean((held_out - y) ** 2)), 4),
        }


def logistic(repeats: int = 100) -> Iterator[Row]:
    """Milliseconds of a logistic fit to redrawn rows, by `GLM` of statsmodels and as kept."""
    import statsmodels.api as sm

    generator = np.random.default_rng(0)
    for n, columns in ((300, 1), (300, 5), (30_000, 1), (30_000, 5)):
        x = generator.normal(size=(columns, n))
        y = (generator.random(n) < 1 / (1 + np.exp(-x.sum(axis=0)))).astype(float)
        weight = generator.multinomial(n, np.full(n, 1 / n)).astype(float)
        design = np.vstack([np.ones(n), x])
        model = sm.GLM(y, design.T, family=sm.families.Binomial(), freq_weights=weight)
        taken = []
        for fit in (model.fit, lambda d=design, w=weight, y=y: fit_logistic(d, w, w * y)):
            fit()
            start = time.process_time()
            for _ in range(max(1, repeats * 300 // n)):
                fit()
            taken.append((time.process_time() - start) / max(1, repeats * 300 // n) * 1e3)
        yield {
            "measured": f"fit of {n:,} rows with {columns + 1} columns, ms",
            "simpler": round(taken[0], 2),
            "kept": round(taken[1], 2),
        }


def imported() -> Iterator[Row]:
    """Seconds of processor time to import statsmodels for an interval or a correction."""
    for module in ("proportion", "multitest"):
        code = (
            "import time, numpy, scipy.special; start = time.process_time(); "
            f"import statsmodels.stats.{module}; print(time.process_time() - start)"
        )
        command = [sys.executable, "-c", code]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        name = f"import of statsmodels.stats.{module}, s"
        yield {"measured": name, "simpler": round(float(printed), 2), "kept": 0}
