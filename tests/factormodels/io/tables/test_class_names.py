"""Integers of classes have the names that a file, or one beside it, states."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from experiments import score, self_knowledge
from factormodels import read_many
from factormodels.io.tables.arrow import arrow_records
from factormodels.io.tables.class_names import classes_of_features
from factormodels.io.tables.data_table import DataTable, given_classes, read_table
from tests.refusals import refused

NAMES = ["Supported", "Refuted"]
ROWS: list[dict[str, Any]] = [
    {"response": "m", "claim": "m1", "p": 0.75, "label": 0},
    {"response": "m", "claim": "m2", "p": 0.25, "label": 1},
    {"response": "n", "claim": "n1", "p": 0.5, "label": -1},
    {"response": "n", "claim": "n2", "p": 0.5, "label": 0},
]
LABELS = ["Supported", "Refuted", None, "Supported"]
BRIER = (0.25**2 + 0.25**2 + 0.5**2) / 3
VALUE = {"dtype": "string", "_type": "Value"}
CLASSES = {"names": NAMES, "_type": "ClassLabel"}
FEATURES = {
    "response": VALUE,
    "claim": VALUE,
    "p": {"dtype": "float64", "_type": "Value"},
    "label": CLASSES,
}

CARD = """---
license: mit
dataset_info:
  features:
  - name: response
    dtype: string
  - name: claim
    dtype: string
  - name: p
    dtype: float64
  - name: label
    dtype:
      class_label:
        names:
          '0': Supported
          '1': Refuted
  splits:
  - name: train
