"""UAI model files: parsed at any spacing, written back the same, refused with one sentence."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from factormodels import FactorGraph
from factormodels.io.networks import uai, uai_results
from factormodels.io.networks.cycles import refuse_cycle
from factormodels.synthetic import random_graph
from tests.factormodels.graphs import assert_same, read_network
from tests.refusals import refused

# Variables of 2, 2 and 3 states; factors over (0, 1), (1, 2) and the constant.
MARKOV = """MARKOV
3
2 2 3
3
2 0 1
2 1 2
0

4
 0.436 0.564
 0.128 0.872

6
 0.210 0.333 0.457
 8.11e-1 0.000 .189
1
 2.5
"""

BAYES = """BAYES
3
2 2 3
3
1 0
2 0 1
2 1 2
2
 0.436 0.564
4
 0.128 0.872
 0.920 0.080
6
 0.210 0.333 0.457
 0.811 0.000 0.189
"""


def test_values_by_hand() -> None:
    graph = uai.parse_uai(MARKOV, "m.uai")
    assert graph.names == ("0", "1", "2")
    assert graph.cardinalities.tolist() == [2, 2, 3]
    assert [graph.scope(f) for f in range(3)] == [(0, 1), (1, 2), ()]
    np.testing.assert_array_equal(graph.log_table(0), np.log([[0.436, 0.564], [0.128, 0.872]]))
    assert graph.log_table(1)[1, 1] == -np.inf
    assert graph.log_table(1)[1, 2] == np.log(0.189)
    assert graph.log_table(2) == np.log(2.5)


@pytest.mark.parametrize("separator", [" ", "\n", "\t", "\r\n", "  \n \n"])
def test_white_space_carries_no_meaning(separator: str) -> None:
    spaced = separator.join(MARKOV.split())
    for text in (spaced, separator + spaced + separator, MARKOV.replace("MARKOV", "markov")):
        assert_same(uai.parse_uai(text, "m.uai"), uai.parse_uai(MARKOV, "m.uai"))


def chain(count: int) -> FactorGraph:
    tables = np.random.default_rng(5).random((count, 2, 2))
    factors: list[tuple[tuple[int, ...], ArrayLike]] = []
    for i, table in enumerate(tables):
        factors += [((i, i + 1), table), ((i,), table[0])]
    return FactorGraph.from_factors([2] * (count + 1), factors)


@pytest.mark.parametrize(
    "graph",
    [
        FactorGraph.from_factors([], []),
        FactorGraph.from_factors([2, 1], []),
        FactorGraph.from_factors([], [((), [3.0])]),
        chain(10_000),
    ],
    ids=["empty", "no factors", "no variables", "20,000 factors"],
)
def test_graphs_of_any_size_are_read_back(graph: FactorGraph, tmp_path: Path) -> None:
    uai.write_uai(graph, tmp_path / "g.uai")
    assert_same(read_network(tmp_path / "g.uai"), graph)


def test_300_seeded_graphs_are_read_back_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "g.uai"
    for seed in range(300):
        drawn = random_graph(1 + seed % 8, seed % 12, min_arity=0, log_range=20.0,
                             zero_probability=0.2, seed=seed)  # fmt: skip
        factors = [(scope, np.exp(table)) for scope, table in drawn.factors()]
        graph = FactorGraph.from_factors(drawn.cardinalities, factors)
        uai.write_uai(graph, path)
        again = read_network(path)
        assert_same(again, graph)
        text = path.read_bytes()
        uai.write_uai(again, path)
        assert path.read_bytes() == text


@given(
    st.lists(
        st.floats(2.3e-308, 1.7e308) | st.just(0.0) | st.sampled_from([0.1, 0.3, 0.9, 1.0, 3.0]),
        min_size=2,
        max_size=2,
    )
)
@settings(deadline=None, max_examples=300)
def test_any_potential_keeps_its_logarithm(tmp_path_factory: object, table: list[float]) -> None:
    assert isinstance(tmp_path_factory, pytest.TempPathFactory)
    path = tmp_path_factory.getbasetemp() / "potential.uai"
    graph = FactorGraph.from_factors([2], [((0,), table)])
    uai.write_uai(graph, path)
    assert_same(read_network(path), graph)


def test_decimal_potentials_are_written_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "m.uai"
    uai.write_uai(uai.parse_uai(MARKOV, path), path)
    numbers = [float(word) for word in MARKOV.split()[1:]]
    assert [float(word) for word in path.read_text(encoding="utf-8").split()[1:]] == numbers
    assert " 0.436 0.564 0.128 0.872\n" in path.read_text(encoding="utf-8")


def test_log_tables_that_are_no_logarithms_of_floats_move_by_roundings(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    logs = np.concatenate([generator.normal(scale=scale, size=500) for scale in (1e-18, 1, 100)])
    graph = FactorGraph.from_factors([len(logs)], [((0,), logs)], log=True)
    uai.write_uai(graph, tmp_path / "g.uai")
    moved = np.abs(read_network(tmp_path / "g.uai").log_values - logs)
    # Half a unit in the last place of the potential is 1.1e-16 of it; a few such, and those of
    # the logarithm itself (5.7e-14 at 500), stay far below.
    assert moved.max() < 1e-12


@pytest.mark.parametrize("log_value", [-708.5, -1e4, 709.9])
def test_potentials_out_of_the_range_of_floats_are_not_written(
    log_value: float, tmp_path: Path
) -> None:
    graph = FactorGraph.from_factors([2], [((), [0.0]), ((0,), [0.0, log_value])], log=True)
    refused(r"g\.uai: factor 1: entry 1 .* outside the range", uai.write_uai, graph,
            tmp_path / "g.uai")  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_names_lie_beside_and_are_read_from_there(tmp_path: Path) -> None:
    path = tmp_path / "g.uai"
    names = ["a1", "a10", " b c ", "é\u2028", "0"]
    graph = FactorGraph.from_factors([2] * 5, [((4, 0), np.ones((2, 2)))], names=names)
    uai.write_uai(graph, path)
    assert uai.names_path(path) == tmp_path / "g.uai.names"
    assert_same(read_network(path), graph)
    uai.names_path(path).write_bytes("\r\n".join(names).encode())
    assert read_network(path).names == tuple(names)


def test_names_of_states_lie_beside_too(tmp_path: Path) -> None:
    path = tmp_path / "g.uai"
    graph = FactorGraph.from_factors(
        [2, 3], [((0, 1), np.ones((2, 3)))], state_names=[("no", "yes"), ("low", "mid", "high")]
    )
    uai.write_uai(graph, path)
    read = read_network(path)
    assert_same(read, graph)
    assert (read.names, read.state_names) == (("0", "1"), graph.state_names)
    # A variable may do without.
    uai.names_path(path).write_text("rain\tno\tyes\nwind\n", encoding="utf-8")
    assert read_network(path).state_names == (("no", "yes"), ("0", "1", "2"))
    odd = FactorGraph.from_factors([2], [((0,), [1, 2])], state_names=[("no", "y\tes")])
    refused(r"state name 'y.*does not fit on a line", uai.write_uai, odd, path)


def test_no_name_of_an_earlier_model_stays(tmp_path: Path) -> None:
    path = tmp_path / "g.uai"
    named = FactorGraph.from_factors([2], [((0,), [1, 2])], names=["a"])
    plain = FactorGraph.from_factors([2], [((0,), [1, 2])])
    uai.write_uai(plain, path)
    assert not uai.names_path(path).exists()
    uai.write_uai(named, path)
    uai.write_uai(plain, path)
    assert read_network(path).names == ("0",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a\n", "has 1 name for the 3 variables"),
        ("a\nb\nc\nd\n", "has 4 names for the 3 variables"),
        ("a\n\nc\n", "line 2 is empty"),
        ("a\nb\na\n", "lines 1 and 3 both hold 'a'"),
        ("a\tlow\nb\nc\n", "line 1 names 1 state of 'a', which has 2"),
    ],
)
def test_names_that_do_not_fit(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "g.uai"
    path.write_text(MARKOV, encoding="utf-8")
    uai.names_path(path).write_text(content, encoding="utf-8")
    assert refused([words], read_network, path).startswith(f"{path}.names: ")


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "a\r", "", "\ud800"])
def test_names_that_fit_on_no_line_are_not_written(name: str, tmp_path: Path) -> None:
    graph = FactorGraph.from_factors([2], [((0,), [1, 2])], names=[name])
    refused("does not fit on a line", uai.write_uai, graph, tmp_path / "g.uai")
    assert not list(tmp_path.iterdir())


def test_evidence_needs_a_file_of_its_own(tmp_path: Path) -> None:
    graph = uai.parse_uai(MARKOV, "m.uai").with_evidence({2: 1, 0: 0})
    refused("the graph has evidence", uai.write_uai, graph, tmp_path / "g.uai")
    assert not list(tmp_path.iterdir())
    uai.write_uai(graph, tmp_path / "g.uai", evidence_path=tmp_path / "g.evid")
    again = read_network(tmp_path / "g.uai")
    assert_same(again, uai.parse_uai(MARKOV, "m.uai"))
    evidence = uai_results.read_evidence(tmp_path / "g.evid", again)
    np.testing.assert_array_equal(again.with_evidence(evidence).evidence, graph.evidence)


BAD_MODELS = [
    ("", "line 1, where the kind of network should be"),
    ("LIMID 1", "line 1: 'LIMID' is where the kind of network should be"),
    ("MARKOV", "the file ends on line 1, where the number of variables should be"),
    ("MARKOV\n2.5", "line 2: '2.5' is where the number of variables should be, a whole number"),
    ("MARKOV\n-1", "line 2: '-1' is where"),
    ("MARKOV\nnan", "line 2: 'nan' is where"),
    ("MARKOV\n1e300\n2", "ends on line 3, where the number of states of variable 1 should be"),
    ("MARKOV\n2\n2 0\n0", "line 3: '0' is where the number of states of variable 1 should be"),
    ("MARKOV\n1\n1e17\n0", "line 3: '1e17' is too many states for variable 0"),
    ("MARKOV\n2\n2 two\n0", "line 3: 'two' is not a number; write one there"),
    ("MARKOV\n2\n2 1_0\n0", "line 3: '1_0' is not a number"),
    ("MARKOV\n2\n2 ٢\n0", "line 3: '٢' is not a number"),
    ("MARKOV\n2\n2 2", "ends on line 3, where the number of factors should be"),
    ("MARKOV\n2\n2 2\n1e9\n1 0", "ends on line 5, where the size of the scope of factor 1"),
    ("MARKOV\n2\n2 2\n1\n3 0 1 1", "line 5: '3' is where the size of the scope of factor 0"),
    ("MARKOV\n2\n2 2\n1\n2 0", "ends on line 5, where a variable of factor 0 should be"),
    ("MARKOV\n2\n2 2\n2\n1 0 1 2\n2\n1 1", "line 5: '2' is where a variable of factor 1"),
    ("MARKOV\n2\n2 2\n1\n1 0.5\n2\n1 1", "line 5: '0.5' is where a variable of factor 0"),
    ("MARKOV\n2\n2 2\n1\n1 -1\n2\n1 1", "line 5: '-1' is where a variable of factor 0"),
    ("MARKOV\n2\n2 2\n1\n2 1 1\n4\n1 1 1 1", "the scope of factor 0 names variable '1' twice"),
    (MARKOV.replace("\n4\n", "\n3\n"), "line 9: '3' should be 4, the number of entries"),
    (MARKOV.replace(" 0.872", ""), "the number of entries in the table of factor 1 by its scope"),
    (MARKOV.replace("\n6\n", "\n7\n"), "'7' should be 6, the number of entries in"),
    (MARKOV[: MARKOV.index(".189")], "ends on line 15, after 5 of the 6 entries of the table of"),
    (MARKOV[: MARKOV.index("6\n")], "after 0 of the 6 entries of the table of factor 1 (of 3)"),
    (MARKOV[: MARKOV.index("4\n")], "after 0 of the 4 entries of the table of factor 0 (of 3)"),
    (MARKOV.replace("0.333", "-0.333"), "line 14: '-0.333' is entry 1 of the table of factor 1"),
    (MARKOV.replace("0.333", "nan"), "line 14: 'nan' is entry 1 of the table of factor 1"),
    (MARKOV.replace("0.333", "1e400"), "line 14: '1e400' is entry 1 of the table of factor 1"),
    (MARKOV.replace("0.333", "3e-400"), "'3e-400' is entry 1 of the table of factor 1; too small"),
    (MARKOV.replace("0.333", "x" * 99), "line 14: 'xxx"),
    (MARKOV + " 0.5", "line 18: '0.5' follows the last table"),
    (MARKOV + "2 1", "line 18: '2' follows the last table"),
    (MARKOV + "end", "line 18: 'end' is not a number"),
]


@pytest.mark.parametrize(("text", "words"), BAD_MODELS, ids=range(len(BAD_MODELS)))
def test_malformed_models_are_reported_in_one_sentence(text: str, words: str) -> None:
    message = refused([words], uai.parse_uai, text, "bad.uai")
    assert message.startswith("bad.uai: ")
    assert len(message) < 300


def test_a_scope_that_asks_for_more_than_any_table_holds() -> None:
    scope = " ".join(map(str, range(1100)))
    text = f"MARKOV\n1100\n{'2 ' * 1100}\n1\n1100 {scope}\n4\n1 1 1 1"
    refused("'4' should be inf, the number of entries", uai.parse_uai, text, "wide.uai")


@pytest.mark.parametrize("word", ["0.0e-400", "-0.0", "0e-5"])
def test_zero_is_zero_in_any_spelling(word: str) -> None:
    graph = uai.parse_uai(MARKOV.replace("0.333", word), "m.uai")
    assert graph.log_table(1)[0, 1] == -np.inf


def test_lists_of_whole_numbers_after_the_tables_are_ignored_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    graph = uai.parse_uai(MARKOV + "0\n3 0 1 2\n", "m.uai")
    assert_same(graph, uai.parse_uai(MARKOV, "m.uai"))
    assert [record.getMessage() for record in caplog.records] == [
        "m.uai: 5 whole numbers after the last table are not part of the model and are ignored"
    ]


def test_a_bayes_file_is_the_product_of_its_tables(caplog: pytest.LogCaptureFixture) -> None:
    graph = uai.parse_uai(BAYES, "b.uai")
    assert not caplog.records
    states = np.indices(graph.cardinalities.tolist()).reshape(3, -1).T
    total = sum(np.exp(graph.log_potential(state)) for state in states)
    # The rows sum to 1 in decimals, so the joint does up to a few roundings of 1e-16.
    assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("scopes", "cycle"),
    [
        (("2 1 0", "2 0 1", "2 1 2"), {"0 -> 1 -> 0", "1 -> 0 -> 1"}),
        (("2 2 0", "2 0 1", "2 1 2"), {"0 -> 1 -> 2 -> 0", "1 -> 2 -> 0 -> 1", "2 -> 0 -> 1 -> 2"}),
    ],
)
def test_cyclic_parents_are_named(scopes: tuple[str, ...], cycle: set[str]) -> None:
    tables = "\n4\n.5 .5 .5 .5" * 3
    text = "BAYES\n3\n2 2 2\n3\n" + "\n".join(scopes) + tables
    message = refused(["the cycle "], uai.parse_uai, text, "b.uai")
    assert message.split("the cycle ")[1].split(";")[0] in cycle
    assert uai.parse_uai(text.replace("BAYES", "MARKOV"), "m.uai").n_factors == 3


def test_rows_that_do_not_sum_to_1_are_logged_not_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    uai.parse_uai(BAYES.replace("0.920 0.080", "0.920 0.180"), "b.uai")
    uai.parse_uai(BAYES.replace("0.920 0.080", "0.9201 0.080"), "rounded.uai")
    (message,) = [record.getMessage() for record in caplog.records]
    assert "1 of the 5 rows" in message
    assert "factor 1 and sums to 1.1" in message


def test_a_child_of_two_tables_is_logged_not_refused(caplog: pytest.LogCaptureFixture) -> None:
    graph = uai.parse_uai("BAYES 2 2 2 2 1 0 1 0 2 .5 .5 2 .1 .9", "b.uai")
    assert graph.n_factors == 2
    assert "variable 0 is the child of 2 tables" in caplog.text


@given(st.lists(st.lists(st.integers(0, 7), max_size=3), min_size=8, max_size=8))
@settings(deadline=None)
def test_a_found_cycle_is_one_and_none_is_missed(parents: list[list[int]]) -> None:
    reach = np.zeros((8, 8), dtype=bool)
    for child, above in enumerate(parents):
        reach[child, above] = True
    for _ in range(3):
        reach |= reach @ reach
    names = [str(variable) for variable in range(8)]
    if not np.diagonal(reach).any():
        refuse_cycle(parents, names, "b.uai", "drop one")
        return
    words = ["b.uai", "the cycle", "drop one"]
    message = refused(words, refuse_cycle, parents, names, "b.uai", "drop one")
    cycle = list(map(int, message.split("the cycle ")[1].split(";")[0].split(" -> ")))
    assert cycle[0] == cycle[-1]
    assert len(set(cycle)) == len(cycle) - 1
    assert all(parent in parents[child] for parent, child in pairwise(cycle))


@pytest.mark.parametrize("task", ["MAR", "PR"])
def test_all_networks_of_the_competition(task: str, shared_data: Path, tmp_path: Path) -> None:
    models = sorted((shared_data / "uai2014" / task).glob("*.uai"))
    assert len(models) == 45
    for model in models:
        graph = read_network(model)
        evidence = uai_results.read_evidence(Path(f"{model}.evid"), graph)
        observed = graph.with_evidence(evidence)
        assert (observed.evidence >= 0).sum() == len(evidence)
        if task == "MAR":
            marginals = uai_results.read_marginals(Path(f"{model}.MAR"))
            assert [len(vector) for vector in marginals] == graph.cardinalities.tolist()
            for variable, state in evidence.items():
                assert marginals[variable][state] == 1.0
        else:
            assert np.isfinite(uai_results.read_log10_partition(Path(f"{model}.PR")))
        uai.write_uai(graph, tmp_path / "again.uai")
        assert_same(read_network(tmp_path / "again.uai"), graph)


MERLIN = {
    # Variables, factors and evidence.
    **{"ChestClinic": (8, 8, {6: 0}), "bn": (12, 12, None), "cancer": (5, 5, {1: 0})},
    **{"paskin": (6, 5, {}), "pedigree1": (334, 334, dict.fromkeys(range(10), 0))},
    **{"simple5": (6, 12, {}), "simple6": (6, 7, {}), "uai-test-model": (8, 8, {2: 1, 4: 1})},
    **{"uai-dual-circ-reduced": (15, 15, {14: 1}), "uai-test-model2": (8, 8, {2: 1, 4: 1})},
    "uai-dw-nopr-2017-04-30-logs": (48, 48, {44: 1}),
}


def test_all_networks_of_merlin(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "merlin"
    assert {path.stem for path in folder.glob("*.uai")} == set(MERLIN)
    for name, (variables, factors, evidence) in MERLIN.items():
        graph = read_network(folder / f"{name}.uai")
        assert (graph.n_variables, graph.n_factors) == (variables, factors)
        if evidence is not None:
            assert uai_results.read_evidence(folder / f"{name}.evid", graph) == evidence
        uai.write_uai(graph, tmp_path / "again.uai")
        assert_same(read_network(tmp_path / "again.uai"), graph)
