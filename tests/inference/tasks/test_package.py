"""The packages of tasks: every name is there, and nothing is loaded before it is asked for."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.processes import run_python

PACKAGES = ("inference.tasks", "inference.tasks.uncertain_relations")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there_and_stays_what_it_is(package: str) -> None:
    module = import_module(package)
    for name in module.__all__:
        found = getattr(module, name)
        assert callable(found)
        assert found.__name__ == name
        assert getattr(module, name) is found
    with pytest.raises(AttributeError, match="no attribute 'no_name'"):
        module.no_name  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_a_list_of_its_names_has_all_and_loads_none(package: str) -> None:
    found, _ = run_python(
        f"import {package} as p; print(set(p.__all__) - set(dir(p)), set(p.__all__) & set(vars(p)))"
    )
    assert found.strip() == "set() set()"


@pytest.mark.parametrize("module", [*PACKAGES, "inference.tasks.autodiff"])
def test_importing_the_package_compiles_nothing(module: str) -> None:
    heavy = "{'numba', 'scipy', 'torch', 'jax'}"
    found, _ = run_python(f"import sys, {module}; print({heavy} & sys.modules.keys())")
    assert found.strip() == "set()"
