"""Units on a Dask cluster, one worker of which is killed in the middle."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from experiments.study.reading import load_study
from experiments.study.runner import Progress, StudyDesign, design, run_study
from factormodels.errors import InputError
from tests.experiments import strange
from tests.experiments.conftest import study_file
from tests.experiments.study.test_runner import assert_same_files

pytestmark = [pytest.mark.service, pytest.mark.kill, pytest.mark.slow]

STUDY = """
study: s
datasets:
  - name: made
    synthetic: {n_responses: 40, n_atoms: [1, 4], contexts_per_atom: 2, density: 0.2}
priors: [{}, {learned: {folds: 3}}]
backends: [{backend: slow, settings: {seconds_each: 0.02}, only: {priors: [data]}}, lbp]
outputs: [csv, latex, markdown]
"""


@pytest.fixture
def planned(tmp_path: Path) -> Iterator[StudyDesign]:
    strange.register_all()
    yield design(load_study(str(study_file(tmp_path, STUDY))))
    strange.unregister_all()


def test_a_worker_that_dies_costs_nothing(planned: StudyDesign, tmp_path: Path) -> None:
    distributed: Any = import_module("distributed")
    killed: list[int] = []
    # One worker of this process, which imports nothing anew, and one to be killed.
    workers = {
        name: {"cls": kind, "options": {"nthreads": 1}}
        for name, kind in (("here", distributed.Worker), ("there", distributed.Nanny))
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": ":0"}}
    cluster = distributed.SpecCluster(workers, scheduler, silence_logs=50)
    with cluster, distributed.Client(cluster, set_as_default=False) as client:

        @contextmanager
        def killing(left: int, kept: int) -> Iterator[Callable[[Progress], None]]:
            assert (left, kept) == (120, 0)
            done = 0

            def report(progress: Progress) -> None:
                nonlocal done
                done += progress.n_units
                if not killed and 0 < done < left:
                    killed.extend({*client.run(os.getpid).values()} - {os.getpid()})
                    # A worker in the place of the dead one would find little to do.
                    cluster.workers["there"].close_gracefully()
                    os.kill(killed[0], signal.SIGKILL)

            yield report

        where: Any = {"dask": cluster.scheduler_address, "monitor": killing}
        _, finished = run_study(planned, tmp_path / "dask", **where)
    assert killed
    assert finished.statuses == {"converged": 80, "exact": 40}
    run_study(planned, tmp_path / "here", workers=1)
    assert_same_files(tmp_path / "here", tmp_path / "dask")
    learned = [tmp_path / folder / "priors.csv" for folder in ("here", "dask")]
    assert learned[0].read_bytes() == learned[1].read_bytes()


def test_an_address_where_nobody_answers_is_refused(planned: StudyDesign, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--dask nowhere: no Dask scheduler answers there"):
        run_study(planned, tmp_path / "out", dask="nowhere")
    assert not (tmp_path / "out").exists()
