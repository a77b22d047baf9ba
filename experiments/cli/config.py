"""Settings from files: a YAML mapping whose keys are options without their hyphens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from factormodels.errors import InputError
from factormodels.io.source.files import read_text


def read_configs(paths: Iterable[Path]) -> dict[str, tuple[Any, str]]:
    """Read options from files: value and file by the option's name; the last file wins.

    Raises:
        InputError: for a file that cannot be read, or is no mapping of names to values.
    """
    paths = list(paths)
    if not paths:
        return {}
    # PyYAML takes longer to load than a command has to do.
    from factormodels.io.yaml import parse_yaml

    settings: dict[str, tuple[Any, str]] = {}
    for path in paths:
        content = parse_yaml(read_text(path), str(path))
        if not isinstance(content, Mapping):
            raise InputError(
                f"{path}: a file of settings is a mapping; write OPTION: VALUE in each line, such "
                "as seed: 1"
            )
        settings |= {str(name): (value, str(path)) for name, value in content.items()}
    return settings
