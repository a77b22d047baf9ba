"""Relations as a table: graphs of its rows, from every spelling, and how a bad row is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from factormodels.claims import Relation, RelationKind
from factormodels.io import read, read_each, read_many
from factormodels.io.file_report import check_file
from tests.factormodels.io.formats.release_records import written
from tests.refusals import refused

TABLE = """response;claim;passage;entailment;contradiction;neutral;label
r1;a1;p1;0,8;0,1;0,1;1.0
r1;a1;p2;10 %;70 %;20 %;1.0
r1;a2;p1;0,2;0,7;0,1;0.0
r2;a1;p1;0,9;0,05;0,05;yes
r2;a2;a1;0,2;0,1;0,7;no
r3;a1;;;;;
"""


def test_rows_become_the_graphs_of_their_responses(tmp_path: Path) -> None:
    first, second, third = read_many(written(tmp_path, TABLE, "relations.csv"))
    assert (first.id, second.id, third.id) == ("r1", "r2", "r3")
    assert [(atom.id, atom.label) for atom in first.atoms] == [("a1", True), ("a2", False)]
    assert [(c.id, c.retrieved_for) for c in first.contexts] == [
        ("p1", ("a1", "a2")),
        ("p2", ("a1",)),
    ]
    entails, contradicts = RelationKind.ENTAILMENT, RelationKind.CONTRADICTION
    assert first.relations == (
        Relation("p1", "a1", entails, 0.8, (0.8, 0.1, 0.0, 0.1)),
        Relation("p2", "a1", contradicts, 0.7, (0.1, 0.7, 0.0, 0.2)),
        Relation("p1", "a2", contradicts, 0.7, (0.2, 0.7, 0.0, 0.1)),
    )
    # A passage that is called as a claim is has a name of its own.
    assert second.context_ids == ("p1", "passage a1")
    assert second.relations[1].kind is RelationKind.NEUTRAL
    assert (third.contexts, third.atoms[0].label) == ((), None)


def test_relations_may_be_words_and_columns_have_other_names(tmp_path: Path) -> None:
    rows = [
        {"Response ID": "r1", "Atom": "a1", "Context": "c1", "Stance": "supports", "p": 1,
         "Confidence": "0,9", "Claim text": "It is red.", "Evidence": "Red it is.", "Gold": "S"},
        {"Response ID": "r1", "Atom": "a2", "Context": "c1", "Stance": "refutes", "Gold": "NS"},
    ]  # fmt: skip
    path = written(tmp_path, "".join(f"{json.dumps(row)}\n" for row in rows), "relations.jsonl")
    (graph,) = read_each(path)
    assert graph.relations == (
        Relation("c1", "a1", RelationKind.ENTAILMENT, 0.9),
        Relation("c1", "a2", RelationKind.CONTRADICTION, 1.0),
    )
    assert (graph.atoms[0].text, graph.contexts[0].text) == ("It is red.", "Red it is.")
    assert graph.atoms[1].text == "a2"
    report = check_file(path)
    assert report.format is not None
    assert report.format.name == "relation-table"
    assert report.problems == ()


HEAD = "response,claim,passage,relation,probability,label\n"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (",a1,c1,entailment,0.9,1", "line 2, column 'response': the cell is blank"),
        ("r1,,c1,entailment,0.9,1", "line 2, column 'claim': the cell is blank"),
        ("r1,a1,c1,similar,0.9,1", "line 2, column 'relation': 'similar' is unknown"),
        ("r1,a1,c1,,0.9,1", "line 2: it has no relation"),
        ("r1,a1,c1,entailment,1.2,1", "line 2, column 'probability': '1.2' is not a probability"),
        ("r1,a1,c1,entailment,90,1", "or a percentage with its sign"),
        ("r1,a1,c1,entailment,x,1", "line 2, column 'probability': 'x'"),
        ("r1,a1,c1,entailment,0.9,1\nr1,a1,c1,entailment,0.9,1", "line 3: the passage 'c1'"),
        ("r1,a1,c1,entailment,0.9,1\nr1,a1,c2,entailment,0.9,0", "line 3: claim 'a1'.* label"),
        ("r1,a1,c1,entailment,0.9,maybe", "column 'label': its labels are 'maybe'"),
    ],
)
def test_a_bad_row_is_refused_with_its_place(tmp_path: Path, rows: str, message: str) -> None:
    refused(message, read_many, written(tmp_path, f"{HEAD}{rows}\n"))


def test_two_of_three_probabilities_are_refused(tmp_path: Path) -> None:
    refused("line 2: column 'neutral' is empty", read_many, written(tmp_path, TABLE.replace(
        "0,8;0,1;0,1", "0,8;0,2;")))  # fmt: skip
    refused("sum to 1.2", read_many, written(tmp_path, TABLE.replace("0,8;0,1;0,1", "0,8;0,2;0,2")))


@pytest.mark.parametrize("form", ["parquet", "arrow", "xlsx"])
def test_a_table_that_is_no_text_is_read_as_its_text_is(tmp_path: Path, form: str) -> None:
    pd = pytest.importorskip("pandas")
    text = tmp_path / "relations.csv"
    text.write_text(
        "response,claim,passage,relation,probability,label\n"
        "1,a1,1,entailment,0.9,1\n1,a2,1,contradiction,0.8,0\n2,a1,,,,1\n",
        encoding="utf-8",
    )
    table = pd.read_csv(text).astype({"passage": "Int64"})
    binary = tmp_path / f"relations.{form}"
    if form == "xlsx":
        pytest.importorskip("openpyxl")
        table.to_excel(binary, index=False)
    elif form == "parquet":
        table.to_parquet(binary)
    else:
        table.to_feather(binary)
    graphs = read_many(text)
    assert read_many(binary) == graphs
    assert list(read_each(binary)) == graphs
    report = check_file(binary)
    assert report.format is not None
    assert (report.format.name, report.records, report.problems) == ("relation-table", 3, ())


def test_errors_of_a_binary_table_are_reported(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    path = tmp_path / "other.parquet"
    pd.DataFrame({"response": ["r"], "shade": [0.5]}).to_parquet(path)
    refused(f"{path.name}.*'shade'", read_many, path)
    (problem,) = check_file(path).problems
    assert "'shade'" in problem.message
    path.write_bytes(path.read_bytes()[:40])
    refused(f"{path.name}.*damaged", read_many, path)
    (problem,) = check_file(path).problems
    assert "damaged" in problem.message


SHARES = "response,claim,passage,relation,entailment,contradiction,neutral\n"


def test_a_relation_beside_its_probabilities_is_neutral_where_it_is_improbable(
    tmp_path: Path,
) -> None:
    rows = "r,a1,p1,entailment,0.45,0.05,0.5\nr,a2,p2,contradiction,0.2,0.7,0.1\n"
    (graph,) = read_many(written(tmp_path, SHARES + rows))
    assert graph.relations == (
        Relation("p1", "a1", RelationKind.NEUTRAL, 0.5, (0.45, 0.05, 0.0, 0.5)),
        Relation("p2", "a2", RelationKind.CONTRADICTION, 0.7, (0.2, 0.7, 0.0, 0.1)),
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("r,a1,p1,entailment,0.2,0.7,0.1", "relation is entailment.* favors contradiction .0.7"),
        ("r,a1,p1,contradiction,0.4,0.1,0.5", "relation is contradiction.* favors entailment .0.4"),
        ("r,a1,p1,equivalence,0.8,0.1,0.1", "no probability of equivalence beside"),
    ],
)
def test_a_relation_that_its_probabilities_contradict_is_refused(
    tmp_path: Path, row: str, message: str
) -> None:
    refused(f"line 2.*{message}", read_many, written(tmp_path, f"{SHARES}{row}\n"))


def test_neutral_has_what_the_other_two_leave(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = "q7,a1,c1,0.7,0.2\nq7,a2,c1,0.2,0.75\nq7,a3,c1,0.3,0.3\nq7,a4,c1,1.0,0\n"
    head = "qid,claim_id,context_id,p_entail,contradiction_prob\n"
    (graph,) = read_many(written(tmp_path, head + rows))
    assert graph.id == "q7"
    kinds = [relation.kind for relation in graph.relations]
    entails, contradicts, neutral = (
        RelationKind.ENTAILMENT,
        RelationKind.CONTRADICTION,
        RelationKind.NEUTRAL,
    )
    assert kinds == [entails, contradicts, neutral, entails]
    assert [
        relation.distribution[-1] for relation in graph.relations if relation.distribution
    ] == pytest.approx([0.1, 0.05, 0.4, 0.0])
    assert "1 minus those of entailment" in caplog.text


def test_a_neutral_share_may_be_called_nei(tmp_path: Path) -> None:
    head = "response,claim,passage,supports,refutes,NEI\n"
    (graph,) = read_many(written(tmp_path, f"{head}r1,a1,p1,0.5,0.2,0.3\n"))
    distribution = graph.relations[0].distribution
    assert distribution is not None
    assert distribution[-1] == pytest.approx(0.3)
    refused("sum to 1.4", read_many, written(tmp_path, f"{head}r1,a1,p1,0.5,0.2,0.7\n"))


@pytest.mark.parametrize(
    ("columns", "shares", "message"),
    [
        ("entailment,contradiction", "0.8,0.4", "line 2: .*contradiction sum to 1.2, more than 1"),
        ("entailment,neutral", "0.8,0.1", "line 2: .*no column is recognized as 'contradiction'"),
        ("contradiction", "0.8", "line 2: .*no column is recognized as 'entailment'"),
        ("entailment,contradiction", "0.8,", "line 2: column 'contradiction' is empty"),
    ],
)
def test_missing_probabilities_are_named(
    tmp_path: Path, columns: str, shares: str, message: str
) -> None:
    text = f"response,claim,passage,{columns}\nr1,a1,c1,{shares}\n"
    refused(message, read_many, written(tmp_path, text))


@pytest.mark.parametrize("column", ["probability", "score", "prob", "p", "relation_confidence"])
def test_a_probability_by_another_name_is_none_of_one(tmp_path: Path, column: str) -> None:
    text = f"response_id,claim_id,context_id,stance,{column}\nr1,a1,c1,supports,0.8\n"
    (graph,) = read_many(written(tmp_path, text))
    assert graph.relations == (Relation("c1", "a1", RelationKind.ENTAILMENT, 0.8),)


def test_a_table_that_lacks_columns_of_relations_is_told_which(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("qid,claim,evidence,label,score\nq,c,some text,SUPPORTS,0.9\n")
    refused("it lacks columns known as 'passage', 'relation'", read, path)
    path.write_text("name,claim,size\na,b,3\n")
    refused("it begins with 'NAME,CLAIM,SIZE'", read, path)