---
# Claims about moons
"""


def with_features(features: Any, rows: list[dict[str, Any]] = ROWS) -> pa.Table:
    stated = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.Table.from_pylist(rows).replace_schema_metadata(stated)


def stream_of(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def saved(folder: Path, table: pa.Table, info: Any) -> None:
    folder.mkdir(parents=True)
    stream_of(table, folder / "data-00000-of-00001.arrow")
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps(info))


def of_parquet(folder: Path) -> Path:
    pq.write_table(with_features(FEATURES), folder / "t.parquet")
    return folder / "t.parquet"


def of_stream(folder: Path) -> Path:
    stream_of(with_features(FEATURES), folder / "t.arrow")
    return folder / "t.arrow"


def of_feather(folder: Path) -> Path:
    feather.write_feather(with_features(FEATURES), folder / "t.feather", compression="zstd")
    return folder / "t.feather"


def of_saved_folder(folder: Path) -> Path:
    saved(folder / "d", with_features(FEATURES), {"features": FEATURES})
    return folder / "d"


def of_saved_folder_without_metadata(folder: Path) -> Path:
    saved(folder / "d", pa.Table.from_pylist(ROWS), {"features": FEATURES})
    return folder / "d"


def of_one_split(folder: Path) -> Path:
    saved(folder / "d" / "train", with_features(FEATURES), {})
    (folder / "d" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    return folder / "d"


def of_json_lines_beside_info(folder: Path) -> Path:
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    return path


def of_csv_beside_infos(folder: Path) -> Path:
    pd.DataFrame(ROWS).to_csv(folder / "t.csv", index=False)
    (folder / "dataset_infos.json").write_text(json.dumps({"default": {"features": FEATURES}}))
    return folder / "t.csv"


def of_parquet_below_card(folder: Path) -> Path:
    (folder / "data").mkdir()
    pd.DataFrame(ROWS).to_parquet(folder / "data" / "train.parquet")
    (folder / "README.md").write_text(CARD)
    return folder / "data" / "train.parquet"


def of_folder_with_card(folder: Path) -> Path:
    of_parquet_below_card(folder)
    return folder


def of_viewer(folder: Path) -> Path:
    features = [{"feature_idx": 0, "name": name, "type": kind} for name, kind in FEATURES.items()]
    rows = [{"row_idx": number, "row": row} for number, row in enumerate(ROWS)]
    (folder / "t.json").write_text(json.dumps({"features": features, "rows": rows}))
    return folder / "t.json"


def of_dictionary(folder: Path) -> Path:
    frame = pd.DataFrame(ROWS)
    frame["label"] = LABELS
    kind = pd.CategoricalDtype(NAMES, ordered=True)
    frame.astype({"label": kind}).to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


FORMS: list[Callable[[Path], Path]] = [
    *(of_parquet, of_stream, of_feather, of_saved_folder, of_saved_folder_without_metadata),
    *(of_one_split, of_json_lines_beside_info, of_csv_beside_infos, of_parquet_below_card),
    *(of_folder_with_card, of_viewer, of_dictionary),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_names_stand_for_integers_in_every_form(
    form: Callable[[Path], Path], tmp_path: Path
) -> None:
    table = read_table(form(tmp_path))
    assert [row["label"] for row in table.rows] == LABELS
    if form not in (of_dictionary, of_viewer):
        assert table.classes == {"label": tuple(NAMES)}


@pytest.mark.parametrize("form", [of_parquet, of_csv_beside_infos, of_viewer, of_dictionary])
def test_a_label_of_class_0_is_true_if_its_name_says_so(
    form: Callable[[Path], Path], tmp_path: Path
) -> None:
    scores = score(form(tmp_path), n_bootstrap=20, resamples=19)
    assert scores["scores"]["brier"].tolist() == [pytest.approx(BRIER, abs=1e-12)]


def test_the_meaning_of_classes_is_reported(tmp_path: Path) -> None:
    scores = score(of_parquet(tmp_path), n_bootstrap=20, resamples=19)
    assert (
        "Labels of column 'label': its classes are 0 = 'Supported', 1 = 'Refuted'; 'Supported' is "
        "true; 'Refuted' is false."
    ) in scores.sentences


def test_names_that_say_nothing_of_truth_are_refused_and_shown(tmp_path: Path) -> None:
    for names in (["Supported", "partly so"], ["LABEL_0", "LABEL_1"]):
        features = {**FEATURES, "label": {"names": names, "_type": "ClassLabel"}}
        pq.write_table(with_features(features), tmp_path / "t.parquet")
        refused(map(repr, sorted(names)), score, tmp_path / "t.parquet")


def test_words_of_evidence_are_labels_and_what_they_mean_is_reported(tmp_path: Path) -> None:
    kinds = ["entailment", "neutral", "contradiction"]
    features = {**FEATURES, "label": {"names": kinds, "_type": "ClassLabel"}}
    rows = [{**row, "label": number % 3} for number, row in enumerate(ROWS)]
    pq.write_table(with_features(features, rows), tmp_path / "t.parquet")
    scores = score(tmp_path / "t.parquet", n_bootstrap=20, resamples=19)
    brier = (0.25**2 + 0.25**2 + 0.5**2 + 0.5**2) / 4
    assert scores["scores"]["brier"].tolist() == [pytest.approx(brier, abs=1e-12)]
    sentences = " ".join(scores.sentences)
    assert "'entailment' is true; 'contradiction', 'neutral' are false" in sentences


def test_classes_within_lists_and_objects_have_their_names() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "m", "claims": [{"label": 1, "tags": [0, 1]}, {"label": None, "tags": []}]}
    ]
    listed = {"feature": CLASSES, "_type": "Sequence"}
    claims = {"label": CLASSES, "tags": listed}
    named = [{"label": "Refuted", "tags": NAMES}, {"label": None, "tags": []}]
    for kind in (
        [claims],
        {"feature": claims, "_type": "List"},
        {"feature": claims, "_type": "LargeList"},
    ):
        out = io.BytesIO()
        pq.write_table(with_features({"id": VALUE, "claims": kind}, rows), out)
        assert arrow_records([("t", out.getvalue())]).rows == [{"id": "m", "claims": named}]
    # Before version 4 of datasets a sequence of objects is an object of lists.
    out = io.BytesIO()
    rows = [{"claims": {"label": [1, 0]}}]
    features = {"claims": {"feature": {"label": CLASSES}, "_type": "Sequence"}}
    pq.write_table(with_features(features, rows), out)
    assert arrow_records([("t", out.getvalue())]).rows == [{"claims": {"label": NAMES[::-1]}}]


def test_self_knowledge_reads_the_names_of_labels_and_of_judgments(tmp_path: Path) -> None:
    rows = [
        {"response": "m", "judgment": judgment, "label": label}
        for label, judgment in ((0, 1), (0, 1), (1, 0), (1, 1))
    ]
    answers = {"names": ["no", "yes"], "_type": "ClassLabel"}
    features = {"response": VALUE, "judgment": answers, "label": CLASSES}
    pq.write_table(with_features(features, rows), tmp_path / "t.parquet")
    measured = self_knowledge(tmp_path / "t.parquet", n_bootstrap=20)["overall"]
    rates = dict(zip(measured["quantity"], measured["estimate"], strict=True))
    assert (rates["self_known"], rates["self_unknown"]) == (1.0, 0.5)


def test_a_column_of_stances_has_the_names_of_its_classes(tmp_path: Path) -> None:
    rows = [
        {"response": "m", "claim": "m1", "passage": f"w{number}", "relation": number}
        for number in range(3)
    ]
    kinds = {"names": ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"], "_type": "ClassLabel"}
    features = {"response": VALUE, "claim": VALUE, "passage": VALUE, "relation": kinds}
    pq.write_table(with_features(features, rows), tmp_path / "t.parquet")
    (graph,) = read_many(tmp_path / "t.parquet")
    assert [str(each.kind) for each in graph.relations] == [
        *("entailment", "contradiction", "neutral")
    ]


def test_a_card_of_other_columns_says_nothing_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(CARD)
    pd.DataFrame(ROWS[:2])[["p", "label"]].to_csv(tmp_path / "t.csv", index=False)
    assert [row["label"] for row in read_table(tmp_path / "t.csv").rows] == ["0", "1"]
    (tmp_path / "README.md").write_bytes(b"\xff\xfe no card")
    assert len(read_table(tmp_path / "t.csv").rows) == 2


def test_a_card_names_the_classes_of_a_table_that_lost_a_column(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(CARD)
    pd.DataFrame(ROWS[:2]).drop(columns="claim").to_csv(tmp_path / "t.csv", index=False)
    assert [row["label"] for row in read_table(tmp_path / "t.csv").rows] == NAMES


ATTRIBUTES: list[dict[str, Any]] = [
    {"label": NAMES},
    {"label": {"0": "Supported", "1": "Refuted"}},
    {"label": "0 = Supported, 1 = Refuted"},
    {"class_names": {"label": NAMES}},
    {"value_labels": {"Label": {0: "Supported", 1: "Refuted"}}},
    {"label_names": NAMES},
    {"id2label": {"0": "Supported", "1": "Refuted"}},
    {"label2id": {"Supported": 0, "Refuted": 1}},
    {"names": NAMES, "p": {"unit": "share"}, "author names": ["Ann", "Bo"], "source": "us"},
]


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=lambda attributes: next(iter(attributes)))
def test_names_in_attributes_of_a_frame_are_read_in_memory_and_from_its_file(
    attributes: dict[str, Any], tmp_path: Path
) -> None:
    frame = pd.DataFrame(ROWS)
    frame.attrs.update(attributes)
    quick: dict[str, Any] = {"n_bootstrap": 20, "resamples": 19}
    assert score(frame, **quick)["scores"]["brier"].tolist() == [pytest.approx(BRIER, abs=1e-12)]
    # Parquet's keys are texts.
    frame.attrs = json.loads(json.dumps(attributes))
    frame.to_parquet(tmp_path / "t.parquet")
    assert [row["label"] for row in read_table(tmp_path / "t.parquet").rows] == LABELS


@pytest.mark.parametrize(
    "metadata",
    [
        {"names": json.dumps(NAMES)},
        {"0": "Supported", "1": "Refuted"},
        {"huggingface": json.dumps(CLASSES)},
        {"description": "0: Supported; 1: Refuted"},
    ],
    ids=lambda metadata: next(iter(metadata)),
)
def test_names_in_the_metadata_of_an_arrow_field_are_read(
    metadata: dict[str, str], tmp_path: Path
) -> None:
    plain = pa.Table.from_pylist(ROWS)
    fields = [
        field.with_metadata(metadata) if field.name == "label" else field for field in plain.schema
    ]
    table = plain.cast(pa.schema(fields))
    assert given_classes(table, "t") == {"label": tuple(NAMES)}
    pq.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.arrow")
    for path in tmp_path.iterdir():
        assert [row["label"] for row in read_table(path).rows] == LABELS


def test_names_of_no_column_are_refused_and_shown(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS).rename(columns={"label": "gold"})
    frame.attrs["class_names"] = NAMES
    frame.to_parquet(tmp_path / "t.parquet")
    refused(("'class_names'", "0 = 'Supported'"), read_table, tmp_path / "t.parquet")
    # Words are what they are, whatever else is said.
    words = frame.assign(gold="Supported")[["response", "gold"]]
    assert given_classes(words.assign(gold=words["gold"].astype("string")), "t") == {}


@pytest.mark.parametrize("suffix", ["dta", "orc", "pkl"])
def test_a_file_of_statistics_is_called_by_its_name(suffix: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS)
    path = tmp_path / f"t.{suffix}"
    if suffix == "dta":
        frame.to_stata(path, value_labels={"label": {0: "Supported", 1: "Refuted"}})
    elif suffix == "orc":
        frame.to_orc(path)
    else:
        frame.to_pickle(path)
    kinds = {"dta": "a Stata file", "orc": "an ORC file", "pkl": "a Python pickle"}
    refused((kinds[suffix], "to_parquet"), read_table, path)


def test_statements_that_differ_are_refused_with_both(tmp_path: Path) -> None:
    other = {**FEATURES, "label": {"names": NAMES[::-1], "_type": "ClassLabel"}}
    saved(tmp_path / "d", with_features(FEATURES), {"features": other})
    refused(
        ("'label'", "0 = 'Supported', 1 = 'Refuted'", "0 = 'Refuted'", "dataset_info.json"),
        *(read_table, tmp_path / "d"),
    )


def test_invalid_classes_and_lists_of_names_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(with_features(FEATURES, [*ROWS, {**ROWS[0], "label": 2}]), path)
    refused(
        r"t.parquet, row 5, column 'label': 2 is not one of the stated .*0 = 'Supported', 1",
        *(read_table, path),
    )
    for names in ([], ["a", "a"], "ab", [["a"], ["b"]]):
        refused(
            "are not the names of classes",
            *(classes_of_features, {"label": {"names": names, "_type": "ClassLabel"}}, "t"),
        )
    table = pa.Table.from_pylist(ROWS).replace_schema_metadata({"huggingface": "{"})
    pq.write_table(table, path)
    refused("its metadata 'huggingface' is not JSON", read_table, path)
    pd.DataFrame(ROWS).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "README.md").write_text(CARD.replace("'1'", "'2'"))
    refused("are not numbered from 0", read_table, tmp_path / "t.csv")


def test_classes_without_names_are_their_integers() -> None:
    assert not classes_of_features({"label": {"num_classes": 2, "_type": "ClassLabel"}}, "t")
    table = DataTable("t", "table", ("label",), ({"label": 1},), (None,))
    assert not table.classes
