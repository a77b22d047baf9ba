"""A study with all that comes before units: the same files after four deaths, and anywhere."""

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
datasets: [{name: demonstration, limit: 10}]
variants: [FR1, FR3]
relation_models: [recorded, lexical]
priors: [{}, {atom: [0.3]}, {name: learned, learned: {folds: 3, parameters: [atom_prior]}}]
backends: [{backend: slow, settings: {seconds_each: 0.015}}, lbp]
selections: [all, core]
significance: {pairs: [[slow seconds_each=0.015, lbp]], measures: [brier], resamples: 200}
outputs: [csv, latex, markdown]
"""

KILLS = 4


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The study's file, beside the folder `undisturbed` of a run in one process."""
    path = study_file(tmp_path_factory.mktemp("study"), STUDY)
    strange.register_all()
    run_study(planned(path), path.parent / "undisturbed", workers=1)
    yield path
    strange.unregister_all()


def planned(path: Path) -> StudyDesign:
    return design(load_study(str(path)))


def assert_undisturbed(study: Path, other: Path) -> None:
    undisturbed = study.parent / "undisturbed"
    assert_same_files(undisturbed, other)
    for name in ("priors.csv", "selections.csv"):
        assert (undisturbed / name).read_bytes() == (other / name).read_bytes()


def test_deaths_change_no_byte_of_the_tables(study: Path, tmp_path: Path) -> None:
    counts = deaths(study, tmp_path / "killed", KILLS, 0)
    assert len(counts) == KILLS
    assert counts == sorted(counts), "nothing that was finished is lost"
    # Every death that followed a finished task found more than the one before.
    assert len(set(counts)) > KILLS // 2
    assert counts[-1] == 10 * 2 * 2 * 3 * 2
    assert_undisturbed(study, tmp_path / "killed")


def test_processes_give_the_same_files(study: Path, tmp_path: Path) -> None:
    run_study(planned(study), tmp_path / "two", workers=2)
    assert_undisturbed(study, tmp_path / "two")


@pytest.mark.nightly
def test_a_cluster_gives_the_same_files(study: Path, tmp_path: Path) -> None:
    """A larger case than `test_dask.py`: relation models and selections beside learned priors."""
    with cluster_here(1) as address:
        run_study(planned(study), tmp_path / "dask", dask=address)
    assert_undisturbed(study, tmp_path / "dask")
