"""The package of tasks: every name is there, and nothing is loaded before it is asked for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import entr

from inference import tasks
from tests.inference.tasks.cases import case
from tests.processes import run_python


def test_every_name_is_there_and_stays_what_it_is() -> None:
    for name in tasks.__all__:
        value = getattr(tasks, name)
        assert callable(value)
        assert value.__name__ == name
        assert getattr(tasks, name) is value
    with pytest.raises(AttributeError, match="no attribute 'no_name'"):
        tasks.no_name  # noqa: B018


def test_a_list_of_its_names_has_all_and_loads_none() -> None:
    differing, _ = run_python(
        "import inference.tasks as p; "
        "print(set(p.__all__) - set(dir(p)), set(p.__all__) & set(vars(p)))"
    )
    assert differing.strip() == "set() set()"


@pytest.mark.parametrize("module", ["inference.tasks", "inference.tasks.autodiff"])
def test_importing_the_package_compiles_nothing(module: str) -> None:
    heavy = "{'numba', 'scipy', 'torch', 'jax'}"
    imported, _ = run_python(f"import sys, {module}; print({heavy} & sys.modules.keys())")
    assert imported.strip() == "set()"


@pytest.mark.parametrize("seed", range(6))
def test_the_task_that_newcomers_are_shown_is_right(seed: int) -> None:
    text = (Path(__file__).parents[3] / "docs/development/recipes.md").read_text()
    (block,) = re.findall(r"```python\n(.*?def clique_entropies.*?)```", text, re.DOTALL)
    example: dict[str, Any] = {}
    exec(block, example)
    graph, truth = case(seed)
    cliques, separators = example["clique_entropies"](graph)
    probabilities = np.array(truth.probabilities)
    entropy = entr(probabilities / probabilities.sum()).sum()
    # Sums of the same terms in doubles.
    assert cliques.sum() - separators.sum() == pytest.approx(entropy, abs=1e-10)
    assert (cliques >= separators - 1e-12).all()
