"""Any damage to a record of another project ends in a graph or in one clear sentence."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.published.factcheck_bench import parse_factcheck_record
from factormodels.io.published.factreasoner import parse_factreasoner
from factormodels.io.published.factscore import parse_factscore_record

FACTREASONER = {
    "input": "q",
    "output": "r",
    "topic": "t",
    "cat": ["k"],
    "atoms": [{"id": "a0", "text": "x", "original": "y", "label": "S", "contexts": ["c0"]}],
    "contexts": [
        {
            "id": "c0",
            "title": "x",
            "text": "x",
            "link": "x",
            "snippet": "x",
            "synthetic_summary": "x",
            "probability": 0.5,
        }
    ],
}
FACTSCORE = {
    "input": "q",
    "output": "r",
    "topic": "t",
    "cat": ["k"],
    "annotations": [
        {"text": "s", "is-relevant": True, "human-atomic-facts": [{"text": "x", "label": "S"}]}
    ],
}
FACTCHECK: dict[str, Any] = {
    "prompt": "q",
    "response": "r",
    "response_factuality": True,
    "sentences": {
        "sentence1": {
            "claims": ["x"],
            "claims_factuality_label": [True],
            "claim_checkworthiness": ["factual"],
            "auto_evidence": [["p"]],
            "auto_evidence_url": [["u"]],
            "stance_claim_autoEvid": [["refute"]],
        }
    },
}
JUNK: tuple[Any, ...] = (
    None,
    True,
    0,
    -1.5,
    float("nan"),
    10**400,
    "",
    "junk",
    [],
    [[]],
    ["junk"],
    {},
    {"a": 1},
)

Parse = Callable[[Any, str, int], FactGraph]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, step))


def replaced(record: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    copied = copy.deepcopy(record)
    place = copied
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = junk
    return copied


def outcome(parse: Parse, record: Any) -> str | None:
    """Return the message of a refusal, or None for a graph."""
    try:
        graph = parse(record, "f.jsonl", 3)
    except InputError as error:
        return str(error)
    assert isinstance(graph, FactGraph)
    return None


@pytest.mark.parametrize(
    ("record", "parse"),
    [
        (FACTREASONER, parse_factreasoner),
        (FACTSCORE, parse_factscore_record),
        (FACTCHECK, parse_factcheck_record),
    ],
    ids=["factreasoner", "factscore", "factcheck"],
)
def test_a_damaged_record_gives_a_graph_or_one_sentence(record: Any, parse: Parse) -> None:
    assert len(parse(record, "f.jsonl", 3).atoms) == 1
    outcomes = [
        (path, outcome(parse, replaced(record, path, junk)))
        for path in places(record)
        for junk in JUNK
    ]
    refused = [(path, message) for path, message in outcomes if message is not None]
    for path, message in refused:
        assert message.startswith("f.jsonl, line 3: "), path
        assert "\n" not in message, path
    # Most damage cannot pass for data: a parser that accepted nearly all of it would be deaf.
    assert len(refused) > len(outcomes) / 2
