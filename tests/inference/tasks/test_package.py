"""The package of tasks: every name is there, and nothing is loaded before it is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import inference.tasks

ROOT = Path(__file__).resolve().parents[3]


def test_every_name_is_there_and_stays_what_it_is() -> None:
    for name in inference.tasks.__all__:
        found = getattr(inference.tasks, name)
        assert callable(found)
        assert found.__name__ == name
        assert getattr(inference.tasks, name) is found
    with pytest.raises(AttributeError, match="no attribute 'no_task'"):
        inference.tasks.no_task  # noqa: B018


def test_importing_the_package_compiles_nothing() -> None:
    code = (
        "import sys, inference.tasks; "
        "import inference.tasks.autodiff; "
        "print({'numba', 'scipy', 'torch', 'jax'} & sys.modules.keys())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "set()"
