"""Reading responses from tables of any kind, folders, texts and fact graphs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments import assess, fastfact, self_knowledge
from experiments.columns.reader import Columns
from experiments.columns.response_table import empty_remark
from experiments.columns.responses import (
    ResponseSettings,
    load_responses,
)
from experiments.columns.roles import RESPONSE_TEXT
from factormodels import read_many
from tests.experiments.conftest import invoke
from tests.factormodels.io.formats.release_records import FACTOOL, FASTFACT, RESPONSE, lines
from tests.refusals import refused

ROWS = pd.DataFrame(
    {
        "question": ["A bridge?", "Trains, too?"],
        "answer": ["The bridge is red; it is large.", 'It carries "trains", and\ncars.'],
        "id": ["one", "two"],
        "model": ["x", "y"],
    }
)


def as_saved_dataset(path: Path) -> None:
    import pyarrow as pa

    path.mkdir()
    table = pa.Table.from_pandas(ROWS, preserve_index=False)
    name = "data-00000-of-00001.arrow"
    sink = pa.OSFile(str(path / name), "wb")
    with sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    state = {"_data_files": [{"filename": name}]}
    (path / "state.json").write_text(json.dumps(state))


FORMS: dict[str, Callable[[Path], object]] = {
    "a.csv": lambda path: ROWS.to_csv(path, index=False),
    "excel.csv": lambda path: ROWS.to_csv(path, index=False, sep=";", encoding="utf-8-sig"),
    "a.tsv": lambda path: ROWS.to_csv(path, index=False, sep="\t"),
    "a.jsonl": lambda path: ROWS.to_json(path, orient="records", lines=True),
    "a.json": lambda path: ROWS.to_json(path, orient="records", indent=1),
    "a.parquet": lambda path: ROWS.to_parquet(path, index=False),
    "a.xlsx": lambda path: ROWS.to_excel(path, index=False),
    "saved": as_saved_dataset,
}


@pytest.mark.parametrize("name", FORMS)
def test_every_table_gives_the_same_responses(name: str, tmp_path: Path) -> None:
    FORMS[name](tmp_path / name)
    loaded = load_responses(tmp_path / name)
    assert [(graph.id, graph.query, graph.response) for graph in loaded.graphs] == [
        (row.id, row.question, row.answer) for row in ROWS.itertuples()
    ]
    assert [graph.metadata["columns"] for graph in loaded.graphs] == [
        {"model": "x"},
        {"model": "y"},
    ]
    (remark,) = loaded.remarks
    assert "response from 'answer', question from 'question', id from 'id'" in remark
    assert "kept beside it: model" in remark


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("response,text\nulm,It is old.\nlima,It is new.\n", [("ulm", "It is old."),
         ("lima", "It is new.")]),
        ("response,text\n1,It is old.\n2,New.\n", [("1", "It is old."), ("2", "New.")]),
        # The column of responses holds texts, or repeats.
        ("response,text\nIt is red.,It is old.\n", [("t", "It is red.")]),
        ("id,response,text\na,Yes,It is old.\nb,Yes,It is new.\n", [("a", "Yes"), ("b", "Yes")]),
        ("response,text\nulm,old\n", [("t", "ulm")]),
    ],
)  # fmt: skip
def test_a_column_of_responses_may_hold_ids_of_texts(
    table: str, expected: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(table)
    graphs = load_responses(Path("t.csv")).graphs
    assert [(graph.id, graph.response) for graph in graphs] == expected


def test_columns_are_named_and_numbers_name_rows(tmp_path: Path) -> None:
    frame = pd.DataFrame({"what": ["Why?"], "text": ["x"], "said": ["It is red."], "n": [7]})
    frame.to_parquet(tmp_path / "t.parquet")
    named = ResponseSettings(text_column="said", question_column="what", id_column="n")
    (graph,) = named.load(tmp_path / "t.parquet").graphs
    assert (graph.id, graph.query, graph.response) == ("7", "Why?", "It is red.")
    refused(
        "--text-column sayd: there is no such column .did you mean 'said'",
        ResponseSettings(text_column="sayd").load,
        tmp_path / "t.parquet",
    )
    refused(
        "--question-column whut: there is no such column",
        ResponseSettings(text_column="said", question_column="whut").load,
        tmp_path / "t.parquet",
    )


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("response", "answer"), "response"),
        (("gold", "Model_Answer", "text"), "Model_Answer"),
        (("id", "text"), "text"),
        (("id", "reference"), None),
    ],
)
def test_an_obvious_column_is_guessed(columns: tuple[str, ...], expected: str | None) -> None:
    assert Columns(columns, "t.csv").known(RESPONSE_TEXT) == expected


def test_columns_that_leave_a_doubt_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("answer,output\nIt is red.,It is blue.\n")
    refused("'answer' and 'output' may each hold the response", load_responses, path)
    path.write_text("a,b\nIt is red.,It is blue.\n")
    refused(r"responses is unknown; .* --text-column 'b'; there are a, b", load_responses, path)
    # Long numbers are no texts.
    path.write_text("a,p\nr1,0.123456789\nr2,0.987654321\n")
    refused(
        r"response.* is unknown; name a column of texts with --text-column COLUMN",
        load_responses,
        path,
    )


def test_responses_are_chosen_by_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f'{{"id": "r{i}", "response": "It is {i}."}}\n' for i in range(3)))
    both = ResponseSettings(text_column="response", response=("r2", "r0")).load(path)
    assert [graph.id for graph in both.graphs] == ["r0", "r2"]
    assert not both.remarks
    unknown = ResponseSettings(response=("r9",))
    refused("there is no response 'r9'; it holds r0, r1, r2", unknown.load, path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,answer\n1,\n", "line 2, column 'answer': the response is empty"),
        ("id,answer\n1,\n2, \n", "line 2, column 'answer': every response is empty"),
        (
            '[{"answer": "It is red."},\n {"anwser": "It is blue."}]',
            "line 2, column 'answer': the row has no such key .'anwser' is another column.; add it",
        ),
        ("id,answer\n1,It is red.\n1,It is blue.\n", "two responses have the id '1'"),
        (
            '[{"answer": ["It is red."]}]',
            r"line 1, column 'answer': \['It is red.'\] is not text",
        ),
        ("[]", r"\[\] is not a JSON object"),
    ],
)
def test_a_bad_row_is_placed(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    refused(message, load_responses, tmp_path / "t.csv")


def test_a_table_given_as_prose_is_refused_with_the_fix(tmp_path: Path) -> None:
    path = tmp_path / "answers.txt"
    ROWS.to_csv(path, index=False)
    refused(
        "looks like a table .columns question, answer, id, model.*--text-column, or rename",
        load_responses,
        path,
    )
    loaded = ResponseSettings(text_column="answer").load(path)
    assert [graph.id for graph in loaded.graphs] == ["one", "two"]
    for prose in (
        "The answer, which is long,\nis red, large, old.",
        "Dear all, hello\nIt, too\nA, b",
        "x = 1;\ny = 2;\nz = 3;",
    ):
        path.write_text(prose)
        assert len(load_responses(path).graphs) == 1


@pytest.mark.parametrize("text", ["Nr;Antwort\n1;Rot.\n2;Blau.\n", "n,what,said\n1,a,b\n2,c,d\n"])
def test_prose_as_regular_as_a_table_is_refused_whatever_its_columns_are_called(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "answers.txt"
    path.write_text(text)
    refused("looks like a table .* use a row of JSON Lines", load_responses, path)
    column = "Antwort" if ";" in text else "said"
    assert len(ResponseSettings(text_column=column).load(path).graphs) == 2


def test_a_damaged_workbook_is_refused_with_the_fix(tmp_path: Path) -> None:
    path = tmp_path / "answers.xlsx"
    path.write_bytes(b"PK\x03\x04 and so on")
    refused("answers.xlsx: it is damaged, or a workbook .* a sheet as CSV", load_responses, path)


def test_columns_are_refused_where_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It is red.")
    refused(
        "--question-column names a column, and this is not a table",
        ResponseSettings(question_column="q").load,
        tmp_path / "a.txt",
    )


def test_a_folder_of_texts_has_a_response_in_each(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").write_text("It is blue.\n")
    (tmp_path / "sub" / "a.md").write_text("It is red.\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    graphs = load_responses(tmp_path).graphs
    assert [(graph.id, graph.response) for graph in graphs] == [
        ("b", "It is blue."),
        ("sub/a", "It is red."),
    ]
    (tmp_path / "b.txt").write_text(" ")
    loaded = load_responses(tmp_path)
    assert [graph.id for graph in loaded.graphs] == ["sub/a"]
    assert loaded.remarks == ("1 of 2 responses is empty and left out: file b.",)
    (tmp_path / "sub" / "a.md").write_text("")
    refused("every text in the folder is empty", load_responses, tmp_path)


EMPTY: list[dict[str, Any]] = [
    {"id": "one", "answer": "It is red."},
    {"id": "two", "answer": None},
    {"id": "three", "answer": " \n"},
    {"id": "four", "answer": "It is blue."},
]

EMPTY_FORMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "t.jsonl": (lambda path: path.write_text(lines(*EMPTY)), "lines 2, 3"),
    "t.json": (lambda path: path.write_text(json.dumps(EMPTY, indent=1)), "lines 6, 10"),
    "t.csv": (lambda path: pd.DataFrame(EMPTY).to_csv(path, index=False), "lines 3, 4"),
    "t.xlsx": (lambda path: pd.DataFrame(EMPTY).to_excel(path, index=False), "lines 3, 4"),
    "t.parquet": (lambda path: pd.DataFrame(EMPTY).to_parquet(path), "rows 2, 3"),
    "responses.jsonl": (
        lambda path: path.write_text(
            lines(*({**RESPONSE, "response": row["answer"]} for row in EMPTY))
        ),
        "lines 2, 3",
    ),
    "graphs.jsonl": (
        lambda path: path.write_text(
            lines(
                *({**FASTFACT, "response": row["answer"], "claims_lst": []} for row in EMPTY),
            )
        ),
        "ids graphs-002, graphs-003",
    ),
}


@pytest.mark.parametrize("name", EMPTY_FORMS)
def test_empty_responses_are_counted_and_the_others_kept(name: str, tmp_path: Path) -> None:
    write, places = EMPTY_FORMS[name]
    write(tmp_path / name)
    loaded = load_responses(tmp_path / name)
    assert [graph.response.split()[-1] for graph in loaded.graphs] == ["red.", "blue."]
    assert loaded.remarks[-1] == f"2 of 4 responses are empty and left out: {places}."


def test_empty_texts_and_rows_in_memory_are_counted() -> None:
    texts = ResponseSettings(text=["It is red.", " ", "It is blue."]).load()
    assert [graph.id for graph in texts.graphs] == ["response-1", "response-3"]
    assert texts.remarks == ("1 of 3 responses is empty and left out: id response-2.",)
    rows = ResponseSettings().load(EMPTY)
    assert [graph.id for graph in rows.graphs] == ["one", "four"]
    assert rows.remarks[-1] == "2 of 4 responses are empty and left out: rows 2, 3."


def test_a_long_list_of_empty_responses_is_cut() -> None:
    message = empty_remark([str(number) for number in range(1, 31)], 40, "line")
    assert message.startswith("30 of 40 responses are empty and left out: lines 1, 2,")
    assert message.endswith("10 and 20 more.")


def test_a_folder_of_nothing_is_refused(tmp_path: Path) -> None:
    refused("contains no text .* and no Parquet", load_responses, tmp_path)


def test_a_table_goes_through_the_command(folder: Path) -> None:
    ROWS.to_csv("answers.csv", index=False)
    Path("notes").mkdir()
    Path("notes/a.txt").write_text("The bridge is red.")
    options = ("--documents", "notes", "--out", "o")
    result = invoke("assess", "answers.csv", *options)
    assert "answers.csv, CSV: response from 'answer'" in result.stdout
    assert [graph.id for graph in read_many(folder / "o/graphs.jsonl")] == ["one", "two"]
    text = Path("answers.csv").read_text()
    invoke("assess", "-", "--text-column", "answer", *options, input=text)
    assert "looks like a table" in invoke("assess", "-", *options, code=2, input=text).output


def test_rows_and_data_frames_are_evaluated(folder: Path) -> None:
    from experiments import assess

    documents = ["The bridge is red. It carries trains and cars."]
    frame = ROWS.assign(score=[1.0, 2.0])
    assessed = assess(frame, documents=documents)
    assert list(dict.fromkeys(assessed["claims"]["response"])) == ["one", "two"]
    assert [graph.query for graph in assessed.graphs] == ROWS["question"].tolist()
    records: list[Any] = ROWS.to_dict("records")
    same = assess(records, documents=documents)
    pd.testing.assert_frame_equal(same["claims"], assessed["claims"])
    frame.to_csv("answers.csv", index=False)
    read = assess(Path("answers.csv"), documents=documents)
    pd.testing.assert_frame_equal(read["claims"], assessed["claims"])
    assert {path.name for path in assessed.save("saved")} >= {"claims.csv", "graphs.jsonl"}
    assert len(read_many(folder / "saved" / "graphs.jsonl")) == 2
    renamed = frame.rename(columns={"answer": "said", "question": "what", "id": "n"})
    named = assess(
        renamed, documents=documents, text_column="said", question_column="what", id_column="n"
    )
    pd.testing.assert_frame_equal(named["claims"], assessed["claims"])
    refused(
        "the column of responses is unknown; name it, as in `text_column=",
        *(assess, [{"a": "It is red."}]),
    )


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.parquet"])
def test_passages_in_a_column_are_those_of_the_response(name: str, tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {
            "user_input": ["A bridge?", "Trains?"],
            "response": ["It is red.", "Yes."],
            "retrieved_contexts": [["A red bridge.", "It is long."], []],
        }
    )
    write: dict[str, Callable[[Path], object]] = {
        "t.jsonl": lambda path: rows.to_json(path, orient="records", lines=True),
        "t.csv": lambda path: rows.to_csv(path, index=False),
        "t.parquet": lambda path: rows.to_parquet(path),
    }
    write[name](tmp_path / name)
    first, second = load_responses(tmp_path / name).graphs
    assert first.query == "A bridge?"
    assert [(c.text, c.retrieved_for) for c in first.contexts] == [
        ("A red bridge.", ()),
        ("It is long.", ()),
    ]
    assert second.contexts == ()


def test_labeled_claims_in_a_binary_table_are_read(tmp_path: Path) -> None:
    pd.DataFrame([FACTOOL]).to_parquet(tmp_path / "t.parquet")
    (graph,) = load_responses(tmp_path / "t.parquet").graphs
    assert [atom.label for atom in graph.atoms] == [True, False, None]


@pytest.mark.parametrize(
    "name",
    [
        "qid",
        "question_id",
        "questionId",
        "Doc-ID",
        "sample_id",
        "idx",
        "key",
        "_id",
        "Id",
        "task_id",
    ],
)
def test_columns_that_identify_a_row_identify_its_response(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"answer": ["It is red.", "It is blue."], name: ["set/7", "set/9"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    loaded = load_responses(tmp_path / "t.csv")
    assert [graph.id for graph in loaded.graphs] == ["set/7", "set/9"]
    assert loaded.remarks == (
        f"{tmp_path / 't.csv'}, CSV: response from 'answer', id from {name!r}",
    )


def test_numbers_and_an_index_identify_rows(tmp_path: Path) -> None:
    frame = pd.DataFrame({"answer": ["It is red.", "It is blue."], "qid": [7, 9]})
    for kind in (int, float, str):
        numbered = frame.astype({"qid": kind})
        numbered.to_parquet(tmp_path / "t.parquet")
        numbered.to_excel(tmp_path / "t.xlsx", index=False)
        for data in (
            numbered,
            numbered.set_index("qid"),
            tmp_path / "t.parquet",
            tmp_path / "t.xlsx",
        ):
            assert [graph.id for graph in load_responses(data).graphs] == ["7", "9"]


def test_a_column_that_repeats_or_lacks_values_identifies_nothing_and_that_is_reported(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("qid,answer\nm,It is red.\nm,It is blue.\n")
    loaded = load_responses(path)
    assert [graph.id for graph in loaded.graphs] == ["t-002", "t-003"]
    assert any(
        "'qid' has 'm' in line 2 and line 3 and cannot" in remark for remark in loaded.remarks
    )
    refused("two responses have the id 'm'", ResponseSettings(id_column="qid").load, path)
    path.write_text("qid,answer,uid\nm,It is red.,\n,It is blue.,k\n")
    loaded = load_responses(path)
    assert [graph.id for graph in loaded.graphs] == ["t-002", "k"]
    assert any("1 response without an id in 'uid'" in remark for remark in loaded.remarks)
    # What repeats gives way to what does not.
    path.write_text("qid,answer,idx\nm,It is red.,0\nm,It is blue.,1\nm,,1\n")
    assert [graph.id for graph in load_responses(path).graphs] == ["0", "1"]
    refused(r"\['a'\] is not an id", load_responses, [{"answer": "It is red.", "id": ["a"]}])


def test_responses_without_text_do_not_stop_those_whose_claims_are_taken(tmp_path: Path) -> None:
    """Labeled claims keep a response without text, from which no claims can be taken."""
    path = tmp_path / "t.jsonl"
    blank = {**FACTOOL, "response": None}
    path.write_text(lines(FACTOOL, blank, {**FACTOOL, "response": "", "claims": []}))
    empty = "1 of 3 responses is empty and left out: id t-003."
    loaded = load_responses(path)
    assert [len(graph.atoms) for graph in loaded.graphs] == [3, 3]
    assert loaded.remarks == (empty,)
    assert [graph.id for graph in loaded.with_texts().graphs] == ["t-001"]
    documents = tmp_path / "notes"
    documents.mkdir()
    (documents / "n.txt").write_text("Ada Example painted.")
    assessed = assess(path, atoms="sentences", documents=documents)
    assert {empty, "1 response without a text: left out."} <= set(assessed.sentences)
    assert set(assessed["claims"].response) == {"t-001"}
    asked: dict[str, Any] = {"model": "openai/x", "dry_run": True, "max_calls": 9}
    planned = self_knowledge(path, **asked)
    assert planned.sentences[0] == empty
    counted = fastfact(path, documents=documents, **asked)
    assert "1 response without a text: left out." in counted.sentences
    path.write_text(lines(blank))
    refused("'t' has no text to extract claims from", fastfact, path, documents=documents, **asked)


def test_the_ids_of_a_table_are_kept_wherever_it_is_read(folder: Path) -> None:
    (folder / "texts.csv").write_text(
        "id,question,response\n7,What?,That.\nx,Why?,So.\n,How?,Thus.\n"
    )
    assert [graph.id for graph in read_many("texts.csv")] == ["7", "x", "texts-004"]


def test_a_misspelled_dataset_has_the_nearest_name_from_a_path_too() -> None:
    for wrong in ("demonstratio", Path("demonstratio")):
        refused("did you mean 'demonstration'", load_responses, wrong)
