"""Options of a command in groups: frozen dataclasses that a command takes whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer.models import OptionInfo


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Command whose parameters that are dataclasses are taken apart into their fields.

    A field is declared as a parameter is, `name: Annotated[TYPE, typer.Option(...)] = DEFAULT`. The
    first line of the dataclass's docstring, without its full stop, is the panel of `--help` that
    its options stand in.

    Args:
        command: a function that takes groups beside parameters of its own.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {
        name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)
    }
    own: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            own += _parameters(groups[name])
        else:
            own.append(parameter.replace(annotation=hints[name]))

    @wraps(command)
    def flat(**given: Any) -> None:
        built = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **built)

    # What typer reads: the signature for names and defaults, the annotations for types.
    flat.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    flat.__annotations__ = {one.name: one.annotation for one in own}
    del flat.__wrapped__
    return flat


def _parameters(group: type[Any]) -> Iterator[inspect.Parameter]:
    panel = (inspect.getdoc(group) or "").partition("\n")[0].removesuffix(".")
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(field),
            annotation=_in_panel(hints[field.name], panel),
        )


def _default(field: Field[Any]) -> Any:
    return inspect.Parameter.empty if field.default is MISSING else field.default


def _in_panel(annotation: Any, panel: str) -> Any:
    """The annotation of an option, which stands in a panel of `--help`."""
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, *notes = get_args(annotation)
    moved = []
    for note in notes:
        if isinstance(note, OptionInfo):
            # A copy, since options that several commands share stand in other panels there.
            note = copy(note)
            note.rich_help_panel = panel
        moved.append(note)
    return Annotated[(kind, *moved)]
