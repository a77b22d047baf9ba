"""A wish to stop: clocks that raise a flag, and interrupts that reach every part."""

from __future__ import annotations

import time

import numpy as np

from inference import infer
from inference.stop import Stop
from tests.inference.graphs import frustrated
from tests.oracle import oracle


def waited(flag: np.ndarray, most: float) -> float:
    """Seconds until a flag is raised, at most so many."""
    start = time.monotonic()
    while not flag[0] and time.monotonic() - start < most:
        time.sleep(0.001)
    return time.monotonic() - start


def test_the_flag_is_raised_when_the_time_of_a_block_is_up_and_lowered_after() -> None:
    stop = Stop()
    with stop.within() as flag:
        assert not flag[0]
    with stop.within(0.02) as flag:
        assert waited(flag, 60.0) < 60.0
    assert not stop.flag[0]
    assert not stop.over
    with Stop(0.02).within() as flag:
        assert waited(flag, 60.0) < 60.0


def test_an_interrupt_reaches_every_part() -> None:
    stop = Stop(100.0)
    part = stop.part(50.0)
    assert 0.0 < part.remaining <= 50.0
    stop.interrupt()
    assert part.interrupted
    assert part.over
    assert part.flag[0]


def test_bounds_hold_in_no_time_at_all() -> None:
    for seed in range(10):
        graph = frustrated(seed)
        truth = oracle(graph).log_z
        for name in ("wmb", "trw", "cavi"):
            posterior = infer(graph, name, seconds=1e-9)
            upper = posterior.stats.get("upper", posterior.log_z)
            lower = posterior.stats.get("lower", posterior.log_z)
            assert name == "cavi" or upper >= truth - 1e-9, name
            assert name == "trw" or lower <= truth + 1e-9, name
            assert np.isfinite(posterior.marginals.flat).all()
