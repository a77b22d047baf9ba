"""The package: every name is there, and readers of files are loaded when one is asked for."""

from __future__ import annotations

import pytest

import factormodels
from tests.processes import run_python


def test_every_name_is_there_and_listed() -> None:
    assert set(factormodels.__all__) <= set(dir(factormodels))
    for name in factormodels.__all__:
        assert getattr(factormodels, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'no_name'"):
        factormodels.no_name  # noqa: B018


@pytest.mark.parametrize("module", ["factormodels", "inference"])
def test_readers_are_loaded_when_one_is_asked_for(module: str) -> None:
    program = (
        f"import sys, {module}; from factormodels import FactGraph; "
        "print('factormodels.io' in sys.modules); "
        "from factormodels import read; print('factormodels.io' in sys.modules)"
    )
    assert run_python(program)[0].split() == ["False", "True"]
