"""Encodings: the tables of the paper, entry by entry, and the bulk function behind them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factormodels import RelationKind
from factormodels.encodings import (
    DEFAULT_ENCODING,
    ENCODINGS,
    KIND_CODES,
    conditional,
    encode_many,
    get_encoding,
    implication,
)

ENTAILMENT, CONTRADICTION, EQUIVALENCE, NEUTRAL, EXCLUSIVE, CO_NECESSITY = RelationKind
KINDS = (ENTAILMENT, CONTRADICTION, EQUIVALENCE, EXCLUSIVE, CO_NECESSITY)
UNIT = st.floats(0.0, 1.0)

# One logarithm and one exponential, each correct to an ulp or two.
ROUNDING = 1e-15


def log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def test_table_1_of_the_paper_as_printed() -> None:
    p, q = 0.8, 0.2
    # Rows: source false, source true. Columns: target false, target true.
    expected = {
        ENTAILMENT: [[p, p], [q, p]],
        CONTRADICTION: [[p, p], [p, q]],
        EQUIVALENCE: [[p, q], [q, p]],
        # Not in the paper: p wherever the relation holds, 1 - p where it does not.
        EXCLUSIVE: [[q, p], [p, q]],
        CO_NECESSITY: [[q, p], [p, p]],
    }
    for kind, table in expected.items():
        np.testing.assert_allclose(np.exp(implication(kind, p, 0.3)), table, rtol=ROUNDING)


HOLDS: dict[RelationKind, Callable[[int, int], bool]] = {
    # Where a relation holds, by the truth of source and target.
    ENTAILMENT: lambda s, t: s <= t,
    CONTRADICTION: lambda s, t: not (s and t),
    EQUIVALENCE: lambda s, t: s == t,
    EXCLUSIVE: lambda s, t: s != t,
    CO_NECESSITY: lambda s, t: bool(s or t),
}


@given(kind=st.sampled_from(KINDS), p=UNIT, prior=UNIT)
def test_implication_gives_p_where_the_relation_holds_whatever_the_prior(
    kind: RelationKind, p: float, prior: float
) -> None:
    table = np.exp(implication(kind, p, prior))
    for source in (0, 1):
        for target in (0, 1):
            expected = p if HOLDS[kind](source, target) else 1.0 - p
            assert table[source, target] == pytest.approx(expected, rel=ROUNDING)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_certain_relation_leaves_the_states_in_which_it_holds(
    name: str, kind: RelationKind
) -> None:
    # A warning would be an error.
    table = np.exp(get_encoding(name)(kind, 1.0, 0.5))
    for source in (0, 1):
        for target in (0, 1):
            assert (table[source, target] > 0.0) == HOLDS[kind](source, target)
    assert set(implication(kind, 0.0, 0.5).ravel()) == {-math.inf, 0.0}
    assert conditional(ENTAILMENT, 1.0, 0.0)[0].tolist() == [0.0, -math.inf]


@pytest.mark.parametrize("name", ENCODINGS)
@given(p=UNIT)
def test_every_kind_is_entailment_or_equivalence_of_a_negation(name: str, p: float) -> None:
    # 1 - (1 - prior) may differ from prior by an ulp, so the prior is negated exactly here.
    table = {kind: get_encoding(name)(kind, p, 0.5) for kind in KINDS}
    np.testing.assert_array_equal(table[EXCLUSIVE], table[EQUIVALENCE][:, ::-1])
    np.testing.assert_array_equal(table[CONTRADICTION], table[ENTAILMENT][:, ::-1])
    # What is not so entails the other.
    np.testing.assert_array_equal(table[CO_NECESSITY], table[ENTAILMENT][::-1])


def test_conditional_tables_by_hand() -> None:
    p, q, prior = 0.9, 0.1, 0.3
    expected = {
        ENTAILMENT: [[1.0 - prior, prior], [q, p]],
        CONTRADICTION: [[1.0 - prior, prior], [p, q]],
        EQUIVALENCE: [[p, q], [q, p]],
        EXCLUSIVE: [[q, p], [p, q]],
        CO_NECESSITY: [[q, p], [1.0 - prior, prior]],
    }
    for kind, table in expected.items():
        np.testing.assert_allclose(np.exp(conditional(kind, p, prior)), table, rtol=ROUNDING)


@given(
    kind=st.sampled_from((ENTAILMENT, CONTRADICTION, EQUIVALENCE, EXCLUSIVE)), p=UNIT, prior=UNIT
)
def test_each_true_source_row_is_a_distribution_and_the_encodings_share_it(
    kind: RelationKind, p: float, prior: float
) -> None:
    first, two = implication(kind, p, prior), conditional(kind, p, prior)
    np.testing.assert_array_equal(first[1], two[1])
    assert np.exp(first[1]).sum() == pytest.approx(1.0, rel=ROUNDING)
    assert np.exp(two[0]).sum() == pytest.approx(1.0, rel=ROUNDING)


@pytest.mark.parametrize("name", ENCODINGS)
@given(relations=st.lists(st.tuples(st.sampled_from(KINDS), UNIT, UNIT), max_size=12))
def test_many_relations_are_encoded_as_one_by_one(
    name: str, relations: list[tuple[RelationKind, float, float]]
) -> None:
    kinds = [kind for kind, _, _ in relations]
    p, priors = [p for _, p, _ in relations], [prior for _, _, prior in relations]
    tables = encode_many(kinds, p, priors, name)
    assert tables.shape == (len(relations), 2, 2)
    for table, relation in zip(tables, relations, strict=True):
        # Vector and scalar loops of a logarithm may round the last bit differently.
        np.testing.assert_allclose(table, get_encoding(name)(*relation), rtol=ROUNDING)
    codes = np.array([KIND_CODES[kind] for kind in kinds], dtype=np.int8)
    np.testing.assert_array_equal(encode_many(codes, p, priors, name), tables)


def test_plain_names_of_kinds_are_as_good_as_members() -> None:
    names: list[Any] = ["entailment"]
    np.testing.assert_array_equal(
        encode_many(names, [0.7], [0.5]), encode_many([ENTAILMENT], [0.7], [0.5])
    )


def test_the_default_encoding_is_that_of_the_paper() -> None:
    assert DEFAULT_ENCODING == "implication"
    assert get_encoding("implication") is implication
    assert get_encoding("conditional") is conditional
