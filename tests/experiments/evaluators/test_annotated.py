"""Annotators' actions on a pipeline's claims, counted from their tool's records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibration.claims import f1_at_k_prime
from experiments import fastfact
from factormodels.errors import InputError
from tests.experiments.conftest import invoke
from tests.refusals import refused


def kept(label: str | None, stance: str, *, revised: str | None = None, **pipeline: Any) -> Any:
    """A claim as the tool writes it that a person kept."""
    return {
        "claim": "It is so.",
        "revised_claim": revised,
        **pipeline,
        "annotator_label": label,
        "annotation_status_details": {
            "action": "kept",
            "modification": "revised" if revised else "unchanged",
            "agreement": stance,
        },
    }


def searched(label: str) -> Any:
    """Verdict of the pipeline from evidence."""
    return {"pre-label": "unsure", "verification_result": {"verification_label": label}}


REMOVED = {
    "claim": "It is twice so.",
    "pre-label": "supported",
    "annotator_label": "redundant",
    "annotation_status_details": {"action": "removed", "reason": "redundant"},
}
ADDED = {
    "claim": "It was so.",
    "revised_claim": None,
    "annotator_label": "supported",
    "annotation_status_details": {"action": "new", "label_source": "annotator_assigned"},
}
FIRST = [
    kept("supported", "agreed", **{"pre-label": "supported"}),
    kept("refuted", "disagreed_corrected", revised="It is so there.", **searched("supported")),
    kept("refuted", "disagreed_corrected", **searched("not enough evidence")),
    kept(None, "verification_pending", **{"pre-label": "unsupported"}),
    REMOVED,
    ADDED,
    ADDED,
]
SECOND = [kept("supported", "agreed", **searched("supported"))]


def written(folder: Path, *responses: Any, name: str = "annotated.jsonl") -> Path:
    lines = [
        {"question": "Is it?", "response": "It is so.", "model": f"m{number}",
         "prompt_source": f"bench{number % 2}", "claims_lst": claims}
        for number, claims in enumerate(responses)
    ]  # fmt: skip
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def statistics(findings: Any, group: str = "Overall") -> dict[str, float]:
    frame = findings["alignment"]
    return dict(zip(frame["statistic"], frame[group], strict=True))


def test_two_unchanged_and_one_revised_are_two_and_one(tmp_path: Path) -> None:
    three = [
        kept("supported", "agreed", **{"pre-label": "supported"}),
        kept("supported", "agreed", **searched("supported")),
        kept("supported", "agreed", revised="It is so there.", **searched("supported")),
    ]
    path = written(tmp_path, three, three, three)
    counted = statistics(fastfact(path, annotated=True))
    assert (counted["unchanged"], counted["revised"]) == (2.0, 1.0)
    assert (counted["removed"], counted["added"]) == (0.0, 0.0)
    shown = invoke("fastfact", str(path), "--annotated").stdout
    lines = {line.split("  ")[0].strip(): line.split()[2:3] for line in shown.splitlines()}
    assert lines["# unchanged"] == ["2.00"]
    assert lines["# revised"] == ["1.00"]
    assert "6 unchanged, 3 revised, 0 removed, 0 added claims" in shown


def test_every_statistic_is_the_one_counted_by_hand(tmp_path: Path) -> None:
    judged = fastfact(written(tmp_path, FIRST, SECOND), gamma=0.2, annotated=True)
    values = statistics(judged)
    assert [values[name] for name in ("unchanged", "revised", "removed", "added")] == [
        (3 + 1) / 2, 1 / 2, 1 / 2, 2 / 2,
    ]  # fmt: skip
    # Judged by both: three of the first response, one of the second.
    assert values["agreement_exact"] == pytest.approx(100 * 2 / 4)
    assert values["agreement_type"] == pytest.approx(100 * 3 / 4)
    assert values["agreement_said"] == pytest.approx(100 * 2 / 4)
    # The pipeline: supported twice and the removed one, not so twice; people: three and two.
    assert values["k_difference"] == 0
    assert values["supported_difference"] == 0
    f1 = f1_at_k_prime([3, 1], [2, 0], [5, 1], 0.2)
    assert values["f1_pipeline"] == pytest.approx(f1.mean(), abs=1e-12)
    assert values["f1_human"] == pytest.approx(f1.mean(), abs=1e-12)
    assert statistics(judged, "bench0")["added"] == 2
    assert statistics(judged, "bench1")["unchanged"] == 1
    by_model: Any = judged["by-model"]
    assert {"m0", "m1"} <= set(by_model.columns)


def test_verdicts_are_kept_apart_by_stage_and_texts_are_kept(tmp_path: Path) -> None:
    judged = fastfact(written(tmp_path, FIRST, SECOND), annotated=True)
    rows: Any = judged["verdicts"].set_index("stage")
    assert rows.loc["pre-verified", "claims"] == 3  # the removed one among them
    assert rows.loc["verified", "claims"] == 3
    assert rows.loc["pre-verified", "exact"] == 100
    assert rows.loc["verified", "exact"] == pytest.approx(100 / 3)
    assert rows.loc["verified", "type"] == pytest.approx(200 / 3)
    claims: Any = judged["claims"]
    revised = claims[claims["operation"] == "revised"].iloc[0]
    assert (revised["original"], revised["text"]) == ("It is so.", "It is so there.")
    assert claims[claims["operation"] == "added"]["original"].tolist() == ["", ""]
    assert claims[claims["operation"] == "removed"]["reason"].tolist() == ["redundant"]
    judged.save(tmp_path / "out")
    assert "It is so there." in (tmp_path / "out" / "claims.csv").read_text("utf-8")


def test_recorded_verdicts_are_aligned_with_labels(tmp_path: Path) -> None:
    labels = {"a0": "S", "a1": "S", "a2": "NS", "a3": None}
    verdicts = {"a0": "S", "a1": "NS", "a2": "C", "a3": "S"}
    record = {
        "input": "q",
        "output": "r",
        "atoms": [{"id": name, "text": name, "label": label} for name, label in labels.items()],
        "contexts": [],
        "results": {"predictions": verdicts},
    }
    path = tmp_path / "veriscore_output.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    judged = fastfact(path, annotated=True)
    values = statistics(judged)
    assert (values["unchanged"], values["revised"]) == (4.0, 0.0)
    # Judged by both: three, of which the second differs, and the third in its word alone.
    assert values["agreement_exact"] == pytest.approx(100 / 3)
    assert values["agreement_type"] == pytest.approx(200 / 3)
    assert judged["responses"]["model"].tolist() == ["veriscore"]
    (tmp_path / "plain.json").write_text(json.dumps({**record, "results": {}}), encoding="utf-8")
    refused("or recorded verdicts", fastfact, tmp_path / "plain.json", annotated=True)


def test_missing_values_are_reported(tmp_path: Path) -> None:
    plain = [{"claim": "It is so.", "pre-label": "supported"}]
    gone_again = {**ADDED, "annotator_label": "redundant",
                  "annotation_status_details": {"action": "removed", "origin": "new"}}  # fmt: skip
    none_left = {"claim": "None.", "annotation_status_details": {"status": "no_valid_claims"}}
    judged = fastfact(written(tmp_path, FIRST, plain, [gone_again], [none_left]), annotated=True)
    text = " ".join(judged.sentences)
    assert "3 annotated responses" in text
    assert "1 response without annotation" in text
    assert "1 claim with a pending human verdict" in text
    assert statistics(judged)["added"] == pytest.approx(2 / 3)
    nobody = fastfact(written(tmp_path, plain, plain), annotated=True)
    assert "This file has no annotations" in nobody.sentences[0]
    assert "alignment" not in nobody.tables


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ([{**ADDED, "annotator_label": "perhaps"}], "'perhaps' is not a label"),
        (
            [{**ADDED, "annotation_status_details": {"action": "moved"}}],
            ".action: 'moved' is not an action",
        ),
        ("none", "$.claims_lst: 'none' is not a list"),
        ([{"pre-label": "supported"}], "$.claims_lst[0]: the key 'claim' is missing"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(
    tmp_path: Path, claims: Any, message: str
) -> None:
    path = written(tmp_path, SECOND, claims)
    with pytest.raises(InputError) as caught:
        fastfact(path, annotated=True)
    assert message in str(caught.value)
    assert f"{path}, line 2" in str(caught.value)
    other = tmp_path / "other.jsonl"
    other.write_text('{"question": "q", "response": "r"}\n', encoding="utf-8")
    refused("no response has claims_lst", fastfact, other, annotated=True)


def test_the_example_of_the_tool(shared_data: Path) -> None:
    judged = fastfact(shared_data / "fastfact" / "trial.jsonl", annotated=True)
    assert "This file has no annotations" in judged.sentences[0]
    stages: Any = judged["verdicts"].set_index("stage")
    # Of the first response one claim was searched for; of the other none was.
    assert stages["claims"].tolist() == [16, 1]
    assert judged["responses"]["claims"].tolist() == [3, 14]
