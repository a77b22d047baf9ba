"""The package of uncertain relations: every name is there, and nothing is loaded before its use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inference.tasks import uncertain_relations

ROOT = Path(__file__).resolve().parents[3]


def test_every_name_is_there_and_stays_what_it_is() -> None:
    for name in uncertain_relations.__all__:
        found = getattr(uncertain_relations, name)
        assert callable(found)
        assert found.__name__ == name
        assert getattr(uncertain_relations, name) is found
    with pytest.raises(AttributeError, match="no attribute 'no_name'"):
        uncertain_relations.no_name  # noqa: B018


def test_importing_the_package_compiles_nothing() -> None:
    code = (
        "import sys, inference.tasks.uncertain_relations; "
        "print({'numba', 'scipy', 'torch', 'jax'} & sys.modules.keys())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "set()"
