"""Settings from YAML files, whose keys are option names without leading hyphens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from factormodels.errors import InputError
from factormodels.io.source.files import read_text


def read_configs(paths: Iterable[Path]) -> dict[str, tuple[Any, str]]:
    """Read options from files as (value, file) by option name; later files take precedence.

    Raises:
        InputError: for a file that cannot be read, or is not a mapping of names to values.
    """
    paths = list(paths)
    if not paths:
        return {}
    # PyYAML takes longer to load than many commands run.
    from factormodels.io.yaml import parse_yaml

    settings: dict[str, tuple[Any, str]] = {}
    for path in paths:
        content = parse_yaml(read_text(path), str(path))
        if not isinstance(content, Mapping):
            raise InputError(
                f"{path}: the file is not a mapping; write OPTION: VALUE in each line, such as "
                "seed: 1"
            )
        settings |= {str(name): (value, str(path)) for name, value in content.items()}
    return settings
