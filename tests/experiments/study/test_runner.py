"""The runner: units done anywhere, in any order, in pieces, give the same files."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments.pages.study_page import write_study_page
from experiments.parallel_map import processes
from experiments.study.parts import PARTS
from experiments.study.reading import load_study
from experiments.study.rows import read_rows
from experiments.study.runner import (
    Progress,
    StudyDesign,
    design,
    failures_of,
    run_study,
)
from factormodels import write_many
from factormodels.datasets import load
from factormodels.io.store.results import STORE, open_store
from factormodels.nouns import counted
from tests.experiments import strange
from tests.experiments.conftest import environment, invoke, study_file
from tests.experiments.killed_run import kept

pytestmark = [pytest.mark.kill, pytest.mark.slow]

STUDY = """
study: s
datasets:
  - worked-examples
  - name: made
    synthetic:
      {n_responses: 20, n_atoms: [1, 4], contexts_per_atom: 2, density: 0.2, unlabeled: 0.2}
variants: [FR1, FR2]
priors: [{atom: [0.3]}]
strengths: [1.0, 2.0]
backends: [exact, {backend: lbp, grid: {damping: [0.0, 0.5]}}]
significance: {pairs: [[{variant: FR2}, {variant: FR1}]], measures: [brier], resamples: 200}
outputs: [csv, latex, markdown]
"""

TABLES = ("summary.csv", "significance.csv", "table.tex", "table.md")


def planned(folder: Path, text: str = STUDY) -> StudyDesign:
    return design(load_study(str(study_file(folder, text))))


def assert_same_files(first: Path, other: Path) -> None:
    """Assert that two runs have the same tables byte for byte, and the same rows but for times."""
    for name in TABLES:
        if (first / name).exists():
            assert (first / name).read_bytes() == (other / name).read_bytes(), name
    assert (other / "summary.csv").exists()
    rows = [read_rows(path / "rows.parquet").drop(columns="seconds") for path in (first, other)]
    assert rows[0].equals(rows[1])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of `STUDY` in one process, without a pause."""
    folder = tmp_path_factory.mktemp("undisturbed")
    run_study(planned(folder), folder / "out", workers=1)
    return folder / "out"


@contextmanager
def stopping(after: int) -> Iterator[Callable[[Progress], None]]:
    """A monitor that interrupts a run once some units are finished."""
    seen = 0

    def report(progress: Progress) -> None:
        nonlocal seen
        seen += progress.n_units
        if seen >= after:
            raise KeyboardInterrupt

    yield report


def test_diagrams_have_no_titles_in_the_report_alone(tmp_path: Path) -> None:
    text = (
        "study: s\ndatasets: [{name: demonstration, limit: 2}]\nvariants: [FR2]\n"
        "backends: [exact, lbp]\noutputs: [reliability, report]\n"
    )
    run_study(planned(tmp_path, text), tmp_path / "out", write_page=write_study_page)
    names = {path.suffix for path in (tmp_path / "out").glob("reliability*")}
    # The figure, its LaTeX, and what it shows.
    assert names == {".pdf", ".png", ".tex", ".csv"}
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert page.count("<svg") == 3
    assert "demonstration, implication: reliability" in page


def test_cells_chosen_one_after_the_other_give_the_same_files(
    undisturbed: Path, folder: Path
) -> None:
    path = study_file(folder, STUDY)
    chosen = ("run", path, "--out", "out", "--workers", "1")
    first = invoke(*chosen, "--backend", "exact", "--variant", "FR2,FR1")
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    total = sum(planned(folder).sizes)
    assert manifest["complete"] is False
    assert manifest["units_missing"] == total * 2 // 3
    assert f"{counted(total * 2 // 3, 'unit')} not run yet; continue with --resume" in first.stdout
    assert set(read_rows(folder / "out" / "rows.parquet").backend) == {"exact"}
    assert (
        "continue with --resume, or discard them with --overwrite" in invoke(*chosen, code=2).stderr
    )
    title = "lbp damping=0.5"
    invoke(*chosen, "--resume", "--backend", title)
    invoke(*chosen, "--resume")
    assert_same_files(undisturbed, folder / "out")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--backend exat",
            "--backend exat: no cell of the study has 'exat' (did you mean 'exact'?)",
        ),
        ("--variant FR2,FR9", "no cell of the study has 'FR9'"),
        ("--backends exact", "write 'backends=[exact]'"),
        ("--seed 9", "--seed 9: no cell of the study has '9'"),
    ],
)
def test_cells_that_are_not_there_are_refused(folder: Path, words: str, message: str) -> None:
    assert message in invoke("run", study_file(folder, STUDY), *words.split(), code=2).stderr
    assert [path.name for path in folder.iterdir()] == ["study.yaml"]


