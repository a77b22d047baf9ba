"""Relations whose probabilities are uncertain: averages, derivatives, and what to look up next.

from inference.tasks.uncertain_relations import sensitivity
sensitivity(fact_graph, encoding="implication")

Compiled code is loaded when a name is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inference.tasks.uncertain_relations.averaging import AveragedPosterior, averaged
    from inference.tasks.uncertain_relations.derivatives import sensitivity
    from inference.tasks.uncertain_relations.unseen import (
        OutcomeLaw,
        RelationValue,
        unseen_pairs,
        value_of_information,
    )

__all__ = [
    "AveragedPosterior",
    "OutcomeLaw",
    "RelationValue",
    "averaged",
    "sensitivity",
    "unseen_pairs",
    "value_of_information",
]

_MODULES = {
    "AveragedPosterior": "averaging",
    "OutcomeLaw": "unseen",
    "RelationValue": "unseen",
    "averaged": "averaging",
    "sensitivity": "derivatives",
    "unseen_pairs": "unseen",
    "value_of_information": "unseen",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
