"""Optional libraries, imported when a stage that needs them is built."""

from __future__ import annotations

import importlib
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