def test_neither_other_code_nor_a_jumping_clock_changes_the_files(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true, years = time.time, itertools.cycle((0.0, 1.0, -1.0))
    monkeypatch.setattr(time, "time", lambda: true() + 31_536_000 * next(years))
    study, out = planned(tmp_path), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run_study(study, out, workers=1, monitor=lambda *_: stopping(40))
    monkeypatch.setattr("experiments.study.parts.code_identity", lambda: "other code")
    run_study(study, out, workers=1, resume=True)
    assert_same_files(undisturbed, out)
    code = json.loads((out / "manifest.json").read_text())["code_of_units"]
    assert len(code) == 2
    assert code[1] == "other code"


def test_a_dry_run_counts_and_writes_nothing(folder: Path) -> None:
    path = study_file(folder, STUDY)
    result = invoke("run", path, "--dry-run", "--dataset", "made", "--strength", "2")
    assert "120 units in 6 cells, 0 finished" in result.stdout
    assert "made: 20 responses" in result.stdout
    assert [file.name for file in folder.iterdir()] == ["study.yaml"]


SMALL = "study: s\ndatasets: [{path: data.jsonl}]\nbackends: [lbp]\noutputs: []\n"


@pytest.fixture(scope="module")
def finished_small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study of a file of its own that has been run."""
    folder = tmp_path_factory.mktemp("small")
    write_many(load("worked-examples").graphs, folder / "data.jsonl")
    run_study(planned(folder, SMALL), folder / "out")
    return folder


@pytest.fixture
def small(folder: Path, finished_small: Path) -> Path:
    """The study, in the current folder."""
    shutil.copytree(finished_small, folder, dirs_exist_ok=True)
    return folder / "study.yaml"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["priors=[{atom: [0.4]}]"], "differs in priors"),
        (["variants=[FR1]", "seed=4"], "differs in variants, seed"),
        (["backends=[{backend: lbp, settings: {damping: 0.1}}]"], "differs in backends"),
    ],
)
@pytest.mark.parametrize("option", ["", "--resume", "--dry-run"])
def test_another_study_in_the_folder_is_refused(
    small: Path, changes: list[str], message: str, option: str
) -> None:
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    result = invoke("run", small, "--out", "out", *changes, *option.split(), code=2)
    assert message in result.stderr
    assert "give another --out, or discard that run with --overwrite" in result.stderr
    after = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    assert after == before


def test_other_data_in_the_same_file_are_refused(small: Path) -> None:
    data = Path("data.jsonl")
    data.write_text(data.read_text().replace("0.99", "0.98"))
    result = invoke("run", small, "--out", "out", "--resume", code=2)
    assert "differs in the content of 'data'" in result.stderr
    invoke("run", small, "--out", "out", "--overwrite")


def test_presentation_may_change_without_running_anything(small: Path) -> None:
    result = invoke(
        "run", small, "--out", "out", "--resume", "measures=[accuracy]", "outputs=[latex]"
    )
    assert "s: 0 units, 16 kept" in result.stderr
    assert "Brier" not in Path("out/table.tex").read_text()


def test_a_folder_in_use_is_refused(small: Path) -> None:
    before = Path("out", STORE).read_bytes()
    with Path("out", STORE).open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = invoke("run", small, "--out", "out", "--overwrite", code=2)
    assert "out: another process is at work in this folder" in result.stderr
    assert Path("out", STORE).read_bytes() == before


def written() -> list[bytes]:
    return [Path("out", name).read_bytes() for name in TABLES if Path("out", name).exists()]


def test_an_outdated_store_is_named_and_may_be_dropped(small: Path) -> None:
    store, tables = Path("out", STORE), written()
    store.write_bytes(b"factormodels units 1\n" + bytes(600))
    before = store.read_bytes()
    for options in (["--resume"], []):
        result = invoke("run", small, "--out", "out", *options, code=2)
        assert f"{store}: this is not a store of results" in result.stderr
        assert "start over with --overwrite" in result.stderr
    assert store.read_bytes() == before
    invoke("run", small, "--out", "out", "--overwrite")
    assert written() == tables


@pytest.mark.parametrize("left", [0, 100, 1000])
def test_a_damaged_part_is_done_again(small: Path, left: int) -> None:
    tables = written()
    (part,) = Path("out", PARTS).glob("*/*.parquet")
    part.write_bytes(part.read_bytes()[:left])
    result = invoke("run", small, "--out", "out", "--resume")
    assert f"{part}: it is damaged" in result.stderr
    assert "it is left out, and its units are done again" in result.stderr
    assert "s: 16 units" in result.stderr
    assert written() == tables


def test_parts_of_another_study_are_refused(small: Path) -> None:
    Path("out", STORE).unlink()
    for options in (["seed=4"], ["seed=4", "--resume"]):
        result = invoke("run", small, "--out", "out", *options, code=2)
        assert "out/parts: it has units of another study" in result.stderr
        assert "start over with --overwrite" in result.stderr
    # They say themselves what study they are of.
    assert "s: 0 units, 16 kept" in invoke("run", small, "--out", "out", "--resume").stderr


def test_a_run_of_an_earlier_version_is_refused(small: Path) -> None:
    with open_store(Path("out", STORE), "") as store:
        store.append("units", b"what it kept of a unit")
    for options in (["--resume"], []):
        result = invoke("run", small, "--out", "out", *options, code=2)
        assert "the folder has a run of an earlier version" in result.stderr
        assert "start over with --overwrite" in result.stderr
    invoke("run", small, "--out", "out", "--overwrite")


def test_a_damaged_plan_is_reported(small: Path) -> None:
    with closing(sqlite3.connect(Path("out", STORE))) as connection, connection:
        connection.execute("UPDATE kept SET checksum = 0 WHERE kind = 'plan'")
    for options in (["--resume"], []):
        result = invoke("run", small, "--out", "out", *options, code=2)
        assert "the plan of its run is damaged, or belongs to an assessment" in result.stderr
    invoke("run", small, "--out", "out", "--overwrite")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--resume --overwrite", "give one of them"),
        ("--dask tcp://127.0.0.1:9 --workers 2", "leave --workers out"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    folder: Path, options: str, message: str
) -> None:
    assert message in invoke("run", study_file(folder, STUDY), *options.split(), code=2).stderr


@pytest.fixture
def _strange() -> Iterator[None]:
    strange.register_all()
    yield
    strange.unregister_all()


@pytest.mark.usefixtures("_strange")
def test_a_unit_that_ends_its_process_fails_alone(tmp_path: Path) -> None:
    chosen = ", ".join(graph.id for graph in load("worked-examples").graphs[2:4])
    text = (
        f"study: s\ndatasets: [{{name: worked-examples, subset: {{responses: [{chosen}]}}}}]\n"
        "backends: [deadly, exact]\noutputs: []\nvariants: [given]\n"
    )
    study = planned(tmp_path, text)
    sizes = {g.id: len(g.atoms) + len(g.contexts) for g in study.data[0].graphs}
    assert 0 < sum(size == 3 for size in sizes.values()) < len(sizes)
    # test_parallel_map.py has deaths beside other processes.
    with processes(1) as other:
        _, finished = run_study(study, tmp_path / "out", workers=other)
    failed = failures_of(study, finished.tables())
    assert {failure.response for failure in failed} == {
        id_ for id_, size in sizes.items() if size == 3
    }
    assert {failure.cell.algorithm.name for failure in failed} == {"deadly"}
    assert all(
        "the process that ran it ended twice without an answer" in failure.error
        for failure in failed
    )
    rows = read_rows(tmp_path / "out" / "rows.parquet")
    assert rows[rows.backend == "exact"].p.notna().all()


RUN_SLOWLY = """
import signal
from tests.experiments import strange
strange.register_all()
if __name__ == "__main__":
    # Processes import this file too.
    from experiments.cli.main import main
    # A test run in the background of a shell ignores interrupts, and so do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
"""


def test_an_interrupt_keeps_what_is_finished(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "study: s\ndatasets: [{name: demonstration, limit: 5}]\noutputs: []\n"
        "backends: [{backend: slow, grid: {seconds_each: [0.2, 0.1]}}]\n"
    )
    path = study_file(folder, text)
    script = folder / "slowly.py"
    script.write_text(RUN_SLOWLY)
    process = subprocess.Popen(
        [sys.executable, str(script), "run", str(path), "--out", "out", "--workers", "2"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    while not kept(folder / "out"):
        assert process.poll() is None, process.communicate()[1]
        signal.sigtimedwait([], 0.02)
    # As a terminal does, to every process of the run.
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "of 10 units are kept; continue with --resume" in errors
    assert errors.splitlines()[-1] == "factormodels: interrupted"
    assert not (folder / "out" / "manifest.json").exists()
    # What is not interrupted need not be slow.
    monkeypatch.setattr(strange, "time", SimpleNamespace(sleep=lambda _: None))
    strange.register_all()
    try:
        result = invoke("run", path, "--out", "out", "--resume", "--workers", "1")
        invoke("run", path, "--out", "fresh", "--workers", "1")
    finally:
        strange.unregister_all()
    assert " kept" in result.stderr
    assert json.loads((folder / "out" / "manifest.json").read_text())["complete"] is True
    assert_same_files(folder / "fresh", folder / "out")
