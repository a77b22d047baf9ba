"""The sidecar of a UAI model file, ``<path>.names``: a line per variable, its states behind it.

The name of the variable stands first; where its states have names, they follow, parted by tabs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph, default_names
from factormodels.io.files import read_text, write_text


@dataclass(frozen=True)
class SidecarNames:
    """What a sidecar holds.

    Attributes:
        variables: the name of each variable.
        states: the names of its states; none of a variable whose states are numbers.
    """

    variables: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]

    def named_states(
        self, cardinalities: Sequence[int], path: str | os.PathLike[str]
    ) -> tuple[tuple[str, ...], ...] | None:
        """Names of the states of each variable, numbers where it has none; None if none has any.

        Raises:
            InputError: if a variable has another number of states than names.
        """
        if not any(self.states):
            return None
        for number, (own, count) in enumerate(zip(self.states, cardinalities, strict=True), 1):
            if own and len(own) != count:
                raise InputError(
                    f"{names_path(path)}: line {number} names {len(own)} states of "
                    f"{self.variables[number - 1]!r}, which has {count}; name all or none"
                )
        return tuple(
            own or default_names(count)
            for own, count in zip(self.states, cardinalities, strict=True)
        )


def names_path(path: str | os.PathLike[str]) -> Path:
    """Path of the sidecar file that holds the names of a model's variables."""
    return Path(f"{os.fspath(path)}.names")


def read_names(path: str | os.PathLike[str]) -> SidecarNames | None:
    """Names in the sidecar file of the model at `path`; None if there is none.

    Raises:
        InputError: if the sidecar cannot be read or holds an empty or repeated name.
    """
    sidecar = names_path(path)
    if not sidecar.exists():
        return None
    lines = read_text(sidecar).split("\n")
    if not lines[-1]:
        lines.pop()
    lines_of: dict[str, int] = {}
    states = []
    for number, line in enumerate((line.removesuffix("\r") for line in lines), start=1):
        name, *own = line.split("\t")
        if not name:
            raise InputError(f"{sidecar}: line {number} is empty; give each variable a name")
        if name in lines_of:
            raise InputError(
                f"{sidecar}: lines {lines_of[name]} and {number} both hold {name!r}; "
                "names are unique"
            )
        lines_of[name] = number
        states.append(tuple(own))
    return SidecarNames(tuple(lines_of), tuple(states))


def check_names(graph: FactorGraph, path: str | os.PathLike[str]) -> None:
    """Refuse names that do not each fit on a line.

    Raises:
        InputError: for the first such name.
    """
    states = (name for own in graph.state_names or () for name in own)
    for what, names in (("variable", graph.names), ("state", states)):
        for name in names:
            if not name or any(mark in name for mark in "\n\r\t") or not _encodable(name):
                raise InputError(
                    f"{path}: the {what} name {name!r} does not fit on a line of the names file; "
                    f"rename the {what}"
                )


def write_names(graph: FactorGraph, path: str | os.PathLike[str]) -> None:
    """Write the sidecar of the model at `path`; none where names are numbers and none is there.

    Raises:
        InputError: if a name does not fit on a line, or the file cannot be written.
    """
    check_names(graph, path)
    states = graph.state_names or [()] * graph.n_variables
    named = graph.names != default_names(graph.n_variables) or graph.state_names is not None
    # A sidecar left from another model would give this one its names.
    if named or names_path(path).exists():
        lines = ("\t".join((name, *own)) for name, own in zip(graph.names, states, strict=True))
        write_text(names_path(path), "".join(f"{line}\n" for line in lines))


def _encodable(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
