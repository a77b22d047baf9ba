"""The trace of a call: every algorithm's bracket, estimate and marginals, in order of time."""

from __future__ import annotations

import numpy as np

from factormodels.synthetic import grid
from inference import InferenceError, Posterior, infer
from inference.trace import Trace, certain_bounds
from tests.inference.graphs import odd_graph


def trace_of(posterior: Posterior) -> Trace:
    trace = posterior.trace
    assert isinstance(trace, Trace)
    return trace


def test_an_exact_answer_is_one_step() -> None:
    graph = grid(3, 3, coupling=1.0, field=0.5, seed=0)
    seen = graph.with_evidence({graph.names[0]: 1})
    posterior = infer(seen, trace=True)
    plain = infer(seen)
    assert plain.trace is None
    assert posterior.marginals.flat.tobytes() == plain.marginals.flat.tobytes()
    frame = trace_of(posterior).to_frame()
    assert frame["algorithm"].tolist() == ["exact"]
    (row,) = frame.to_dict("records")
    assert row["lower"] == row["upper"] == row["estimate"] == row["best_upper"] == plain.log_z
    assert row["error"] == 0.0
    marginals = trace_of(posterior).marginals_frame()
    np.testing.assert_array_equal(marginals["p"], plain.marginals.flat)


def test_bounds_tighten_around_the_truth() -> None:
    graph = grid(12, 12, coupling=1.5, field=0.5, seed=1)
    truth = infer(graph, "exact")
    assert truth.log_z is not None
    posterior = infer(graph, trace=True, memory_limit=20_000, seconds=1.0)
    trace = trace_of(posterior)
    frame = trace.to_frame()
    assert {"lbp", "cavi"} <= set(frame["algorithm"])
    # Message passing's approximation has no error, and is no estimate.
    passed = frame[frame["algorithm"] == "lbp"]
    assert passed["estimate"].isna().all()
    assert passed["bethe"].notna().all()
    assert (frame["bethe"].isna() | frame["estimate"].isna()).all()
    for column in ("processor_seconds", "best_lower"):
        assert frame[column].is_monotonic_increasing
    assert frame["best_upper"].is_monotonic_decreasing
    # Rounding of sums of some hundred numbers.
    assert (frame["lower"].dropna() <= truth.log_z + 1e-9).all()
    assert (frame["upper"].dropna() >= truth.log_z - 1e-9).all()
    assert (frame["own_seconds"] >= 0.0).all()
    last = frame.iloc[-1]
    assert last["best_lower"] == posterior.stats["lower"]
    assert last["best_upper"] >= posterior.stats["upper"]
    marginals = trace.marginals_frame()
    assert len(marginals) == len(frame) * int(graph.cardinalities.sum())
    by_step = marginals.groupby("step")["p"]
    assert any((p.to_numpy() == posterior.marginals.flat).all() for _, p in by_step)


def test_a_backend_by_name_is_a_step_of_its_own() -> None:
    for seed in range(6):
        graph = odd_graph(seed)
        for name in ("lbp", "wmb", "cavi"):
            try:
                posterior = infer(graph, name, trace=True)
            except InferenceError:
                continue
            (step,) = trace_of(posterior).steps
            assert step.algorithm == name
            lower, upper = certain_bounds(step.posterior)
            kind = str(posterior.log_z_kind)
            assert lower == posterior.log_z or kind not in ("elbo", "lower", "exact")
            assert upper == posterior.log_z or kind not in ("upper", "exact")
            np.testing.assert_array_equal(step.posterior.marginals.flat, posterior.marginals.flat)
