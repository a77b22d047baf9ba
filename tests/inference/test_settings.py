"""Settings out of range: refused by every backend, before anything runs."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pytest

from factormodels import FactorGraph
from inference import Backend, Posterior, entries, get_backend
from inference.registry import backend_class
from inference.settings import setting
from tests.refusals import refused

OUT_OF_RANGE: dict[str, Any] = {
    **{"seed": -1, "restarts": -1, "threads": 0, "memory_limit": 0, "max_states": 0},
    **{"seconds": 0.0, "seconds_limit": 0.0, "search_seconds": -1.0, "max_evaluations": 0.0},
    "clamping_search_seconds": -1.0,
    **{"damping": 1.0, "tolerance": math.nan, "max_iterations": 0, "schedule": "random walk"},
    **{"forests": 0, "weight_updates": -1},
    **{"i_bound": 0, "bound": "both", "partition": "best", "iterations": 0, "table_limit": 0},
    **{"clampings": -1, "samples": 100, "confidence": 1.0},
    **{"chains": 0, "burn_in": -1, "draws": 0, "temperatures": 0, "min_effective": math.nan},
    **{"groups": 1, "particles": 1, "share": 1.0, "resample": 1.5, "sweeps": 0},
    **{"judge_i_bound": 0, "judge_draws": 511},
}
"""By name, a value that no backend with such a setting takes."""

ANY = ("diagnostics", "gap")
"""Settings that are true or false."""

MORE: list[tuple[str, str, Any]] = [
    ("lbp", "damping", "strong"),
    ("lbp", "tolerance", -1.0),
    ("trw", "damping", -0.1),
    ("trw", "schedule", "forward"),
    ("pgmax", "damping", "adaptive"),
    ("lbp", "max_iterations", 2.5),
    ("gibbs", "chains", True),
    ("gibbs", "draws", 3),
    ("numpyro", "draws", 3),
    ("ijgp", "i_bound", 27),
    ("cavi", "restarts", 0),
    ("cavi", "restarts", 10**13),
    ("mean_field", "restarts", 0),
]


def assert_refused(backend: str, setting: str, value: Any) -> None:
    # What `auto` hands on to the exact backend is refused in that one's name.
    named = "'exact'" if backend == "auto" and setting != "seconds" else f"'{backend}'"
    patterns = [setting.replace("_", "."), re.escape(str(value)), named]
    refused(
        "".join(f"(?=.*{words})" for words in patterns), get_backend, backend, **{setting: value}
    )


@pytest.mark.parametrize("backend", list(entries()))
def test_every_setting_is_refused_out_of_its_range(backend: str) -> None:
    names = [field.name for field in fields(backend_class(backend)) if field.name not in ANY]
    assert names
    for name in names:
        assert_refused(backend, name, OUT_OF_RANGE[name])


@pytest.mark.parametrize(("backend", "setting", "value"), MORE)
def test_further_values_are_refused(backend: str, setting: str, value: Any) -> None:
    assert_refused(backend, setting, value)


@pytest.mark.parametrize(
    ("declared", "words", "allowed", "refused_values"),
    [
        (
            setting(0, least=0),
            "a whole number from 0 up",
            [0, 5, np.int64(5)],
            [-1, 1.5, 1.0, math.nan, math.inf, True, None, "0", b"0", [0], np.zeros(2), 1j],
        ),
        (setting(1, least=1, most=4_000), "a whole number from 1 to 4,000", [1, 4_000], [0, 4_001]),
        (
            setting(None, above=0.0),
            "a number above 0.0",
            [None, 1e-9, math.inf, 1, np.float32(0.5)],
            [0.0, -1.0, False, [1.0], np.ones(2), Decimal("NaN")],
        ),
        (setting(5.0, above=0), "a number above 0", [0.5], [0, "1"]),
        (
            setting(0.5, above=0.0, below=1.0),
            "a number above 0.0 to below 1.0",
            [1e-9, 0.5],
            [0.0, 1.0, math.nan],
        ),
        (
            setting(0.5, least=0.0, below=1.0, names=["adaptive"]),
            "a number from 0.0 to below 1.0 or 'adaptive'",
            [0.0, "adaptive"],
            [1.0, "other"],
        ),
        (setting("one", names=["one", "two"]), "'one' or 'two'", ["one", "two"], ["three", 1]),
    ],
    ids=["from", "both ends", "or none", "fraction", "open ends", "or a name", "names"],
)
def test_valid_settings(
    declared: Any, words: str, allowed: list[Any], refused_values: list[Any]
) -> None:
    declaration = declared.metadata["allowed"]
    assert str(declaration) == words
    assert all(map(declaration.holds, allowed))
    assert not any(map(declaration.holds, refused_values))


@dataclass(frozen=True, slots=True)
class Slotted(Backend):
    """Has a setting in a slot, as a backend of another package may."""

    name: ClassVar[str] = "slotted"
    weight: float = setting(1.0, least=0.0)

    def solve(self, graph: FactorGraph) -> Posterior:
        raise NotImplementedError


def test_a_setting_in_a_slot_is_checked() -> None:
    assert Slotted(2.0).weight == 2.0
    refused("weight of 'slotted' is -1.0; give a number from 0.0 up", Slotted, -1.0)
