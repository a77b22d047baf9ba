"""Settings out of range: refused by every backend, before anything runs."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pytest

from factormodels import FactorGraph
from inference import Backend, Posterior, entries, get_backend
from inference.settings import setting
from tests.refusals import refused

CHAINS: dict[str, Any] = {
    "seed": -1, "chains": 0, "burn_in": -1, "draws": 3, "min_effective": math.nan,
}  # fmt: skip
ASCENTS: dict[str, Any] = {"seed": -1, "restarts": 0, "max_iterations": 0, "tolerance": math.nan}
MESSAGES: dict[str, Any] = {"damping": 1.0, "tolerance": -1.0, "max_iterations": 0}

OUT_OF_RANGE: dict[str, dict[str, Any]] = {
    "auto": {"seconds": 0.0, "memory_limit": -1, "seed": -1},
    "exact": {
        "seed": -1,
        "restarts": -1,
        "search_seconds": -1.0,
        "memory_limit": 0,
        "seconds_limit": 0.0,
    },
    "lbp": {**MESSAGES, "schedule": "random walk", "seed": -1},
    "trw": {
        **MESSAGES,
        "forests": 0,
        "weight_updates": -1,
        "seconds": 0.0,
        "schedule": "forward",
    },
    "enumeration": {"max_states": 0},
    "wmb": {
        "i_bound": 0,
        "bound": "both",
        "partition": "best",
        "iterations": 0,
        "tolerance": -1.0,
        "seed": -1,
        "restarts": -1,
        "table_limit": 0,
        "memory_limit": 0,
        "seconds": 0.0,
        "clampings": -1,
    },
    "gibbs": {**CHAINS, "temperatures": 0},
    "wmb_is": {
        "i_bound": 0,
        "samples": 100,
        "confidence": 1.0,
        "iterations": 0,
        "min_effective": math.nan,
        "seed": -1,
        "restarts": -1,
        "seconds": 0.0,
        "memory_limit": 0,
    },
    "ijgp": {
        **MESSAGES,
        "i_bound": 27,
        "seed": -1,
        "restarts": -1,
        "memory_limit": 0,
        "seconds": 0.0,
    },
    "ais": {
        "seed": -1,
        "groups": 1,
        "particles": 1,
        "share": 1.0,
        "resample": 1.5,
        "sweeps": 0,
        "draws": 0,
        "min_effective": math.nan,
        "seconds": 0.0,
        "memory_limit": 0,
    },
    "numpyro": {**CHAINS, "max_evaluations": 0.0},
    "cavi": {**ASCENTS, "seconds": -1.0},
    "mean_field": ASCENTS,
    "pgmpy": {"memory_limit": 0},
    "pyagrum": {"memory_limit": 0},
    "pgmax": MESSAGES,
    "exact_jax": {"seed": -1, "memory_limit": 0},
    "lbp_jax": MESSAGES,
}
"""By backend, a value of every setting that it checks."""

MORE: list[tuple[str, str, Any]] = [
    ("lbp", "damping", "strong"),
    ("lbp", "tolerance", math.nan),
    ("trw", "damping", -0.1),
    ("pgmax", "damping", "adaptive"),
    ("lbp", "max_iterations", 2.5),
    ("gibbs", "chains", True),
]


@pytest.mark.parametrize(
    ("backend", "setting", "value"),
    [(name, *pair) for name, values in OUT_OF_RANGE.items() for pair in values.items()] + MORE,
)
def test_settings_out_of_range_are_refused(backend: str, setting: str, value: Any) -> None:
    # What `auto` hands on to the exact backend is refused in that one's name.
    named = "'exact'" if backend == "auto" and setting != "seconds" else f"'{backend}'"
    said = [setting.replace("_", "."), re.escape(str(value)), named]
    refused("".join(f"(?=.*{words})" for words in said), get_backend, backend, **{setting: value})


def test_every_backend_is_asked() -> None:
    assert OUT_OF_RANGE.keys() == set(entries())


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
def test_what_a_setting_may_be(
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
