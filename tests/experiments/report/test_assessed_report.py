"""Pages of assessed responses, without a study around them, say what the file says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments import report
from factormodels import read_many
from tests.experiments.conftest import invoke

ASSESS = ("assess", "demonstration", "--variant", "FR1", "--variant", "FR2")


@pytest.mark.slow
def test_pages_show_the_posteriors_of_the_file(folder: Path) -> None:
    result = invoke(*ASSESS, "--out", "o.jsonl", "--report")
    assert "wrote o-report/index.html: 15 pages" in result.stderr
    graphs = read_many(folder / "o.jsonl")
    index = (folder / "o-report" / "index.html").read_text()
    for number, graph in enumerate(graphs, 1):
        name = f"response-{number:04}.html"
        assert name in index
        page = (folder / "o-report" / name).read_text()
        for view in graph.metadata["assessment"].values():
            for found in view["atoms"].values():
                assert f"{found['p']:.3f}" in page
    # The pages of the file alone are those that the command made with it.
    invoke("report", "o.jsonl", "--out", "pages")
    first, second = (
        {path.name: path.read_text() for path in (folder / place).iterdir()}
        for place in ("o-report", "pages")
    )
    # The command calls the responses after its input, the file after itself.
    assert {name: text.replace("demonstration", "o") for name, text in first.items()}.keys() == (
        second.keys()
    )
    assert report("o.jsonl", "third", responses=[graphs[2].id]) == Path("third/index.html")
    assert sorted(path.name for path in (folder / "third").iterdir()) == [
        "index.html",
        "response-0001.html",
    ]


@pytest.mark.usefixtures("folder")
def test_verdicts_and_what_is_missing_are_shown() -> None:
    import json

    invoke(*ASSESS, "--take", "demo-01-marie-curie", "--out", "o.jsonl")
    record = json.loads(Path("o.jsonl").read_text())
    verdicts = {"a1": {"label": "true", "probability": 0.8, "p": 0.87654}}
    (metadata,) = [value for key, value in record.items() if key == "metadata"]
    metadata["assessors"] = {
        "factscore": {
            "model": "x/y",
            "prompt": {},
            "verdicts": verdicts,
            "missing": [["a2", "the answer is empty"]],
        }
    }
    Path("o.jsonl").write_text(json.dumps(record))
    invoke("report", "o.jsonl")
    page = Path("o-report/response-0001.html").read_text()
    assert "0.877" in page
    assert re.search(r"factscore", Path("o-report/index.html").read_text())


def test_files_that_were_not_assessed_are_refused(folder: Path) -> None:
    (folder / "g.json").write_text('{"format": "factormodels/fact-graph", "version": 1}')
    invoke("convert", "demonstration", "given.jsonl")
    result = invoke("report", "given.jsonl", code=2)
    assert "'demo-01-marie-curie' was not assessed; give what" in result.stderr
    result = invoke("report", "given.jsonl", "--only", "variant=FR1", code=2)
    assert "--data and --only are for the folder of a run" in result.stderr
    (folder / "o-report").mkdir()
    (folder / "o-report" / "mine.txt").write_text("mine")
    result = invoke(*ASSESS, "--out", "o.jsonl", "--report", code=2)
    assert "holds something other than a report" in result.stderr
    assert not (folder / "o.jsonl").exists()
