"""Records damaged in one place: reading and checking say what is wrong there, in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from factormodels.io.file_report import check_file
from factormodels.io.formats.registry import format_named
from tests.factormodels.io.formats.release_records import (
    FACT_GRAPH,
    KNOWN,
    READERS,
    lines_at,
    removed,
    replaced,
)
from tests.refusals import refused

GONE = object()
"""In place of a value: its key is missing."""

EDGE = FACT_GRAPH["edges"][0]

DAMAGE: dict[tuple[str, str], list[tuple[str, Any, str]]] = {
    ("fact-graph", ""): [
        ("nodes", GONE, "the key 'nodes' is missing; add it"),
        ("edges", GONE, "the key 'edges' is missing; add it"),
        ("nodes.1.id", GONE, "nodes[1]: the key 'id' is missing; add it"),
        ("nodes.0.type", GONE, "nodes[0]: the key 'type' is missing; add it"),
        ("nodes.0.probability", GONE, "nodes[0]: the key 'probability' is missing; add it"),
        ("edges.0.source", GONE, "edges[0]: the key 'source' is missing; add it"),
        ("edges.0.relation", GONE, "edges[0]: the key 'relation' is missing; add it"),
        ("edges.0.probability", GONE, "edges[0]: the key 'probability' is missing; add it"),
        ("edges.0.probability", 1.2, "relation 'c1' -> 'a1': the probability 1.2 is not between 0"),
        ("nodes.0.probability", -0.1, "nodes[0]: prior of atom 'a1': the probability -0.1 is not"),
        ("nodes.0.probability", "0.5", "nodes[0]: prior of atom 'a1': the probability '0.5' is"),
        ("nodes.0.probability", True, "prior of atom 'a1': the probability True is not a number"),
        ("edges.0.target", "a7", "refers to 'a7', which is neither an atom nor a context; add"),
        ("edges.0.target", "c1", "edges[0]: relation 'c1' -> 'c1' refers to itself; a relation"),
        ("edges", [EDGE, EDGE], "fact graph 'data-002': two relations join 'c1' -> 'a1'; keep one"),
        ("nodes.1.id", "a1", "fact graph 'data-002': the id 'a1' is given twice; ids are unique"),
        ("nodes.0.id", "", "nodes[0]: the id '' of an atom is empty or not text; name it"),
        ("nodes.0.id", 3, "nodes[0]: the id 3 of an atom is empty or not text; name it"),
        ("nodes.0.type", "claim", "nodes[0]: the type 'claim' is unknown; use 'atom' or 'context'"),
        ("edges.0.relation", "entails", "did you mean 'entailment'?); use one of entailment,"),
        ("edges.0.relation", ["x"], "the relation ['x'] is unknown; use one of entailment, con"),
        ("edges.0.from", "c1", "edges[0]: the keys 'source' and 'from' mean the same; keep one"),
        ("nodes.0.lable", True, "nodes[0]: the key 'lable' is unknown; did you mean 'label'?"),
        ("node", [], "the key 'node' is unknown; did you mean 'nodes'?"),
        ("edges.0.probabilty", 1, "edges[0]: the key 'probabilty' is unknown; did you mean"),
        ("nodes.0.zzz", 1, "nodes[0]: the key 'zzz' is unknown; the keys are id, type,"),
        ("nodes.0.snippet", "", "nodes[0]: the key 'snippet' is unknown; the keys are id, type,"),
        ("nodes.0.label", "S", "nodes[0]: key 'label': 'S' is neither true nor false; give one"),
        ("nodes.0.label", 1, "nodes[0]: key 'label': 1 is neither true nor false; give one of"),
        ("nodes.0.sentence", 0, "nodes[0]: key 'sentence': 0 is not a whole number from 1; count"),
        ("nodes.0.sentence", True, "nodes[0]: key 'sentence': True is not a whole number from 1;"),
        ("nodes.0.text", 5, "nodes[0]: key 'text': 5 is not text; put text there"),
        ("nodes.1.key", 5, "nodes[1]: key 'key': 5 is not text; put text there"),
        ("nodes.1.retrieved_for", ["a9"], "context 'c1' was retrieved for 'a9', which is not an"),
        ("nodes.1.retrieved_for", "a1", "nodes[1]: key 'retrieved_for': 'a1' is not a list; give"),
        ("nodes.1", "a2", "nodes[1]: 'a2' is not a JSON object; give an object there"),
        ("nodes", {}, "key 'nodes': {} is not a list; give a list there"),
        ("format", "x", "the format is 'x'; this reader knows 'factormodels/fact-graph'"),
        ("version", 2, "the version is 2; this release reads version 1"),
        ("metadata", [1], "key 'metadata': [1] is not a JSON object; give an object there"),
        ("id", "", "the id '' of a fact graph is empty or not text; name it"),
        ("id", 5, "key 'id': 5 is not text; put text there"),
    ],
    ("factreasoner", ""): [
        ("", [], "[] is not an object; give one object per record"),
        ("atoms", GONE, "the key 'atoms' is missing; add it"),
        ("contexts", GONE, "the key 'contexts' is missing; add it"),
        ("atoms", {}, "$.atoms: {} is not a list; give a list there"),
        ("atoms.1", 5, "$.atoms[1]: 5 is not a JSON object; give an object there"),
        ("atoms.1.text", GONE, "$.atoms[1]: the key 'text' is missing; add it"),
        ("atoms.0.id", "", "$.atoms[0]: the id '' of an atom is empty or not text; name it"),
        ("atoms.0.label", True, "$.atoms[0].label: True is not an annotation; give 'S',"),
        ("atoms.2.id", "a1", "the id 'a1' is given twice; ids are unique"),
        ("atoms.1.contexts", ["c9"], "$.atoms[1].contexts names the context 'c9', which is"),
        ("atoms.1.contexts", [3], "$.atoms[1].contexts[0]: 3 is not text; put text there"),
        (
            "contexts.1.probability",
            1.5,
            "$.contexts[1]: prior of context 'c_a0_1': the",
        ),
        ("contexts.1.probability", "0.9", "$.contexts[1]: prior of context 'c_a0_1': the"),
        ("contexts.0.title", ["x"], "$.contexts[0].title: ['x'] is not text; put text there"),
        ("cat", "people", "$.cat: 'people' is not a list; give a list there"),
        ("relations", [{"source": "c1"}], "with claims and passages as 'nodes' and relations as"),
    ],
    ("factreasoner", "results"): [
        ("", 5, "5 is not a JSON object; give an object there"),
        ("marginals", {}, "$.results.marginals: {} is not a list; give a list there"),
        ("marginals.0", 5, "$.results.marginals[0]: 5 is not a JSON object; give an object there"),
        (
            "marginals.0.variable",
            GONE,
            "$.results.marginals[0]: the key 'variable' is missing; add it",
        ),
        ("marginals.0.probabilities", [1.0], "$.results.marginals[0].probabilities has 1 number;"),
        (
            "marginals.1.probabilities",
            [0.2, 0.2],
            "$.results.marginals[1].probabilities: [0.2, 0.2]",
        ),
        (
            "marginals.0.probabilities",
            [-0.75, 0.25],
            "marginals[0].probabilities: false: the probability -0.75",
        ),
        (
            "marginals.0.probabilities.1",
            1.5,
            "marginals[0].probabilities: true: the probability 1.5 is not",
        ),
        (
            "marginals.0.probabilities.1",
            "x",
            "marginals[0].probabilities: true: the probability 'x' is not a",
        ),
        ("marginals.0.variable", "a9", "they judge 'a9', which is not among the file's atoms;"),
        ("predictions.a0", "T", "the verdict on 'a0' is 'T'; use one of S, NS, C, U"),
        ("predictions.a0", True, "$.results.predictions.a0: True is not text; put text there"),
        (
            "predictions",
            "a0 is supported",
            "$.results.predictions: 'a0 is supported' is not a JSON",
        ),
        (
            "factuality_score_per_atom.0.a0",
            2,
            "$.results.factuality_score_per_atom[0].a0: 2 is not a",
        ),
        ("factuality_score_per_atom.0.a0.score", None, "[0].a0.score: the probability None is not"),
    ],
    ("factscore", ""): [
        ("", 7, "7 is not an object; give one object per record"),
        ("annotations", GONE, "the key 'annotations' is missing; add it"),
        ("annotations", "none", "$.annotations: 'none' is not a list; give a list there"),
        ("annotations", [4], "$.annotations[0]: 4 is not a JSON object; give an"),
        ("topic", 5, "$.topic: 5 is not text; put text there"),
        ("annotations.0.is-relevant", "no", "$.annotations[0].is-relevant: 'no' is neither"),
    ],
    ("factscore", "annotations.2.human-atomic-facts"): [
        ("0", "She swims.", "human-atomic-facts[0]: 'She swims.' is not a JSON object; give an"),
        ("0.text", GONE, "the key 'text' is missing; add it"),
        ("0.label", "N", "the label 'N' of the fact 'She was born in Ulm.' is unknown; use one"),
        ("0.label", GONE, "the label None of the fact 'She was born in Ulm.' is unknown"),
        ("0.label", ["S"], "the label ['S'] of the fact 'She was born in Ulm.' is unknown"),
    ],
    ("factcheck-bench", ""): [
        ("", "x", "'x' is not an object; give one object per record"),
        ("sentences", GONE, "the key 'sentences' is missing; add it"),
        ("response", 5, "$.response: 5 is not text; put text there"),
        ("response_factuality", "no", "'no' is not a verdict; use true, false or 'NA'"),
        ("sentences", [], "$.sentences: [] is not a JSON object; give an object there"),
        ("sentences.sentence1", 3, "sentence1: 3 is not a JSON object; give an object there"),
    ],
    ("factcheck-bench", "sentences.sentence2"): [
        ("claims", GONE, "the key 'claims' is missing; add it"),
        ("auto_evidence", GONE, "the key 'auto_evidence' is missing; add it"),
        (
            "claims_factuality_label",
            [True],
            "sentence2.claims_factuality_label has 1 entry for 2 claims",
        ),
        ("claims.0", 7, "$.sentences.sentence2.claims[0]: 7 is not text; put text there"),
        ("claims_factuality_label.0", "True", "'True' is not a label; use true, false or"),
        ("claims_factuality_label.0", 1, "sentence2.claims_factuality_label[0]: 1 is not a label"),
        ("stance_claim_autoEvid.0", ["refute"], "has 1 entry for 2 passages; give one per"),
        ("stance_claim_autoEvid.0.0", "refutes", "the stance 'refutes' is unknown; use one of"),
        (
            "auto_evidence_url.0",
            ["x"],
            "sentence2.auto_evidence_url[0] has 1 entry for 2 passages;",
        ),
        ("auto_evidence.0.1", 3, "sentence2.auto_evidence[0][1]: 3 is not text; put text there"),
        (
            "auto_evidence.0",
            "text",
            "sentence2.auto_evidence[0]: 'text' is not a list; give a list there",
        ),
    ],
    ("selfcheck", ""): [
        ("annotation", ["accurate"], "there are 2 sentences, 1 annotation and answers on 2"),
        ("annotation.1", "?", "$.annotation[1]: '?' is not an annotation; use one of accurate,"),
        ("responses.prompt.1", ["Maybe"], "responses.prompt[1]: ['Maybe'] is not a list of"),
        ("responses.prompt.1", [None], "responses.prompt[1]: [None] is not a list of answers;"),
    ],
    ("self-judged", ""): [
        ("claims.0.gpt-score", 2, "$.claims[0].gpt-score: the probability 2 is not between"),
        ("claims.0.annotation", "X", "$.claims[0].annotation: 'X' is not an annotation; use"),
    ],
    ("claim-records", ""): [
        *(
            (key, GONE, f"the key '{key}' is missing")
            for key in ("response", "sentence", "sentences")
        ),
        *((key, GONE, f"the key '{key}' is missing") for key in ("claim", "label")),
        ("label", "X", "key 'label' is 'X'; use one of S, NS, IR"),
        ("sentence", 7, "sentence 7 of 4 does not exist"),
        ("sentence", 0, "sentence is 0; give a whole number from 1"),
        ("sentence", True, "sentence is True; give a whole number from 1"),
        ("sentences", "6", "sentences is '6'; give a whole number from 1"),
        ("claim", "", "the id '' of a claim of response 'ada'"),
        ("judgments", {"asking": "true"}, "the key 'asking' is unknown; did you mean"),
        ("judgments.direct_asking", "maybe", "'direct_asking' is 'maybe'; use one of"),
        ("judgments.direct_asking", True, "True is not text"),
        ("judgments", ["true"], "is not a JSON object"),
        ("log_probabilities", {"asking": {}}, "key 'log_probabilities' is 'asking'; use one of"),
        ("log_probabilities", {"direct_asking": 1}, "1 is not a JSON object"),
        ("log_probabilities", {"direct_asking": {"maybe": -1.0}}, "'maybe'; use one of true"),
        ("log_probabilities", {"direct_asking": {"true": 0.1}}, "0.1 is not a logarithm of a"),
        ("log_probabilities", {"direct_asking": {"true": "-1"}}, "'-1' is not a logarithm of a"),
        ("labels", "S", "the key 'labels' is unknown; did you mean 'label'"),
    ],
    ("unli", ""): [
        *(
            ("unli", str(number), f"$.unli: the probability {number} is not")
            for number in (-0.1, 1.2)
        ),
        *(("unli", text, f"$.unli: the probability {text} is not") for text in ("nan", "inf")),
        *(("unli", text, f"$.unli: '{text}' is not a probability") for text in ("", "entailment")),
    ],
}
"""By the name of a format, and where in its record: a place there, a value for it, what is said."""


def damaged(record: Any, path: str, value: Any) -> Any:
    """A copy of a record with another value at a place, as in "atoms.1.text", or none."""
    steps = [0, *(int(step) if step.isdecimal() else step for step in path.split(".") if step)]
    (changed,) = removed([record], *steps) if value is GONE else replaced([record], value, *steps)
    return changed


@pytest.mark.parametrize(
    ("name", "key_path", "value", "message"),
    [
        (name, f"{where}.{path}", value, message)
        for (name, where), rows in DAMAGE.items()
        for path, value, message in rows
    ],
)
def test_errors_are_reported_with_their_place(
    name: str, key_path: str, value: Any, message: str, tmp_path: Path
) -> None:
    record, form = KNOWN[name], format_named(name)
    path = lines_at(tmp_path / "data.jsonl", record, damaged(record, key_path, value))
    (problem,) = check_file(path, form).problems
    assert problem.line == 2
    assert message in problem.message
    assert str(path) not in problem.message
    refused(f"^{path}, line 2: ", READERS[form.holds], path)
