"""`self-knowledge`: tables with any column names, numbers counted by hand, remarks."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from calibration.self_knowledge import IntervalSettings, label_positions, write_records
from experiments import self_knowledge
from experiments.columns.placed_claims import load_claims
from experiments.findings.findings import Findings
from factormodels.errors import InputError
from tests.calibration.self_knowledge.claims import in_sentence, random_records
from tests.experiments.conftest import invoke
from tests.refusals import refused

QUICK: dict[str, Any] = {"n_bootstrap": 20, "n_splits": 5}

CLAIMS = [
    # response, sentence, label, judgment
    *[("r1", 1, "S", "correct"), ("r1", 1, "NS", "correct"), ("r1", 2, "S", "incorrect")],
    *[("r2", 1, "S", "correct"), ("r2", 2, "S", "correct"), ("r2", 2, "NS", "incorrect")],
    *[("r3", 1, "S", "correct"), ("r3", 2, "NS", "incorrect"), ("r3", 2, "IR", "correct")],
    *[("r4", 1, "S", "incorrect"), ("r4", 1, "S", "correct"), ("r4", 2, "NS", "correct")],
]


def frame(**columns: Any) -> Any:
    table = pd.DataFrame(CLAIMS, columns=["response", "sentence", "label", "judgment"])
    return table.assign(**columns)


def overall(findings: Findings, of: str = "") -> dict[str, float]:
    rows = findings["overall"]
    rows = rows[rows["of"].str.startswith(of)]
    return dict(zip(rows["quantity"], rows["estimate"], strict=False))


def check_counted(findings: Findings, of: str = "") -> None:
    """Five of seven supported claims are judged correct, two of four unsupported incorrect."""
    values = overall(findings, of)
    # Quotients of small whole numbers, to rounding.
    assert values["self_known"] == pytest.approx(5 / 7, abs=1e-12)
    assert values["self_unknown"] == pytest.approx(2 / 4, abs=1e-12)
    assert values["factuality"] == pytest.approx(7 / 11, abs=1e-12)
    assert values["judged_correct"] == pytest.approx(7 / 11, abs=1e-12)
    assert values["sigma"] == pytest.approx(0.5 / (2 - 5 / 7 - 0.5), abs=1e-12)


# --- What a table may look like ------------------------------------------------------------------


def test_numbers_are_those_counted_whatever_the_form(tmp_path: Path) -> None:
    table = frame()
    data: Any
    table.to_csv(tmp_path / "a.csv", index=False, encoding="utf-8-sig")
    table.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    table.to_parquet(tmp_path / "a.parquet")
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    for data in (table, table.to_dict("records"), *sorted(tmp_path.iterdir())):
        check_counted(self_knowledge(data, **QUICK))


@pytest.mark.parametrize(
    ("label", "judgment"),
    [
        ({"S": "true", "NS": "FALSE", "IR": None}, {"correct": "yes", "incorrect": "No"}),
        ({"S": 1, "NS": 0, "IR": None}, {"correct": "A", "incorrect": "(B)"}),
        ({"S": "Supported", "NS": "not_supported", "IR": "irrelevant"}, {}),
        ({"S": True, "NS": False, "IR": None}, {"correct": True, "incorrect": False}),
        ({}, {"correct": 1.0, "incorrect": 0.0}),
        ({}, {"correct": "True.", "incorrect": "none of the above"}),
        ({}, {"correct": "**Sí**", "incorrect": "not correct"}),
    ],
)
def test_labels_and_judgments_of_any_spelling(label: Any, judgment: Any) -> None:
    table = frame()
    table["label"] = [label.get(each, each) for each in table["label"]]
    table["judgment"] = [judgment.get(each, each) for each in table["judgment"]]
    check_counted(self_knowledge(table, **QUICK))


def test_a_word_of_two_meanings_is_reported_and_not_guessed() -> None:
    # "S" is subjective beside Y and N, and would be supported alone.
    words = {"S": "Y", "NS": "N", "IR": "S"}
    table = frame(label=[words[each] for _, _, each, _ in CLAIMS])
    refused("'N', 'S', 'Y', where S may stand for supported", self_knowledge, table, **QUICK)
    measured = self_knowledge(table, true=["Y"], irrelevant_label=["S"], **QUICK)
    check_counted(measured)
    # Every other word is false.
    values = overall(self_knowledge(table, true=["Y"], **QUICK))
    assert values["factuality"] == pytest.approx(7 / 12, abs=1e-12)
    refused("no label is 'yes', which `true` names", self_knowledge, table, true=["yes"])


def test_confidence_is_cut_at_the_threshold_and_at_those_of_a_sweep() -> None:
    table = frame(p=[0.9 if word == "correct" else 0.6 for *_, word in CLAIMS])
    table = table.drop(columns="judgment")
    measured = self_knowledge(table, confidence="p", threshold=0.9, sweep=[0.5, 0.9, 1], **QUICK)
    check_counted(measured)
    sweep: Any = measured["sweep"].set_index("threshold")
    assert sweep["judged_correct"].tolist() == [1.0, pytest.approx(7 / 11), 0.0]
    assert sweep.loc[0.9, "sigma"] == overall(measured)["sigma"]
    assert "confidence at least 0.9" in measured.sentences[0]
    refused("judgments, which need no threshold", self_knowledge, frame(), threshold=0.9)


def test_votes_are_lists_texts_columns_or_rows() -> None:
    most: dict[Any, Any] = {"correct": ["yes", "no", "yes"], "incorrect": ["no", "no", None]}
    votes = [most[word] for *_, word in CLAIMS]
    plain = frame().drop(columns="judgment")
    check_counted(self_knowledge(plain.assign(votes=votes), **QUICK))
    texts = ["|".join(str(vote or "") for vote in each) for each in votes]
    check_counted(self_knowledge(plain.assign(votes=texts), **QUICK))
    columns = {f"v{n}": [each[n] for each in votes] for n in range(3)}
    check_counted(self_knowledge(plain.assign(**columns), votes=["v0", "v1", "v2"], **QUICK))
    rows = plain.assign(claim=range(len(plain)), answer=votes).explode("answer")
    check_counted(self_knowledge(rows, claim="claim", judgment=["answer"], **QUICK))
    # A third of the votes is not yes often enough, and two thirds are at 0.6.
    assert "majority of votes" in self_knowledge(plain.assign(votes=votes), **QUICK).sentences[0]
    check_counted(self_knowledge(plain.assign(votes=votes), threshold=0.6, **QUICK))


def test_responses_may_hold_their_claims_or_lists_by_sentence(tmp_path: Path) -> None:
    by_response: dict[str, list[Any]] = {}
    for response, _, label, word in CLAIMS:
        by_response.setdefault(response, []).append({"text": "t", "label": label, "said": word})
    path = tmp_path / "nested.json"
    nested = {"data": [{"prompt": name, "claims": many} for name, many in by_response.items()]}
    path.write_text(json.dumps(nested, indent=1), encoding="utf-8")
    measured = self_knowledge(path, judgment=["said"], in_order=True, **QUICK)
    check_counted(measured)
    lists = [
        {
            "labels": [entry["label"] for entry in many],
            "asked": {"qa": [[entry["said"]] for entry in many]},
        }
        for many in by_response.values()
    ]
    path.write_text("\n".join(map(json.dumps, lists)), encoding="utf-8")
    other = self_knowledge(path, label="labels", votes=["asked.qa"], in_order=True, **QUICK)
    check_counted(other)
    pd.testing.assert_frame_equal(measured["positions"].iloc[:, 3:], other["positions"].iloc[:, 3:])


# --- Positions, settings, models, conditions -----------------------------------------------------


def test_positions_are_of_sentences_of_places_or_reported() -> None:
    by_sentence = self_knowledge(frame(sentences=2), bins=2, **QUICK)["positions"]
    by_position = frame(position=[sentence / 2 for _, sentence, *_ in CLAIMS]).drop(
        columns="sentence"
    )
    by_share = self_knowledge(by_position, bins=2, **QUICK)["positions"]
    percents = by_position.assign(position=by_position["position"] * 100)
    shared = by_sentence["quantity"] != "unsupported_number"
    for other in (by_share, self_knowledge(percents, bins=2, **QUICK)["positions"]):
        pd.testing.assert_frame_equal(by_sentence[shared].reset_index(drop=True), other)
    number = by_sentence.set_index("quantity").loc["unsupported_number"]
    assert number["0-50%"] == 1 / 4  # one in four first sentences
    assert number["50-100%"] == 3 / 4
    without = self_knowledge(frame().drop(columns="sentence"), **QUICK)
    assert "positions" not in without.tables
    assert any("nothing is reported by position" in each for each in without.sentences)
    refused("both set a claim's position", self_knowledge, frame(), sentence="sentence",
            in_order=True)  # fmt: skip


def test_settings_are_columns_or_rows_and_flips_are_reported() -> None:
    both = frame().rename(columns={"judgment": "question_answering"})
    both["none_of_the_above"] = ["none" if word == "correct" and label == "NS" else word
                                 for *_, label, word in CLAIMS]  # fmt: skip
    wide = self_knowledge(both, **QUICK)
    check_counted(wide, "question answering")
    third = overall(wide, "none of the above")
    assert third["self_unknown"] == 1.0
    assert third["supported_flip_rate"] == 0.0
    assert third["unsupported_flip_rate"] == 2 / 4
    long = both.assign(claim=range(len(both))).melt(
        ["response", "sentence", "label", "claim"], var_name="setting", value_name="judgment"
    )
    pd.testing.assert_frame_equal(wide["overall"], self_knowledge(long, **QUICK)["overall"])
    named = self_knowledge(frame(), setting="direct asking", **QUICK)
    assert set(named["overall"]["of"]) == {"direct asking"}
    figures = wide.draw()
    assert set(figures) >= {
        "self-knowledge-by-setting",
        "factuality-and-sigma-none-of-the-above",
        "unsupported-per-sentence",
    }
    for name, each in figures.items():
        if name.startswith("factuality-and-sigma"):
            assert name.removeprefix("factuality-and-sigma-").replace("-", " ") in each.title


def test_models_and_conditions_are_compared_over_the_same_responses() -> None:
    without = frame(model="x", condition="alone")
    better = without.assign(condition="with retrieval", label="S")
    other = without.assign(model="y", judgment="incorrect")
    apart = without.assign(model="z", response="elsewhere")
    measured = self_knowledge(pd.concat([without, better, other, apart]), **QUICK)
    check_counted(measured, "x, alone")
    rows: Any = measured["comparison"]
    rows = rows[rows["position"] == "overall"].set_index(["of", "quantity"])
    retrieval = rows.loc[("x, with retrieval minus x, alone (all)", "judged_factuality")]
    assert retrieval["difference"] == pytest.approx(1 - 7 / 11, abs=1e-12)
    assert retrieval["n_responses"] == 4
    silent = rows.loc[("y, alone minus x, alone (all)", "self_known")]
    assert silent["difference"] == pytest.approx(-5 / 7, abs=1e-12)
    assert any("x, alone and z, alone have no response in common" in s for s in measured.sentences)
    # One long frame holds the test of balance too, by what tells groups apart.
    long: Any = measured["quantities"]
    overall = long[(long["position"] == "overall") & (long["setting"] != "")]
    tested: Any = measured["test"].set_index(["of", "position"])
    for (model, condition), of_condition in overall.groupby(["model", "condition"]):
        of = f"{model}, {condition}: setting not stated"
        assert set(of_condition["of"]) == {of}
        values = of_condition.set_index("quantity")["estimate"]
        for name in ("sigma", "factuality", "false_positives", "false_negatives", "p_value"):
            wanted = tested.loc[(of, "overall"), name]
            assert values[name] == pytest.approx(wanted, abs=1e-12, nan_ok=True)


# --- What is said, written and refused -----------------------------------------------------------


def test_the_verdict_says_what_was_tested() -> None:
    rows = [(f"r{n}", "S", "incorrect") for n in range(12)] + [("r0", "NS", "incorrect")]
    many = pd.DataFrame(rows, columns=["response", "label", "judgment"])
    sentence = self_knowledge(many, **QUICK).sentences[0]
    assert "σ = F is rejected (exact test over responses" in sentence
    assert "whether the two kinds of error balance, not whether σ predicts" in sentence
    # No error of either kind.
    right = pd.DataFrame([("r1", "S", "correct"), ("r2", "NS", "incorrect")], columns=many.columns)
    assert "σ is not defined (SK = SU = 1" in self_knowledge(right, **QUICK).sentences[0]


def test_a_rogan_gladen_out_of_its_range_is_reported() -> None:
    # By the law of both halves, no factuality makes so few judged correct as in the second.
    first = [("S", "correct")] * 9 + [("NS", "incorrect")] * 5 + [("NS", "correct")] * 4
    last = [("NS", "incorrect")] * 9
    rows = [
        (f"r{n}", position, label, word)
        for n in range(4)
        for position, many in ((1, first), (2, last))
        for label, word in many
    ]
    table = pd.DataFrame(rows, columns=["response", "sentence", "label", "judgment"])
    measured = self_knowledge(table, bins=2, **QUICK)
    sentences = [each for each in measured.sentences if "out of its range" in each]
    assert len(sentences) == 1
    value: Any = measured["positions"].set_index("quantity").loc["rogan_gladen", "50-100%"]
    assert value < 0
    assert f"50-100% ({value:.2f})" in sentences[0]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"judgment": "perhaps"}, {}, "row 1, column 'judgment': 'perhaps' is not a judgment"),
        ({"judgment": None}, {}, "no labeled claim has an answer"),
        ({"label": None}, {}, "there is no label"),
        ({"sentence": 0}, {}, "0 is not a sentence's position"),
        ({"sentence": "one"}, {}, "'one' is not a number"),
        ({"p": 2}, {"confidence": "p"}, "2 is not a confidence"),
        ({"response": ""}, {}, "column 'response': the cell is blank"),
        ({}, {"label": "lable"}, "there is no such column (did you mean 'label'?)"),
        ({}, {"thresold": 1}, "the argument 'thresold' is unknown (did you mean 'threshold'"),
        ({}, {"confidence": "p", "votes": ["v"]}, "exclude each other"),
    ],
)
def test_a_mistake_is_one_sentence(change: Any, options: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        self_knowledge(frame(**change), **options)
    assert message in str(caught.value)
    assert "--" not in str(caught.value).replace("...", "")


# Files of figures are read below, where the same command writes the same bytes again.
@pytest.mark.usefixtures("unsaved")
@pytest.mark.slow
def test_findings_are_kept_as_files_one_page_and_json(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    frame(sentences=2).to_csv(path, index=False)
    folder, page = tmp_path / "out", tmp_path / "page.html"
    result = invoke("self-knowledge", str(path), "--out", str(folder), "--report", str(page),
                    "--json", "--interval", "delta")  # fmt: skip
    document = json.loads(result.stdout)
    assert document["source"] == "claims.csv"
    rows = {row["quantity"]: row["estimate"] for row in document["tables"]["overall"]}
    assert rows["self_known"] == pytest.approx(5 / 7, abs=1e-12)
    assert json.loads((folder / "findings.json").read_text("utf-8")) == document
    drawn = {"factuality-and-sigma.pdf", "unsupported-per-sentence.png"}
    written = {file.name for file in folder.iterdir()}
    assert {"overall.tex", "positions.csv", "test.md"} | drawn <= written
    text = page.read_text("utf-8")
    assert "0.714" in text
    assert text.count("<svg") >= 3
    assert "//" not in text.replace("http://www.w3.org", "").split("<script>")[0]
    # The terminal shows the same.
    shown = invoke("self-knowledge", str(path), "--interval", "delta").stdout
    assert "Self-Known" in shown
    assert "0.714" in shown


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("nq_subclaims_with_scores", (0.653, 0.462, 0.608, 0.912, True)),
        ("MATH_subclaims_with_scores", (0.924, 0.161, 0.917, 0.894, False)),
    ],
)
def test_a_real_model_on_its_own_claims(file: str, expected: Any, shared_data: Path) -> None:
    path = shared_data / "self_judged" / f"{file}.jsonl"
    measured = self_knowledge(path, threshold=0.9, **QUICK)
    values = overall(measured)
    for name, value in zip(
        ("self_known", "self_unknown", "sigma", "factuality"), expected, strict=False
    ):
        # Three digits are told.
        assert values[name] == pytest.approx(value, abs=5e-4)
    assert (measured["test"]["p_value"].iloc[-1] < 0.05) == expected[-1]
    assert any("Known as a file of tatsu-lab" in each for each in measured.sentences)
    # One half parts nothing: what does is tabulated beside it, this threshold among others.
    plain = self_knowledge(path, **QUICK)
    assert any("Choose one with `threshold`" in each for each in plain.sentences)
    sweep: Any = plain["sweep"].set_index("threshold")
    assert sweep.loc[0.9, "sigma"] == values["sigma"]


def known_answer(path: Path) -> Path:
    """Write the counted claims in the layout of conformal-factual-lm."""
    sure = {"correct": 0.95, "incorrect": 0.6}
    answers: dict[str, list[Any]] = {}
    for response, _, label, word in CLAIMS:
        if label != "IR":
            claim = {"subclaim": "t", "gpt-score": sure[word], "other": 1 - sure[word]}
            mark = "Y" if label == "S" else "SNU"[len(answers) % 3]
            answers.setdefault(response, []).append({**claim, "annotation": mark})
    path.write_text(json.dumps({"data": [{"claims": each} for each in answers.values()]}))
    return path


def test_the_layout_of_an_owner_needs_no_option_and_options_go_before(tmp_path: Path) -> None:
    path = known_answer(tmp_path / "nq.jsonl")
    measured = self_knowledge(path, threshold=0.9, **QUICK)
    check_counted(measured)
    assert "positions" in measured.tables
    sentence = measured.sentences[-1]
    assert (
        "Label: annotation; true (every other label is false): Y; confidence: gpt-score" in sentence
    )
    other = self_knowledge(path, confidence="other", threshold=0.1, **QUICK)
    assert "confidence: other" in other.sentences[-2]
    assert other.sentences[-1] == "Not used: data.claims.gpt-score (11)."
    assert overall(other)["judged_correct"] == pytest.approx(1 - 7 / 11, abs=1e-12)
    more = self_knowledge(path, true=["Y", "S"], threshold=0.9, **QUICK)
    assert overall(more)["factuality"] > 7 / 11
    # 0.6 and 0.95 are above one half: what parts them is said.
    plain = self_knowledge(path, **QUICK)
    assert list(plain["sweep"]["threshold"]) == [0.95]
    assert self_knowledge(path, sweep=[0.7], **QUICK)["sweep"]["threshold"].tolist() == [0.7]


def test_a_file_of_unknown_columns_names_them_and_the_options(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    frame().rename(columns={"judgment": "belief"}).to_csv(path, index=False)
    result = invoke("self-knowledge", str(path), code=2)
    assert "--judgment 'belief'; it has response, sentence, label, belief" in result.stderr
    path.write_text(path.read_text().replace("belief", "model_score"))
    assert "'correct' is not a confidence" in invoke("self-knowledge", str(path), code=2).stderr


@pytest.mark.slow
def test_real_votes(shared_data: Path) -> None:
    path = shared_data / "selfcheck" / "selfcheck_wikibio.jsonl"
    measured = self_knowledge(path, **QUICK)
    # The embedded votes are the same, and know of sentences.
    embedded = self_knowledge("selfcheck", **QUICK)
    for name in ("overall", "positions"):
        table: Any = embedded[name]
        kept = table[table["quantity"] != "unsupported_number"].reset_index(drop=True)
        pd.testing.assert_frame_equal(measured[name], kept)
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    pairs = [
        (label == "accurate", votes.count("Yes") > len(votes) / 2)
        for record in records
        for label, votes in zip(record["annotation"], record["responses"]["prompt"], strict=True)
    ]
    values = overall(measured)
    supported = [judged for label, judged in pairs if label]
    unsupported = [not judged for label, judged in pairs if not label]
    # Quotients of whole numbers, to rounding; a tie of twenty votes is not judged correct either.
    assert values["self_known"] == pytest.approx(sum(supported) / len(supported), abs=1e-12)
    assert values["self_unknown"] == pytest.approx(sum(unsupported) / len(unsupported), abs=1e-12)


def sentence(labels: str | None, relevant: bool = True) -> dict[str, Any]:
    facts = None
    if labels is not None:
        facts = [
            {"text": f"Fact {number}.", "label": label}
            for number, label in enumerate(labels.split())
        ]
    return {"text": "A sentence.", "is-relevant": relevant, "human-atomic-facts": facts}


def biography(*sentences: dict[str, Any] | None) -> dict[str, Any]:
    annotations = None if sentences == (None,) else list(sentences)
    return {
        "input": "Question: Tell me a bio.",
        "output": "Some text.",
        "topic": "Someone",
        "cat": ["rare"],
        "annotations": annotations,
    }


@pytest.fixture
def biographies(folder: Path) -> Path:
    """Three biographies: one annotated, one partly, one not at all."""
    lines = [
        biography(sentence("S S"), sentence("S NS"), sentence("NS IR"), sentence("NS")),
        biography(None),
        biography(sentence("S"), sentence(None, relevant=False), sentence("NS NS S")),
    ]
    path = folder / "people.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_null_annotations_are_counted_and_left_out(biographies: Path) -> None:
    claims = load_claims(biographies)
    assert (claims.n_responses, claims.n_annotated, claims.n_sentences) == (3, 2, 7)
    measured = self_knowledge(biographies, interval="bootstrap", n_bootstrap=20)
    summary = "11 labeled claims in 6 of 7 sentences; 2 of 3 responses are annotated."
    assert measured.sentences == (summary,)
    rows: Any = measured["quantities"].set_index(["quantity", "position"])
    # Of three sentences the second is not annotated; the third is at 3/3, the first at 1/3.
    estimate = rows["estimate"]
    assert estimate["supported_share", "20-40%"] == 1.0
    assert estimate["supported_share", "80-100%"] == pytest.approx((0 + 1 / 3) / 2, abs=1e-15)
    assert estimate["unsupported_number", "80-100%"] == pytest.approx((1 + 2) / 2, abs=1e-15)
    assert rows.loc[("supported_share", "0-20%"), "status"] == "empty"
    assert len(rows) == 7 * 6
    assert list(measured.draw()) == ["kinds-of-claims"]


def test_one_command_writes_tables_and_figure_and_the_same_bytes_again(biographies: Path) -> None:
    for out in ("one", "two"):
        invoke("self-knowledge", str(biographies), "--out", out)
    names = {path.name for path in Path("one").iterdir()}
    assert {"overall.tex", "positions.md", "quantities.csv", "kinds-of-claims.pdf"} <= names
    assert Path("one/kinds-of-claims.png").read_bytes().startswith(b"\x89PNG")
    for path in Path("one").iterdir():
        assert path.read_bytes() == (Path("two") / path.name).read_bytes()


def test_records_with_judgments_give_self_knowledge_too(folder: Path) -> None:
    write_records(random_records(0), folder / "records.jsonl")
    result = invoke("self-knowledge", "records.jsonl", "--interval", "delta", "--bins", "3")
    for name in ("direct asking", "none of the above", "Self-Known", "33.3-66.7%"):
        assert name in result.stdout
    earlier = Path("records.jsonl").read_text().replace('"judgments"', '"judgements"')
    Path("records.jsonl").write_text(earlier)
    again = invoke("self-knowledge", "records.jsonl", "--interval", "delta", "--bins", "3")
    assert again.stdout == result.stdout
    write_records(in_sentence("x", 1, 2, "S NS IR"), folder / "labels.jsonl")
    assert "Self-Known" not in invoke("self-knowledge", "labels.jsonl").stdout


def test_bad_input_is_one_sentence(biographies: Path, folder: Path) -> None:
    (folder / "unlabeled.jsonl").write_text(json.dumps(biography(None)) + "\n")
    for arguments, message in (
        (["unlabeled.jsonl"], "no atom has a human label"),
        (["absent.jsonl"], "there is no such file"),
        ([str(biographies), "--interval", "wald"], "--interval wald is unknown"),
        ([str(biographies), "--out", "people.jsonl/x"], "is a file; name a folder"),
    ):
        assert message in invoke("self-knowledge", *arguments, code=2).stderr


def test_a_graph_without_sentences_is_refused(graph_file: Path) -> None:
    refused("'figure-1' has no number of sentences", load_claims, graph_file)


def test_position_table_of_the_real_biographies(shared_data: Path) -> None:
    path = shared_data / "factscore_dev" / "ChatGPT.jsonl"
    claims = load_claims(path)
    table = label_positions(claims.records, intervals=IntervalSettings(n_bootstrap=500))
    assert (claims.n_responses, claims.n_annotated, claims.n_sentences) == (31, 31, 232)
    assert {kind: int(counts[-1]) for kind, counts in table.n_claims.items()} == {
        "supported": 393,
        "unsupported": 432,
        "irrelevant": 149,
    }
    for name, values in plain_table(path).items():
        assert table[name].estimate.tolist() == pytest.approx(values, abs=1e-12), name
    # The paper's finding (section 2.1), on these 31 of its responses: what comes first is
    # supported more often, and what comes last less.
    supported, unsupported = table["supported_share"], table["unsupported_share"]
    assert supported.lower[0] > supported.upper[4]
    assert unsupported.upper[0] < unsupported.lower[4]


def plain_table(path: Path) -> dict[str, list[float]]:
    """Follow the paper's procedure on the file itself, without any of our readers."""
    shares: dict[str, dict[int, list[Fraction]]] = defaultdict(lambda: defaultdict(list))
    for line in path.read_text(encoding="utf-8").splitlines():
        annotations = json.loads(line)["annotations"]
        for index, each in enumerate(annotations, start=1):
            labels = [fact["label"] for fact in each["human-atomic-facts"]]
            position = math.ceil(Fraction(5 * index, len(annotations))) - 1
            for name, label in (("supported", "S"), ("unsupported", "NS"), ("irrelevant", "IR")):
                for cell in (position, 5):
                    count = labels.count(label)
                    shares[f"{name}_share"][cell].append(Fraction(count, len(labels)))
                    shares[f"{name}_number"][cell].append(Fraction(count))
    return {
        name: [float(sum(cells[cell]) / len(cells[cell])) for cell in range(6)]
        for name, cells in shares.items()
    }


