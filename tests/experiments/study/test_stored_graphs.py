"""Many responses are in a temporary file, and nothing else about a study changes."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from experiments.results.files import ROWS
from experiments.run import outputs
from experiments.run.runner import Execution, design, run_study
from experiments.study import stored_graphs
from experiments.study.data import StudyData, graphs_hash, load_data
from experiments.study.reading import load_study
from experiments.study.stored_graphs import (
    KnownClaims,
    PackedGraphs,
    StoredGraphs,
    gathered,
)
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.fact_graph import FactGraph
from factormodels.synthetic import labelled_responses
from tests.experiments.conftest import study_file
from tests.refusals import refused

STUDY = """
study: stored
datasets:
  - name: made
    synthetic: {n_responses: 40, n_atoms: [0, 4], contexts_per_atom: 2, density: 0.2,
                unlabelled: 0.3}
  - name: drawn
    subset: {labelled: true, sample: 20}
    limit: 15
    synthetic: {n_responses: 40, n_atoms: [0, 3], contexts_per_atom: 1, unlabelled: 0.6, seed: 1}
variants: [FR1, FR2]
backends: [exact, lbp]
"""


def graphs() -> tuple[FactGraph, ...]:
    drawn = labelled_responses(
        30, n_atoms=(0, 4), contexts_per_atom=2, density=0.3, unlabelled=0.3, copied=0.2, seed=2
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
    monkeypatch.setattr(stored_graphs, "HELD", 7)
    monkeypatch.setattr(stored_graphs, "_COLUMN_CHUNK", 5)
    # Row groups that end within a response.
    monkeypatch.setattr(outputs, "GROUP_ROWS", 11)


@pytest.mark.usefixtures("few_held")
def test_stored_graphs_are_the_graphs() -> None:
    given = graphs()
    stored = gathered(iter(given))
    assert isinstance(stored, StoredGraphs)
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
    # The hash is that of the files that earlier versions wrote.
    assert stored.sha256 == graphs_hash(stored) == graphs_hash(given)
    # What is stored has been validated, and keeps what is worked out from the fields.
    assert stored[20].compiled_for("mixture").names == given[20].compiled_for("mixture").names
    assert hash(stored[20].atoms) == hash(given[20].atoms)
    with pytest.raises(AttributeError):
        stored[20].atoms[0].prior = 0.3  # type: ignore[misc]


@pytest.mark.usefixtures("few_held")
def test_columns_are_those_of_the_claims() -> None:
    given = graphs()
    stored = gathered(iter(given))
    for columns in (KnownClaims.of(stored), KnownClaims.of(given)):
        assert columns.response.to_pylist() == [graph.id for graph in given]
        assert columns.n_atoms.tolist() == [len(graph.atoms) for graph in given]
        rows = [atom for graph in given for atom in (graph.atoms or (None,))]
        for name, field in (("atom", "id"), ("label", "label"), ("annotation", "annotation")):
            expected = [None if atom is None else getattr(atom, field) for atom in rows]
            assert getattr(columns, name).to_pylist() == expected
        firsts = [rows[start] for start in columns.starts]
        assert firsts == [graph.atoms[0] if graph.atoms else None for graph in given]
    many, few = StudyData("d", stored, ""), StudyData("d", given, "")
    assert (many.n_atoms, many.n_labelled) == (few.n_atoms, few.n_labelled)


def test_few_graphs_stay_in_memory() -> None:
    given = graphs()
    assert gathered(iter(given)) == given


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.kill)])
def test_results_do_not_depend_on_where_the_data_are(
    tmp_path: Path, request: pytest.FixtureRequest, workers: int
) -> None:
    loaded = load_study(str(study_file(tmp_path, STUDY)))
    run_study(design(loaded), tmp_path / "held", Execution(workers=1))
    request.getfixturevalue("few_held")
    planned = design(loaded)
    assert all(isinstance(one.graphs, StoredGraphs) for one in planned.data)
    run_study(planned, tmp_path / "stored", Execution(workers=workers))
    for name in ("summary.csv", "table.md", "short.tex"):
        held, stored = ((tmp_path / where / name).read_bytes() for where in ("held", "stored"))
        assert held == stored
    held, stored = (
        pq.read_table(tmp_path / where / ROWS).drop_columns(["seconds"])
        for where in ("held", "stored")
    )
    assert held.equals(stored)
    assert pq.ParquetFile(tmp_path / "stored" / ROWS).num_row_groups > 8


@pytest.mark.usefixtures("few_held")
def test_a_repeated_id_among_many_is_refused(tmp_path: Path) -> None:
    line = '{"id": "r%d", "nodes": [{"id": "a", "type": "atom", "probability": 0.5}], "edges": []}'
    study = study_file(tmp_path, "study: s\ndatasets: [{path: data.jsonl}]\n")
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join(line % n for n in (*range(12), 5)), encoding="utf-8")
    refused("lines 6 and 13 both hold the id 'r5'", load_data, load_study(str(study)))
    data.write_text("\n".join(line % n for n in range(12)), encoding="utf-8")
    (loaded,) = load_data(load_study(str(study)))
    assert isinstance(loaded.graphs, StoredGraphs)
