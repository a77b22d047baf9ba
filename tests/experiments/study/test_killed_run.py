"""A study with what comes before units: the same files after some deaths, and anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.study.reading import load_study
from experiments.study.runner import StudyDesign, design, run_study
from tests.experiments import strange
from tests.experiments.conftest import cluster_here, study_file
from tests.experiments.killed_run import deaths
from tests.experiments.study.test_runner import assert_same_files

pytestmark = [pytest.mark.kill, pytest.mark.service, pytest.mark.slow]

STUDY = """
study: s
datasets: [{name: demonstration, limit: LIMIT}]
variants: [FR1, FR3]
relation_models: [recorded, lexical]
priors: [{}, {atom: [0.3]}LEARNED]
backends: [{backend: slow, label: slow, settings: {seconds_each: EACH}}, lbp]
selections: [all, core]
significance: {pairs: [[slow, lbp]], measures: [brier], resamples: 200}
outputs: [csv, latex, markdown]
"""

LEARNED = ", {name: learned, learned: {folds: 3, parameters: [atom_prior]}}"
"""Priors of the larger study; test_learned_study.py interrupts fits and goes on with them."""

KILLS = {4: 2, 10: 4}
"""Kills by responses of the study, whose slow units take the same time in all."""

N_PRIORS = {4: 2, 10: 3}
"""Settings of priors by responses of the study."""


@pytest.fixture(scope="module", params=[4, pytest.param(10, marks=pytest.mark.nightly)])
def limit(request: pytest.FixtureRequest) -> int:
    """Responses of the study."""
    number: int = request.param
    return number


@pytest.fixture(scope="module")
def study(limit: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The study's file, beside the folder `undisturbed` of a run in one process."""
    text = STUDY.replace("LIMIT", str(limit)).replace("EACH", str(0.15 / limit))
    text = text.replace("LEARNED", LEARNED if N_PRIORS[limit] == 3 else "")
    path = study_file(tmp_path_factory.mktemp("study"), text)
    strange.register_all()
    run_study(planned(path), path.parent / "undisturbed", workers=1)
    yield path
    strange.unregister_all()


def planned(path: Path) -> StudyDesign:
    return design(load_study(str(path)))


def assert_undisturbed(study: Path, other: Path) -> None:
    undisturbed = study.parent / "undisturbed"
    assert_same_files(undisturbed, other)
    names = ["selections.csv"]
    if LEARNED in study.read_text("utf-8"):
        names.append("priors.csv")
    for name in names:
        assert (undisturbed / name).read_bytes() == (other / name).read_bytes()


def test_deaths_change_no_byte_of_the_tables(study: Path, limit: int, tmp_path: Path) -> None:
    counts = deaths(study, tmp_path / "killed", KILLS[limit], 0)
    assert len(counts) == KILLS[limit]
    assert counts == sorted(counts), "nothing that was finished is lost"
    # Every death that followed a finished task found more than the one before.
    assert len(set(counts)) > KILLS[limit] // 2
    assert counts[-1] == limit * 2 * 2 * N_PRIORS[limit] * 2
    assert_undisturbed(study, tmp_path / "killed")


# The smaller versions: test_data_in_processes.py has the same files of two processes,
# test_learned_study.py fits in them.
@pytest.mark.nightly
def test_processes_give_the_same_files(study: Path, tmp_path: Path) -> None:
    run_study(planned(study), tmp_path / "two", workers=2)
    assert_undisturbed(study, tmp_path / "two")


# The test above, of processes, walks the same way but for the address.
@pytest.mark.nightly
def test_a_cluster_gives_the_same_files(study: Path, tmp_path: Path) -> None:
    """A larger case than `test_dask.py`: relation models and selections beside learned priors."""
    with cluster_here(1) as address:
        run_study(planned(study), tmp_path / "dask", dask=address)
    assert_undisturbed(study, tmp_path / "dask")