# --- The paper's claims --------------------------------------------------------------------------


def test_claims_of_the_paper_have_a_row_each_for_every_model() -> None:
    table = frame()
    both = pd.concat([table.assign(model="one"), table.assign(model="two")])
    rows = self_knowledge(both, paper_claims=True, **QUICK)["paper_claims"]
    assert rows.groupby("of").size().tolist() == [19, 19]
    assert (rows["section"] != "").all()
    alone = self_knowledge(table, paper_claims=True, **QUICK)
    assert next(iter(alone.tables)) == "paper_claims"
    assert "paper_claims" not in self_knowledge(table, **QUICK).tables
    by_claim = alone["paper_claims"].set_index("statement")
    # Two unsupported claims judged correct, two supported ones incorrect, of eleven.
    premise = by_claim.loc["the share judged correct is the factuality, P(d=1|y) = σ"]
    assert premise["statistic"] == pytest.approx(0.0, abs=1e-12)
    assert by_claim.loc["SU is above 0", "statistic"] == pytest.approx(2 / 4, abs=1e-12)
    assert by_claim.loc["unsupported claims hardly flip", "verdict"] == "not testable"


def test_labels_alone_test_claims_about_positions() -> None:
    rows = self_knowledge("factscore", paper_claims=True, **QUICK)["paper_claims"]
    rows = rows.set_index("statement")
    assert rows.loc["σ is the factuality", "why"] == "no labeled claim was judged"
    fall = rows.loc["factuality is lower in later sentences"]
    assert fall["statistic_lower"] < fall["statistic"] < fall["statistic_upper"]
    out = invoke("self-knowledge", "selfcheck", "--paper-claims", "--json").stdout
    shown = json.loads(out)["tables"]["paper_claims"]
    verdicts = {row["statement"]: row["verdict"] for row in shown}
    assert verdicts["σ is the factuality"] == "rejected"
    assert verdicts["factuality is lower in later sentences"] == "holds"
