"""`factormodels self-knowledge` on labelled responses: claims by position, and their figure."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from calibration.self_knowledge import IntervalSettings, label_positions, write_records
from experiments import self_knowledge
from experiments.settings.labelled_claims import load_claims
from tests.calibration.self_knowledge.claims import in_sentence, random_records
from tests.experiments.conftest import invoke
from tests.refusals import refused


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
    found = self_knowledge(biographies, interval="bootstrap", n_bootstrap=20)
    summary = "11 labelled claims in 6 of 7 sentences; 2 of 3 responses are annotated."
    assert found.sentences == (summary,)
    rows: Any = found["quantities"].set_index(["quantity", "position"])
    # Of three sentences the second is not annotated; the third is at 3/3, the first at 1/3.
    estimate = rows["estimate"]
    assert estimate["supported_share", "20-40%"] == 1.0
    assert estimate["supported_share", "80-100%"] == pytest.approx((0 + 1 / 3) / 2, abs=1e-15)
    assert estimate["unsupported_number", "80-100%"] == pytest.approx((1 + 2) / 2, abs=1e-15)
    assert rows.loc[("supported_share", "0-20%"), "status"] == "empty"
    assert len(rows) == 7 * 6
    assert list(found.draw()) == ["figure-1"]


def test_one_command_writes_tables_and_figure_and_the_same_bytes_again(biographies: Path) -> None:
    for out in ("one", "two"):
        invoke("self-knowledge", str(biographies), "--out", out)
    names = {path.name for path in Path("one").iterdir()}
    assert {"overall.tex", "positions.md", "quantities.csv", "figure-1.pdf"} <= names
    assert Path("one/figure-1.png").read_bytes().startswith(b"\x89PNG")
    for path in Path("one").iterdir():
        assert path.read_bytes() == (Path("two") / path.name).read_bytes()


def test_records_with_judgements_give_self_knowledge_too(folder: Path) -> None:
    write_records(random_records(0), folder / "records.jsonl")
    result = invoke("self-knowledge", "records.jsonl", "--set", "interval=delta,bins=3")
    for name in ("direct asking", "none of the above", "Self-Known", "33.3-66.7%"):
        assert name in result.stdout
    write_records(in_sentence("x", 1, 2, "S NS IR"), folder / "labels.jsonl")
    assert "Self-Known" not in invoke("self-knowledge", "labels.jsonl").stdout


def test_bad_input_is_one_sentence(biographies: Path, folder: Path) -> None:
    (folder / "unlabelled.jsonl").write_text(json.dumps(biography(None)) + "\n")
    for arguments, message in (
        (["unlabelled.jsonl"], "no atom has a human label"),
        (["absent.jsonl"], "there is no such file"),
        ([str(biographies), "--set", "interval=wald"], "--set interval wald is unknown"),
        ([str(biographies), "--out", "people.jsonl/x"], "cannot be made"),
    ):
        assert message in invoke("self-knowledge", *arguments, code=2).stderr


def test_a_graph_without_sentences_is_refused(graph_file: Path) -> None:
    refused("'figure-1' does not say how many sentences", load_claims, graph_file)


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
            place = math.ceil(Fraction(5 * index, len(annotations))) - 1
            for name, label in (("supported", "S"), ("unsupported", "NS"), ("irrelevant", "IR")):
                for cell in (place, 5):
                    count = labels.count(label)
                    shares[f"{name}_share"][cell].append(Fraction(count, len(labels)))
                    shares[f"{name}_number"][cell].append(Fraction(count))
    return {
        name: [float(sum(cells[cell]) / len(cells[cell])) for cell in range(6)]
        for name, cells in shares.items()
    }
