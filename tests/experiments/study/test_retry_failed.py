"""Units that failed: results like any other, until they are asked to be done again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pandas as pd
import pytest

from experiments.study.reading import load_study
from experiments.study.rows import read_rows
from experiments.study.runner import Progress, design, failures_of, run_study
from factormodels.factor_graph import FactorGraph
from inference import Backend, Entry, Posterior, register, unregister
from inference.exact.backend import Exact
from tests.experiments.conftest import invoke, study_file
from tests.experiments.study.test_runner import assert_same_files

STUDY = """
study: s
datasets: [worked-examples]
variants: [given, FR2]
backends: [moody, lbp]
outputs: [csv]
"""


@dataclass(frozen=True)
class Moody(Backend):
    """The exact backend, when it is in the mood for graphs of an odd number of variables."""

    name: ClassVar[str] = "moody"
    refuses: ClassVar[bool] = True

    def solve(self, graph: FactorGraph) -> Posterior:
        if self.refuses and graph.n_variables % 2:
            raise RuntimeError("not today")
        return Exact().solve(graph)


@pytest.fixture(autouse=True)
def _moody() -> Iterator[None]:
    register(Entry("moody", Moody, "exact, on some days", "exact"))
    yield
    unregister("moody")


def test_they_are_done_again_and_nothing_else_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = study_file(folder, STUDY)
    command = ("run", path, "--out", "out", "--workers", "1")
    # Something is missing.
    invoke(*command, code=1)
    failed = int(pd.read_csv("out/summary.csv").n_failed.sum())
    assert 0 < failed < 32
    # What fails again fails as before; to go on tries nothing.
    before = Path("out/summary.csv").read_bytes()
    for option, units in (("--resume", 0), ("--retry-failed", failed)):
        assert f"s: {units} units, {64 - units} kept" in invoke(*command, option, code=1).stderr
        assert Path("out/summary.csv").read_bytes() == before
    monkeypatch.setattr(Moody, "refuses", False)
    invoke(*command, "--resume", code=1)
    assert Path("out/summary.csv").read_bytes() == before
    # Of one cell alone, then of the others.
    invoke(*command, "--retry-failed", "--variant", "FR2", code=1)
    left = pd.read_csv("out/summary.csv").groupby("variant").n_failed.sum()
    assert left["FR2"] == 0 < left["given"]
    invoke(*command, "--retry-failed")
    assert read_rows(Path("out/rows.parquet")).p.notna().all()
    invoke("run", path, "--out", "fresh", "--workers", "1")
    assert_same_files(folder / "fresh", folder / "out")


def test_a_second_trial_that_is_cut_off_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, out = design(load_study(str(study_file(tmp_path, STUDY)))), tmp_path / "out"
    _, finished = run_study(study, out, workers=1)
    failed = len(failures_of(study, finished.tables()))
    monkeypatch.setattr(Moody, "refuses", False)
    seen = []

    @contextmanager
    def stopping(left: int, kept: int) -> Iterator[Callable[[Progress], None]]:
        seen.append((left, kept))

        def report(_: Progress) -> None:
            raise KeyboardInterrupt

        yield report

    monkeypatch.setattr("experiments.study.units._FIRST_UNITS", 2)
    with pytest.raises(KeyboardInterrupt):
        run_study(study, out, workers=1, resume=True, retry_failed=True, monitor=stopping)
    _, finished = run_study(study, out, workers=1, resume=True)
    done = failed - len(failures_of(study, finished.tables()))
    assert 0 < done < failed
    with pytest.raises(KeyboardInterrupt):
        run_study(study, out, workers=1, resume=True, retry_failed=True, monitor=stopping)
    assert seen == [(failed, 64 - failed), (failed - done, 64 - failed + done)]
    run_study(study, out, workers=1, resume=True, retry_failed=True)
    run_study(study, tmp_path / "fresh", workers=1)
    assert_same_files(tmp_path / "fresh", out)


def test_to_try_again_is_not_to_drop(folder: Path) -> None:
    result = invoke("run", study_file(folder, STUDY), "--retry-failed", "--overwrite", code=2)
    assert "--retry-failed continues a run and --overwrite discards it" in result.stderr
