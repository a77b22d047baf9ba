"""Run one notebook in its fast mode and hand back what it wrote, for the tests of its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat

from tests.calibration.drawn import assert_nothing_is_cut
from tests.execute_notebooks import execute

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


def run(name: str, results: Path) -> Path:
    """Return the folder of results of a notebook that was executed without a remark on stderr.

    Its last cell has to have written a table and a figure, and a figure has to be seen in it.
    """
    executed = execute(NOTEBOOKS / f"{name}.py", results, fast=True)
    document = nbformat.read(executed, as_version=4)  # type: ignore[no-untyped-call]
    outputs: list[Any] = [output for cell in document.cells for output in cell.get("outputs", ())]
    remarks = [output.text for output in outputs if output.get("name") == "stderr"]
    assert not remarks, "\n".join(remarks)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    folder = results / name
    for suffixes in (("csv", "tex", "md"), ("csv", "pdf", "png")):
        stems = [{path.stem for path in folder.glob(f"*.{suffix}")} for suffix in suffixes]
        assert set.intersection(*stems), f"{name} wrote nothing as {', '.join(suffixes)}"
    for path in folder.rglob("*.png"):
        assert_nothing_is_cut(path)
    return folder
