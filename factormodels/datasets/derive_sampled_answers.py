"""Imitated answers about pairs of the demonstration corpus: `demonstration.answers.jsonl`.

No language model gave them. This script does, by a law that is written here, so that `consensus`
can be tried without one: a pair is more or less hard, an answer is right the less often the harder
its pair and the hotter it is sampled, and wrong answers of one pair mostly err the same way. Its
reasons are sentences of ours around words of the passage or the claim. The confidence that is
stated is far too high, that of log-probabilities is a little too high.

    python -m factormodels.datasets.derive_sampled_answers OUT
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from factormodels import datasets
from factormodels.claims import RelationKind
from factormodels.extraction.relation_models.base import TextPair
from factormodels.extraction.relation_models.consensus import KINDS, SAMPLES, TEMPERATURES
from factormodels.extraction.stages.relations import relation_pairs
from factormodels.fact_graph import FactGraph

DATASET = "demonstration"
PAIRS = {RelationKind.ENTAILMENT: 4, RelationKind.CONTRADICTION: 2, RelationKind.NEUTRAL: 2}
"""Pairs of each response, by the relation that is known."""

_EASE, _HARDNESS, _HEAT = 2.6, 1.5, 2.0
"""Log odds of a right answer: ease, less how hard the pair is, less the temperature."""

_SAME_MISTAKE = 0.75

_REASONS = {
    RelationKind.ENTAILMENT: (
        "The passage says as much: “{passage}”.",
        "“{passage}” bears the claim out.",
        "Whoever believes “{passage}” believes the claim.",
    ),
    RelationKind.CONTRADICTION: (
        "The passage says otherwise: “{passage}”.",
        "“{passage}” rules the claim out.",
        "Both cannot hold, after “{passage}”.",
    ),
    RelationKind.NEUTRAL: (
        "The passage does not decide whether “{claim}” holds.",
        "Nothing in “{passage}” bears on it.",
        "It is about something else: “{passage}”.",
    ),
}
_WORDS = 7


def derived(graphs: Sequence[FactGraph], seed: int = 38) -> Iterator[dict[str, Any]]:
    """The records, a pair each; every response is drawn by itself."""
    for number, graph in enumerate(graphs):
        rng = np.random.default_rng([seed, number])
        known = {(one.source, one.target): one.kind for one in graph.relations}
        pairs = relation_pairs(graph, "FR2")
        kinds = [known.get((pair.source, pair.target), RelationKind.NEUTRAL) for pair in pairs]
        for kind, most in PAIRS.items():
            of_kind = [pair for pair, own in zip(pairs, kinds, strict=True) if own is kind]
            chosen = sorted(rng.permutation(len(of_kind))[:most].tolist())
            for place in chosen:
                yield _record(graph.id, of_kind[place], kind, rng)


def _record(
    response: str, pair: TextPair, kind: RelationKind, rng: np.random.Generator
) -> dict[str, Any]:
    hard = float(rng.normal())
    others = [other for other in KINDS if other is not kind]
    mistake = others[int(rng.integers(len(others)))]

    def said(temperature: float) -> RelationKind:
        if rng.random() < _right(hard, temperature):
            return kind
        return mistake if rng.random() < _SAME_MISTAKE else others[int(rng.integers(len(others)))]

    answers = []
    for sample in range(SAMPLES):
        temperature = TEMPERATURES[sample % len(TEMPERATURES)]
        relation = said(temperature)
        reasons = _REASONS[relation]
        # Cold answers are mostly in the same words.
        worded = int(rng.integers(len(reasons))) if rng.random() < temperature else 0
        text = reasons[worded].format(passage=_head(pair.premise), claim=_head(pair.hypothesis))
        answers.append({"temperature": temperature, "relation": str(relation), "text": text})
    stated, sure = said(0.0), round(float(rng.uniform(0.9, 0.99)), 2)
    rest = round((1.0 - sure) / 2, 3)
    logged = said(0.0)
    odds = 1.5 * (_EASE - _HARDNESS * abs(hard) + float(rng.normal()) / 2)
    p = round(max(0.4, 1.0 / (1.0 + math.exp(-odds))), 2)
    return {
        "response": response,
        "source": pair.source,
        "target": pair.target,
        "answers": answers,
        "verbalised": [sure if one is stated else rest for one in KINDS],
        "logprobs": [p if one is logged else round((1.0 - p) / 2, 3) for one in KINDS],
    }


def _right(hard: float, temperature: float) -> float:
    return 1.0 / (1.0 + math.exp(-(_EASE - _HARDNESS * hard - _HEAT * temperature)))


def _head(text: str) -> str:
    words = text.split()
    return " ".join(words[:_WORDS]) + (" …" if len(words) > _WORDS else "")


def derive() -> str:
    """The file's text."""
    records = derived(datasets.load(DATASET).graphs)
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(derive(), encoding="utf-8")
