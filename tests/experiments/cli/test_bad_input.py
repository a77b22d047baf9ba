"""Bad input: one sentence that names file, place, value and mend; exit code 2; no file written."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from calibration.figures import save_figure
from tests.experiments.conftest import EXAMPLE, invoke
from tests.memory import bytes_read, writing_at_most

pytestmark = pytest.mark.slow

refuse = partial(invoke, code=2)


def changed(part: str, **values: Any) -> str:
    """The example with other values in its first node or edge; None takes a key away."""
    first = {**EXAMPLE[part][0], **values}  # type: ignore[dict-item]
    kept = {name: value for name, value in first.items() if value is not None}
    graph = {**EXAMPLE, part: [kept, *EXAMPLE[part][1:]]}
    return json.dumps(graph, ensure_ascii=False)


CAFE = changed("nodes", text="café")

BAD_GRAPHS: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "missing key": (changed("nodes", type=None), ("nodes[0]", "'type'", "missing", "add")),
    "probability of 1.2": (
        changed("nodes", probability=1.2),
        ("nodes[0]", "'a1'", "1.2", "between 0 and 1"),
    ),
    "dangling relation": (
        changed("edges", source="c9"),
        ("'c9' -> 'a1'", "'c9'", "add it or drop"),
    ),
    "unknown relation": (
        changed("edges", relation="entailmnt"),
        ("edges[0]", "did you mean 'entailment'"),
    ),
    "truncated": (json.dumps(EXAMPLE)[:120], ("line 1", "column", "not JSON", "correct it")),
    "cyclic reference": (changed("edges", source="a1"), ("edges[0]", "'a1' -> 'a1'", "itself")),
    "NaN": (
        changed("nodes", probability=float("nan")),
        ("line 1", "NaN", "give a finite number"),
    ),
    "another encoding": (
        CAFE.encode("latin-1"),
        (f"byte {CAFE.index('é')} (0xe9)", "UTF-8", "save the file"),
    ),
}
"""What is wrong -> (content of the file, what the sentence must say)."""


def assert_refused(result: Any, *messages: str) -> None:
    """Assert one sentence on standard error that says all of `messages`."""
    assert result.stderr.count("\n") == 1
    for text in messages:
        assert text in result.stderr


@pytest.mark.parametrize("fault", BAD_GRAPHS)
def test_every_command_refuses_a_bad_graph(folder: Path, fault: str) -> None:
    content, message = BAD_GRAPHS[fault]
    (folder / "bad.json").write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "study.yaml").write_text("study: s\ndatasets: [{path: bad.json}]\n")
    assert_refused(refuse("infer", "bad.json", "--out", "out.json"), "bad.json", *message)
    assert_refused(refuse("convert", "bad.json", "out.uai"), "bad.json", *message)
    assert_refused(refuse("run", "study.yaml"), "datasets[0]: ", "bad.json", *message)
    assert sorted(path.name for path in folder.iterdir()) == ["bad.json", "study.yaml"]


BAD_NETWORKS = {
    "a number that is none": ("MARKOV\n1\n2\n1\n1 0\n2\nnan 0.5\n", ("nan",)),
    "a scope that dangles": ("MARKOV\n1\n2\n1\n1 7\n2\n0.5 0.5\n", ("7",)),
    "parents in a circle": (
        "BAYES\n2\n2 2\n2\n2 0 1\n2 1 0\n4\n.5 .5 .5 .5\n4\n.5 .5 .5 .5\n",
        ("0", "1"),
    ),
}


@pytest.mark.parametrize("fault", BAD_NETWORKS)
@pytest.mark.parametrize("command", ["infer", "convert"])
def test_a_bad_network_is_refused(folder: Path, command: str, fault: str) -> None:
    text, message = BAD_NETWORKS[fault]
    (folder / "bad.uai").write_text(text, encoding="utf-8")
    rest = ("out.uai",) if command == "convert" else ("--out", "out.json")
    assert_refused(refuse(command, "bad.uai", *rest), "bad.uai", *message)
    assert [path.name for path in folder.iterdir()] == ["bad.uai"]


def test_a_truncated_network_is_refused(network_file: Path) -> None:
    network_file.write_text(network_file.read_text()[:-30], encoding="utf-8")
    assert_refused(refuse("infer", "chain.uai"), "chain.uai", "ends", "complete the file")


def test_a_configuration_that_refers_to_itself_is_refused(folder: Path) -> None:
    (folder / "study.yaml").write_text("study: &all\n  again: *all\n")
    assert_refused(refuse("run", "study.yaml"), "study.yaml", "contains it", "write the value out")


@pytest.mark.parametrize(
    ("evidence", "messages"),
    [
        ('{"a1": 2}', ("'a1'", "state 2", "0 to 1")),
        ('{"a9": 1}', ("'a9'", "a1")),
        ('{"a1": "yes"}', ("'a1'", "'yes'", "whole number")),
        ('{"a1": null}', ("'a1'", "None", "whole number")),
        ('{"a1": [0.5]}', ("'a1'", "1 value;", "2 states")),
        ('{"a1": [0.5, -1]}', ("-1",)),
        ('{"a1": [0.5, "x"]}', ("'a1'", "list of numbers")),
        ('{"a1": 1, "a1": 0}', ("'a1'", "twice")),
        ('{"a1": NaN}', ("NaN",)),
        ("[1, 2]", ("an object",)),
        ("", ("the file is empty", "write 0 for no observations")),
        (" \n", ("the file is empty", "write 0 for no observations")),
        ('{"a1": [0, 0.0]}', ("'a1'", "every likelihood is zero")),
        (json.dumps(EXAMPLE), ("this is a fact graph, not evidence", '{"c1": 1}')),
        (json.dumps({"a1": "long " * 99}), ("'a1'", "...", "is not a state")),
        ("1 7 0", ("7",)),
        ("2 0 1", ()),
        ("one two", ()),
    ],
)
def test_bad_evidence_is_refused(
    graph_file: Path, evidence: str, messages: tuple[str, ...]
) -> None:
    Path("evidence").write_text(evidence, encoding="utf-8")
    result = refuse("infer", graph_file, "--evidence", "evidence", "--out", "out.json")
    assert_refused(result, "factormodels: evidence: ", *messages)
    assert len(result.stderr) < 250
    assert not Path("out.json").exists()


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (["--backend", "exactt"], ("'exactt'", "did you mean 'exact'")),
        (
            ["--encoding", "conditonal"],
            ("encoding conditonal", "did you mean 'conditional'", "implication, conditional"),
        ),
        (["--dampin", "0.5"], ("--dampin ", "'--damping'")),
        (["--backend", "lbp,dampin=0.5"], ("--backend lbp,dampin=0.5: ", "'damping'")),
        (["--damping", "half"], ("--damping", "'half'", "number")),
        (["--damping", "'0.5'"], ("--damping", "'0.5'", "number")),
        (["--damping", "1.5"], ("--damping: ", "1.5", "to below 1")),
        (["--damping", ".nan"], ("damping",)),
        (["--max-iterations", "1.5"], ("--max-iterations", "1.5", "whole number")),
        (["--max-iterations", "true"], ("--max-iterations", "True", "whole number")),
        (["--schedule", "radom"], ("--schedule", "'radom'", "flooding")),
        (["--backend", "lbp,=1"], ("'lbp,=1'", "unknown")),
        (["--backend", "lbp,damping=0.1,damping=0.2"], ("--damping", "2 times")),
        (["--damping", "[1"], ("--damping", "YAML")),
        (["--variant", "FR4"], ("--variant FR4", "did you mean 'FR", "FR1, FR2, FR3")),
        (["--response", "r9"], ("'r9'", "figure-1")),
        (["--report", "absent/page.html"], ("absent/page.html", "existing folder")),
    ],
)
def test_bad_options_of_infer_are_refused(
    graph_file: Path, arguments: list[str], messages: tuple[str, ...]
) -> None:
    backend = [] if arguments[0] == "--backend" else ["--backend", "lbp"]
    assert_refused(refuse("infer", graph_file, *backend, *arguments), *messages)


@pytest.mark.parametrize("option", ["--variant=FR1", "--encoding=implication", "--response=r"])
def test_options_of_fact_graphs_are_refused_for_networks(network_file: Path, option: str) -> None:
    assert_refused(refuse("infer", network_file, option), "chain.uai", "leave")


def test_contradictory_evidence_is_one_sentence(network_file: Path) -> None:
    network_file.write_text("MARKOV\n1\n2\n1\n1 0\n2 0 1\n", encoding="utf-8")
    Path("evidence").write_text("1 0 0", encoding="utf-8")
    result = refuse("infer", network_file, "--evidence", "evidence", "--json")
    assert_refused(result, "factormodels: ", "chain.uai: the partition function is zero")


def test_a_folder_is_no_file_to_write(graph_file: Path) -> None:
    Path("folder.json").mkdir()
    message = "folder.json: this is a folder; name a file in it"
    assert_refused(refuse("convert", graph_file, "folder.json"), message)
    # Before anything else is looked at, inference of an hour included.
    other = ("infer", "absent.json", "--backend", "no")
    assert_refused(refuse(*other, "--report", "folder.json"), message)
    assert_refused(refuse(*other, "--out", "folder.json"), "this is a folder; name a file in it")
    assert list(Path("folder.json").iterdir()) == []


def test_the_input_is_not_overwritten(graph_file: Path) -> None:
    before = graph_file.read_bytes()
    result = refuse("convert", graph_file, "./graph.json")
    assert_refused(result, "graph.json: this is the input itself; give the output another name")
    assert graph_file.read_bytes() == before


def test_a_graph_that_is_too_large_is_one_sentence(graph_file: Path) -> None:
    result = refuse("infer", graph_file, "--backend", "enumeration,max_states=4")
    assert_refused(result, "2^3.0", "exact")


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (("score", "t.csv", "--out", "s"), "s/"),
        (("score", "t.csv", "--report", "r.html"), "r.html"),
        (("convert", "demonstration", "o.jsonl"), "o.jsonl"),
        (("convert", "demonstration", "o.uai", "--response", "demo-01-marie-curie"), "o.uai"),
        (
            ("draw", "demonstration", "--response", "demo-01-marie-curie", "--out", "o"),
            "o/posteriors.csv",
        ),
        (("report", "done", "--out", "page.html"), "page.html"),
        (("run", "study.yaml", "--out", "new"), "new/store.sqlite"),
        (("assess", "t.txt", "--documents", "t.txt", "--out", "a"), "a/store.sqlite"),
    ],
)
def test_a_full_disk_is_reported_with_the_file(
    arguments: tuple[str, ...], file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"r{n // 5},c{n},0.{n % 9 + 1},{n % 2}\n" for n in range(40))
    Path("t.csv").write_text(f"response,claim,p,label\n{rows}")
    Path("t.txt").write_text("The bridge opened in 1890.")
    Path("study.yaml").write_text(
        "study: s\ndatasets: [{name: worked-examples}]\nbackends: [enumeration]\n"
        "outputs: [csv, report]\n"
    )
    if arguments[0] == "report":
        invoke("run", "study.yaml", "--out", "done")
    with writing_at_most(16):
        errors = refuse(*arguments).stderr
    assert f"factormodels: {file}" in errors
    # SQLite says of a write that fails no more than that.
    reason = "Input/output error" if "sqlite" in file else "File too large"
    assert re.search(rf"cannot be (read or )?written \({reason}\)", errors)


@pytest.mark.parametrize("allowed", [400, 2_000])
def test_no_figure_is_half_written_on_a_full_disk(
    allowed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    figure = Figure()
    figure.add_subplot().plot([0, 1], [0, 1], label="a line")
    with writing_at_most(allowed), pytest.raises(OSError, match=r"too large: 'f\.pdf'"):
        save_figure(figure, "f")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["convert", "fit"])
def test_half_a_gigabyte_is_refused_before_it_is_read(command: str, tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    with path.open("wb") as file:
        file.write((json.dumps(EXAMPLE) + "\n").encode() * 3)
        file.truncate(500 * 2**20)
    target = [tmp_path / "o/graphs.jsonl"] if command == "convert" else []
    before = bytes_read()
    errors = refuse(command, path, *target).stderr
    assert "large.jsonl: it holds more than 128 MiB" in errors
    # What is read are the first pieces, and modules.
    assert bytes_read() - before < 50 * 2**20
