"""A run that is killed ten times, at random moments, ends with the tables of an undisturbed one."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.run.runner import Execution, design, run_study
from experiments.study.reading import load_study
from tests.experiments import strange
from tests.experiments.conftest import study_file
from tests.experiments.killed_run import deaths
from tests.experiments.run.test_runner import assert_same_files

pytestmark = [pytest.mark.kill, pytest.mark.slow]

STUDY = """
study: s
datasets:
  - name: made
    synthetic: {n_responses: 150, n_atoms: [1, 4], contexts_per_atom: 2, density: 0.2}
variants: [FR1, FR2]
backends: [{backend: slow, settings: {seconds_each: 0.01}}, lbp]
significance: {pairs: [[slow seconds_each=0.01, lbp]], measures: [brier], resamples: 200}
outputs: [csv, latex, markdown]
"""

KILLS = 10


def test_ten_deaths_change_no_byte_of_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = study_file(tmp_path, STUDY)
    counts = deaths(path, tmp_path / "killed", KILLS, 0)
    assert len(counts) == KILLS
    assert counts == sorted(counts), "nothing that was finished is lost"
    # Every death that followed a finished task found more than the one before.
    assert len(set(counts)) > KILLS // 2
    assert counts[-1] == 600
    monkeypatch.setattr(strange.Slow, "seconds_each", 0.0)
    strange.register_all()
    try:
        run_study(design(load_study(str(path))), tmp_path / "undisturbed", Execution(workers=1))
    finally:
        strange.unregister_all()
    assert_same_files(tmp_path / "undisturbed", tmp_path / "killed")
