"""BIF through pgmpy: the same distribution as pgmpy's, and no block lost in silence."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from factormodels import FactorGraph, MissingDependencyError, read
from factormodels.io.networks.bif import looks_like_bif, parse_bif
from tests.factormodels.refusals import assert_refused

pytestmark = pytest.mark.slow

BIF = """network small {
}
variable a {
  type discrete [ 2 ] { yes, no };
}
variable b {
  type discrete [ 3 ] { x, y, z };
}
variable c {
  type discrete [ 2 ] { on, off };
}
probability ( a ) {
  table 0.3, 0.7;
}
probability ( c | b, a ) {
  (x, yes) 0.1, 0.9;
  (x, no) 0.2, 0.8;
  (z, yes) 0.5, 0.5;
  (z, no) 1.0, 0.0;
  (y, yes) 0.3, 0.7;
  (y, no) 4e-1, 0.6;
}
probability ( b | a ) {
  (yes) 0.1, 0.2, 0.7;
  (no) 0.5, 0.25, 0.25;
}
"""


@pytest.fixture(scope="module", autouse=True)
def _pgmpy() -> None:
    pytest.importorskip("pgmpy", reason="reading BIF needs pgmpy")


@pytest.fixture(scope="module")
def small() -> FactorGraph:
    return parse_bif(BIF, "small.bif")


def test_tables_by_hand(small: FactorGraph) -> None:
    assert small.names == ("a", "b", "c")
    assert small.cardinalities.tolist() == [2, 3, 2]
    assert [small.scope(f) for f in range(3)] == [(0,), (0, 1), (1, 0, 2)]
    expected: list[ArrayLike] = [
        [0.3, 0.7],
        [[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]],
        [[[0.1, 0.9], [0.2, 0.8]], [[0.3, 0.7], [0.4, 0.6]], [[0.5, 0.5], [1.0, 0.0]]],
    ]
    for factor, table in enumerate(expected):
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(small.log_table(factor), np.log(table))


@pytest.mark.parametrize(
    "text",
    [
        BIF.replace("\n", "\r\n"),
        BIF.rstrip(),
        "// a network of mine\n/* of\n3 */" + BIF,
        BIF.replace("variable a", 'variable "a"').replace("( a )", '( "a" )'),
        BIF.replace("( b | a )", "( b a )"),
        BIF.replace("( b | a )", "( B | A )"),
        BIF.replace("  (yes) 0.1, 0.2, 0.7;\n  (no)", "  table 0.1, 0.5, 0.2, 0.25, 0.7,").replace(
            "0.7, 0.5, 0.25, 0.25;", "0.7, 0.25;"
        ),
    ],
    ids=["line ends", "no last line end", "comments", "quotes", "no bar", "case", "table"],
)
def test_spellings_of_the_same_network(text: str, small: FactorGraph) -> None:
    graph = parse_bif(text, "small.bif")
    assert graph.names == ("a", "b", "c")
    np.testing.assert_array_equal(graph.log_values, small.log_values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            BIF.replace("( a ) {\n  table 0.3, 0.7;", "( a | c ) {\n (on) .5, .5;\n (off) .5, .5;"),
            ["the parents form the cycle", "c -> a"],
        ),
        (BIF.replace("( b | a )", "( b | b )"), ["the cycle b -> b"]),
        (BIF[:-30], ["10 opening", "9 closing braces", "complete the file"]),
        (BIF[: BIF.index("probability ( b")], ["'b' has no probability block"]),
        (BIF.replace("  (no) 0.5, 0.25, 0.25;\n", ""), ["'b' has 1 of 2 rows", "for (no)"]),
        (BIF.replace("  (no) 0.5", "  (yes) 0.5"), ["'b' has a second row for (yes)"]),
        (BIF.replace("(x, no) 0.2", "(no, x) 0.2"), ["'c' has a row for (no, x)"]),
        (BIF.replace("(x, no) 0.2", "(x) 0.2"), ["'c' has a row for (x)"]),
        (BIF.replace("(no) 0.5", "default 0.5"), ["'b' has 'default 0.5", "neither `table`"]),
        (BIF.replace("0.3, 0.7;\n}", "1.2, -0.2;\n}"), ["'a' has 1.2"]),
        (BIF.replace("0.3, 0.7;\n}", "nan, 0.7;\n}"), ["'a' has nan"]),
        (BIF.replace("0.3, 0.7;\n}", "0.3, 0.6;\n}"), ["'a' sums to 0.9"]),
        (BIF.replace("0.3, 0.7;\n}", "0.3, 0.3, 0.4;\n}"), ["'a' has 3 numbers", "ask for 2"]),
        (BIF.replace("( b | a )", "( b | d )"), ["'b' names 'd', which is not declared"]),
        (BIF.replace("( a )", "( \u2028 )"), ["a probability block names no variable"]),
        (BIF.replace("( a )", "( , )"), ["a probability block names no variable"]),
        (BIF.replace("( b | a )", "( b | a, a )"), ["'b' names a parent twice"]),
        (BIF.replace("[ 3 ]", "[ 4 ]"), ["'b' declares 4 states and lists 3"]),
        (BIF.replace("x, y, z", "x, y, y"), ["'b' declares 3 states and lists 2"]),
        (BIF.replace("0.2, 0.7;\n", "0.9;\n"), ["'b', row (yes), has 2 numbers", "ask for 3"]),
        (BIF.replace("(yes) 0.1", "(maybe) 0.1"), ["'b' has a row for (maybe)"]),
        (
            BIF.replace("0.25, 0.25", "0.25, much"),
            ["row (no), has 'much' where a number should"],
        ),
        (BIF.replace("0.3, 0.7;\n}", ";\n}"), ["'a' has '' where a number should be"]),
        (BIF + "probability ( a ) {\n  table 0.1, 0.9;\n}\n", ["'a' has two probability blocks"]),
        (BIF.replace("variable c", "variable A"), ["'A' is declared twice (case aside)"]),
        (BIF.replace("discrete [ 3 ]", "continuous"), ["2 of the 3 variable blocks can be read"]),
        ("network small {\n}\n", ["declares no variable"]),
        ("MARKOV 1 2 0", ["does not begin with 'network'"]),
    ],
)
def test_damage_is_told_in_one_sentence(text: str, words: list[str]) -> None:
    assert_refused(lambda: parse_bif(text, "bad.bif"), words, "bad.bif: ")


def test_without_pgmpy_the_message_tells_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "small.bif"
    path.write_text(BIF, encoding="utf-8")
    monkeypatch.setitem(sys.modules, "pgmpy.readwrite", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'factorfacts\[pgmpy\]'"):
        read(path)


def test_what_begins_like_bif() -> None:
    assert looks_like_bif("\n // x\n network y { }")
    assert not looks_like_bif("networks y { }")
    assert not looks_like_bif("// network")


SIZES = {"alarm": 37, "asia": 8, "cancer": 5, "child": 20, "insurance": 27}


@pytest.mark.parametrize("name", SIZES)
def test_classic_networks_are_the_distribution_of_pgmpy(name: str, shared_data: Path) -> None:
    from pgmpy.readwrite import BIFReader

    packed = shared_data / "bif" / f"{name}.bif.gz"
    graph = read(packed)
    assert isinstance(graph, FactorGraph)
    assert graph.n_variables == graph.n_factors == SIZES[name]
    reader = BIFReader(string=gzip.decompress(packed.read_bytes()).decode())
    model = reader.get_model()
    generator = np.random.default_rng(1)
    for _ in range(50):
        states = generator.integers(0, graph.cardinalities)
        named = {
            variable: reader.variable_states[variable][state]
            for variable, state in zip(graph.names, states, strict=True)
        }
        probability = model.get_state_probability(named)
        # The product of at most 37 tables in another order: a relative rounding of 1e-14.
        assert np.exp(graph.log_potential(states)) == pytest.approx(probability, rel=1e-12)


def test_a_compressed_network_is_the_plain_one(tmp_path: Path) -> None:
    (tmp_path / "small.bif").write_text(BIF, encoding="utf-8")
    (tmp_path / "small.bif.gz").write_bytes(gzip.compress(BIF.encode()))
    plain, packed = read(tmp_path / "small.bif"), read(tmp_path / "small.bif.gz")
    assert isinstance(plain, FactorGraph)
    assert isinstance(packed, FactorGraph)
    assert packed.names == plain.names
    np.testing.assert_array_equal(packed.log_values, plain.log_values)
