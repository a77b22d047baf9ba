"""`factormodels infer --trace`: a table and a figure of what each algorithm found."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import experiments
from experiments.findings.figures.trace_figure import distances, trace_figure
from factormodels.synthetic import grid
from inference import infer
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
        (("--map",), "--trace is of posteriors"),
        (("--evidence", "rows.csv"), "--trace is of one answer"),
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
