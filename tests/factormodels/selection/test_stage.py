"""Core on texts: the paper's examples, weights, caching, and the stage in all its forms."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.selection import (
    CachedRelations,
    Core,
    Informativeness,
    Relevance,
    Subclaim,
    adjusted_precision,
    bleached_claims,
    domains,
    fill_templates,
    read_templates,
    restricted,
    select,
    select_atoms,
    selecting,
    subclaims_of,
    templates_of,
)
from tests.factormodels.selection.cases import TableRelations
from tests.refusals import refused

H = "{topic} is something."


def claims(*texts: str, topic: str = "it") -> list[Subclaim]:
    return [Subclaim(text, topic=topic, id=f"a{k}") for k, text in enumerate(texts, start=1)]


def texts_of(chosen: tuple[Subclaim, ...]) -> list[str]:
    return [claim.text for claim in chosen]


def surprises(probabilities: dict[str, float]) -> dict[tuple[str, str], float]:
    return {("It is something.", text): p for text, p in probabilities.items()}


COIN = claims("The coin shows both sides.", "The coin shows heads.", "The coin shows tails.")
COIN_ENTAILMENTS = {(COIN[0].text, COIN[1].text): 1.0, (COIN[0].text, COIN[2].text): 1.0}


def test_the_coin_earns_nothing() -> None:
    # P(both) = 0.01 < P(heads) P(tails): enumerating alternatives is answered by the conjunction.
    chances = surprises({COIN[0].text: 0.01, COIN[1].text: 0.5, COIN[2].text: 0.5})
    relations = TableRelations(COIN_ENTAILMENTS | chances)
    supported = [False, True, False]
    plain = select(COIN, Core(relations))
    assert texts_of(plain.chosen) == [COIN[1].text, COIN[2].text]
    assert adjusted_precision(supported, plain.solution.chosen) == 0.5
    informed = select(COIN, Core(relations, Informativeness(relations, (H,))))
    assert texts_of(informed.chosen) == [COIN[0].text]
    assert adjusted_precision(supported, informed.solution.chosen) == 0.0


LEAVES = claims("Motivated.", "Communicates and cooperates.", "Communicates.", "Cooperates.")
LEAF_ENTAILMENTS = {(LEAVES[1].text, LEAVES[k].text): 0.9 for k in (2, 3)}


@pytest.mark.parametrize(("joint", "chosen"), [(0.2, (0, 1)), (0.3, (0, 2, 3))])
def test_leaves_are_selected_unless_the_whole_informs_more(
    joint: float, chosen: tuple[int, ...]
) -> None:
    # The parts have probability 1/2 each: their conjunction is selected below 1/4.
    chances = surprises(
        {LEAVES[0].text: 0.5, LEAVES[1].text: joint, LEAVES[2].text: 0.5, LEAVES[3].text: 0.5}
    )
    relations = TableRelations(LEAF_ENTAILMENTS | chances)
    assert select(LEAVES, Core(relations)).solution.chosen == (0, 2, 3)
    informed = Core(relations, Informativeness(relations, (H,), epsilon=0.0))
    assert select(LEAVES, informed).solution.chosen == chosen


CHAIN = claims("Pilot of a mission in a year.", "Pilot of a mission.", "Module pilot.", "Pilot.")
CHAIN_ENTAILMENTS = {(CHAIN[i].text, CHAIN[j].text): 0.9 for i in range(4) for j in range(i + 1, 4)}


def test_chain_selects_one_claim_and_with_weights_the_most_informative() -> None:
    shuffled = [CHAIN[k] for k in (3, 1, 0, 2)]
    relations = TableRelations(
        CHAIN_ENTAILMENTS
        | surprises({claim.text: 0.1 * k for k, claim in enumerate(CHAIN, start=1)})
    )
    # Uniform weights may take any; the rule of ties takes the first.
    assert texts_of(select(shuffled, Core(relations)).chosen) == [CHAIN[3].text]
    informed = Core(relations, Informativeness(relations, (H,)))
    assert texts_of(select(shuffled, informed).chosen) == [CHAIN[0].text]
    # Nobody says the same as another here.
    assert len(select(shuffled, Core(relations, rule="both")).chosen) == 4


def test_informativeness_is_the_least_surprise_capped_less_epsilon() -> None:
    templates = ("{topic} is here.", "Someone saw {topic}.")
    table = {("It is here.", "A."): 0.2, ("Someone saw it.", "A."): 0.4, ("It is here.", "B."): 0.9}
    weights = Informativeness(TableRelations(table), templates, epsilon=0.05)(claims("A.", "B."))
    assert weights == pytest.approx([-math.log(0.4) - 0.05, -0.05])
    # A cap of its own overrides: it lets B pass and stops A.
    cap = TableRelations({("It is here.", "A."): 0.8})
    weights = Informativeness(TableRelations(table), templates, cap, 0.05)(claims("A.", "B."))
    assert weights == pytest.approx([-0.05, -math.log(0.9) - 0.05])
    # A probability of 0 counts as one in a million.
    assert Informativeness(TableRelations({}), (H,), epsilon=0.0)(claims("C.")) == pytest.approx(
        [6 * math.log(10)]
    )


def test_a_missing_judgment_is_no_judgment() -> None:
    texts = ("It is here.", "A.")
    relations = TableRelations({texts: 0.9}, missing=frozenset({texts, ("A.", "B.")}))
    weighting = Informativeness(relations, ("{topic} is here.",))
    refused(r"was judged against the subclaim 'A\.'", weighting, claims("A."))
    two = Informativeness(relations, ("{topic} is here.", "{topic} is there."))
    # The other bleached claim says that A. has probability 0.
    assert two(claims("A.")) == pytest.approx([6 * math.log(10) - 0.01])
    selection = select(claims("A.", "B."), Core(relations))
    assert (selection.missing, selection.solution.chosen) == (1, (0, 1))
    assert math.isnan(selection.entailments.probabilities[0, 1])


def test_relevance_multiplies_and_refuses_what_is_no_degree() -> None:
    weighting = Relevance(lambda claim: claim.text != "B.", lambda all_of: [2.0] * len(all_of))
    assert weighting(claims("A.", "B.")) == [2.0, 0.0]
    # What weighs nothing is not selected.
    assert select(claims("A.", "B."), Core(TableRelations({}), weighting)).solution.chosen == (0,)
    refused(r"relevance of the subclaim 'A\.' is 3", Relevance(lambda _: 3.0), claims("A."))


def test_any_callable_weighs_and_a_wrong_answer_is_named() -> None:
    core = Core(TableRelations({("A.", "B."): 0.9}), lambda _: [1.0, 2.0])
    assert select(claims("A.", "B."), core).solution.chosen == (1,)
    refused("gave 2 weights for 1 subclaim", select, claims("A."), core)
    unknown = Core(TableRelations({}), lambda _: [math.nan])
    refused(r"the weight of the subclaim 'A\.' is nan", select, claims("A."), unknown)


def test_no_subclaims_select_nothing_and_ask_nothing() -> None:
    relations = TableRelations({})
    selection = select([], Core(relations, share=0.5))
    assert selection.solution.reason == "no subclaims were given"
    assert (selection.chosen, relations.asked) == ((), [])
    assert adjusted_precision([], ()) == 0.0


def test_unfaithful_subclaims_need_faithful_ones_beside_them() -> None:
    source = "A and B."
    given = [Subclaim(text, source) for text in ("A.", "B.", "Z.")]
    relations = TableRelations({(source, "A."): 0.9, (source, "B."): 0.8})
    assert texts_of(select(given, Core(relations, share=0.8)).chosen) == ["A.", "B."]
    assert len(select(given, Core(relations, share=0.6)).chosen) == 3
    refused("has no source sentence", select, claims("A."), Core(relations, share=0.6))


def test_a_cache_asks_each_pair_once_in_batches() -> None:
    model = TableRelations({}, missing=frozenset({("A.", "B.")}))
    cache = CachedRelations(model, batch=4)
    first = select(claims("A.", "B.", "C."), Core(cache))
    assert (model.batches, cache.calls, cache.asked, cache.missing) == ([4, 2], 2, 6, 1)
    select(claims("A.", "B.", "C."), Core(cache))
    # Only the missing one is asked for again.
    assert model.batches == [4, 2, 1]
    assert cache.name == "table"
    assert first.missing == 1
    refused("batch is 0", CachedRelations, model, batch=0)


def test_a_cache_may_keep_missing_judgments_and_ask_for_all_pairs_at_once() -> None:
    model = TableRelations({}, missing=frozenset({("A.", "B.")}))
    cache = CachedRelations(model, batch=None, keep_missing=True)
    for _ in range(2):
        assert select(claims("A.", "B.", "C."), Core(cache)).missing == 1
    assert (model.batches, cache.missing) == ([6], 1)


def test_equal_texts_entail_each_other_unasked() -> None:
    model = TableRelations({})
    assert select(claims("A b.", " a  B."), Core(model)).solution.chosen == (0,)
    assert model.asked == []


def test_a_decorated_decomposition_keeps_what_counts() -> None:
    relations = TableRelations({("A.", "B."): 0.9, ("Some text.", "A."): 0.9})

    @selecting(Core(relations, share=0.9))
    def decompose(text: str, more: str = "C.") -> list[str]:
        """Take apart."""
        return ["A.", "B.", more] if text else []

    assert decompose("Some text.") == ["A."]
    assert decompose.__doc__ == "Take apart."
    kept = selecting(Core(relations))(lambda: claims("A.", "B.", "C."))()
    assert kept == [claims("A.")[0], Subclaim("C.", topic="it", id="a3")]


def graph() -> FactGraph:
    return FactGraph(
        id="g",
        atoms=(
            Atom("a1", "The tower is tall.", sentence=1),
            Atom("a2", "The tower is tall.", sentence=2),
            Atom("a3", "The tower burnt in May.", sentence=2),
        ),
        contexts=(
            *(Context("c1", retrieved_for=("a1", "a2")), Context("c2", retrieved_for=("a2",))),
            Context("c3"),
        ),
        relations=tuple(
            Relation(*ends, RelationKind.ENTAILMENT, 0.9)
            for ends in (("c1", "a1"), ("c2", "a2"), ("c3", "a3"), ("c1", "c2"))
        ),
        topic="The tower",
    )


def test_a_fact_graph_keeps_the_atoms_that_count_and_what_bears_on_them() -> None:
    view, selection = select_atoms(graph(), Core(LexicalRelations()))
    assert selection.solution.chosen == (0, 2)
    assert view.atom_ids == ("a1", "a3")
    assert view.context_ids == ("c1", "c3")
    assert view.contexts[0].retrieved_for == ("a1",)
    assert [(r.source, r.target) for r in view.relations] == [("c1", "a1"), ("c3", "a3")]
    refused("has no atom 'b'", restricted, graph(), ["a1", "b"])


def test_subclaims_of_a_graph_know_topic_and_sentence() -> None:
    of_graph = subclaims_of(graph(), ["First.", "Second."])
    assert [claim.source for claim in of_graph] == ["First.", "Second.", "Second."]
    assert {claim.topic for claim in of_graph} == {"The tower"}
    refused("is from sentence 2 of 1", subclaims_of, graph(), ["First."])
    refused("atom 'a1' has no text", subclaims_of, FactGraph("g", (Atom("a1"),)))
    refused("its text is ' '", Subclaim, " ")


@pytest.mark.parametrize("domain", ["people", "places", "events", "medicine", "organizations"])
def test_each_domain_has_templates_about_its_topic(domain: str) -> None:
    assert domain in domains()
    filled = bleached_claims(domain, "the Xyz")
    assert len(set(filled)) == len(filled) >= 8
    for sentence in filled:
        assert "Xyz" in sentence
        assert sentence[0].isupper()
        assert sentence.endswith(".")
    assert all("{topic}" in template for template in templates_of(domain))


def test_templates_of_ones_own_are_read(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text('{"ships": ["{topic} floats."]}', encoding="utf-8")
    assert fill_templates(read_templates(path)["ships"], "the Vasa") == ("The Vasa floats.",)
    for text, message in (
        ("[]", "give a JSON object"),
        ('{"ships": []}', "domain 'ships' has no list"),
        ('{"ships": ["It floats."]}', "does not name the topic"),
    ):
        path.write_text(text, encoding="utf-8")
        refused(message, read_templates, path)
    refused("no bleached claims of the domain 'ships'", bleached_claims, "ships", "the Vasa")
    refused("topic of bleached claims is empty", bleached_claims, "places", " ")
    refused("at least one bleached claim", Informativeness, TableRelations({}), ())
    refused("epsilon is -1", Informativeness, TableRelations({}), (H,), epsilon=-1)
