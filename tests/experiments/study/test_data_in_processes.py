"""Processes of this machine make the data of a large study, and run its units."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.parallel_map import processes
from experiments.study import data, packed_graphs, runner
from experiments.study.packed_graphs import PackedPart
from experiments.study.reading import load_study
from experiments.study.runner import design, run_study
from factormodels import write_many
from factormodels.synthetic import labelled_responses
from tests.experiments.conftest import study_file
from tests.experiments.study.test_runner import assert_same_files, stopping

pytestmark = [pytest.mark.kill, pytest.mark.slow]

STUDY = """
study: s
datasets:
  - name: made
    synthetic:
      {n_responses: 90, n_atoms: [0, 4], contexts_per_atom: 2, density: 0.2, unlabelled: 0.2}
  - path: read.jsonl
backends: [exact, {backend: lbp, settings: {damping: 0.5}}]
outputs: [csv, latex, markdown]
"""


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (data, packed_graphs):
        monkeypatch.setattr(module, "HELD", 20)
        monkeypatch.setattr(module, "PART", 16)
    monkeypatch.setattr(data, "_MANY_BYTES", 100)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    graphs = labelled_responses(50, n_atoms=(1, 3), contexts_per_atom=1, seed=8)
    write_many(graphs, tmp_path / "read.jsonl")
    return study_file(tmp_path, STUDY)


@pytest.fixture
def here(study: Path, tmp_path: Path) -> Path:
    """The folder of a run in one process, without a pause."""
    run_study(design(load_study(str(study))), tmp_path / "here", workers=1)
    return tmp_path / "here"


@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_the_first_process_makes_no_data(
    study: Path, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a response is made in the first process")

    # They are started anew, and so have nothing of this.
    monkeypatch.setattr(PackedPart, "of", refuse)
    monkeypatch.setattr(data, "_graphs", refuse)
    monkeypatch.setattr(packed_graphs, "_unpacked", refuse)
    with processes(workers) as several:
        planned = design(load_study(str(study)), several)
        run_study(planned, tmp_path / "out", workers=several)
    assert_same_files(here, tmp_path / "out")
    monkeypatch.undo()
    assert [one.sha256 for one in planned.data] == [
        one.sha256 for one in design(load_study(str(study))).data
    ]


def test_an_interrupted_run_goes_on_with_the_same_data(
    study: Path, here: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with processes(2) as several:
        planned = design(load_study(str(study)), several)
        with pytest.raises(KeyboardInterrupt):
            run_study(planned, out, workers=several, monitor=lambda *_: stopping(40))
    for left in (True, False):
        with processes(2) as several:
            planned = design(load_study(str(study)), several)
            assert 40 <= sum(runner.n_finished(out, planned)) <= 280
            assert (sum(runner.n_finished(out, planned)) < 280) == left
            run_study(planned, out, workers=several, resume=True)
        assert_same_files(here, out)
