"""The notebooks as files: twins in step, without outputs; a warning in one is an error."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from tests.execute_notebooks import execute, main, notebooks_in, twin
from tests.notebooks.execution import NOTEBOOKS

pytestmark = pytest.mark.notebook

SCRIPTS = notebooks_in(NOTEBOOKS)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_twin_is_the_script_without_outputs(script: Path) -> None:
    remedy = "run python -m tests.execute_notebooks --sync"
    text = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert text == twin(script), f"{script.stem}.ipynb differs from its script; {remedy}"
    document = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(document)
    code = [cell for cell in document.cells if cell.cell_type == "code"]
    assert code
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_imports_of_notebooks_exist(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    imports: list[ast.stmt] = [
        node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert imports
    exec(compile(ast.Module(imports, []), str(script), "exec"), {})


def test_every_script_has_a_twin_and_no_twin_is_without_a_script() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == {path.stem for path in SCRIPTS}


def test_sync_writes_the_twins_alone(tmp_path: Path) -> None:
    script = tmp_path / "one.py"
    script.write_text("# %%\n1 + 1\n")
    main(tmp_path, tmp_path / "results", sync=True)
    assert script.with_suffix(".ipynb").read_text(encoding="utf-8") == twin(script)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.ipynb", "one.py"]


def test_a_warning_in_a_notebook_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "one.py"
    script.write_text("# %%\nimport warnings\n\nwarnings.warn('odd')\n")
    with pytest.raises(CellExecutionError, match="UserWarning"):
        execute(script, tmp_path / "results")


def test_a_notebook_that_fails_is_named_at_the_end_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tests.execute_notebooks.CELL_SECONDS", 2)
    cells = {"a": "1 / 0", "b": "import time\ntime.sleep(60)", "c": "import os\nos._exit(1)"}
    for name, cell in {**cells, "d": "1 + 1"}.items():
        (tmp_path / f"{name}.py").write_text(f"# %%\n{cell}\n")
    with pytest.raises(SystemExit) as end:
        main(tmp_path, tmp_path / "results")
    assert end.value.code == 1
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["d.ipynb"]
    last = caplog.records[-1].getMessage()
    assert (
        last == f"3 of 4 notebooks failed: {', '.join(f'{tmp_path}/{name}.py' for name in 'abc')}"
    )
