"""Optional libraries, imported when a stage that needs them is built."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from factormodels.errors import MissingDependencyError


def optional_module(name: str, extra: str) -> Any:
    """Return the module `name`, which the extra `extra` installs.

    Raises:
        MissingDependencyError: if it is not installed; the message names the command.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != name.partition(".")[0]:
            raise
        raise MissingDependencyError(
            f"{name} is not installed; install it with: pip install 'factorfacts[{extra}]'"
        ) from None


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Hide the progress bars of transformers, which it draws on the terminal for each model."""
    if importlib.util.find_spec("transformers") is None:
        yield
        return
    bars = importlib.import_module("transformers.utils.logging")
    enabled = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            bars.enable_progress_bar()
