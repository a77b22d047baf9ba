"""Invalid claims, graphs, encodings and settings are refused with a sentence on the error."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from factormodels import Atom, Context, FactGraph, Relation
from factormodels.encodings import conditional, encode_many, get_encoding, implication
from factormodels.synthetic import (
    Beta,
    Constant,
    Densities,
    FactLaws,
    Mixture,
    Uniform,
    chain,
    fr1_forest,
    fr2,
    fr3,
    grid,
    mixed_reliability,
    random_graph,
)
from tests.factormodels.test_fact_graph import ATOMS, CONTEXTS, ENTAILMENT, GRAPH, NEUTRAL, related
from tests.factormodels.test_factor_graph import FROM, flat, observing, weighing
from tests.factormodels.test_labeled_responses import responses
from tests.refusals import refused

# What a caller without a type checker writes.
atom: Any = Atom
context: Any = Context
relation: Any = Relation
fact_graph: Any = FactGraph
LOGS: Any = partial(FROM, log=True)
spread: Any = partial(Relation, "c", "a", ENTAILMENT, 0.4)


def unchecked(value: object) -> Any:
    """Return what a caller without a type checker may give."""
    return value


@pytest.mark.parametrize(
    ("build", "words"),
    [
        # Claims.
        (lambda: atom(""), ["''", "an atom", "name it"]),
        (lambda: atom(1), ["1", "an atom", "name it"]),
        (lambda: context(""), ["''", "a context", "name it"]),
        (lambda: context(None), ["None", "a context", "name it"]),
        (lambda: atom("a1", prior=1.2), ["prior of atom 'a1'", "1.2", "correct it"]),
        (lambda: context("c1", prior="x"), ["prior of context 'c1'", "'x'", "give one"]),
        (lambda: atom("a1", text=None), ["text of atom 'a1'", "None", "leave it empty"]),
        (lambda: context("c1", text=3), ["text of context 'c1'", "3", "leave it empty"]),
        (lambda: atom("a1", label="S"), ["label of atom 'a1'", "'S'", "leave it out"]),
        (lambda: atom("a1", label=1), ["label of atom 'a1'", "1", "leave it out"]),
        (lambda: context("c1", retrieved_for="a1"), ["'c1'", "retrieved_for", "'a1'", "a list"]),
        (lambda: relation("", "a", "entailment", 0.5), ["''", "source of a relation", "name it"]),
        (lambda: relation("c", 7, "entailment", 0.5), ["7", "target of a relation", "name it"]),
        (lambda: relation("c", "c", "entailment", 0.5), ["'c' -> 'c'", "itself", "two different"]),
        (
            lambda: relation("c", "a", "entails", 0.5),
            ["'c' -> 'a'", "'entails'", "entailment, contradiction, equivalence, neutral"],
        ),
        (lambda: relation("c", "a", [], 0.5), ["'c' -> 'a'", "[]", "use one of"]),
        (lambda: relation("c", "a", "entailment", -1), ["'c' -> 'a'", "-1", "correct it"]),
        (lambda: relation("c", "a", "neutral", None), ["'c' -> 'a'", "None", "give one"]),
        # Fact graphs.
        (lambda: FactGraph("", ATOMS), ["''", "a fact graph", "name it"]),
        (lambda: fact_graph(None, ATOMS), ["None", "a fact graph", "name it"]),
        (lambda: FactGraph("r", ATOMS * 2), ["'r'", "'a1'", "twice", "unique"]),
        (lambda: FactGraph("r", ATOMS, (Context("a1"),)), ["'r'", "'a1'", "twice", "unique"]),
        (lambda: FactGraph("r", ATOMS, (Context("c1", retrieved_for=("a2",)),)),
         ["'r'", "'c1'", "'a2'", "add the atom or drop the reference"]),
        (lambda: FactGraph("r", ATOMS, (*CONTEXTS, Context("c2", retrieved_for=("c1",)))),
         ["'r'", "'c2'", "'c1'", "not an atom"]),
        (lambda: related("c1 a7"), ["'r'", "'c1' -> 'a7'", "neither an atom nor", "drop the rel"]),
        (lambda: related("c9 a1"), ["'r'", "'c9' -> 'a1'", "refers to 'c9'"]),
        (lambda: related("c1 a1", "c1 a1"), ["'r'", "'c1' -> 'a1'", "keep one"]),
        (lambda: GRAPH.with_priors(atoms=1.5), ["prior of atom 'a1'", "1.5", "correct it"]),
        (lambda: GRAPH.with_priors(contexts={"c2": -1}), ["context 'c2'", "-1", "correct it"]),
        (lambda: GRAPH.with_priors(atoms={"c1": 0.5}), ["atom 'c1'", "not exist", "leave it out"]),
        (lambda: GRAPH.with_priors(contexts={"x": 0.5}), ["context 'x'", "not exist", "leave it"]),
        (lambda: GRAPH.to_factor_graph("odds"), ["'odds'", "implication, conditional"]),
        # Factor graphs.
        (lambda: FROM([2], [((1,), [1, 1])]), ["factor 0", "variable 1", "0 to 0"]),
        (lambda: FROM([2], [((), 1), ((-1,), [1, 1])]), ["factor 1", "variable -1", "0 to 0"]),
        (lambda: FROM([2, 2], [((1, 1), np.ones(4))]), ["factor 0", "'1' twice", "once"]),
        (lambda: FROM([2] * 3, [((), 1), ((0, 2, 0), np.ones(8))]), ["factor 1", "'0' twice"]),
        (lambda: FROM([2], [((0,), [1, 1, 1])]), ["factor 0", "3 entries", "requires 2"]),
        (lambda: FROM([2], [((), [])]), ["factor 0", "0 entries", "requires 1"]),
        (lambda: FROM([2, 3], [((0, 1), np.ones((3, 2)))]), ["shape (3, 2)", "requires (2, 3)"]),
        (lambda: FROM([2], [((0,), [[1, 1]])]), ["factor 0", "shape (1, 2)", "requires (2,)"]),
        (lambda: FROM([2], [((), 1), ((0,), [1, -2])]), ["factor 1", "entry 1", "-2.0", "below 0"]),
        (lambda: FROM([2], [((0,), [math.nan, 1])]), ["factor 0", "entry 0", "nan", "finite"]),
        (lambda: FROM([2], [((0,), [1, math.inf])]), ["factor 0", "entry 1", "inf", "finite"]),
        (lambda: LOGS([2], [((), 0), ((0,), [0, math.inf])]), ["factor 1", "entry 1", "inf"]),
        (lambda: LOGS([2], [((0,), [math.nan, 0])]), ["factor 0", "nan", "a number or -inf"]),
        (lambda: FROM([2], [((0,), ["x", 1])]), ["factor 0", "['x', 1]", "give one number"]),
        (lambda: FROM([2], [((0.5,), [1, 1])]), ["factor 0", "(0.5,)", "index of each variable"]),
        (lambda: FROM([2], [(("x",), [1, 1])]), ["factor 0", "('x',)", "index of each variable"]),
        (lambda: FROM([2.5], []), ["[2.5]", "whole numbers", "number of states"]),
        (lambda: FROM([2, 0], []), ["'1'", "0 states", "at least 1"]),
        (lambda: FROM([2], [], names=["x", "y"]), ["2 names", "1 cardinalities", "one of each"]),
        (lambda: FROM([2, 2], [], names=["x", "x"]), ["'x'", "twice", "unique"]),
        (lambda: FROM([2, 2], [], names=["x", 1]), ["1", "not text", "quotes"]),
        (lambda: flat(evidence=np.array([-1, 3])), ["'y'", "state 3", "0 to 2"]),
        (lambda: flat(evidence=np.array([-2, 0])), ["'x'", "state -2", "0 to 1"]),
        (lambda: flat(evidence=np.array([0])), ["1 evidence entries", "one of each"]),
        (lambda: flat(scope_starts=np.array([0, 2, 1, 3])), ["scope_starts", "rebuild"]),
        (lambda: flat(scope_starts=np.array([1, 2, 2, 3])), ["scope_starts", "rebuild"]),
        (lambda: flat(scope_starts=np.array([], int)), ["scope_starts", "rebuild"]),
        (lambda: flat(table_starts=np.array([0, 6, 7])), ["table_starts", "rebuild"]),
        (lambda: flat(table_starts=np.array([0, 6, 7, 9])), ["table_starts", "rebuild"]),
        (lambda: observing({"z": 0}), ["'z'", "x, y"]),
        (lambda: observing({2: 0}), ["number 2", "0 to 1"]),
        (lambda: observing({-1: 0}), ["number -1", "0 to 1"]),
        (lambda: observing({1.0: 0}), ["1.0", "give its name or its number"]),
        (lambda: observing({None: 0}), ["None", "give its name or its number"]),
        (lambda: observing({"y": 3}), ["'y'", "state 3", "0 to 2"]),
        (lambda: observing({"y": -1}), ["'y'", "state -1", "0 to 2"]),
        (lambda: observing({"y": 1.0}), ["'y'", "1.0", "give the number"]),
        (lambda: observing({"y": True}), ["'y'", "True", "give the number"]),
        (lambda: observing({"y": 1}).with_evidence({1: 2}), ["'y'", "state 2", "state 1", "keep"]),
        (lambda: weighing({"z": [1]}), ["'z'", "x, y"]),
        (lambda: weighing({"y": [1, 1]}), ["'y'", "2 values", "each of its 3"]),
        (lambda: weighing({"y": [1, -1, 1]}), ["'y'", "entry 1", "-1.0"]),
        (lambda: weighing({"x": [1, 1], "y": [1, 1, math.nan]}), ["'y'", "entry 2", "nan"]),
        (lambda: weighing({"x": "ab"}), ["'x'", "'ab'", "give one number"]),
        # Encodings.
        (lambda: get_encoding("table1"), ["'table1'", "implication, conditional"]),
        (lambda: encode_many([], [], [], "x"), ["'x'", "implication, conditional"]),
        (lambda: implication(NEUTRAL, 0.5, 0.5), ["neutral", "no factor", "drop it"]),
        (lambda: conditional(NEUTRAL, 0.5, 0.5), ["neutral", "no factor", "drop it"]),
        (lambda: encode_many([ENTAILMENT] * 2, [0.5, 1.5], [0.5, 0.5]),
         ["relation 1", "probability", "1.5", "correct it"]),
        (lambda: encode_many([ENTAILMENT] * 2, [0.5, 0.5], [math.nan, 0.5]),
         ["relation 0", "target prior", "nan", "correct it"]),
        (lambda: encode_many([ENTAILMENT], [0.5, 0.5], [0.5]), ["(2,)", "probability", "each"]),
        (lambda: encode_many(np.array([0, 5]), [0.5] * 2, [0.5] * 2), ["relation 1", "5", "0 to"]),
        (lambda: encode_many(np.array([-1]), [0.5], [0.5]), ["relation 0", "-1", "0 to 4"]),
        # Distributions over kinds.
        (lambda: spread({"entailment": 0.4, "neutral": 0.5}), ["sum to 0.9", "'c' -> 'a'"]),
        (lambda: spread({"entails": 1.0}), ["'entails'", "did you mean", "entailment"]),
        (lambda: spread({"entailment": 1.2}), ["1.2", "between 0 and 1"]),
        (lambda: spread({"entailment": float("nan")}), ["nan", "between 0 and 1"]),
        (lambda: spread((0.5, 0.5)), ["2 numbers", "entailment, contradiction, equivalence, neu"]),
        # Synthetic graphs.
        (lambda: fr1_forest(-1, 3, seed=0), ["n_atoms is -1", "at least 0"]),
        (lambda: fr1_forest(unchecked(2.0), 3, seed=0), ["n_atoms is 2.0", "whole number"]),
        (lambda: fr1_forest(2, -3, seed=0), ["contexts_per_atom is -3", "at least 0"]),
        (lambda: fr1_forest(2, [1], seed=0), ["contexts_per_atom has 1", "each of 2 atoms"]),
        (lambda: fr1_forest(2, [1, -1], seed=0), ["contexts_per_atom[1] is -1", "at least 0"]),
        (lambda: fr1_forest(2, 1, seed=0, encoding="x"), ["'x'", "implication, conditional"]),
        (lambda: fr2(2, 1, 1.5, seed=0), ["density", "1.5", "correct it"]),
        (lambda: fr2(2, 1, unchecked("x"), seed=0), ["density", "'x'", "give one"]),
        (lambda: fr2(2, 1, 0.5, reach=-1, seed=0), ["reach is -1", "at least 0"]),
        (lambda: fr3(2, 1, 0.5, -0.1, seed=0), ["context_density", "-0.1", "correct it"]),
        (lambda: Densities(0.5, 0.4, 0.2), ["sum to 1.1", "at most 1"]),
        (lambda: Densities(contradiction=2), ["density of contradiction", "2", "correct it"]),
        (lambda: FactLaws(shares=Densities()), ["shares", "all 0", "give one above 0"]),
        (lambda: Beta(0.0, 1.0), ["Beta(0.0, 1.0)", "above 0"]),
        (lambda: Beta(1.0, math.inf), ["Beta(1.0, inf)", "above 0"]),
        (lambda: Uniform(0.9, 0.1), ["Uniform(0.9, 0.1)", "low <= high"]),
        (lambda: Uniform(0.5, 1.5), ["Uniform(0.5, 1.5)", "<= 1"]),
        (lambda: Constant(-1), ["Constant", "-1", "correct it"]),
        (lambda: Mixture(()), ["mixture", "[]", "above 0"]),
        (lambda: Mixture(((0.0, Constant(1)),)), ["mixture", "[0.0]", "above 0"]),
        (lambda: mixed_reliability(1.0), ["1.0", "[0, 1)", "correct it"]),
        (lambda: grid(0, 3, coupling=1, field=1, seed=0), ["rows is 0", "at least 1"]),
        (lambda: grid(3, 0, coupling=1, field=1, seed=0), ["columns is 0", "at least 1"]),
        (lambda: grid(3, 3, coupling=-1, field=1, seed=0), ["coupling is -1", "at least 0"]),
        (lambda: grid(3, 3, coupling=1, field=math.nan, seed=0), ["field is nan", "finite"]),
        (lambda: grid(3, 3, coupling=1, field=1, cardinality=1, seed=0), ["cardinality is 1"]),
        (lambda: chain(0, coupling=1, field=1, seed=0), ["n_variables is 0", "at least 1"]),
        (lambda: random_graph(3, 2, max_arity=0, seed=0), ["max_arity is 0", "at least 1"]),
        (lambda: random_graph(3, 2, min_cardinality=0, seed=0), ["min_cardinality is 0"]),
        (lambda: random_graph(3, 2, max_cardinality=0, seed=0), ["max_cardinality is 0"]),
        (lambda: random_graph(3, 2, zero_probability=2, seed=0), ["zero_probability", "2"]),
        (lambda: random_graph(3, 2, log_range=-1, seed=0), ["log_range is -1", "at least 0"]),
        (lambda: random_graph(3, 2, isolated=3, seed=0), ["3 of 3", "at most 0", "fewer isolated"]),
        (lambda: random_graph(3, 2, isolated=4, seed=0), ["4 of 3", "fewer isolated"]),
        # Synthetic responses.
        (lambda: responses(n_atoms=(5, 2)), ["5 to 2", "smaller number first"]),
        (lambda: responses(n_atoms=-1), ["n_atoms is -1", "at least 0"]),
        (lambda: responses(density=2), ["density", "2", "correct it"]),
        (lambda: responses(context_density=-1), ["context_density", "-1", "correct it"]),
        (lambda: responses(truth_rate=1.5), ["truth_rate", "1.5", "correct it"]),
        (lambda: responses(reliability="x"), ["reliability", "'x'", "give one"]),
        (lambda: responses(error_rate=-0.5), ["error_rate", "-0.5", "correct it"]),
        (lambda: responses(unlabeled=2), ["unlabeled", "2", "correct it"]),
        (lambda: responses(log_odds_factor=-1.0), ["log_odds_factor is -1.0; give a number of at"]),
        (lambda: responses(log_odds_noise=math.inf), ["log_odds_noise is inf"]),
        (lambda: responses(copied=1.5), ["copied: the probability 1.5 is not between 0 and 1"]),
    ],
)  # fmt: skip
def test_it_is_refused_in_one_sentence(build: Callable[[], object], words: list[str]) -> None:
    refused(words, build)
