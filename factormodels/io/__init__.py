"""Readers and writers of models, which recognize files by their content rather than their name.

`read` and `read_many` support fact-graph JSON, the datasets of `factormodels.io.formats.registry`,
UAI models and BIF; files may be compressed with gzip, and `-` is standard input. `read_each` keeps
one graph of JSON Lines in memory at a time. `read_prompts` and `read_judged_pairs` read datasets
without responses. `write` and `write_many` write fact-graph JSON and UAI. For UAI evidence and
results see `factormodels.io.networks.uai_results`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from factormodels.io.reading import (
        read,
        read_any,
        read_each,
        read_judged_pairs,
        read_many,
        read_prompts,
    )
    from factormodels.io.writing import write, write_many

__all__ = [
    "read",
    "read_any",
    "read_each",
    "read_judged_pairs",
    "read_many",
    "read_prompts",
    "write",
    "write_many",
]


def __getattr__(name: str) -> Any:
    # Imported on demand, since modules that readers depend on import this package for JSON.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "writing" if name.startswith("write") else "reading"
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return list(__all__)
