"""Fixtures that every package's tests share."""

from __future__ import annotations

import atexit
import gc
import os
from pathlib import Path

import pytest

# Collecting thousands of tests makes a million objects that stay: at Python's own thresholds,
# looking for circles among them again and again takes a third of that time, and a tenth of many
# tests' own.
gc.set_threshold(50_000, 10, 10)

# Each small graph is another program to JAX, compiled for a second and run for a millisecond: it is
# compiled in two thirds of the time without passes that only make it quick. Sums keep their order.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)


def pytest_configure(config: pytest.Config) -> None:
    """End a worker process, which has sent its results, without freeing its million objects.

    Python frees one by one, for up to ten seconds in which nothing else is left to run. What
    registers functions for the exit is imported later, so that these have run before.
    """
    if hasattr(config, "workerinput"):
        atexit.register(os._exit, 0)


def pytest_collection_finish() -> None:
    """While tests run, look for no circles among what imports and the collection have made."""
    gc.collect()
    gc.freeze()
    # Libraries tell at exit of what they hold and nobody has released.
    atexit.register(gc.unfreeze)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what reads shared data before markers select tests, and begin with what takes longest.

    A long test that starts last would keep one of several processes busy alone.
    """
    for item in items:
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker("shared")
    items.sort(key=lambda item: item.get_closest_marker("longest") is None)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the checkout; tests that read it skip where it is absent."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data of ../shared/data are not beside this checkout")
    return folder
