"""Many responses are packed, and nothing else about a study changes."""

from __future__ import annotations

import gzip
import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from experiments.study import data, outputs, packed_graphs
from experiments.study.data import StudyData, load_data
from experiments.study.files import ROWS
from experiments.study.packed_graphs import PackedGraphs, PackedPart, Responses, hashed_text
from experiments.study.reading import load_study
from experiments.study.runner import design, run_study
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io import reading
from factormodels.synthetic import labeled_responses
from tests.experiments.conftest import study_file
from tests.refusals import refused

STUDY = """
study: stored
datasets:
  - name: made
    synthetic: {n_responses: 40, n_atoms: [0, 4], contexts_per_atom: 2, density: 0.2,
                unlabeled: 0.3}
  - name: drawn
    subset: {labeled: true, sample: 20}
    limit: 15
    synthetic: {n_responses: 43, first: 4, n_atoms: [0, 3], contexts_per_atom: 1, unlabeled: 0.6,
                seed: 1}
variants: [FR1, FR2]
backends: [exact, lbp]
"""


def graphs() -> tuple[FactGraph, ...]:
    drawn = labeled_responses(
        30, n_atoms=(0, 4), contexts_per_atom=2, density=0.3, unlabeled=0.3, copied=0.2, seed=2
    )
    # One with every field that the drawn ones leave at its default.
    full = FactGraph(
        "full \N{GREEK SMALL LETTER ALPHA}",
        (Atom("a", "text", 0.25, True, "S", 2), Atom("b", label=False)),
        (Context("c", "t", 1.0, "title", "link", "snippet", ("a", "b"), "key", "note"),),
        (
            Relation("c", "a", RelationKind.NEUTRAL, 0.4, (0.1, 0.3, 0.2, 0.4)),
            Relation("c", "b", RelationKind.ENTAILMENT, 1),
        ),
        *("query", "\ud800 response", "topic"),
        {"nested": [1, {"two": None}]},
    )  # fmt: skip
    return (*drawn[:20], full, *drawn[20:])


