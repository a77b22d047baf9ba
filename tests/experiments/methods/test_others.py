"""Other tools' outputs beside one's own: verdicts on the same claims, scored in one table."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import score
from experiments.methods.score import shortest_names
from factormodels import Atom, FactGraph, InputError, read_many
from factormodels.aligned_claims import aligned_pairs, likeness, with_verdicts_of
from factormodels.io.fact_graph_json import write_fact_graphs
from factormodels.metadata.recorded_verdicts import recorded_verdicts
from tests.experiments.conftest import invoke
from tests.factormodels.io.formats.release_records import (
    FACTSCORE_OUTPUT,
    MINICHECK,
    POLYGRAPH,
    SAFE,
    VERIFIED_RESPONSE,
    VERISCORE,
)
from tests.refusals import refused

PAINTED, LIVED = "Ada Example painted.", "Ada Example lived in Ulm."


def written(folder: Path, name: str, *records: Any) -> Path:
    path = folder / name
    path.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    return path


def verdicts(path: Path) -> list[dict[str, tuple[str, float | None]]]:
    """Verdicts of the one assessor of each response, by the text of the claim."""
    verdicts_of = []
    for graph in read_many(path):
        texts = {atom.id: atom.text for atom in graph.atoms}
        (recorded,) = recorded_verdicts(graph).values() or ({},)
        verdicts_of.append(
            {texts[id]: (verdict.label, verdict.p_true) for id, verdict in recorded.items()}
        )
    return verdicts_of


# --- Readers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (FACTSCORE_OUTPUT, {PAINTED: ("supported", 1.0), LIVED: ("unsupported", 0.0)}),
        (VERISCORE, {PAINTED: ("supported", 1.0), LIVED: ("undecided", 0.5)}),
        (VERIFIED_RESPONSE, {PAINTED: ("supported", 1.0), LIVED: ("unsupported", 0.0)}),
        (SAFE, {PAINTED: ("supported", 1.0), "She lived in Ulm.": ("irrelevant", None)}),
        (POLYGRAPH, {PAINTED: ("uncertain", math.exp(-0.7))}),
        (MINICHECK, {PAINTED: ("supported", 0.98)}),
    ],
    ids=["factscore", "veriscore", "verified", "safe", "polygraph", "minicheck"],
)
def test_verdicts_are_those_of_the_file(tmp_path: Path, record: Any, expected: Any) -> None:
    assert verdicts(written(tmp_path, "out.jsonl", record)) == [expected]


def test_every_response_of_a_file_is_read(tmp_path: Path) -> None:
    decisions = [*FACTSCORE_OUTPUT["decisions"], None]
    several = read_many(written(tmp_path, "f.json", {**FACTSCORE_OUTPUT, "decisions": decisions}))
    assert [(g.id, len(g.atoms)) for g in several] == [("f-1", 2), ("f-2", 0)]
    sides = {"per_prompt_data": [{"side1_posthoc_eval_data": SAFE}, {"side1_response": "x"}]}
    (safe,) = read_many(written(tmp_path, "s.json", sides))
    assert (safe.id, safe.query, len(safe.atoms)) == ("s-1-side1", SAFE["prompt"], 2)
    abstained = {"question": "Q?", "response": "Sorry.", "abstained": True}
    loaded = read_many(written(tmp_path, "v.jsonl", VERISCORE, abstained))
    assert [len(graph.atoms) for graph in loaded] == [2, 0]
    # What was extracted and not verified is a claim without a verdict.
    (response,) = read_many(written(tmp_path, "w.jsonl", VERIFIED_RESPONSE))
    assert [atom.text for atom in response.atoms] == [PAINTED, LIVED, "Ada Example sang."]
    assert (response.query, response.response) == ("Who was Ada Example?", "She did.")
    unnamed = {**VERIFIED_RESPONSE, "claim_verification_result": [{"verification_result": "x"}]}
    refused(
        "claim_verification_result.0.: the key 'claim' is missing",
        read_many,
        written(tmp_path, "u.jsonl", unnamed),
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-0.9, -0.25, 0.0], [0.9, 0.25, 0.0]),
        ([0.0, 2.0], [1.0, math.exp(-2.0)]),
        ([-3.0, 1.0], [1 / (1 + math.exp(-3.0)), 1 / (1 + math.exp(1.0))]),
        ([-2.0, 1e300], [1 / (1 + math.exp(-2.0)), 0.0]),
    ],
)
def test_uncertainties_become_probabilities_that_fall(
    tmp_path: Path, values: list[float], expected: list[float]
) -> None:
    records = [
        {**POLYGRAPH, "uncertainty": u, "generation_text": f"Claim {n}."}
        for n, u in enumerate(values)
    ]
    (shares,) = verdicts(written(tmp_path, "u.jsonl", *records))
    p = [p for _, p in shares.values() if p is not None]
    # e^-700 is nothing beside any other probability.
    assert p == pytest.approx(expected, abs=1e-15)
    assert p == sorted(p, reverse=True)


def test_each_estimator_has_a_map_of_its_own(tmp_path: Path) -> None:
    records = [
        {**POLYGRAPH, "estimator": name, "uncertainty": u, "generation_text": f"Claim {n}."}
        for name, values in {"Share": [-0.9, -0.25], "Loss": [0.5, 2.0]}.items()
        for n, u in enumerate(values)
    ]
    (graph,) = read_many(written(tmp_path, "u.jsonl", *records))
    p = {
        tool: [verdict.p_true for verdict in recorded.values()]
        for tool, recorded in recorded_verdicts(graph).items()
    }
    assert p == {
        "lm-polygraph: Share": [0.9, 0.25],
        "lm-polygraph: Loss": pytest.approx([math.exp(-0.5), math.exp(-2.0)]),
    }


def test_a_claim_has_its_best_document(tmp_path: Path) -> None:
    worse = {**MINICHECK, "doc": "Nothing.", "raw_prob": 0.2}
    other = {"doc": "D.", "claim": LIVED, "pred_label": 0}
    path = written(tmp_path, "m.jsonl", worse, MINICHECK, other)
    assert verdicts(path) == [{PAINTED: ("supported", 0.98), LIVED: ("unsupported", 0.0)}]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({**FACTSCORE_OUTPUT, "decisions": [[{"atom": "x", "is_supported": 1}]]}, "neither true"),
        ({**FACTSCORE_OUTPUT, "decisions": [[{"is_supported": True}]]}, "'atom' is missing"),
        ({**POLYGRAPH, "uncertainty": "much"}, "not a finite number"),
        ({**MINICHECK, "raw_prob": 1.5}, "raw_prob.*1.5"),
        ({**MINICHECK, "raw_prob": "high"}, "not a number"),
    ],
)
def test_malformed_input_is_refused(tmp_path: Path, record: Any, message: str) -> None:
    refused(message, read_many, written(tmp_path, "bad.jsonl", record))


# --- Aligning ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "other", "alike"),
    [
        ("Ada painted birds.", "ada  painted birds.", 1.0),
        ("Ada painted birds.", "Ada was a painter of birds.", 1.0),
        ("Ada was born in 1890.", "Ada was born in 1891.", 0.0),
        ("Ada painted birds.", "Ada never painted birds.", 0.0),
        ("Ada painted birds.", "Basalt is a rock.", 0.0),
        # A pronoun stands for the name that the question has, not for what is told of it.
        ("She painted birds.", "Ada Bell painted birds.", 1.0),
        ("Her birds are large.", "Ada Bell's birds are large.", 1.0),
        ("She painted birds.", "He painted birds.", 1.0),
        ("She painted birds.", "Cora Dunn painted birds.", 0.5),
        # Words that are replaced say something else.
        ("She lived in Ulm.", "Ada Bell lived in Bonn.", 0.0),
        ("She sang.", "Ada Bell.", 0.0),
    ],
)
def test_likeness_is_of_words(text: str, other: str, alike: float) -> None:
    about = "Was Ada Bell of Ulm or of Bonn?"
    assert likeness(text, other, about) == likeness(other, text, about) == alike


def test_claims_are_aligned_one_to_one_the_most_alike_first() -> None:
    texts = {"a": "Ada painted large birds.", "b": "Ada painted birds."}
    others = {"x": "Ada painted birds.", "y": "Ada painted large birds in oil."}
    assert aligned_pairs(texts, others, language="en") == {"b": "x", "a": "y"}
    assert aligned_pairs({"a": "Ada painted."}, {"x": "It rains.", "y": " "}) == {}
    # Of pairs that are as alike, equal texts belong together.
    twice = {"a": "She painted birds.", "b": "Ada painted birds."}
    aligned = aligned_pairs(twice, {"x": twice["b"], "y": twice["a"]}, about="Who is Ada?")
    assert aligned == {"a": "y", "b": "x"}


def labeled(n: int = 12) -> list[FactGraph]:
    rng = np.random.default_rng(0)
    return [
        FactGraph(
            f"r{r}",
            tuple(
                Atom(f"a{i}", f"The tower {r} has {i} windows.", label=bool(rng.random() < 0.6))
                for i in range(1, 6)
            ),
            query=f"What of tower {r}?",
        )
        for r in range(n)
    ]


def factscore_of(graphs: list[FactGraph], right: float, seed: int) -> dict[str, Any]:
    """Decisions that are right of a share of the claims."""
    rng = np.random.default_rng(seed)
    decisions = [
        [
            {"atom": atom.text, "is_supported": bool(atom.label) == bool(rng.random() < right)}
            for atom in graph.atoms
        ]
        for graph in graphs
    ]
    return {"score": 0.5, "decisions": decisions}


def test_responses_are_recognized_by_their_order_if_by_nothing_else(tmp_path: Path) -> None:
    graphs = labeled(3)
    path = written(tmp_path, "f.json", factscore_of(graphs, 1.0, 0))
    (judged,) = with_verdicts_of(graphs, read_many(path), "f.json")
    assert (judged.by_order, judged.n_aligned, judged.n_claims, judged.n_responses) == (
        True,
        15,
        15,
        3,
    )
    for graph in judged.graphs:
        recorded = recorded_verdicts(graph)["factscore"]
        assert all(recorded[atom.id].p_true == float(bool(atom.label)) for atom in graph.atoms)
    # A second reading of the same file has a name of its own.
    (again,) = with_verdicts_of(judged.graphs, read_many(path), "f.json")
    assert again.name == "factscore-2"
    (called,) = with_verdicts_of(
        judged.graphs, read_many(path), "f.json", called={"factscore": "factscore (f)"}
    )
    assert called.name == "factscore (f)"
    refused("differ in number", with_verdicts_of, graphs[:2], read_many(path), "f.json")
    refused("no verdicts", with_verdicts_of, graphs, graphs, "g.jsonl")


def test_results_without_texts_are_aligned_by_id() -> None:
    (graph,) = labeled(1)
    metadata = {"assessors": {"x": {"verdicts": {"a2": {"label": "supported", "p": 0.7}}}}}
    bare = FactGraph("other", (Atom("a2"),), query=graph.query, metadata=metadata)
    (judged,) = with_verdicts_of([graph], [bare], "x.jsonl")
    assert (judged.by_order, judged.by_id) == (False, True)
    assert recorded_verdicts(judged.graphs[0])["x"]["a2"].p_true == 0.7
    # Of a0 something is said and of a1 nothing: the two count in their own ways.
    metadata["assessors"]["x"]["verdicts"]["a0"] = {"label": "supported", "p": 0.1}
    shifted = replace(bare, atoms=(Atom("a0"), Atom("a2")), metadata=metadata)
    refused(
        "has no 'a0', and there is no verdict on 'a1'",
        with_verdicts_of,
        [graph],
        [shifted],
        "x.jsonl",
    )


def test_each_response_is_recognized_by_its_key(tmp_path: Path) -> None:
    first, second, third = labeled(3)
    decided = factscore_of([third, second, first], 1.0, 0)
    others = read_many(written(tmp_path, "f.json", decided))
    named = [
        replace(others[0], query=third.query),
        replace(others[1], id=second.id),
        replace(others[2], response="What stands here."),
    ]
    here = [replace(first, response=" what stands HERE."), second, third]
    (judged,) = with_verdicts_of(here, named, "f.json")
    assert (judged.n_responses, judged.n_aligned, judged.by_order) == (3, 15, False)


def in_two_tools(
    tmp_path: Path, claims: list[str], others: list[str], *options: str
) -> dict[str, Any]:
    """Findings of score --with on two true claims, with other claims judged by another tool."""
    graph = FactGraph(
        "r", tuple(Atom(f"a{i}", text, label=i % 2 == 0) for i, text in enumerate(claims))
    )
    write_fact_graphs([graph], tmp_path / "labeled.jsonl")
    decisions = [[{"atom": text, "is_supported": True} for text in others]]
    file = written(tmp_path, "f.json", {"score": 0.5, "decisions": decisions})
    result = invoke(
        *("score", str(tmp_path / "labeled.jsonl"), "--with", str(file)),
        *("--bootstrap", "20", "--resamples", "99", "--json", *options),
    )
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_claims_are_not_aligned_with_their_negations(tmp_path: Path) -> None:
    claims = ["Die Brücke wurde nicht in Bonn gebaut.", "Sie ist nach dem Krieg erneuert worden."]
    others = ["Die Brücke wurde in Bonn gebaut.", "Nach dem Krieg ist sie erneuert worden."]
    findings = in_two_tools(tmp_path, claims, others)
    assert [row["aligned"] for row in findings["tables"]["aligned"]] == [1]
    assert [row["equality"] for row in findings["tables"]["aligned"]] == [0]


def test_it_is_told_how_many_claims_are_compared_for_equality(tmp_path: Path) -> None:
    claims = ["Kinu kilijengwa karibu na mto.", "Mto huo ni mrefu sana."]
    others = ["Kinu kilijengwa karibu na mto mrefu.", "mto huo ni mrefu sana"]
    findings = in_two_tools(tmp_path, claims, others)
    assert [row["aligned"] for row in findings["tables"]["aligned"]] == [1]
    assert [row["equality"] for row in findings["tables"]["aligned"]] == [2]
    assert "Of these 2, 2 were compared only for equality" in json.dumps(findings)
    # Whoever knows better says so.
    findings = in_two_tools(tmp_path, claims, others, "--language", "en")
    assert [row["aligned"] for row in findings["tables"]["aligned"]] == [2]


# --- One table -----------------------------------------------------------------------------------


PEOPLE = ("Ada Bell", "Bo Carr", "Cora Dunn", "Dov Eames", "Eva Frost", "Finn Gray")
TOLD = (
    ("painted birds", "painted large birds"),
    ("was born in 1890", "was born in the year 1890"),
    ("lived in Ulm", "lived for years in Ulm"),
    ("never married", "never married anyone"),
    ("wrote two novels", "wrote a total of two novels"),
    ("taught botany", "taught students botany"),
    ("died in Bonn", "died in the town of Bonn"),
)
"""What is said of each of the people, and how another would word it."""
SHAPE = (len(PEOPLE), len(TOLD))
AS_SAID = [[f"She {words}." for words, _ in TOLD] for _ in PEOPLE]
WITH_NAME = [[f"{name} {words}." for words, _ in TOLD] for name in PEOPLE]
REWORDED = [[f"{name} {other}." for _, other in TOLD] for name in PEOPLE]
EACH = range(len(PEOPLE))


def biographies() -> list[FactGraph]:
    """Six responses of seven labeled claims, which begin with a pronoun as their sentences do."""
    true = np.random.default_rng(1).random(SHAPE) < 0.6
    return [
        FactGraph(
            f"r{k}",
            tuple(
                Atom(f"a{i}", text, label=bool(label))
                for i, (text, label) in enumerate(zip(AS_SAID[k], true[k], strict=True))
            ),
            query=f"Tell me of {PEOPLE[k]}.",
            response=f"Of {PEOPLE[k]}: {' '.join(AS_SAID[k])}",
        )
        for k in EACH
    ]


def outputs_of_all_tools(
    folder: Path, graphs: list[FactGraph], answers: dict[str, np.ndarray]
) -> list[Path]:
    """Output that each tool would write for the biographies, in its format and words.

    Args:
        folder: where to.
        graphs: the biographies.
        answers: P(true) of each claim, or whether it is supported, by tool.
    """
    asked = [{"question": graph.query, "response": graph.response} for graph in graphs]
    prompts = [{"prompt": graph.query, "response": graph.response} for graph in graphs]

    def claims(tool: str, texts: list[list[str]], k: int) -> Any:
        return list(zip(texts[k], answers[tool][k].tolist(), strict=True))

    def factreasoner(tool: str, texts: list[list[str]], k: int) -> dict[str, Any]:
        atoms = [{"id": f"a{i}", "text": text, "contexts": []} for i, text in enumerate(texts[k])]
        marginals = [
            {"variable": f"a{i}", "probabilities": [1 - p, p]}
            for i, (_, p) in enumerate(claims(tool, texts, k))
        ]
        results = {"marginals": marginals, "elapsed_time": 10.0 * (k + 1)}
        its = {"input": graphs[k].query, "output": graphs[k].response, "topic": PEOPLE[k]}
        return {**its, "atoms": atoms, "contexts": [], "results": results}

    # 0.5 writes a file for each response, 0.8 a line.
    each = folder / "each"
    each.mkdir()
    for k in EACH:
        written(each, f"{k}.json", factreasoner("factreasoner", REWORDED, k))
    decisions = [
        [{"atom": text, "is_supported": true} for text, true in claims("factscore", AS_SAID, k)]
        for k in EACH
    ]
    verified = [
        [
            {"claim": text, "verification_result": "supported" if true else "unsupported"}
            for text, true in claims("veriscore", REWORDED, k)
        ]
        for k in EACH
    ]
    # The last claim of the first response was extracted, and not verified.
    verified[0].pop()
    checked = [
        [
            {
                "atomic_fact": short,
                "self_contained_atomic_fact": text,
                "annotation": "Supported" if true else "Not Supported",
            }
            for short, (text, true) in zip(AS_SAID[k], claims("safe", WITH_NAME, k), strict=True)
        ]
        for k in EACH
    ]
    checked[1][0]["annotation"] = "Irrelevant"
    ccp = "lm-polygraph: CCP"
    uncertain = [
        {**POLYGRAPH, "uncertainty": -p, "input_text": graphs[k].query, "generation_text": text}
        for k in EACH
        for text, p in claims(ccp, AS_SAID, k)
    ]
    scored = [
        {"response": f"r{k}", "doc": document, "claim": text, "raw_prob": p * share}
        for k in EACH
        for text, p in claims("minicheck", WITH_NAME, k)
        for document, share in (("One.", 1.0), ("Another.", 0.4))
    ]
    sides = [
        {"side1_posthoc_eval_data": {**prompts[k], "checked_statements": checked[k]}} for k in EACH
    ]
    return [
        each,
        written(folder, "08.jsonl", *(factreasoner("factreasoner-2", WITH_NAME, k) for k in EACH)),
        written(folder, "factscore.json", {"score": 0.5, "decisions": decisions}),
        written(
            folder,
            "veriscore.jsonl",
            *(
                {**asked[k], "all_claims": REWORDED[k], "claim_verification_result": verified[k]}
                for k in EACH
            ),
        ),
        written(folder, "safe.json", {"per_prompt_data": sides}),
        written(
            folder, "polygraph.jsonl", *({**record, "estimator": "CCP"} for record in uncertain)
        ),
        written(folder, "minicheck.jsonl", *scored),
    ]


def test_all_tools_are_in_one_table(tmp_path: Path) -> None:
    graphs = biographies()
    write_fact_graphs(graphs, tmp_path / "labeled.jsonl")
    labels = np.array([[bool(atom.label) for atom in graph.atoms] for graph in graphs])
    rng = np.random.default_rng(2)
    answers: dict[str, np.ndarray] = {}
    for tool in ("factreasoner", "factreasoner-2", "lm-polygraph: CCP", "minicheck"):
        answers[tool] = np.clip(0.3 + 0.4 * labels + rng.normal(0, 0.3, SHAPE), 0.02, 0.98).round(3)
    for tool in ("factscore", "veriscore", "safe"):
        answers[tool] = labels ^ (rng.random(SHAPE) < 0.2)
    files = outputs_of_all_tools(tmp_path, graphs, answers)
    result = invoke(
        *("score", str(tmp_path / "labeled.jsonl")),
        *(option for file in files for option in ("--with", str(file))),
        *("--bootstrap", "20", "--resamples", "99", "--json"),
    )
    document = json.loads(result.stdout)
    # The two outputs of one tool are called by their files.
    files_of = {"factreasoner (each)": "factreasoner", "factreasoner (08)": "factreasoner-2"}
    rows = {files_of.get(row["model"], row["model"]): row for row in document["tables"]["tools"]}
    assert [row["model"] for row in rows.values()][:3] == [*files_of, "factscore"]
    assert rows.keys() == answers.keys()
    aligned = {files_of.get(row["tool"], row["tool"]): row for row in document["tables"]["aligned"]}
    assert {tool: row["aligned"] for tool, row in aligned.items()} == {
        **dict.fromkeys(answers, 42),
        "veriscore": 41,
    }
    assert aligned["factreasoner"]["file"] == str(files[0])
    # Each claim is found in all files; of two of them one tool says nothing.
    assert (
        "The scores are over the 40 labeled claims of 42 that all 7 judged." in document["findings"]
    )
    common = np.ones(SHAPE, dtype=bool)
    common[0, 6] = common[1, 0] = False
    for tool, judged in answers.items():
        row, p = rows[tool], np.asarray(judged, dtype=float)
        apart = p[common & labels][:, None] - p[common & ~labels]
        precision = np.array([np.mean(p[k][common[k]] > 0.5) for k in EACH])
        # K is 7, the median number of claims.
        recall = np.array([np.sum(p[k][common[k]] > 0.5) / 7 for k in EACH])
        expected = {
            "brier": np.mean((p - labels)[common] ** 2),
            "auroc": np.mean((apart > 0) + 0.5 * (apart == 0)),
            "precision": precision.mean(),
            "f1_at_k": np.mean(2 * precision * recall / (precision + recall)),
            "ece": row["ece"],
        }
        for measure, value in expected.items():
            assert row[measure] == pytest.approx(value, abs=1e-9)
            if tool == "factreasoner":
                assert row[f"{measure}_difference"] is None
                continue
            less = row[measure] - rows["factreasoner"][measure]
            assert row[f"{measure}_difference"] == pytest.approx(less, abs=1e-9)
            assert row[f"{measure}_difference_lower"] <= row[f"{measure}_difference_upper"]
        assert row["seconds"] == (35.0 if tool.startswith("factreasoner") else None)


def test_a_folder_without_outputs_is_refused(tmp_path: Path) -> None:
    write_fact_graphs(labeled(2), tmp_path / "g.jsonl")
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="none: the folder contains no JSON file"):
        score(tmp_path / "g.jsonl", beside=[tmp_path / "none"])


def test_tools_are_scored_on_the_claims_that_all_judged(tmp_path: Path) -> None:
    graphs = labeled()
    write_fact_graphs(graphs, tmp_path / "labeled.jsonl")
    good = written(tmp_path, "good.json", factscore_of(graphs, 0.95, 1))
    bad = factscore_of(graphs, 0.6, 2)
    # The second knows nothing of the last response.
    bad["decisions"][-1] = None
    poor = written(tmp_path, "poor.json", bad)
    result = invoke(
        *("score", str(tmp_path / "labeled.jsonl"), "--with", str(good), "--with", str(poor)),
        *("--bootstrap", "20", "--resamples", "199", "--json"),
    )
    document = json.loads(result.stdout)
    rows = {row["model"]: row for row in document["tables"]["scores"]}
    assert set(rows) == {"factscore (good)", "factscore (poor)"}
    assert all(row["n_claims"] == 55 for row in rows.values())
    decisions = json.loads(good.read_text())["decisions"][:-1]
    expected = np.mean(
        [
            bool(atom.label) != decided["is_supported"]
            for graph, decided_of in zip(graphs[:-1], decisions, strict=True)
            for atom, decided in zip(graph.atoms, decided_of, strict=True)
        ]
    )
    # Verdicts of 0 and 1: the Brier score is the share of wrong ones.
    assert rows["factscore (good)"]["brier"] == pytest.approx(expected, abs=1e-12)
    measures = {row["model"]: row for row in document["tables"]["tools"]}
    # The one table repeats what the details say.
    (brier_row,) = (row for row in document["tables"]["tests"] if row["measure"] == "brier")
    apart = measures["factscore (poor)"]
    of_good = measures["factscore (good)"]
    assert of_good["brier"] == rows["factscore (good)"]["brier"]
    for end in ("", "_lower", "_upper"):
        assert apart[f"brier_difference{end}"] == brier_row[f"difference{end}"]
    supported = [
        np.mean([decided["is_supported"] for decided in decided_of]) for decided_of in decisions
    ]
    assert of_good["precision"] == pytest.approx(np.mean(supported), abs=1e-12)
    assert (
        apart["precision_difference_lower"]
        < apart["precision_difference"]
        < apart["precision_difference_upper"]
    )
    assert [row["aligned"] for row in document["tables"]["aligned"]] == [60, 55]
    sentences = " ".join(document["findings"])
    assert "the 55 labeled claims of 60 that all 2 judged" in sentences
    assert "matched only by order" in sentences


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["out/good.json", "out/poor.json"], ["good", "poor"]),
        (["monday/out.json", "tuesday/out.json"], ["monday", "tuesday"]),
        (["0.5/a/out.json", "0.8/a/out.json"], ["0.5", "0.8"]),
        (["a/b/out.json", "b/a/out.json"], ["b/out.json", "a/out.json"]),
        (["out.json", "out.jsonl"], ["out.json", "out.jsonl"]),
        # Of folders whose names end in a version nothing is a suffix.
        (["results-0.5", "results-0.8"], ["results-0.5", "results-0.8"]),
    ],
)
def test_outputs_of_one_tool_are_called_by_what_tells_their_files_apart(
    files: list[str], names: list[str]
) -> None:
    assert shortest_names([Path(file) for file in files]) == names


def test_a_table_of_numbers_has_no_claims_to_align(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    write_fact_graphs(labeled(2), path)
    refused("responses with claims", score, [{"p": 0.5, "label": 1}], beside=[path])
    graph = FactGraph("r0", (Atom("a1", "It rains.", label=True),))
    refused("no verdicts", score, [graph], beside=[path])


def test_costs_are_reported_if_a_file_has_them(tmp_path: Path) -> None:
    graphs = labeled(4)
    taken = {
        "relations": {
            "answers": 4, "prompt_tokens": 100, "completion_tokens": 8, "cost": 0.01, "unpriced": 0,
        }
    }  # fmt: skip
    verdict = {"verdicts": {f"a{i}": {"label": "supported", "p": 0.9} for i in range(1, 6)}}
    judged: Any = [
        replace(
            graph,
            metadata={"assessors": {"ours": verdict}, "consumption": {**taken, "queries": taken[
                "relations"
            ]} if position else taken},
        )
        for position, graph in enumerate(graphs)
    ]  # fmt: skip
    marginals = [{"variable": f"a{i}", "probabilities": [0.3, 0.7]} for i in range(1, 6)]
    records: list[dict[str, Any]] = [
        {
            "input": graph.query,
            "output": "",
            "atoms": [{"id": atom.id, "text": atom.text, "contexts": []} for atom in graph.atoms],
            "contexts": [],
            "results": {"marginals": marginals, "elapsed_time": seconds},
        }
        for graph, seconds in zip(graphs, (1.0, 2.0, 3.0, 6.0), strict=True)
    ]
    path = written(tmp_path, "factreasoner_output.jsonl", *records)
    path_of_other = written(tmp_path, "f.json", factscore_of(graphs, 1.0, 0))
    scores = score(judged, beside=(path, path_of_other), resamples=9, n_bootstrap=9)
    rows: Any = scores["tools"].set_index("model")
    assert rows.index.tolist() == ["ours", "factreasoner", "factscore"]
    assert rows.loc["factreasoner", "seconds"] == 3.0
    # FActScore's file says nothing.
    assert rows.loc["factscore", ["answers", "cost", "seconds"]].isna().all()
    assert math.isnan(rows.loc["factreasoner", "answers"])
    # Three of four responses were asked twice as much.
    row = rows.loc["ours"]
    assert (row["answers"], row["prompt_tokens"], row["completion_tokens"]) == (7, 175, 14)
    assert row["cost"] == pytest.approx(0.0175)
    records[0]["results"]["elapsed_time"] = "long"
    path = written(tmp_path, "bad.jsonl", *records)
    refused("elapsed_time.*'long'.*number of seconds", read_many, path)
