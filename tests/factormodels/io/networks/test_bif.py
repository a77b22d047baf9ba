"""BIF: the networks and tables that pgmpy reads, and no block lost in silence."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from factormodels import FactorGraph, InputError, read
from factormodels.io.networks.bif import looks_like_bif, parse_bif
from tests.processes import run_python
from tests.refusals import refused

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
        (BIF.replace("(no) 0.5", "default 0.5, 0.4, 0.1; default 0.5"), ["'b' has 'default 0.5"]),
        (BIF.replace("(no) 0.5", "default 0.5, 0.1"), ["'b', its default, has 4 numbers"]),
        (BIF.replace("(no) 0.5", "table 0.5"), ["'b' has 'table 0.5", "at most one `default`"]),
        (BIF.replace("table 0.3, 0.7;", "table 0.3, 0.7; default 0.3, 0.7;"), ["'a' has 'default"]),
        (BIF.replace("table 0.3, 0.7;", "default 0.3, 0.7; table 0.3, 0.7;"), ["'a' has 'table"]),
        (BIF.replace("0.3, 0.7;\n}", "1.2, -0.2;\n}"), ["'a' has '1.2'"]),
        (BIF.replace("0.3, 0.7;\n}", "nan, 0.7;\n}"), ["'a' has 'nan'"]),
        (BIF.replace("0.3, 0.7;\n}", "0.3, 0.6;\n}"), ["'a' sums to 0.9"]),
        (BIF.replace("0.3, 0.7;\n}", "0.3, 0.3, 0.4;\n}"), ["'a' has 3 numbers", "require 2"]),
        (BIF.replace("( b | a )", "( b | d )"), ["'b' names 'd', which is not declared"]),
        (BIF.replace("( a )", "( \u2028 )"), ["a probability block names no variable"]),
        (BIF.replace("( a )", "( , )"), ["a probability block names no variable"]),
        (BIF.replace("( b | a )", "( b | a, a )"), ["'b' names a parent twice"]),
        (BIF.replace("[ 3 ]", "[ 4 ]"), ["'b' declares '4' states and lists 3"]),
        (BIF.replace("x, y, z", "x, y, y"), ["'b' declares '3' states and lists 2"]),
        (BIF.replace("0.2, 0.7;\n", "0.9;\n"), ["'b', row (yes), has 2 numbers", "require 3"]),
        (BIF.replace("(yes) 0.1", "(maybe) 0.1"), ["'b' has a row for (maybe)"]),
        (BIF.replace("0.25, 0.25", "0.25, much"), ["row (no), has 'much' where a number should"]),
        (BIF.replace("0.3, 0.7;\n}", ";\n}"), ["'a' has 0 numbers", "require 2"]),
        (BIF.replace("0.3, 0.7;", "0.3, 0_7;"), ["'a' has '0_7' where a number"]),
        (BIF.replace("[ 2 ] { yes, no }", "[ 0 ] { }"), ["variable 'a' declares '0' states"]),
        (BIF.replace("(yes) 0.1, 0.2, 0.7;", "table 0, 0, 1, 1, 0, 0;"), ["'b' has '( no )"]),
        (BIF.replace("{ yes, no }", "{ yes, no"), ["10 opening", "9 closing braces"]),
        (BIF + "probability ( a ) {\n  table 0.1, 0.9;\n}\n", ["'a' has two probability blocks"]),
        (BIF.replace("variable c", "variable a"), ["'a' is declared twice"]),
        (BIF.replace("discrete [ 3 ]", "continuous"), ["'b' cannot be read", "type discrete"]),
        ("network small {\n}\n", ["declares no variable"]),
        ("MARKOV 1 2 0", ["does not begin with 'network'"]),
    ],
)
def test_damage_is_reported_in_one_sentence(text: str, words: list[str]) -> None:
    assert refused(words, parse_bif, text, "bad.bif").startswith("bad.bif: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BIF + "utility a { }\n", ["line 27: 'utility' begins no block", "`variable`"]),
        (BIF.replace("( a )", "a"), ["line 12: a probability block begins as `probability ("]),
    ],
)
def test_a_block_that_is_none_is_named_with_its_line(text: str, words: list[str]) -> None:
    assert refused(words, parse_bif, text, "bad.bif").startswith("bad.bif, ")


@pytest.mark.parametrize(
    "rows",
    [
        "default 0.3, 0.7; (x, no) 0.2, 0.8; (z, no) 1.0, 0.0; (y,yes) .9 .1;",
        "(x, no) 0.2, 0.8; (y, yes) 0.9, 0.1; default 0.3 0.7; (z, no) 1.0, 0.0;",
    ],
)
def test_a_default_is_the_row_of_every_combination_without_one(rows: str) -> None:
    start = BIF.index("  (x, yes)")
    text = BIF[:start] + rows + BIF[BIF.index("}", start) :]
    with np.errstate(divide="ignore"):
        table = np.exp(parse_bif(text, "g.bif").log_table(2))
    rest = [0.3, 0.7]
    assert table == pytest.approx(
        np.array([[rest, [0.2, 0.8]], [[0.9, 0.1], rest], [rest, [1.0, 0.0]]])
    )


def test_a_default_alone_is_a_whole_table() -> None:
    text = BIF.replace("table 0.3, 0.7;", "default 0.3, 0.7;")
    start = text.index("  (x, yes)")
    text = text[:start] + "default 0.6, 0.4;" + text[text.index("}", start) :]
    graph = parse_bif(text, "g.bif")
    assert np.exp(graph.log_table(0)) == pytest.approx([0.3, 0.7])
    assert np.exp(graph.log_table(2)) == pytest.approx(np.broadcast_to([0.6, 0.4], (3, 2, 2)))


def test_a_default_of_more_combinations_than_memory_holds_is_refused() -> None:
    variables = [f"v{number}" for number in range(60)]
    blocks = [f"variable {name} {{ type discrete [ 2 ] {{ f, t }}; }}" for name in variables]
    blocks += [f"probability ( {name} ) {{ default 0.5, 0.5; }}" for name in variables[1:]]
    blocks.append(f"probability ( v0 | {', '.join(variables[1:])} ) {{ default 0.5, 0.5; }}")
    refused("'v0'.*fewer parents", parse_bif, "network wide { }\n" + "\n".join(blocks), "g.bif")


def test_names_of_variables_may_differ_in_case_alone() -> None:
    text = BIF.replace("variable c", "variable A").replace("( c |", "( A |")
    assert parse_bif(text, "small.bif").names == ("a", "b", "A")
    refused("names 'Á'", parse_bif, text.replace("( a )", "( Á )"), "x")


def test_marks_inside_quotes_and_properties_are_text() -> None:
    text = BIF.replace(
        "variable a {", 'variable a {\n  property source = "{x}; http://y" ;'
    ).replace("network small {", "network small {\n  property address = http://x/y ;")
    assert parse_bif(text, "small.bif").names == ("a", "b", "c")
    quoted = parse_bif(BIF.replace("yes", '"yes, {so}"'), "small.bif")
    assert quoted.state_names is not None
    assert quoted.state_names[0] == ("yes, {so}", "no")
    spaced = parse_bif(BIF.replace("yes", "I think so"), "small.bif")
    assert spaced.state_names is not None
    assert spaced.state_names[0] == ("I think so", "no")


def test_reading_loads_no_library_beside_numpy(tmp_path: Path) -> None:
    path = tmp_path / "small.bif"
    path.write_text(BIF, encoding="utf-8")
    code = (
        f"import sys; from factormodels import read; read({str(path)!r}); "
        "print(*sorted({'pgmpy', 'pandas', 'torch', 'networkx'} & sys.modules.keys()))"
    )
    assert run_python(code)[0].strip() == ""


def test_long_texts_of_nothing_are_refused_without_searching_back() -> None:
    # Each took time as the square of its length where a pattern was tried from every word anew:
    # hours. No clock is read; a reader that searches back would not end.
    n = 50_000
    for middle in ("variable " * n, "variable x {" * n, "probability ( " * n, "/*" * n, '"' * n):
        with pytest.raises(InputError):
            parse_bif(f"network x {{ }} {middle}", "long.bif")
    parents = ", ".join(f"v{i}" for i in range(5_000))
    blocks = "".join(f"variable v{i} {{ type discrete [ 2 ] {{ a, b }}; }}" for i in range(5_000))
    text = f"network x {{ }} {blocks} probability ( v0 | {parents} ) {{ }}"
    refused("'v1' has no probability block", parse_bif, text, "x")


def test_files_that_begin_like_bif() -> None:
    assert looks_like_bif("\n // x\n network y { }")
    assert not looks_like_bif("networks y { }")
    assert not looks_like_bif("// network")


SIZES = {"alarm": 37, "asia": 8, "cancer": 5, "child": 20, "insurance": 27}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_classic_networks_have_the_tables_of_pgmpy(name: str, shared_data: Path) -> None:
    reading = pytest.importorskip("pgmpy.readwrite", reason="pgmpy is what is compared with")
    packed = shared_data / "bif" / f"{name}.bif.gz"
    graph = read(packed)
    assert isinstance(graph, FactorGraph)
    assert graph.n_variables == graph.n_factors == SIZES[name]
    reader = reading.BIFReader(string=gzip.decompress(packed.read_bytes()).decode())
    assert graph.names == tuple(reader.variable_names)
    for position, variable in enumerate(graph.names):
        assert graph.state_names is not None
        assert list(graph.state_names[position]) == reader.variable_states[variable]
        scope = [graph.names[v] for v in graph.scope(position)]
        assert scope == [*reader.variable_parents[variable], variable]
        # pgmpy's tables have a row per state of the variable and a column per combination.
        table = np.moveaxis(np.exp(graph.log_table(position)), -1, 0)
        distribution = reader.variable_cpds[variable]
        # Logarithms of what both read, and back: two units in the last place.
        np.testing.assert_allclose(
            table.reshape(np.shape(distribution)), distribution, rtol=1e-15, atol=0
        )
