"""Registry of inference backends by name, loaded on demand.

Another package provides a backend by an entry point of the group `factormodels.backends` whose
value is its `Entry`. Entry points are loaded when a name is unknown or all backends are listed, in
every process.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from factormodels.errors import InputError, MissingDependencyError, nearest, unknown_name
from inference.backend import Backend

logger = logging.getLogger(__name__)

ENTRY_POINTS = "factormodels.backends"
"""Group of the entry points by which installed packages provide backends."""

_MOST = 2**63 - 1
"""Maximum value of a setting, since kernels count in 64 bits."""


@dataclass(frozen=True)
class Entry:
    """Description of a backend that is available without loading it.

    Attributes:
        name: name of the backend.
        target: its class: "module:Class", or the class itself.
        summary: one line with the algorithm and its guarantees.
        log_z_kind: the kind of log partition function that it reports.
        limits: one line with the graphs that it is meant for.
        requires: optional libraries that it imports.
        extra: extra of this package that installs them.
        install: command that installs them, if the extra alone does not.
    """

    name: str
    target: str | type[Backend]
    summary: str
    log_z_kind: str
    limits: str = "any graph"
    requires: tuple[str, ...] = ()
    extra: str = ""
    install: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """The optional libraries of this backend that are not installed."""
        return tuple(library for library in self.requires if find_spec(library) is None)

    @property
    def install_command(self) -> str:
        """The command that installs the libraries of this backend."""
        return self.install or f"pip install 'factorfacts[{self.extra}]'"


_ENTRIES: dict[str, Entry] = {}


def register(entry: Entry) -> None:
    """Add a backend to the registry.

    Raises:
        InputError: if the name is already registered.
    """
    if entry.name in _ENTRIES:
        raise InputError(f"a backend named {entry.name!r} is registered already; choose another")
    _ENTRIES[entry.name] = entry


def unregister(name: str) -> None:
    """Remove a backend that was added with `register`."""
    get_entry(name)
    del _ENTRIES[name]


def entries() -> Mapping[str, Entry]:
    """Return every registered backend by name, in the order of registration."""
    _register_installed()
    return MappingProxyType(_ENTRIES)


def get_entry(name: str) -> Entry:
    """Return the entry of the backend called `name`.

    Raises:
        InputError: if no backend has that name; the message lists the backends.
    """
    if name not in _ENTRIES:
        _register_installed()
    try:
        return _ENTRIES[name]
    except KeyError:
        listed = "`factormodels list backends` lists all"
        raise InputError(unknown_name(f"the backend {name!r}", name, _ENTRIES, listed)) from None


def backend_class(name: str) -> type[Backend]:
    """Return the class of the backend called `name`, importing its module.

    Raises:
        InputError: if no backend has that name.
        MissingDependencyError: if a library that it needs is not installed.
    """
    entry = get_entry(name)
    if entry.requires and entry.missing:
        raise MissingDependencyError(
            f"the backend {name!r} needs {', '.join(entry.missing)}, which is not installed; "
            f"run: {entry.install_command}"
        )
    return _loaded(entry.target) if isinstance(entry.target, str) else entry.target


@functools.cache
def _loaded(target: str) -> type[Backend]:
    """Return the class at "module:Class", even if another thread is importing the module.

    The result is cached, since a repeated import takes ten times as long.
    """
    module, _, attribute = target.partition(":")
    loaded: type[Backend] = getattr(import_module(module), attribute)
    return loaded


@functools.cache
def _with_defaults(cls: type[Backend]) -> Backend:
    """Return a shared instance with default settings; it is immutable, and slow to build."""
    return cls()


def get_backend(name: str, **settings: Any) -> Backend:
    """Return the backend called `name` with the given settings.

    Raises:
        InputError: if no backend has that name, it has no such setting, or a number exceeds the
            range of the kernels.
        MissingDependencyError: if a library that it needs is not installed.
    """
    cls = backend_class(name)
    if not settings:
        return _with_defaults(cls)
    known = [field.name for field in fields(cls)]
    for setting, value in settings.items():
        if setting not in known:
            near = nearest(setting, known)
            hint = f"did you mean {near!r}?" if near else f"it has: {', '.join(known) or 'none'}"
            raise InputError(f"the backend {name!r} has no setting {setting!r}; {hint}")
        if isinstance(value, int) and value > _MOST:
            raise InputError(
                f"{setting} of {name!r} is {Decimal(value):.3g}; give a number of at most {_MOST:,}"
            )
    build: Callable[..., Backend] = cls
    return build(**settings)


def as_backend(backend: str | Backend, **settings: Any) -> Backend:
    """Return a backend instance unchanged, or the backend of a name with the given settings.

    Raises:
        InputError, MissingDependencyError: as in `get_backend`; InputError also for any other
            object.
    """
    if isinstance(backend, str):
        return get_backend(backend, **settings)
    if not isinstance(backend, Backend):
        raise InputError(
            f"{backend!r} is neither the name of a backend nor a backend; give one, such as 'exact'"
        )
    return backend


@functools.cache
def _register_installed() -> None:
    """Register the backends of installed packages; log and skip a backend that fails to load."""
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        package = "an installed package" if point.dist is None else f"the package {point.dist.name}"
        try:
            entry = point.load()
        except Exception as error:  # Whatever another package raises must not stop this one.
            logger.warning(
                "the backend %r of %s cannot be loaded (%s); update or remove the package",
                point.name,
                package,
                error,
            )
            continue
        if not isinstance(entry, Entry):
            logger.warning(
                "the entry point %r of %s leads to no inference.Entry; fix the package",
                point.name,
                package,
            )
        elif entry.name in _ENTRIES:
            logger.warning(
                "the backend %r of %s has the name of another, which stays; rename it",
                entry.name,
                package,
            )
        else:
            register(entry)
