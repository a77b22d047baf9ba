"""Every orient of `DataFrame.to_json` is read, or refused with one that is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments import score
from factormodels import read_many
from factormodels.io.tables.data_table import parse_table, read_table
from factormodels.io.tables.json_tables import rows_of_object
from tests.refusals import refused

FRAME = pd.DataFrame(
    {
        "response": ["u", "u", "v"],
        "claim": ["u1", "u2", "v1"],
        "p": [0.5, None, 0.25],
        "label": [True, False, None],
    }
)
ROWS: list[dict[str, Any]] = [
    {"response": "u", "claim": "u1", "p": 0.5, "label": True},
    {"response": "u", "claim": "u2", "p": None, "label": False},
    {"response": "v", "claim": "v1", "p": 0.25, "label": None},
]


@pytest.mark.parametrize("orient", ["columns", "index", "split", "table", "records"])
def test_every_orient_gives_the_same_rows(orient: Any, tmp_path: Path) -> None:
    for frame in (FRAME, FRAME.set_axis([7, 3, 12])):
        path = tmp_path / "t.json"
        frame.to_json(path, orient=orient)
        table = read_table(path)
        assert list(table.rows) == ROWS
        assert (table.form, table.locate(1)) == (
            "JSON",
            f"{path}, line 1" if orient == "records" else f"{path}, row 2",
        )


def test_a_frame_as_a_tight_dictionary_is_read() -> None:
    plain = FRAME.astype(object).where(FRAME.notna(), None).to_dict("tight")
    assert rows_of_object(plain, "t") == ROWS


def test_rows_and_columns_that_cannot_be_distinguished_are_refused() -> None:
    named = FRAME.set_index("claim").to_json()
    for text in (named, FRAME.to_json(orient="values"), FRAME.T.reset_index(drop=True).to_json()):
        refused(r"write it with to_json\(orient='records', lines=True\)", parse_table, text, "t")


def test_a_split_frame_of_which_a_row_does_not_fit_is_refused() -> None:
    text = json.dumps({"columns": ["p", "label"], "index": [0], "data": [[0.5]]})
    refused(r"t, row 1: \[0.5\] does not fit the 2 columns", parse_table, text, "t")
    text = json.dumps({"columns": ["p", "p"], "index": [0], "data": [[0.5, 1]]})
    refused("two columns have the name 'p'", parse_table, text, "t")


def test_one_record_with_objects_stays_one_record() -> None:
    for record in ({"id": "u", "scores": {"0": 1}}, {"a": {"x": 1}, "b": {"y": 2}}):
        assert parse_table(json.dumps(record), "t").rows == (record,)


def test_nan_in_json_is_missing_and_infinity_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    lines = [
        json.dumps({**row, "p": float("nan") if row["p"] is None else row["p"]}) for row in ROWS
    ]
    for text in ("\n".join(lines), f"[{', '.join(lines)}]"):
        path.write_text(text)
        assert list(read_table(path).rows) == ROWS
        scores = score(path, n_bootstrap=20, resamples=19)
        assert scores["scores"]["brier"].tolist() == [0.25]
    path.write_text("\n".join(lines).replace("NaN", "Infinity"))
    refused("line 2: column 39: Infinity is not a JSON number", read_table, path)


def test_a_first_line_of_null_is_a_missing_record_and_no_heading(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('null\n{"p": 0.5, "label": 1}\n{"p": 0.25, "label": 0}\n')
    refused("t.jsonl, line 1: null is not a JSON object", read_table, path)
    # A table may have a column of that name.
    path.write_text("null\n1\n")
    assert read_table(path).columns == ("null",)


def test_a_frame_of_relations_is_read_as_its_rows(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"response": "u", "claim": ["u1", "u2"], "passage": "w", "relation": ["entails", "refutes"]}
    )
    frame.to_json(tmp_path / "t.json")
    (graph,) = read_many(tmp_path / "t.json")
    kinds = [(each.target, str(each.kind)) for each in graph.relations]
    assert kinds == [("u1", "entailment"), ("u2", "contradiction")]