@pytest.fixture
def few_held(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (packed_graphs, data):
        monkeypatch.setattr(module, "HELD", 7)
        monkeypatch.setattr(module, "PART", 5)
    monkeypatch.setattr(data, "_MANY_BYTES", 100)
    # Row groups that end within a response.
    monkeypatch.setattr(outputs, "GROUP_ROWS", 11)


@pytest.mark.usefixtures("few_held")
def test_packed_graphs_are_the_graphs() -> None:
    given = graphs()
    grouped = Responses.of(iter(given))
    stored = grouped.graphs
    assert isinstance(stored, PackedGraphs)
    assert len(stored) == len(given)
    assert tuple(stored) == given
    assert [stored[n] for n in range(-len(given), len(given))] == [*given, *given]
    assert tuple(stored[3:20:4]) == given[3:20:4]
    with pytest.raises(IndexError):
        stored[len(given)]
    for positions in ([], [4], [4, 5, 6], [30, 2, 3], [9, 9]):
        part = stored.part(positions)
        assert isinstance(part, PackedGraphs)
        assert tuple(pickle.loads(pickle.dumps(part))) == tuple(given[n] for n in positions)
    # The hash is that of their JSON, line by line.
    digest = hashlib.sha256(b"".join(map(hashed_text, given))).hexdigest()
    assert (grouped.sha256, grouped.distinct) == (digest, True)
    # What is packed has been validated, and keeps what is worked out from the fields.
    assert stored[20].compiled_for("mixture").names == given[20].compiled_for("mixture").names
    assert hash(stored[20].atoms) == hash(given[20].atoms)
    with pytest.raises(AttributeError):
        stored[20].atoms[0].prior = 0.3  # type: ignore[misc]


def test_blocks_end_before_their_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    pickles = [bytes(size) for size in (3, 4, 5, 20, 1, 2)]
    monkeypatch.setattr(packed_graphs, "_BLOCK_BYTES", 10)
    blocks = list(packed_graphs._blocks(pickles))
    assert [block.pickles() for block in blocks] == [
        pickles[:2],
        [pickles[2]],
        [pickles[3]],
        pickles[4:],
    ]
    assert not [*packed_graphs._blocks([])]


def test_many_alike_graphs_take_little_memory() -> None:
    blocks = PackedPart.of(labeled_responses(512, n_atoms=4, contexts_per_atom=2, seed=1)).blocks
    # 81 bytes of compressed graphs and 8 of their ends, where their pickles take 557.
    assert sum(len(block.compressed) + block.ends.nbytes for block in blocks) < 120 * 512


@pytest.mark.usefixtures("few_held")
def test_columns_are_those_of_the_claims() -> None:
    given, packed = graphs(), Responses.of(graphs())
    many = StudyData("d", packed.graphs, "", known_claims=packed.claims)
    few = StudyData("d", given, "")
    assert many.known_claims is not None
    for columns in (many.claims, few.claims):
        assert columns.response.to_pylist() == [graph.id for graph in given]
        assert columns.n_atoms.tolist() == [len(graph.atoms) for graph in given]
        rows = [atom for graph in given for atom in (graph.atoms or (None,))]
        for name, field in (("atom", "id"), ("label", "label"), ("annotation", "annotation")):
            expected = [None if atom is None else getattr(atom, field) for atom in rows]
            assert getattr(columns, name).to_pylist() == expected
        firsts = [rows[start] for start in columns.starts]
        assert firsts == [graph.atoms[0] if graph.atoms else None for graph in given]
    assert (many.n_atoms, many.n_labeled) == (few.n_atoms, few.n_labeled)


def test_few_graphs_stay_as_they_are() -> None:
    grouped = Responses.of(iter(graphs()))
    assert grouped.graphs == graphs()
    assert grouped.sha256 == hashlib.sha256(b"".join(map(hashed_text, graphs()))).hexdigest()


# Packed graphs in two processes are also those of test_data_in_processes.py.
@pytest.mark.parametrize(
    "workers", [1, pytest.param(2, marks=[pytest.mark.kill, pytest.mark.nightly])]
)
def test_results_do_not_depend_on_where_the_data_are(
    tmp_path: Path, request: pytest.FixtureRequest, workers: int
) -> None:
    loaded = load_study(str(study_file(tmp_path, STUDY)))
    run_study(design(loaded), tmp_path / "held", workers=1)
    request.getfixturevalue("few_held")
    planned = design(loaded)
    assert all(isinstance(dataset.graphs, PackedGraphs) for dataset in planned.data)
    run_study(planned, tmp_path / "stored", workers=workers)
    for name in ("summary.csv", "table.md", "short.tex"):
        in_memory, stored = ((tmp_path / where / name).read_bytes() for where in ("held", "stored"))
        assert in_memory == stored
    in_memory, stored = (
        pq.read_table(tmp_path / where / ROWS).drop_columns(["seconds"])
        for where in ("held", "stored")
    )
    assert in_memory.equals(stored)
    assert pq.ParquetFile(tmp_path / "stored" / ROWS).num_row_groups > 8


@pytest.mark.usefixtures("few_held")
def test_a_repeated_id_among_many_is_refused(tmp_path: Path) -> None:
    line = '{"id": "r%d", "nodes": [{"id": "a", "type": "atom", "probability": 0.5}], "edges": []}'
    study = study_file(tmp_path, "study: s\ndatasets: [{path: data.jsonl}]\n")
    file = tmp_path / "data.jsonl"
    file.write_text("\n".join(line % n for n in (*range(12), 5)), encoding="utf-8")
    for each in (None, map):
        refused("lines 6 and 13 both hold the id 'r5'", load_data, load_study(str(study)), each)
    file.write_text("\n".join(line % n for n in range(12)), encoding="utf-8")
    (loaded,) = load_data(load_study(str(study)))
    assert isinstance(loaded.graphs, PackedGraphs)


class Counted:
    """`map`, with what it was given."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def __call__(
        self, make: Callable[[Any], PackedPart], things: Iterable[Any]
    ) -> Iterator[PackedPart]:
        for thing in things:
            self.given.append(thing)
            yield make(thing)


def assert_same_data(first: StudyData, other: StudyData) -> None:
    assert tuple(first.graphs) == tuple(other.graphs)
    assert (first.sha256, first.n_labeled) == (other.sha256, other.n_labeled)
    columns = [vars(each.claims) for each in (first, other)]
    for name, values in columns[0].items():
        assert (
            values.tolist() == columns[1][name].tolist()
            if name in ("starts", "n_atoms")
            else (values.to_pylist() == columns[1][name].to_pylist())
        )


@pytest.mark.usefixtures("few_held")
def test_data_that_are_made_in_parts_are_the_same(tmp_path: Path) -> None:
    loaded = load_study(str(study_file(tmp_path, STUDY)))
    each = Counted()
    for made, other in zip(load_data(loaded), load_data(loaded, each), strict=True):
        assert_same_data(made, other)
    assert each.given[:8] == [range(n, n + 5) for n in range(1, 40, 5)]
    assert len(each.given) == 16


@pytest.mark.usefixtures("few_held")
@pytest.mark.parametrize("packed", [False, True])
def test_lines_that_are_read_in_parts_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    lines = [hashed_text(graph).decode() for graph in graphs()[:20]]
    lines[3:3] = ["\n", "  \n"]
    # An id of its own is that of its line.
    lines.append('{"nodes": [{"id": "a", "type": "atom", "probability": 1}], "edges": []}')
    content = "\ufeff" + "".join(lines)
    (tmp_path / "data.jsonl").write_bytes(
        gzip.compress(content.encode()) if packed else content.encode()
    )
    loaded = load_study(str(study_file(tmp_path, "study: s\ndatasets: [{path: data.jsonl}]\n")))
    (whole,) = load_data(loaded)
    assert whole.graphs[-1].id == "data-023"
    for most, n_parts in ((10**9, 5), (3, 21)):
        monkeypatch.setattr(reading, "_LONG_PART", most)
        each = Counted()
        (parted,) = load_data(loaded, each)
        assert_same_data(whole, parted)
        assert len(each.given) == n_parts


def assert_told_alike(folder: Path, text: str, words: str) -> None:
    """Assert that data that are refused are so in one sentence, whole or in parts."""
    loaded, sentences = load_study(str(study_file(folder, text))), set()
    for each in (None, map):
        with pytest.raises(InputError, match=words) as caught:
            load_data(loaded, each)
        sentences.add(str(caught.value))
    assert len(sentences) == 1


@pytest.mark.usefixtures("few_held")
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("{", r"data.jsonl, line 14: column 2 is not JSON"),
        ('{"id": "x", "edges": []}', r"data.jsonl, line 14: .*nodes"),
        ('{"question": "q", "canary": "c"}', r"data.jsonl, line 14: "),
        ("[1]", r"data.jsonl, line 14: .* is not a JSON object"),
        ('{"id": "r1", "nodes": [], "edges": []}', "lines 2 and 14 both hold the id 'r1'"),
        ("\udcff", "is not UTF-8"),
    ],
)
def test_errors_of_a_part_are_reported_as_of_the_whole(
    tmp_path: Path, wrong: str, words: str
) -> None:
    line = '{"id": "r%d", "nodes": [{"id": "a", "type": "atom", "probability": 0.5}], "edges": []}'
    lines = [line % n for n in range(20)]
    # What comes first is told, whichever way it is found.
    lines[13], lines[18] = wrong, "nonsense"
    text = "\n".join(lines)
    (tmp_path / "data.jsonl").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert_told_alike(tmp_path, "study: s\ndatasets: [{path: data.jsonl}]\n", words)


@pytest.mark.usefixtures("few_held")
@pytest.mark.parametrize(
    "arguments",
    [
        "n_atoms: 2",
        "n_atoms: [2, 1], contexts_per_atom: 1",
        "n_atoms: 2, contexts_per_atom: 1, densty: 0.1",
        "n_atoms: 2, contexts_per_atom: 1, seed: x",
        "n_atoms: 2, contexts_per_atom: 1, first: 0",
        "n_atoms: 2, contexts_per_atom: 1, strength: [0.9, 0.1]",
        "n_atoms: 2, contexts_per_atom: [1, 2, 3]",
    ],
)
def test_wrong_arguments_are_reported_as_of_the_whole(tmp_path: Path, arguments: str) -> None:
    text = f"study: s\ndatasets: [{{name: d, synthetic: {{n_responses: 40, {arguments}}}}}]\n"
    assert_told_alike(tmp_path, text, r"datasets\[0\]: ")


@pytest.mark.usefixtures("few_held")
def test_lines_of_other_formats_are_read_as_a_whole(tmp_path: Path) -> None:
    lines = [f'{{"question": "Who?", "response": "She {n}."}}' for n in range(12)]
    (tmp_path / "data.jsonl").write_text("\n".join(lines), encoding="utf-8")
    array = f"[{','.join(hashed_text(graph).decode() for graph in graphs()[:9])}]"
    (tmp_path / "array.json").write_text(array, encoding="utf-8")
    text = "study: s\ndatasets: [{path: data.jsonl}, {path: array.json}]\n"
    loaded = load_study(str(study_file(tmp_path, text)))
    for made, other in zip(load_data(loaded), load_data(loaded, map), strict=True):
        assert_same_data(made, other)
