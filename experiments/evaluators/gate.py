"""Pairs that are not asked about: of texts too little alike, or of a response that needs none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from calibration.validation import Floats
from experiments.asking.relation_models import content_hash
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.pipeline import Stage, relation_stage
from factormodels.extraction.relation_models.base import Judgement, Missing, NotAsked, TextPair
from factormodels.extraction.relation_models.consensus import MEANING
from factormodels.fact_graph import FactGraph

WORDS = "words"

TOO_UNLIKE = NotAsked("not asked: the texts are too little alike")

Alike = Callable[[Sequence[TextPair]], Floats]
"""From n pairs to how alike the two texts of each are, (n,), from 0 to 1."""


def likeness_of_pairs(name: str, beside: Path | None = None) -> Alike:
    """The likeness of a name: `words`, or `meaning:FOLDER`.

    The first is the share of the words of the claim (of the second text) that the passage has. The
    second is the cosine between the embeddings of both texts by a model of sentence-transformers in
    the folder, 0 where it is less; no text is embedded twice.

    Args:
        name: the name.
        beside: folder in which embeddings are kept; None keeps none.

    Raises:
        InputError: for an unknown likeness, or a folder without such a model.
        MissingDependencyError: if sentence-transformers is needed and not installed.
    """
    if name == WORDS:
        return _shared_words
    if not name.startswith(MEANING):
        raise InputError(unknown_name(f"the likeness {name!r}", name, (WORDS, f"{MEANING}FOLDER")))
    # It is slow to load, and most do without.
    from factormodels.extraction.embeddings import VectorStore, load_embedder
    from factormodels.extraction.retrieval.dense import FOLDER

    place = name.removeprefix(MEANING)
    if not Path(place).is_dir():
        raise InputError(f"{place}: there is no such folder; name the folder of a model")
    embedder = load_embedder(place, content_hash(Path(place)))
    store = VectorStore(embedder, None if beside is None else beside / FOLDER)

    def of_meaning(pairs: Sequence[TextPair]) -> Floats:
        if not pairs:
            return np.empty(0)
        texts = [text for pair in pairs for text in (pair.titled_premise, pair.hypothesis)]
        vectors = store.vectors(texts).astype(np.float64)
        cosines: Floats = np.clip((vectors[::2] * vectors[1::2]).sum(axis=1), 0.0, 1.0)
        return cosines

    return of_meaning


def _shared_words(pairs: Sequence[TextPair]) -> Floats:
    from factormodels.extraction.relation_models.lexical_features import FEATURES, pair_features

    if not pairs:
        return np.empty(0)
    return pair_features(pairs)[:, FEATURES.index("passage")]


@dataclass(frozen=True)
class Gate:
    """What lets pairs through that are asked about.

    A passage that was found for a claim is asked about it however little alike they are: what is
    lost of evidence costs more than a call.

    Attributes:
        alike: how alike texts are.
        least: the least likeness of a pair that is asked.
        of_passages: how alike two passages are, by the same embeddings; None where there are none.
    """

    alike: Alike
    least: float
    of_passages: Alike | None = None

    def open_to(self, graph: FactGraph, pairs: Sequence[TextPair]) -> np.ndarray[Any, Any]:
        """Whether each of some pairs of a response is asked, bool (n,)."""
        own = {(one.id, claim) for one in graph.contexts for claim in one.retrieved_for}
        found = np.array([(pair.source, pair.target) in own for pair in pairs], dtype=np.bool_)
        others = np.flatnonzero(~found)
        chosen = [pairs[at] for at in others.tolist()]
        found[others] = self.alike(chosen) >= self.least
        return found


EarlyExit = Callable[[FactGraph], str]
"""From a response, its claims and the passages that were found, to why nothing more is to be asked
of it; an empty text where it is to go on."""


def declines(graph: FactGraph) -> str:
    """Whether the response declines to answer, by the rule of `declining_clauses`."""
    from calibration.self_knowledge import declining_clauses

    return "it declines to answer" if declining_clauses(graph.response) else ""


def unlike_its_passages(graph: FactGraph) -> str:
    """Whether no claim shares half of its words with any passage: these are of something else."""
    pairs = [
        TextPair(context.content, atom.text, title=context.title)
        for context in graph.contexts
        for atom in graph.atoms
    ]
    near = _shared_words(pairs)
    return "" if near.size and near.max() >= _HALF else "no passage is about any of its claims"


_HALF = 0.5

EARLY_EXITS: MappingProxyType[str, EarlyExit] = MappingProxyType(
    {"declines": declines, "unlike": unlike_its_passages}
)
"""Rules by which a response ends before its relations are asked, by name."""


def early_exit(rule: Any) -> EarlyExit:
    """The rule of a name of `EARLY_EXITS`, or a function as it is.

    Raises:
        InputError: for an unknown name.
    """
    if callable(rule):
        found: EarlyExit = rule
        return found
    if rule not in EARLY_EXITS:
        raise InputError(unknown_name(f"the early exit {rule!r}", str(rule), EARLY_EXITS))
    return EARLY_EXITS[rule]


EXIT_KEY = "early_exit"
"""Where a response's metadata says why nothing more was asked of it."""


def unless(rule: EarlyExit, stage: Stage, variant: str, least: float) -> Stage:
    """A stage of relations that asks for none of a response that a rule ends.

    The pairs are then not asked, as by a budget of none: posteriors are the priors, and what the
    relations could make of them is said.
    """

    def ended(graph: FactGraph) -> FactGraph:
        reason = rule(graph)
        if not isinstance(reason, str):
            raise InputError(
                f"the early exit gave {reason!r} of {graph.id!r}; let it give a text: why nothing "
                "more is asked, empty to go on"
            )
        metadata = {key: value for key, value in graph.metadata.items() if key != EXIT_KEY}
        if not reason:
            return stage(replace(graph, metadata=metadata))
        bare = relation_stage(_Nobody(reason), variant, least)(graph)
        return replace(bare, metadata={**bare.metadata, EXIT_KEY: reason})

    return ended


@dataclass(frozen=True)
class _Nobody:
    """A relation model that is not asked."""

    reason: str
    name: str = "nobody"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        return [NotAsked(f"not asked: {self.reason}") for _ in pairs]
