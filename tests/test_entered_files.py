"""The files that `docs/development/architecture.md` names for a run and a score are entered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.entered_files import ROOT, entered_files

_STUDY = """study: factreasoner
description: One cell.
datasets: [demonstration]
variants: [FR2]
backends: [exact]
outputs: [csv, latex]
"""
_TABLE = "response,claim,p,label\nr1,a,0.9,1\nr1,b,0.3,0\nr2,a,0.7,1\nr2,b,0.6,0\n"


def named_files(heading: str, package: str) -> set[str]:
    """Files in the numbered list below a heading of the page on the architecture."""
    page = (ROOT / "docs" / "development" / "architecture.md").read_text("utf-8")
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\d\. `([\w/]+\.py)`", section, re.MULTILINE)
    whole = ("calibration", package)
    return {file if file.startswith(whole) else package + file for file in listed}


@pytest.mark.slow
def test_a_reader_of_the_listed_files_follows_a_run_and_a_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "study.yaml").write_text(_STUDY)
    (tmp_path / "claims.csv").write_text(_TABLE)
    commands = {
        "The files of a score": ["score", "claims.csv"],
        "The files of a run": ["run", "study.yaml", "--out", "results"],
    }
    monkeypatch.chdir(tmp_path)
    for heading, command in commands.items():
        code, files = entered_files(command)
        assert code == 0
        named = named_files(heading, "experiments/")
        assert len(named) == 6
        assert named <= {*files}
    assert (tmp_path / "results" / "table.tex").is_file()
