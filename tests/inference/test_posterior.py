"""Posteriors at a prompt and as frames, and what inference says of what is no factor graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factormodels import Atom, FactGraph, FactorGraph, InputError, interchange
from inference import infer, infer_batch, infer_settings
from inference.posterior import Marginals
from tests.refusals import refused

GRAPH = FactorGraph.from_factors(
    [2, 3], [((0,), [0.4, 0.6]), ((0, 1), [[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])], names=["x", "y"]
)
FACTS = FactGraph("g", (Atom("a1"),))


def test_a_posterior_is_shown_in_a_few_lines() -> None:
    lines = repr(infer(GRAPH)).splitlines()
    # By hand: P(x = 1) = 0.6 and Z = 1, as every row of the second table sums to 1.
    assert lines[0] == "Posterior of 2 variables by exact: exact, log Z 0.000000 (exact)"
    assert [line.split() for line in lines[1:]] == [
        ["variable", "p0", "p1", "p2"],
        ["x", "0.4000", "0.6000"],
        ["y", "0.3400", "0.2300", "0.4300"],
    ]
    assert "log Z" not in repr(infer(GRAPH, "gibbs"))


def test_marginals_of_many_variables_are_cut() -> None:
    many = infer(FactorGraph.from_factors([2] * 50, [])).marginals
    lines = repr(many).splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("Marginals of 50 variables", "...", 9)
    assert "20 more rows" in many._repr_html_()


def test_marginals_as_a_frame() -> None:
    frame = infer(GRAPH).to_frame()
    assert list(frame.columns) == ["variable", "p0", "p1", "p2"]
    assert frame["variable"].tolist() == ["x", "y"]
    # The roundings of a few doubles.
    np.testing.assert_allclose(
        frame[["p0", "p1", "p2"]], [[0.4, 0.6, np.nan], [0.34, 0.23, 0.43]], atol=1e-12
    )
    assert infer(FactorGraph.from_factors([], [])).to_frame().shape == (0, 1)


def foreign_models() -> dict[str, Any]:
    """Objects that are not factor graphs, by the name in the error."""
    return {
        "graph.to_factor_graph(encoding=...)": FACTS,
        "factormodels.read(path)": Path("graph.json"),
        "factormodels.interchange.from_frames, then .to_factor_graph()": FACTS.to_frame(),
        "FactorGraph.from_factors": [0.5],
    }


@pytest.mark.parametrize("named", foreign_models())
def test_inference_says_how_a_model_is_converted(named: str) -> None:
    model = foreign_models()[named]
    for ask in (
        lambda: infer(model),
        lambda: infer_batch([model]),
        lambda: infer_settings(model, np.zeros((1, 2))),
    ):
        with pytest.raises(InputError, match="takes a factor graph, not a") as caught:
            ask()
        assert named in str(caught.value)


@pytest.mark.parametrize(
    ("library", "convert", "model", "named"),
    [
        ("pgmpy", interchange.to_pgmpy, GRAPH, "from_pgmpy$"),
        ("pyagrum", interchange.to_pyagrum, GRAPH, "from_pyagrum$"),
        ("pgmax", interchange.to_pgmax, GRAPH, "from_pgmax$"),
        ("networkx", interchange.to_networkx, FACTS, r"from_networkx, then \.to_factor_graph\(\)$"),
    ],
)
def test_inference_names_the_converter_of_a_library(
    library: str, convert: Any, model: Any, named: str
) -> None:
    pytest.importorskip(library)
    refused(rf"factormodels\.interchange\.{named}", infer, convert(model))


def test_marginals_may_be_given_as_a_list() -> None:
    # A backend of a user's may have one, or an array of another library.
    given: Any = [0.25, 0.75]
    marginals = Marginals(("x",), np.array([2]), given)
    assert marginals["x"].tolist() == given
    assert not marginals.flat.flags.writeable


def test_one_state_of_the_first_variables_is_that_of_any() -> None:
    counts = np.array([2, 3, 1, 2])
    values = np.arange(8.0)
    marginals = Marginals(("a", "b", "c", "d"), counts, values)
    for n in range(5):
        names = list(marginals.names[:n])
        np.testing.assert_array_equal(
            marginals.of_state(0, names), [marginals[name][0] for name in names]
        )
    np.testing.assert_array_equal(marginals.of_state(1, ["a", "b"]), [1.0, 3.0])
    np.testing.assert_array_equal(marginals.of_state(1, ("b", "a")), [3.0, 1.0])
    np.testing.assert_array_equal(marginals.of_state(-1, ["a", "b", "c"]), [1.0, 4.0, 5.0])
    with pytest.raises(IndexError):
        marginals.of_state(1, ["a", "b", "c"])
