"""Compiled facts make the factor graphs that one would make factor by factor."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactGraph, RelationKind
from factormodels.compile import CompiledFacts, factor_graphs, side_by_side
from factormodels.encodings import ENCODINGS, encode_many
from factormodels.fact_graph import PARAMETERS_KEY, compiled_each
from factormodels.factor_graph import FactorGraph
from factormodels.synthetic import Uniform, fact_graph, labeled_responses
from tests.factormodels.graphs import ARRAYS, assert_same, mixed
from tests.refusals import refused

GRAPHS = labeled_responses(
    20, n_atoms=(0, 6), contexts_per_atom=2, density=0.3, strength=Uniform(0, 1), seed=7
)


def factor_by_factor(
    graph: FactGraph, priors: list[float], probabilities: list[float], encoding: str
) -> FactorGraph:
    """Return a factor graph of a fact graph, probabilities those of all relations."""
    names = graph.atom_ids + graph.context_ids
    factors: list[tuple[tuple[int, ...], NDArray[np.float64]]] = []
    for variable, prior in enumerate(priors):
        with np.errstate(divide="ignore"):
            factors.append(((variable,), np.log([1.0 - prior, prior])))
    for relation, p in zip(graph.relations, probabilities, strict=True):
        if relation.kind is not RelationKind.NEUTRAL:
            scope = names.index(relation.source), names.index(relation.target)
            prior = priors[scope[1]]
            says = {RelationKind.ENTAILMENT: 1, RelationKind.CO_NECESSITY: 1,
                    RelationKind.CONTRADICTION: -1}.get(relation.kind, 0)  # fmt: skip
            if PARAMETERS_KEY not in graph.metadata and relation.target in graph.atom_ids and says:
                # A statement on a claim is not overruled by the prior in its own table.
                speaks = priors[scope[0]]
                if relation.kind is RelationKind.CO_NECESSITY:
                    speaks = 1 - speaks
                if p >= 0.5 and speaks * (p - 0.5) + (1 - speaks) * says * (prior - 0.5) < 0:
                    prior = 0.5
            (table,) = encode_many([relation.kind], [p], [prior], encoding)
            factors.append((scope, table))
    return FactorGraph.from_factors([2] * len(names), factors, names=names, log=True)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_factor_graph_is_that_made_factor_by_factor(encoding: str) -> None:
    for graph in (*GRAPHS, mixed()):
        priors = [atom.prior for atom in graph.atoms]
        priors += [context.prior for context in graph.contexts]
        probabilities = [relation.probability for relation in graph.relations]
        expected = factor_by_factor(graph, priors, probabilities, encoding)
        assert_same(graph.to_factor_graph(encoding), expected)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_settings_share_the_structure_and_not_the_numbers(encoding: str) -> None:
    rng = np.random.default_rng(1)
    for graph in (*GRAPHS, mixed()):
        facts = graph.compiled
        priors, all_of = rng.random((3, len(facts.names))), rng.random((3, len(graph.relations)))
        probabilities = all_of[:, facts.relation_numbers]
        rows = facts.log_values(priors, probabilities, encoding)
        made = [
            facts.to_factor_graph(*setting, encoding)
            for setting in zip(priors, probabilities, strict=True)
        ]
        for at, network in enumerate(made):
            expected = factor_by_factor(graph, priors[at].tolist(), all_of[at].tolist(), encoding)
            assert_same(network, expected)
            np.testing.assert_array_equal(rows[at], network.log_values)
            assert all(getattr(network, name) is getattr(made[0], name) for name in ARRAYS)
            assert not any(
                getattr(network, name).flags.writeable for name in (*ARRAYS, "log_values")
            )
        # One row stands for all, and what is not given stays as stated.
        np.testing.assert_array_equal(
            facts.log_values(priors[0], probabilities, encoding),
            facts.log_values(np.stack([priors[0]] * 3), probabilities, encoding),
        )
        np.testing.assert_array_equal(
            facts.log_values(priors, encoding=encoding),
            facts.log_values(priors, np.stack([facts.probabilities] * 3), encoding),
        )


def test_arrays_say_what_is_what() -> None:
    graph = mixed()
    facts = graph.compiled
    assert graph.compiled is facts
    assert facts.names == graph.atom_ids + graph.context_ids
    assert [n for n, atom in zip(facts.names, facts.is_atom, strict=True) if atom] == [
        *graph.atom_ids
    ]
    assert facts.relation_numbers.tolist() == [0, 1, *range(3, len(graph.relations))]
    for number, (source, target) in zip(
        facts.relation_numbers.tolist(), facts.pairs.tolist(), strict=True
    ):
        relation = graph.relations[number]
        assert (facts.names[source], facts.names[target]) == (relation.source, relation.target)
    assert facts.n_entries == len(facts.log_values())


def test_an_array_of_the_graph_splits_into_priors_and_tables() -> None:
    graph = mixed().to_factor_graph("conditional")
    unary, pairwise = mixed().compiled.split(graph.log_values)
    tables = [*unary, *pairwise]
    assert len(tables) == graph.n_factors
    for factor, table in enumerate(tables):
        np.testing.assert_array_equal(table, graph.log_table(factor))


def test_pickled_facts_are_read_only_and_make_the_same_graph() -> None:
    facts = mixed().compiled
    before = facts.to_factor_graph()
    for again in (pickle.loads(pickle.dumps(facts)), replace(facts)):
        for field in fields(facts)[1:-1]:
            array = getattr(again, field.name)
            np.testing.assert_array_equal(array, getattr(facts, field.name))
            assert not array.flags.writeable
        made = again.to_factor_graph()
        assert_same(made, before)
        assert not made.scope_variables.flags.writeable


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("count", [0, 1, None])
def test_graphs_made_in_one_step_are_those_made_one_by_one(
    encoding: str, count: int | None
) -> None:
    graphs = [replace(graph) for graph in (*GRAPHS, mixed())][:count]
    together = compiled_each(graphs, encoding)
    alone = [replace(graph).compiled_for(encoding) for graph in graphs]
    for facts, single in zip(together, alone, strict=True):
        for field in fields(CompiledFacts):
            np.testing.assert_array_equal(getattr(facts, field.name), getattr(single, field.name))
        assert facts.kinds.dtype == single.kinds.dtype
        assert not facts.priors.flags.writeable
    assert [graph.compiled_for(encoding) for graph in graphs] == together
    # Stated numbers, then others.
    graphs_made = factor_graphs(together, encoding=encoding)
    for made, facts in zip(graphs_made, alone, strict=True):
        assert_same(made, facts.to_factor_graph(encoding=encoding))
    generator = np.random.default_rng(1)
    priors = [generator.random(len(facts.priors)) for facts in alone]
    probabilities = [generator.random(len(facts.kinds)) for facts in alone]
    graphs_made = factor_graphs(
        together,
        np.concatenate([np.zeros(0), *priors]),
        np.concatenate([np.zeros(0), *probabilities]),
        encoding,
    )
    for made, facts, of_variables, of_relations in zip(
        graphs_made, alone, priors, probabilities, strict=True
    ):
        expected = facts.to_factor_graph(of_variables, of_relations, encoding)
        assert_same(made, expected)
        assert made.log_values.tobytes() == expected.log_values.tobytes()


def test_responses_stand_side_by_side() -> None:
    graphs = [graph for graph in GRAPHS if graph.atoms]
    whole = side_by_side({graph.id: graph.compiled for graph in graphs})
    variables = relations = 0
    for graph in graphs:
        columns = graph.compiled
        ends = variables + len(columns.names), relations + len(columns.kinds)
        assert whole.names[variables : ends[0]] == tuple(f"{graph.id}/{n}" for n in columns.names)
        for name in ("is_atom", "priors"):
            part = getattr(whole, name)[variables : ends[0]]
            np.testing.assert_array_equal(part, getattr(columns, name))
        for name in ("kinds", "probabilities", "relation_numbers", "rest"):
            part = getattr(whole, name)[relations : ends[1]]
            np.testing.assert_array_equal(part, getattr(columns, name))
        np.testing.assert_array_equal(whole.pairs[relations : ends[1]], columns.pairs + variables)
        variables, relations = ends
    assert (variables, relations) == (len(whole.names), len(whole.kinds))


def test_names_that_meet_side_by_side_are_refused() -> None:
    first, second = (fact_graph(1, 1, seed=0).compiled for _ in range(2))
    meeting = replace(second, names=("r/a1", "c1"))
    refused("'q/r/a1' is given twice; names are unique", side_by_side, {"q/r": first, "q": meeting})


def facts() -> CompiledFacts:
    """Return three claims: y entails x, and z entails y."""
    return CompiledFacts(
        names=("x", "y", "z"),
        is_atom=np.array([True, False, False]),
        priors=np.array([0.5, 0.9, 0.0]),
        pairs=np.array([[1, 0], [2, 1]]),
        kinds=np.array([0, 0]),
        probabilities=np.array([0.8, 1.0]),
        relation_numbers=np.arange(2),
    )


def test_arrays_that_others_may_write_to_are_copied() -> None:
    priors = np.array([0.5, 0.9, 0.0])
    made = replace(facts(), priors=priors)
    priors[:] = 0.25
    assert made.priors.tolist() == [0.5, 0.9, 0.0]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"priors": np.array([0.5, 1.5, 0.0])}, r"variable 1: the prior 1\.5 is not between 0 and"),
        ({"priors": np.array([0.5, np.nan, 0.0])}, "variable 1: the prior nan is not"),
        ({"probabilities": np.array([0.5, -0.5])}, r"relation 1: the probability -0\.5 is not"),
        ({"priors": np.array([0.5])}, r"shape \(1,\) .* prior of each variable.* 3 entries"),
        ({"is_atom": np.array([True])}, "do not describe 3 variables and 2 relations"),
        ({"names": ("x", "y", "x")}, "'x' is given twice"),
        ({"kinds": np.array([0, 6])}, "relation 1 has the code 6; codes run from 0 to 5"),
        ({"pairs": np.array([[1, 0], [3, 1]])}, r"relation 1 joins .* \[3, 1\]; give two differ"),
        ({"pairs": np.array([[1, -1], [2, 1]])}, r"relation 0 joins .* \[1, -1\]"),
        ({"pairs": np.array([[1, 0], [1, 1]])}, r"relation 1 joins .* \[1, 1\]"),
    ],
)
def test_arrays_that_are_no_facts_are_refused(changes: dict[str, object], match: str) -> None:
    refused(match, replace, facts(), **changes)


def test_settings_that_are_none_are_refused() -> None:
    made = facts()
    high = [[0.5, 0.5, 0.5], [0.5, 0.5, 2.0]]
    refused(r"variable 2: the prior 2\.0 is not between 0 and 1", made.log_values, high)
    refused("relation 0: the probability nan is not", made.log_values, probabilities=[np.nan, 0.5])
    refused(r"shape \(2,\) .* prior of each variable", made.log_values, [0.5, 0.5])
    refused("2 settings were given for one factor graph; give one", made.to_factor_graph,
            probabilities=[[0.5, 0.5]] * 2)  # fmt: skip
    refused(r"'odds' .*implication, conditional", made.to_factor_graph, encoding="odds")
