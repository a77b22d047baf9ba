"""`keep`: a promise learned on labeled answers, and new answers written with what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.filtering import conformal_filter
from experiments import keep
from experiments.columns.assessed_metadata import METADATA_KEY
from factormodels import Atom, FactGraph, Relation, write_many
from factormodels.claims import RelationKind
from factormodels.errors import InputError
from tests.calibration.filtering.drawn_responses import two_kinds
from tests.commands import called
from tests.refusals import refused


def drawn(seed: int, n_responses: int = 60, *, shift: float = 0.0) -> Any:
    generator = np.random.default_rng(seed)
    level = np.repeat(generator.normal(1.0 + shift, 1.0, n_responses), 5)
    p = 1 / (1 + np.exp(-level - generator.normal(0, 1.5, level.size)))
    return pd.DataFrame(
        {
            "response": np.repeat([f"r{number}" for number in range(n_responses)], 5),
            "claim": np.tile([f"c{number}" for number in range(5)], n_responses),
            "text": [f"Claim {number}." for number in range(p.size)],
            "p": p,
            "label": generator.random(p.size) < p,
        }
    )


def test_command_and_python_keep_the_claims_of_the_filter(tmp_path: Path) -> None:
    old, new = drawn(0), drawn(1).drop(columns="label")
    kept = keep(old, new, precision=0.8, confidence=0.8, splits=5)
    chosen = conformal_filter(
        old["p"], old["label"].to_numpy(), old["response"], precision=0.8, confidence=0.8
    )
    assert list(kept["claims"]["kept"]) == list(chosen.keep(new["p"]))
    assert 0 < kept["claims"]["kept"].mean() < 1
    old.to_csv(tmp_path / "old.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    promise = ("--precision", "0.8", "--confidence", "0.8", "--splits", "5", "--json")
    result = called("keep", str(tmp_path / "old.csv"), str(tmp_path / "new.csv"), *promise)
    printed = json.loads(result.stdout)
    assert [row["kept"] for row in printed["tables"]["claims"]] == list(kept["claims"]["kept"])
    # A label with a name of one's own is only looked for among the labeled responses.
    old.rename(columns={"label": "truth"}).to_csv(tmp_path / "old.csv", index=False)
    paths = (str(tmp_path / "old.csv"), str(tmp_path / "new.csv"))
    named = called("keep", *paths, "--label", "truth", *promise)
    assert json.loads(named.stdout)["tables"] == printed["tables"]


def test_a_remark_on_one_of_two_tables_names_it() -> None:
    old, new = drawn(0), drawn(1).rename(columns={"label": "annotation"})
    remarks = keep(old, new, precision=0.8, confidence=0.8, splits=2).sentences
    assert [each for each in remarks if "recognized" in each] == [
        "Labeled responses: Columns recognized by name: probability 'p'.",
        "New responses: Columns recognized by name: probability 'p', label 'annotation'.",
    ]
    old, new = (each.rename(columns={"p": "score"}) for each in (old, drawn(1)))
    remarks = keep(old, new, precision=0.8, confidence=0.8, splits=2).sentences
    shared = "Columns recognized by name: probability 'score'."
    assert [each for each in remarks if "recognized" in each] == [shared]


def test_answers_are_written_struck_or_without_what_is_dropped(tmp_path: Path) -> None:
    old = drawn(0)
    new = pd.DataFrame(
        {
            "response": ["a", "a", "b", "b"],
            "claim": ["1", "2", "1", "2"],
            "text": ["It is <old>.", "It is big.", "He ran.", "He sang."],
            "answer": ["It is <old>. It is big. Yes.", None, "", ""],
            "p": [0.001, 0.9999, 0.9999, 0.001],
        }
    )
    promise: dict[str, Any] = {"precision": 0.8, "confidence": 0.8, "splits": 2}

    def written(name: str, **more: Any) -> str:
        keep(old, new, answers=tmp_path / name, **promise, **more)
        return (tmp_path / name).read_text(encoding="utf-8")

    # Of the first answer the text is known, and the claim stands there word for word.
    assert written("k.txt") == "a\n~~It is <old>.~~ It is big. Yes.\n\nb\nHe ran. ~~He sang.~~\n"
    assert written("k.md", dropped="remove") == "a\nIt is big. Yes.\n\nb\nHe ran.\n"
    page = written("k.html")
    assert "<del>It is &lt;old&gt;.</del> It is big. Yes." in page
    records = json.loads(written("k.json", dropped="remove"))
    assert [each["answer"] for each in records] == ["It is big. Yes.", "He ran."]
    assert records[0]["claims"][0] == {"id": "1", "text": "It is <old>.", "p": 0.001, "kept": False}
    assert len(written("k.jsonl").splitlines()) == 2


@pytest.mark.parametrize(
    ("answer", "claims", "struck", "removed"),
    [
        # Lines and stops stay as they are.
        ("One.\n\nTwo; three, four.", {"three": False}, "One.\n\nTwo; ~~three~~, four.", None),
        # Where two dropped claims meet, no part of either is kept.
        (
            "Ann ran home fast.",
            {"ran home": False, "home fast": False},
            "Ann ~~ran home fast~~.",
            "Ann .",
        ),
        # What is said twice is dropped twice.
        ("No. Yes. No.", {"No.": False, "Yes.": True}, "~~No.~~ Yes. ~~No.~~", "Yes."),
        # A claim is no part of a word, and what is kept is not struck for what is dropped.
        ("In 1900.", {"In 19": False}, "~~In 19~~", ""),
        ("He ran home.", {"He ran": False, "He ran home.": True}, "~~He ran~~ He ran home.", None),
    ],
)
def test_an_answer_is_itself_but_for_what_is_dropped(
    tmp_path: Path, answer: str, claims: dict[str, bool], struck: str, removed: str | None
) -> None:
    new = pd.DataFrame(
        {
            "response": "a",
            "claim": [str(number) for number in range(len(claims))],
            "text": list(claims),
            "answer": answer,
            "p": [0.9999 if kept else 0.001 for kept in claims.values()],
        }
    )
    out = tmp_path / "k.txt"
    for dropped, wanted in (("strike", struck), ("remove", removed)):
        if wanted is not None:
            more: Any = {"precision": 0.8, "confidence": 0.8, "splits": 2, "dropped": dropped}
            keep(drawn(0), new, answers=out, **more)
            assert out.read_text(encoding="utf-8") == f"a\n{wanted}\n"


def test_answers_of_kept_claims_alone_are_complete(tmp_path: Path) -> None:
    """Without the text of the answer, its claims are listed in full."""
    new = pd.DataFrame(
        {"response": ["a", "a"], "text": ["It is big.", "It is old."], "p": [0.999, 0.998]}
    )
    more: Any = {"precision": 0.8, "confidence": 0.8, "splits": 2}
    keep(drawn(0), new, answers=tmp_path / "k.txt", **more)
    assert (tmp_path / "k.txt").read_text(encoding="utf-8") == "a\nIt is big. It is old.\n"


@pytest.mark.parametrize(
    ("dropped", "listed"),
    [("strike", "a1, ~~a2~~, a3"), ("remove", "a1, a3")],
)
def test_ids_are_listed_where_claims_have_no_texts(
    tmp_path: Path, dropped: str, listed: str
) -> None:
    new = pd.DataFrame(
        {
            "response": ["r"] * 3 + ["s"],
            "claim": ["a1", "a2", "a3", "a1"],
            "p": [0.999, 0.001, 0.998, 0.999],
        }
    )
    more: Any = {"precision": 0.8, "confidence": 0.8, "splits": 2, "dropped": dropped}
    findings = keep(drawn(0), new, answers=tmp_path / "k.txt", **more)
    sentence = "The data have no texts of claims; ids stand in their place."
    written = (tmp_path / "k.txt").read_text(encoding="utf-8")
    assert written == f"{sentence}\n\nr\n{listed}\n\ns\na1\n"
    assert f"{tmp_path / 'k.txt'}: {sentence}" in findings.sentences
    keep(drawn(0), new, answers=tmp_path / "k.html", **more)
    assert f"<p>{sentence}</p>" in (tmp_path / "k.html").read_text(encoding="utf-8")


def test_judged_responses_are_rewritten_in_their_own_words(tmp_path: Path) -> None:
    atoms = (Atom("a1", "It opened."), Atom("a2", "It closed."))
    view = {"FR1": {"atoms": {"a1": {"p": 0.9999}, "a2": {"p": 0.001}}}}
    text = "It opened. Then: It closed."
    graph = FactGraph("g", atoms, response=text, metadata={METADATA_KEY: view})
    write_many([graph], tmp_path / "new.jsonl")
    old = drawn(0)
    out = tmp_path / "k.txt"
    keep(old, tmp_path / "new.jsonl", precision=0.8, confidence=0.8, splits=2, answers=out)
    assert out.read_text(encoding="utf-8") == "g\nIt opened. Then: ~~It closed.~~\n"


def test_responses_of_another_kind_are_reported() -> None:
    old = drawn(0)
    alike = keep(old, drawn(1), precision=0.8, splits=2)
    assert any("exchangeable" in each for each in alike.sentences)
    other = keep(old, drawn(1, shift=-3.0), precision=0.8, splits=2)
    # A rejection at level .05 is evidence, not proof.
    assert any("the guarantee may not hold for them" in each for each in other.sentences)


def test_the_guarantee_is_stated_with_its_unit_and_its_empty_responses() -> None:
    old, new = drawn(0), drawn(1)
    options: dict[str, Any] = {"precision": 0.8, "confidence": 0.8, "splits": 2}
    plain = keep(old, new, **options).sentences[0]
    assert plain.endswith(
        "with probability 0.8, at least 80% of the kept claims of a new response are true, or "
        "none is kept."
    )
    mean = keep(old, new, guarantee="mean", **options).sentences[0]
    assert mean.endswith(
        ": the mean precision of new responses is at least 80%, where a response without kept "
        "claims counts as 100% and the mean is over the draw of the labeled responses too. This "
        "does not bound the share of false claims among the kept claims of all responses together."
    )
    grouped = keep(
        old.assign(kind="a"), new.assign(kind="a"), by="kind", guarantee="mean", **options
    )
    assert "in each group, the mean precision of new responses" in grouped.sentences[0]


def test_impossible_values_are_reported(tmp_path: Path) -> None:
    old = drawn(0)
    refused(r"name a file that ends in .txt", keep, old, old, answers=tmp_path / "k.docx")
    refused("guaranteed in the mean", keep, old, old, precision=1.0, guarantee="mean")
    refused("`p` p2: there is no such column", keep, old.assign(p2=0.5), old, p=["p", "p2"])
    views = {"FR1": {"atoms": {"a": {"p": 0.9}}}, "FR2": {"atoms": {"a": {"p": 0.8}}}}
    graph = FactGraph("g", (Atom("a", "It is.", label=True),), metadata={METADATA_KEY: views})
    refused("several probabilities, FR1, FR2; choose one or several", keep, [graph], old)
    drawn(0, 1).to_csv(tmp_path / "one.csv", index=False)
    with pytest.raises(
        InputError, match=r"one.csv: labels that count are of 1 response, '.+'; label"
    ):
        keep(tmp_path / "one.csv", old)
    few = keep(drawn(0, 3), old, splits=2)
    assert any("Nothing can be kept" in each for each in few.sentences)


# ----------------------------------------------------------------------- groups, scores, files


def of_two_kinds(n: int, seed: int, *, labeled: bool = True) -> Any:
    """Responses of eight claims, of which each tenth has saturated probabilities."""
    drawn_claims = two_kinds(n, seed)
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "response": [f"r{number}" for number in drawn_claims.responses],
            "claim": np.tile([f"c{number}" for number in range(8)], n),
            "kind": np.where(drawn_claims.saturated, "saturated", "other"),
            "p": drawn_claims.p,
            "votes": np.clip(0.4 * drawn_claims.y + 0.6 * generator.random(8 * n), 0, 1),
            "premises": np.tile(["", "c0", "c1", "", "c3", "c3;c4", "", "c0, c6"], n),
        }
    )
    return frame.assign(label=drawn_claims.y == 1) if labeled else frame


def test_by_group_the_promise_keeps_what_one_threshold_drops() -> None:
    old, new = of_two_kinds(400, 0), of_two_kinds(1200, 1, labeled=False)
    pooled = keep(old, new, splits=2)
    assert pooled["claims"]["kept"].sum() == 0
    assert any("1,200 responses become empty" in each for each in pooled.sentences)
    findings = keep(old, new, by="kind", splits=2)
    groups: dict[str, Any] = {
        str(row["group"]): row for row in findings["groups"].to_dict("records")
    }
    alone = conformal_filter(
        *(old.loc[old["kind"] == "other", name] for name in ("p", "label", "response")),
        precision=0.9,
    )
    assert groups["other"]["threshold"] == alone.threshold
    assert groups["other"]["kept"] == alone.keep(new.loc[new["kind"] == "other", "p"]).sum()
    # The number that docs/explanation/kept-claims.md shows.
    assert groups["other"]["kept"] == 2_541
    assert [groups["saturated"][key] for key in ("kept", "claims", "empty")] == [0, 960, 120]
    assert any("in each group, with probability 0.9" in each for each in findings.sentences)


def test_a_group_with_too_few_labels_is_named_with_how_many_it_needs() -> None:
    old, new = of_two_kinds(80, 0), of_two_kinds(20, 1, labeled=False)
    new.loc[new["response"] == "r3", "kind"] = "law"
    findings = keep(old, new, by="kind", splits=2)
    assert (
        "Group 'saturated' has 8 labeled responses for calibration and needs 9: none of its "
        "claims is kept." in findings.sentences
    )
    assert (
        "Group 'law' has no labeled response for calibration and needs 9: none of its claims is "
        "kept." in findings.sentences
    )
    claims = findings["claims"]
    assert not claims.loc[claims["group"] != "other", "kept"].any()
    assert claims["kept"].any()


def test_several_scores_are_combined_on_responses_that_do_not_calibrate() -> None:
    old, new = of_two_kinds(200, 0), of_two_kinds(100, 1, labeled=False)
    findings = keep(old, new, p="p,votes", splits=2)
    assert findings["claims"].equals(keep(old, new, p=["p", "votes"], splits=2)["claims"])
    assert set(findings["scores"]["score"]) == {"p", "votes", "p + votes"}
    assert any("chosen on 100 other labeled responses" in each for each in findings.sentences)
    assert any("calibrated on 100 labeled responses" in each for each in findings.sentences)
    alone = keep(old, new, p="votes", splits=2)
    assert findings["claims"]["kept"].mean() > 0.8 * alone["claims"]["kept"].mean()
    lacking = new.assign(votes=new["votes"].where(new.index != 3))
    partly = keep(old, lacking, p="p,votes", splits=2)
    assert len(partly["claims"]) == len(new) - 1
    assert any("1 claim without all of the scores is left out" in s for s in partly.sentences)


def test_the_chosen_score_is_applied_shown_and_saved(tmp_path: Path) -> None:
    old, new = of_two_kinds(200, 0), of_two_kinds(100, 1, labeled=False)
    old = old.assign(p=0.5, votes=np.where(old["label"].astype(bool), 0.9, 0.1))
    new = new.assign(p=0.5, votes=np.where(new.index % 3 == 0, 0.9, 0.1))
    path = tmp_path / "thresholds.json"
    findings = keep(old, new, p="p,votes", splits=2, save=path)
    claims = findings["claims"]
    assert claims["p"].tolist() == new["votes"].tolist()
    assert claims["kept"].tolist() == (new["votes"] == 0.9).tolist()
    assert "score" in [column.title for column in findings.tables["claims"].columns]
    assert keep(new.drop(columns="p"), use=path)["claims"]["kept"].equals(claims["kept"])


def test_a_claim_is_kept_only_with_what_it_depends_on() -> None:
    old, new = of_two_kinds(200, 0), of_two_kinds(100, 1, labeled=False)
    options: dict[str, Any] = {"p": "votes", "confidence": 0.8, "splits": 2}
    findings = keep(old, new, depends="premises", guarantee="coherent", **options)
    claims = findings["claims"].merge(new, on=["response", "claim"])
    kept = set(claims.loc[claims["kept"], ["response", "claim"]].itertuples(index=False, name=None))
    for response, claim, premises in zip(
        claims["response"], claims["claim"], claims["premises"], strict=True
    ):
        if (response, claim) in kept:
            for premise in premises.replace(";", ",").replace(" ", "").split(","):
                assert not premise or (response, premise) in kept
    assert {"kept", "dropped", "unsupported"} == set(claims["kept_text"])
    assert any("all kept claims of a new response are true" in s for s in findings.sentences)
    # The promise is that of a precision of 1 for the lowered scores.
    plain = keep(old, new, depends="premises", precision=1.0, **options)
    assert plain["claims"].equals(findings["claims"])
    # In JSON a cell may be a list.
    lists = [frame.assign(premises=frame["premises"].str.split(r"[,;] ?")) for frame in (old, new)]
    listed = keep(*lists, depends="premises", guarantee="coherent", **options)
    assert listed["claims"].equals(findings["claims"])


def test_entailments_of_a_graph_are_dependencies() -> None:
    def graph(name: str, *, relates: bool = True) -> FactGraph:
        texts = ("It opened in 1890.", "It opened.", "It stands.")
        labels = (False, True, True)
        atoms = tuple(
            Atom(f"a{number}", text, label=label)
            for number, (text, label) in enumerate(zip(texts, labels, strict=True), 1)
        )
        relations = (
            Relation("a1", "a2", RelationKind.ENTAILMENT, 0.9),
            Relation("a1", "a3", RelationKind.ENTAILMENT, 0.4),
        )
        view = {"FR1": {"atoms": {"a1": {"p": 0.3}, "a2": {"p": 0.9}, "a3": {"p": 0.8}}}}
        return FactGraph(
            name, atoms, relations=relations if relates else (), metadata={METADATA_KEY: view}
        )

    old, new = [graph(f"o{number}") for number in range(20)], [graph("n")]
    free = keep(old, new, splits=2)
    assert free["claims"]["kept"].tolist() == [False, True, True]
    # The second claim follows from the first, whose score is lower; the third unlikely does.
    findings = keep(old, new, depends="entailed_by", splits=2)
    assert findings["claims"]["kept_text"].tolist() == ["dropped", "unsupported", "kept"]
    unrelated = [graph("o", relates=False)]
    refused("entailed_by: there is no such column", keep, unrelated, new, depends="entailed_by")


def test_saved_thresholds_keep_the_same_claims_without_labels(tmp_path: Path) -> None:
    old, new = of_two_kinds(200, 0), of_two_kinds(100, 1, labeled=False)
    path = tmp_path / "thresholds.json"
    options: dict[str, Any] = {"p": "p,votes", "by": "kind", "depends": "premises", "splits": 2}
    both = keep(old, new, save=path, **options)
    used = keep(new, use=path)
    assert used["claims"].equals(both["claims"])
    assert used["groups"].equals(both["groups"])
    assert keep(new=new, use=path)["claims"].equals(both["claims"])
    # Calibration alone takes no new responses.
    keep(old, save=tmp_path / "alone.json", **options)
    assert (tmp_path / "alone.json").read_text() == path.read_text()
    new.to_csv(tmp_path / "new.csv", index=False)
    result = called("keep", str(tmp_path / "new.csv"), "--use", str(path), "--json")
    printed = json.loads(result.stdout)["tables"]["claims"]
    assert [row["kept"] for row in printed] == both["claims"]["kept"].tolist()
    # One score may have another name in the new table.
    keep(old, save=path, splits=2)
    assert keep(new.rename(columns={"p": "score"}).drop(columns="votes"), use=path) is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"use": "x.json", "precision": 0.8}, "`precision` is fixed by the calibration in x.json"),
        ({"use": "x.json", "irrelevant_label": "IR"}, "`irrelevant_label` is fixed by the calib"),
        ({"use": "x.json", "by": "kind"}, "`by` is fixed by the calibration in x.json"),
        (
            {"guarantee": "coherent"},
            "`guarantee` coherent needs the claims that a claim depends on",
        ),
        (
            {"guarantee": "coherent", "depends": "premises", "precision": 0.8},
            "`precision` 0.8: a coherent set contains no false claim",
        ),
        ({"depends": "nowhere"}, "`depends` nowhere: there is no such column"),
        (
            {"depends": "kind"},
            r"row 1: `depends` names 'saturated', which is no claim with a score",
        ),
        ({"p": "p,nowhere"}, "`p` nowhere: there is no such column"),
        ({"by": "nowhere"}, "`by` nowhere: there is no such column"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    new = of_two_kinds(10, 1, labeled=False)
    data = [new] if "use" in options else [of_two_kinds(40, 0), new]
    refused(message, keep, *data, **options)


def test_tables_that_are_missing_are_asked_for(tmp_path: Path) -> None:
    old = of_two_kinds(40, 0)
    refused("there are no labeled responses", keep)
    refused("there are no new responses; give NEW, or `save` FILE", keep, old)
    keep(old, save=tmp_path / "c.json", splits=2)
    refused("takes one table, the new responses, and 2 are given", keep, old, old,
            use=tmp_path / "c.json")  # fmt: skip
    refused("`answers` writes new responses", keep, old, save=tmp_path / "d.json",
            answers=tmp_path / "k.txt")  # fmt: skip
    assert not (tmp_path / "d.json").exists()
    no_ids = old.drop(columns="claim")
    refused("refers to claim ids, and no column contains them", keep, no_ids, no_ids,
            depends="premises")  # fmt: skip


def test_a_response_in_several_groups_counts_once_in_each() -> None:
    old = of_two_kinds(60, 0)
    old["part"] = np.tile(["start", "end"], len(old) // 2)
    findings = keep(old, old, by="part", splits=2)
    assert findings["groups"]["labeled"].tolist() == [60, 60]
    assert any(
        "are in several groups of part, and count once in each" in s for s in findings.sentences
    )
