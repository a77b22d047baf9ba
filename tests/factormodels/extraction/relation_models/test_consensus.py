"""Relations from several answers: likenesses, votes, the law of both, and a model that is asked."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from factormodels import Atom, FactGraph
from factormodels.claims import RelationKind
from factormodels.extraction.language_model.litellm_model import LitellmModel, LitellmSettings
from factormodels.extraction.relation_models.base import Judgement, Missing, TextPair
from factormodels.extraction.relation_models.consensus import (
    VOTES,
    ConsensusLaw,
    SampledAnswer,
    likeness_named,
    read_consensus,
    relation_probabilities,
    same_order,
    same_words,
)
from factormodels.extraction.relation_models.prompted import PromptedRelationModel
from factormodels.learned_from import identity_of
from tests.factormodels.extraction.server import Reply, ScriptedServer
from tests.refusals import refused

E, C, N = RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL
PAIR = TextPair("The bridge opened in 1932.", "The bridge is from the twentieth century.")


def longest_common(first: list[str], second: list[str]) -> int:
    """The longest common subsequence, by going through all subsequences."""
    every = (
        chosen for n in range(len(first), 0, -1) for chosen in itertools.combinations(first, n)
    )
    found = {chosen for n in range(len(second) + 1) for chosen in itertools.combinations(second, n)}
    return next((len(chosen) for chosen in every if chosen in found), 0)


@pytest.mark.parametrize(
    ("first", "second"),
    [("a b c d", "a c d"), ("a b a b", "b a b a"), ("a a b", "a b b"), ("a b", "c d"), ("a", "a"),
     ("b c a a d c", "c a b a c")],
)  # fmt: skip
def test_likenesses_are_those_of_their_definitions(first: str, second: str) -> None:
    own, other = first.split(), second.split()
    longest = longest_common(own, other)
    assert same_order(own, other) == pytest.approx(2 * longest / (len(own) + len(other)))
    assert same_order(own, other) == same_order(other, own)
    both = [word for word in set(own) if word in other]
    assert same_words(own, other) == pytest.approx(len(both) / len({*own, *other}))


def test_an_answer_counts_by_its_mean_likeness_to_the_others() -> None:
    texts = ["The bridge opened.", "the bridge, opened", "Nothing is said"]
    assert mean_likenesses("order", texts) == [0.5, 0.5, 0.0]
    assert mean_likenesses("none", texts) == [1.0, 1.0, 1.0]
    # Nothing disagrees with what is alone, and no word with no word.
    assert mean_likenesses("words", ["one"]) == [1.0]
    assert mean_likenesses("order", ["", "?"]) == [1.0, 1.0]
    # Of "abcd" and "bcde" three letters are a run that both have.
    assert mean_likenesses("letters", ["abcd", "bcde"]) == [0.75, 0.75]
    refused("the likeness 'meaning' is unknown", likeness_named, "meaning")


def mean_likenesses(likeness: str, texts: list[str]) -> list[float]:
    return list(ConsensusLaw(likeness=likeness).mean_likenesses(texts))


def test_meaning_is_the_cosine_of_a_local_models_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = {"one": (3.0, 4.0), "a one": (6.0, 8.0), "two": (4.0, -3.0), "": (0.0, 0.0)}
    opened: list[str] = []

    def loaded(folder: str, **_: Any) -> Any:
        opened.append(folder)
        return SimpleNamespace(encode=lambda texts, **_: [vectors[text] for text in texts])

    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = loaded  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    law = ConsensusLaw(likeness=f"meaning:{tmp_path}")
    found = law.mean_likenesses(["one", "a one", "two", ""]).tolist()
    assert found == pytest.approx([1 / 3, 1 / 3, 0.0, 0.0])
    law.mean_likenesses(["one", "two"])
    assert opened == [str(tmp_path)]
    absent = f"meaning:{tmp_path / 'none'}"
    refused("no such folder", ConsensusLaw(likeness=absent).mean_likenesses, ["one", "two"])


def test_without_data_relations_have_the_shares_of_their_weighed_votes() -> None:
    answers = [
        SampledAnswer(0.3, E, "the bridge opened"),
        SampledAnswer(1.0, E, "the bridge opened"),
        SampledAnswer(0.5, N, "nothing"),
    ]
    weighed = [Fraction(1, 2) * 2, Fraction(0), Fraction(0)]
    third = Fraction(1, 3)
    expected = [float((vote + third) / (sum(weighed) + 1)) for vote in weighed]
    assert VOTES.distribution(answers) == pytest.approx(expected)
    plain = ConsensusLaw(likeness="none").distribution(answers)
    # Of plain votes they are what the method "samples" says.
    assert plain == pytest.approx([(2 + 1 / 3) / 4, (1 / 3) / 4, (1 + 1 / 3) / 4])


def test_a_law_is_a_softmax_of_its_columns() -> None:
    law = ConsensusLaw((0.3, 1.0), 4, "none", (0.5, 1.5, -0.25), (0.2, -0.4))
    answers = [
        SampledAnswer(temperature, kind, "") for temperature, kind in ((0.3, E), (1.0, C), (1.0, C))
    ]
    scores = []
    for place, kind in enumerate((E, C, N)):
        votes = {
            at: Counter(one.kind for one in answers if at in (None, one.temperature))
            for at in (None, 0.3, 1.0)
        }
        shares = [
            (own[kind] + 1 / 3) / (own.total() + 1) for own in (votes[None], votes[0.3], votes[1.0])
        ]
        scores.append((0.2, -0.4, 0.0)[place] + np.dot(law.weights, np.log(shares)))
    powers = np.exp(scores)
    assert law.distribution(answers) == pytest.approx(powers / powers.sum())
    told = r"temperature 0\.5 is none of \[0\.3, 1\.0\]"
    refused(told, law.distribution, [SampledAnswer(0.5, E, "")])


def test_a_law_is_read_as_it_was_saved(tmp_path: Path) -> None:
    taught = (identity_of(FactGraph("r", (Atom("a", text="It rained."),))),)
    law = ConsensusLaw((0.2, 0.9), 6, "words", (1.0, 0.5, 0.0), (0.1, 0.2), "30 pairs.", taught)
    law.save(tmp_path / "law.json")
    assert read_consensus(tmp_path / "law.json") == law


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": "factormodels judge"}, "this is no law of a consensus"),
        ({"version": 1}, "a law of a consensus of version 1; this release reads version 2"),
        ({"version": True}, "a law of a consensus of version True"),
        ({"weights": [1.0]}, "key 'weights': [1.0] is not a list of 3"),
        ({"weights": "abc"}, "key 'weights': 'abc' is not a list"),
        ({"weights": [1.0, 1e308, 0.0]}, "key 'weights[1]': 1e+308 is not a number from -10000"),
        ({"weights": [1.0, True, 0.0]}, "key 'weights[1]': True is not a number"),
        ({"intercepts": [0.0, 10**30]}, "key 'intercepts[1]': 1000000000"),
        ({"temperatures": [], "weights": [1.0]}, "the temperatures are []"),
        ({"temperatures": [0.2, 0.2]}, "have one twice"),
        ({"samples": 0}, "0 answers say nothing"),
        ({"samples": 2.5}, "key 'samples': 2.5 is not a whole number"),
        ({"likeness": "meaning"}, "the likeness 'meaning' is unknown"),
        ({"learned_from": "all"}, "the digest is not that of the content"),
        ({"more": 1}, "the key 'more' is unknown"),
    ],
)
def test_a_damaged_law_is_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    path = tmp_path / "law.json"
    ConsensusLaw((0.2, 0.9), 6, "words").save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    refused(f"^{re.escape(str(path))}.*{re.escape(told)}", read_consensus, path)


def test_no_coefficient_makes_a_relation_certain() -> None:
    columns = np.log(np.array([[[0.9], [0.05], [0.05]]]))
    p = relation_probabilities(columns, np.array([1e4, -1e4, 1e4]))
    assert ((p > 0) & (p < 1)).all()


# --- A model that is asked, through litellm, on the loopback interface -------------------------

WORDS = {
    0.3: "The opening of 1932 is in that century.\nRelation: entailment",
    0.5: "The opening of 1932 is in that century.\n**Relation:** Entailment",
    0.7: "It opened in 1932, that is in that century.\nRelation: entailment.",
    1.0: "Which bridge is meant is not said.\nRelation: neutral",
}


@pytest.mark.service
@pytest.mark.slow
def test_answers_are_sampled_at_each_temperature_and_weighed(server: ScriptedServer) -> None:
    server.script = lambda request, _: Reply(WORDS[request["temperature"]])
    behind = LitellmModel(LitellmSettings("openai/test", api_base=server.url))
    model = PromptedRelationModel(behind, "consensus")
    (found,) = model.judge([PAIR])
    assert isinstance(found, Judgement)
    assert found.origin == "consensus"
    assert model.name == "openai/test (consensus)"
    asked = [request["temperature"] for request in server.requests]
    assert asked == [0.3, 0.5, 0.7, 1.0] * 2 == [VOTES.temperature_of(at) for at in range(8)]
    assert len({request["seed"] for request in server.requests}) == 8
    kinds = dict(zip(WORDS, (E, E, E, N), strict=True))
    answers = [SampledAnswer(at, kinds[at], WORDS[at]) for at in asked]
    assert found.distribution == pytest.approx(VOTES.distribution(answers))
    assert found.kind is E
    assert found.probability == max(VOTES.distribution(answers))
    # The odd answers are two of eight, and have less than the shares of the method "samples".
    assert found.distribution is not None
    assert found.distribution[2] < (2 + 1 / 3) / 9


@pytest.mark.service
@pytest.mark.slow
def test_what_gives_no_relation_has_no_vote(server: ScriptedServer) -> None:
    said = dict(WORDS) | {1.0: "I would not say.", 0.5: "Relation: neutral or entailment"}
    server.script = lambda request, _: Reply(said[request["temperature"]])
    behind = LitellmModel(LitellmSettings("openai/test", api_base=server.url))
    (found,) = PromptedRelationModel(behind, "consensus", fallback=None).judge([PAIR])
    assert isinstance(found, Judgement)
    assert found.kind is E
    read = [SampledAnswer(at, E, WORDS[at]) for at in (0.3, 0.7) * 2]
    assert found.distribution == pytest.approx(VOTES.distribution(read))
    server.always(Reply("perhaps"))
    (none,) = PromptedRelationModel(behind, "consensus", fallback=None).judge([PAIR])
    assert isinstance(none, Missing)
