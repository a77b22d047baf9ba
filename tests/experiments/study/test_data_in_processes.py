"""Processes of this machine make the data of a large study, and run its units."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.parallel_map import Processes, processes
from experiments.study import data, packed_graphs, runner
from experiments.study.packed_graphs import PackedPart
from experiments.study.reading import load_study
from experiments.study.runner import design, run_study
from factormodels import write_many
from factormodels.synthetic import labeled_responses
from tests.experiments.conftest import study_file
from tests.experiments.study.test_runner import assert_same_files, stopping

pytestmark = [pytest.mark.kill, pytest.mark.slow]

STUDY = """
study: s
datasets:
  - name: made
    synthetic:
      {n_responses: 90, n_atoms: [0, 4], contexts_per_atom: 2, density: 0.2, unlabeled: 0.2}
  - path: read.jsonl
backends: [exact, {backend: lbp, settings: {damping: 0.5}}]
outputs: [csv, latex, markdown]
"""


@pytest.fixture(scope="module", autouse=True)
def few_are_many() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (data, packed_graphs):
            patch.setattr(module, "HELD", 20)
            patch.setattr(module, "PART", 16)
        patch.setattr(data, "_MANY_BYTES", 100)
        yield


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    graphs = labeled_responses(50, n_atoms=(1, 3), contexts_per_atom=1, seed=8)
    write_many(graphs, folder / "read.jsonl")
    return study_file(folder, STUDY)


@pytest.fixture(scope="module")
def here(study: Path) -> Path:
    """The folder of a run in one process, without a pause."""
    run_study(design(load_study(str(study))), study.parent / "here", workers=1)
    return study.parent / "here"


@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.nightly)])
def several(request: pytest.FixtureRequest) -> Iterator[Processes]:
    """Processes, which take longer to start than to run the study."""
    with processes(request.param) as workers:
        yield workers


def test_the_first_process_makes_no_data(
    study: Path,
    here: Path,
    several: Processes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a response is made in the first process")

    # The processes are new ones, not copies of this, and so have nothing of it.
    monkeypatch.setattr(PackedPart, "of", refuse)
    monkeypatch.setattr(data, "_graphs", refuse)
    monkeypatch.setattr(packed_graphs, "_unpacked", refuse)
    planned = design(load_study(str(study)), several)
    run_study(planned, tmp_path / "out", workers=several)
    assert_same_files(here, tmp_path / "out")
    monkeypatch.undo()
    assert [dataset.sha256 for dataset in planned.data] == [
        dataset.sha256 for dataset in design(load_study(str(study))).data
    ]
    # Nor do they import the configuration of a study, which takes half a second.
    loaded = several.submit(eval, "'pydantic' in __import__('sys').modules")
    assert not loaded.result()


def test_an_interrupted_run_goes_on_with_the_same_data(
    study: Path, here: Path, several: Processes, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    planned = design(load_study(str(study)), several)
    with pytest.raises(KeyboardInterrupt):
        run_study(planned, out, workers=several, monitor=lambda *_: stopping(40))
    for left in (True, False):
        planned = design(load_study(str(study)), several)
        assert 40 <= sum(runner.n_finished(out, planned)) <= 280
        assert (sum(runner.n_finished(out, planned)) < 280) == left
        run_study(planned, out, workers=several, resume=True)
        assert_same_files(here, out)
