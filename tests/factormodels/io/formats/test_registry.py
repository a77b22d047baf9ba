"""The registry of formats: a tool is a file and a row, and is loaded when it is needed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import factormodels.io.formats as room
from factormodels.io import read_many
from factormodels.io.file_report import check_file
from factormodels.io.formats import registry
from factormodels.io.formats.registry import format_named, formats
from tests.factormodels.io.formats.release_records import lines, written
from tests.processes import run_python
from tests.refusals import refused

TOOL = '''
"""What an invented tool prints: a text with marks, each true or false."""

from factormodels.io.formats.format import Format
from factormodels.io.formats.judged import UNSUPPORTED, judged_response
from factormodels.io.formats.record import ToolRecord, filled, placed, record_of, root_path
from factormodels.io.source.places import record_id
from factormodels.metadata.recorded_verdicts import SUPPORTED


class Mark(ToolRecord):
    said: str
    holds: bool


class Marked(ToolRecord):
    marks: list[Mark]
    asked: str | None = None


def recognize(record):
    return "marks" in record


def read(obj, source, line=None):
    marked = record_of(Marked, obj, source, line)
    judged = [
        (filled(mark.said, f"{where}.said"), SUPPORTED if mark.holds else UNSUPPORTED)
        for mark, where in placed(marked.marks, f"{root_path(source, line)}.marks")
    ]
    return judged_response(record_id(source, line), judged, "marker", query=marked.asked)


FORMAT = Format(
    "marker", "an invented tool", "nobody", "responses", ("marks",), recognize, read, Marked
)
'''


@pytest.fixture
def with_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a tool, as its file and its row do."""
    (tmp_path / "marker_output.py").write_text(TOOL, encoding="utf-8")
    monkeypatch.setattr(room, "__path__", [*room.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "MODULES", (*registry.MODULES, "marker_output"))
    monkeypatch.delitem(sys.modules, "factormodels.io.formats.marker_output", raising=False)
    importlib.invalidate_caches()


@pytest.mark.usefixtures("with_tool")
def test_a_tool_is_a_file_and_a_row(tmp_path: Path) -> None:
    record = {"asked": "Who?", "marks": [{"said": "She sang.", "holds": True, "score": 0.4}]}
    path = written(tmp_path, lines(record, record))
    first, _ = read_many(path)
    assert (first.query, [atom.text for atom in first.atoms]) == ("Who?", ["She sang."])
    report = check_file(path)
    assert report.format is format_named("marker")
    assert report.counts["judged by marker"] == 2
    assert list(report.not_used) == ["marks.score"]
    record["marks"][0]["holds"] = "yes"  # type: ignore[index]
    message = r"line 1: \$\.marks\[0\]\.holds: 'yes' is neither true nor false; give one of them"
    refused(message, read_many, written(tmp_path, lines(record, record)))


def test_each_format_is_named_after_its_module() -> None:
    for module, known in zip(registry.MODULES, formats(), strict=True):
        assert known.name.replace("-", "_") == module
        assert (known.used_keys is None) == known.closed


def test_a_fact_graph_and_a_network_load_no_other_format(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"nodes": [], "edges": [], "id": "r"}', encoding="utf-8")
    (tmp_path / "one.uai").write_text("MARKOV\n1\n2\n1\n1 0\n2 0.5 0.5\n", encoding="utf-8")
    loaded, _ = run_python(
        "import sys; from factormodels.io import read_any; "
        f"list(read_any({str(tmp_path / 'one.json')!r})); read_any({str(tmp_path / 'one.uai')!r}); "
        "print(*(m for m in sys.modules if m.startswith('factormodels.io.formats.')), "
        "*{'pydantic', 'pandas', 'pyarrow'} & {*sys.modules})"
    )
    names = {name.rpartition(".")[2] for name in loaded.split()}
    assert names == {"fact_graph", "format", "items", "registry"}
