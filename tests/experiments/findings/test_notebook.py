"""Shared parts of notebooks: two modes, a folder of results, a figure, files with an origin."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.notebook import FAST, RESULTS, fast, results_folder, write_results
from experiments.findings.table import Column, Table
from factormodels.errors import InputError
from tests.refusals import refused


def artifacts() -> Artifacts:
    frame = pd.DataFrame({"name": ["a", "b"], "value": [0.25, 0.5]})
    figure = Figure(figsize=(2.0, 1.0))
    figure.subplots().plot(frame.value)
    columns = (Column("name", "Name"), Column("value", "Value", digits=2))
    return Artifacts({"values": Table(frame, columns)}, {"line": PaperFigure(figure, frame)})


def test_the_environment_sets_mode_and_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(FAST, raising=False)
    monkeypatch.delenv(RESULTS, raising=False)
    assert not fast()
    assert results_folder("01_x") == Path("../results/notebooks/01_x")
    monkeypatch.setenv(FAST, "1")
    monkeypatch.setenv(RESULTS, str(tmp_path))
    assert fast()
    assert results_folder("01_x") == tmp_path / "01_x"
    monkeypatch.setenv(FAST, "yes")
    refused(r"FACTORMODELS_FAST is 'yes'; set it to 1", fast)


def test_written_files_name_the_notebook_its_mode_and_its_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RESULTS, str(tmp_path / "results"))
    script = tmp_path / "01_x.py"
    script.write_text("1 + 1\n")
    heads = set()
    for mode, text in (("0", "1 + 1\n"), ("1", "1 + 1\n"), ("1", "2 + 2\n")):
        monkeypatch.setenv(FAST, mode)
        script.write_text(text)
        names = write_results("01_x", artifacts())
        folder = tmp_path / "results" / "01_x"
        assert sorted(names) == sorted(path.name for path in folder.iterdir())
        head = (folder / "values.tex").read_text().splitlines()[:2]
        assert head[0] == "% study 01_x" + (" (fast mode)" if mode == "1" else "")
        heads.add(head[1])
    assert len(heads) == 3, "another mode or script is another hash"
    assert pd.read_csv(folder / "values.csv").value.tolist() == [0.25, 0.5]


def test_a_notebook_away_from_its_script_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(FAST, "1")
    with pytest.raises(InputError, match=r"01_x\.py: there is no such file .* in its own folder"):
        write_results("01_x", artifacts())
