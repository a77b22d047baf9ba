"""`factormodels infer --trace`: a table and a figure of what each algorithm found."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pandas as pd
import pytest

import experiments
from experiments.findings.figures.trace_figure import distances, trace_figure
from factormodels import FactorGraph
from factormodels.synthetic import grid
from inference import Posterior, infer
from inference.exact.backend import Exact
from inference.kernels.preparation import PREPARATION
from tests.experiments.cli.test_bad_input import assert_refused, refuse
from tests.experiments.conftest import invoke
from tests.figure_faults import figure_faults


def test_the_trace_is_written_beside_the_answer(network_file: Path) -> None:
    printed = invoke("infer", network_file, "--trace", "out").stdout
    assert "Results of each algorithm" in printed
    trace = pd.read_csv("out/trace.csv")
    assert trace["algorithm"].tolist() == ["exact"]
    assert {"marginals.csv", "anytime.pdf", "anytime.png"} <= {
        p.name for p in Path("out").iterdir()
    }
    findings = experiments.infer(network_file, trace="alone.csv", backend="lbp")
    assert pd.read_csv("alone.csv")["algorithm"].tolist() == ["lbp"]
    assert {"trace", "marginals"} < set(findings.tables)


@pytest.mark.usefixtures("undrawn")
def test_what_was_asked_and_answered_is_kept_beside_the_trace(network_file: Path) -> None:
    hashes, answers = set(), []
    for name, settings in (("exact", "exact"), ("damped", "lbp,damping=0.5"), ("again", "exact")):
        invoke("infer", network_file, "--backend", settings, "--trace", name)
        kept = json.loads(Path(name, "findings.json").read_text())
        assert kept["settings"]["backend"] == settings.partition(",")[0]
        answers.append(kept["findings"][0])
        figure = Path(name, "anytime.tex").read_text()
        hashes.add(next(line for line in figure.splitlines() if "sha256" in line))
        # The caption names the network, the band and whose marginals the others are compared with.
        assert network_file.name in figure
        assert "Band: " in figure
        assert f"from {settings.partition(',')[0]}, with the status" in figure
    assert all(answer.startswith("log Z") for answer in answers)
    # The folder is no setting, and everything else is.
    assert len(hashes) == 2


def test_the_time_shown_leaves_out_kernels_that_are_compiled_on_the_way(
    network_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve = Exact.solve

    def compiling(backend: Exact, graph: FactorGraph) -> Posterior:
        with PREPARATION.counted():
            time.sleep(1.0)
        return solve(backend, graph)

    monkeypatch.setattr(Exact, "solve", compiling)
    (model,) = json.loads(invoke("infer", network_file, "--backend", "exact", "--json").stdout)[
        "tables"
    ]["models"]
    assert model["seconds"] < 0.9


def test_the_figure_of_a_bracket_can_be_read() -> None:
    graph = grid(12, 12, coupling=1.5, field=0.5, seed=1)
    posterior = infer(graph, trace=True, memory_limit=20_000, seconds=1.0)
    assert posterior.trace is not None
    frame = posterior.trace.to_frame()
    distance = distances(posterior.trace.marginals_frame(), posterior.marginals.flat)
    # The answer's own marginals are at no distance.
    assert (distance == 0.0).any()
    assert figure_faults(trace_figure(frame, distance)) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--map",), "--trace applies to posteriors"),
        (("--evidence", "rows.csv"), "--trace applies to a single answer"),
    ],
)
def test_backends_without_a_trace_are_refused(
    network_file: Path, options: tuple[str, ...], sentence: str
) -> None:
    Path("rows.csv").write_text("0\n1\n")
    assert_refused(refuse("infer", network_file, *options, "--trace", "out"), sentence)
    assert not Path("out").exists()
    Path("taken").write_text("")
    assert_refused(
        refuse("infer", network_file, "--trace", "taken"), "--trace taken: this is a file"
    )
