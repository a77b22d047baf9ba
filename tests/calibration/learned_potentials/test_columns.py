"""Columns of claims: what they say, and that no order in which a file was written enters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration.learned_potentials import (
    FieldSettings,
    UserColumns,
    claim_table,
    fit_field,
    learn_judge,
    read_judge,
)
from calibration.learned_potentials.columns import FAMILIES, MEANINGS
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.errors import InputError
from factormodels.samples import with_samples

UNORDERED = tuple(name for name in FAMILIES if name != "position")
"""The place of a claim is what it says of itself; nothing else is a place."""


def tied(seed: int) -> FactGraph:
    """A response in which many passages are equally strong, and equally wide."""
    generator = np.random.default_rng(seed)
    words = ["one", "two", "three", "four", "five"]
    atoms = tuple(
        Atom(f"a{n}", " ".join(generator.choice(words, 3)), label=bool(n % 2), sentence=n // 3)
        for n in range(9)
    )
    contexts = tuple(
        Context(
            f"c{n}",
            " ".join([f"Passage {n}.", *generator.choice(words, 4)]),
            title=str(generator.choice(words)),
            retrieved_for=tuple(f"a{a}" for a in range(9) if generator.random() < 0.5),
        )
        for n in range(6)
    )
    stated = generator.choice([0.2, 0.6, 0.9], (6, 9))
    relations = tuple(
        Relation(context.id, atom.id, RelationKind.ENTAILMENT, float(stated[c, a]))
        for c, context in enumerate(contexts)
        for a, atom in enumerate(atoms)
    )
    return FactGraph(f"r{seed}", atoms, contexts, relations, topic="one")


def in_another_order(graph: FactGraph, seed: int) -> FactGraph:
    """The same response with its relations, passages and claims written in another order."""
    generator = np.random.default_rng(seed)
    lists = (graph.atoms, graph.contexts, graph.relations)
    atoms, contexts, relations = (generator.permutation(len(each)) for each in lists)
    return replace(
        graph,
        atoms=tuple(graph.atoms[position] for position in atoms),
        contexts=tuple(graph.contexts[position] for position in contexts),
        relations=tuple(graph.relations[position] for position in relations),
    )


def test_a_judge_says_of_every_column_what_it_is(tmp_path: Path) -> None:
    graphs = [tied(seed) for seed in range(6)]
    user_columns = UserColumns(
        "t.csv", ("mine",), {(g.id, a.id): (1.0,) for g in graphs for a in g.atoms}
    )
    settings = FieldSettings(penalty=3.0)
    learn_judge(graphs, settings, families=tuple(FAMILIES), own=user_columns).save(
        tmp_path / "judge.json"
    )
    columns = json.loads((tmp_path / "judge.json").read_text(encoding="utf-8"))["columns"]
    meaning_of = {column["name"]: column["meaning"] for column in columns}
    assert meaning_of == {**MEANINGS, "mine": "a column of the user"}
    assert all(len(meaning.split()) >= 4 for meaning in meaning_of.values())


@pytest.mark.parametrize("seed", range(5))
def test_columns_are_a_function_of_the_set_of_relations(seed: int) -> None:
    graph = tied(seed)
    before = claim_table([graph], UNORDERED)
    after = claim_table([in_another_order(graph, seed)], UNORDERED)
    order = [after.ids.index(each) for each in before.ids]
    # Sums of a few numbers in another order.
    assert after.values[order] == pytest.approx(before.values, abs=1e-12)


def test_posteriors_do_not_depend_on_the_order_of_the_file() -> None:
    graphs = [tied(seed) for seed in range(20)]
    field = fit_field(claim_table(graphs, UNORDERED))
    before = claim_table(graphs, UNORDERED)
    after = claim_table([in_another_order(graph, 7) for graph in graphs], UNORDERED)
    order = [after.ids.index(each) for each in before.ids]
    p, q = (field.probabilities(table) for table in (before, after))
    assert np.ptp(p) > 0.1
    assert q[order] == pytest.approx(p, abs=1e-9)


def without_texts(graph: FactGraph) -> FactGraph:
    """The same response, as a file without texts has it."""
    return replace(
        graph,
        atoms=tuple(replace(atom, text="") for atom in graph.atoms),
        contexts=tuple(replace(context, text="", title="") for context in graph.contexts),
    )


def test_a_judge_of_texts_has_another_for_responses_without(tmp_path: Path) -> None:
    graphs, settings = [tied(seed) for seed in range(20)], FieldSettings(penalty=3.0)
    families = ("evidence", "position", "texts")
    learn_judge(graphs, settings, families=families).save(tmp_path / "judge.json")
    judge = read_judge(tmp_path / "judge.json")
    silent = [without_texts(graph) for graph in graphs]
    assert judge.reading(graphs) is judge
    other = judge.reading([graphs[0], silent[1]])
    plain = learn_judge(silent, settings, families=families[:2])
    p, q = (each.probabilities(each.table(silent)) for each in (plain, other))
    # The file has all digits; only the sums of the fit may differ.
    assert q == pytest.approx(p, abs=1e-9)
    with pytest.raises(InputError, match="response 'r0' lacks texts"):
        judge.table(silent)


def test_columns_of_passages_do_not_read_samples() -> None:
    graph = tied(0)
    sampled = with_samples(graph, ["one", "two"])
    stated = {("s1", "a0"): 0.9, ("s2", "a0"): 0.6, ("s1", "a1"): 0.2}
    sampled = replace(
        sampled,
        relations=(
            *sampled.relations,
            *(Relation(s, a, RelationKind.ENTAILMENT, p) for (s, a), p in stated.items()),
        ),
    )
    passages = tuple(name for name in FAMILIES if name != "samples")
    values = claim_table([graph], passages).values
    np.testing.assert_array_equal(claim_table([sampled], passages).values, values)
    of_samples = claim_table([sampled], ("samples",))
    odds = {p: np.log(p / (1 - p)) for p in (0.9, 0.6, 0.2)}
    contradicted = {0.9: 0.05, 0.6: 0.2, 0.2: 0.2}
    means = [np.mean([values[p] for p in (0.9, 0.6)]) for values in (
        odds, {p: np.log(rest) for p, rest in contradicted.items()},
    )]  # fmt: skip
    np.testing.assert_allclose(of_samples.values[0], [*means, 2])
    np.testing.assert_allclose(of_samples.values[1], [odds[0.2], np.log(contradicted[0.2]), 1])
    np.testing.assert_allclose(of_samples.values[2], [-5.0, np.log(1e-4), 0])
