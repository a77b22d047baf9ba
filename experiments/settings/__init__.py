"""Settings of commands and functions: types, defaults, limits and meanings.

A function of the front door takes a settings object. Its command, the JSON Schema and the keys of a
study use the same class: an option is a field, and its help is the string below the field.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, reduce, wraps
from itertools import pairwise
from operator import or_
from pathlib import Path
from types import MappingProxyType, ModuleType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from experiments.destination import check_destination, check_file, check_page
from experiments.settings.mends import known_mend
from factormodels.errors import InputError, as_arguments, options_as_arguments, unknown_name
from factormodels.io.not_used import not_used_records, not_used_sentence, noting


@dataclass(frozen=True)
class Option:
    """Command-line properties of a field.

    Attributes:
        metavar: placeholder of its value; derived from the type if empty.
        name: the option's name without hyphens, if it is not the field's.
        command_line: True if the command line has the option; some values can be passed only from
            Python.
        usual: True if most users need it: `--help` shows usual options, `--help-all` all.
        writes: True if it names a file that the command writes.
        repeatable: True if it may be repeated although its field is a single value.
        python: type annotation in Python, if wider than the field's type.
    """

    metavar: str = ""
    name: str = ""
    command_line: bool = True
    usual: bool = False
    writes: bool = False
    repeatable: bool = False
    python: str = ""


USUAL = Option(usual=True)
"""Mark of an option that `--help` shows, with details beyond the type of the field."""


class Settings(BaseModel):
    """Base class of settings: frozen, without undeclared fields."""

    # Most classes of settings are neither validated nor described in a process: pydantic builds a
    # validator when one is first used, and `meanings_of` reads what the strings below fields say.
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False, defer_build=True)

    writes_several_files: ClassVar[bool] = False
    """True if `out` of the command is always a folder, for a study or a page that saves in it."""

    unusual: ClassVar[frozenset[str]] = frozenset()
    """Inherited fields that `--help` leaves to `--help-all` here."""

    usual_output: ClassVar[frozenset[str]] = frozenset()
    """Options of tables and figures that `--help` shows here."""

    writes_page: ClassVar[bool] = False
    """True if `out` of the command is a page for a browser."""

    absent_output: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Output options that the command lacks, each with the end of its error message; {value} stands
    for the given value."""

    @classmethod
    def instead_of(cls, option: str, value: str) -> str:  # noqa: ARG003
        """Text to write instead of an option that the command lacks; "" if none is known.

        Args:
            option: name of the option, without hyphens.
            value: its value, as given.
        """
        return ""

    @classmethod
    def from_given(cls, given: Mapping[str, Any]) -> Self:
        """Build settings from the given values and defaults for all others.

        None means that a value is not given.

        Raises:
            InputError: for an unknown name, or an invalid value.
        """
        for name in given.keys() - cls.model_fields.keys():
            if name in _OF_RESULTS:
                raise InputError(
                    f"{name} is not an argument here; use {_OF_RESULTS[name]} of the result"
                )
            subject, listed = f"the argument {name!r}", "help() of the function shows every one"
            raise InputError(unknown_name(subject, name, cls.model_fields, listed))
        try:
            return cls(**{name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            raise InputError(_sentence(cls, error)) from None


_OF_RESULTS: Mapping[str, str] = MappingProxyType(
    {
        "out": "save(PATH)",
        "report": "report(PATH)",
        "rename": "save(PATH, rename={OLD: NEW})",
        "show": "save(PATH, show=[COLUMN])",
        "venue": "save(PATH, venue=VENUE)",
    }
)
"""Method calls of a result that replace output options, by option."""


@cache
def option_of(kind: type[Settings], name: str) -> Option:
    """Command-line properties of a field, with its option name filled in.

    Annotations of the field take precedence over those of its type.
    """
    fields: dict[str, Any] = {"name": name.strip("_").replace("_", "-")}
    for note in kind.model_fields[name].metadata:
        if isinstance(note, Option):
            fields |= {key: value for key, value in vars(note).items() if value != _PLAIN[key]}
    if name in kind.unusual | kind.usual_output:
        fields["usual"] = name in kind.usual_output
    return Option(**fields)


_PLAIN: Mapping[str, Any] = MappingProxyType(vars(Option()))


@cache
def declared_in(kind: type[Settings], name: str) -> type[Settings]:
    """The base class that declares a field."""
    return next(each for each in kind.__mro__ if name in inspect.get_annotations(each))


@cache
def meanings_of(kind: type[Settings]) -> Mapping[str, str]:
    """Descriptions of the fields of a class: the string below each, or its type's description."""
    meanings = {name: field.description or "" for name, field in kind.model_fields.items()}
    for each in reversed(kind.__mro__):
        if issubclass(each, Settings) and inspect.get_annotations(each):
            meanings |= _strings_below(sys.modules[each.__module__]).get(each.__qualname__, {})
    return {name: meanings[name] for name in kind.model_fields}


@cache
def _strings_below(module: ModuleType) -> Mapping[str, Mapping[str, str]]:
    """Strings below the names that classes of a module annotate, by class and name."""
    return {
        node.name: {
            named.target.id: inspect.cleandoc(below.value.value)
            for named, below in pairwise(node.body)
            if isinstance(named, ast.AnnAssign)
            and isinstance(named.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        }
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ClassDef)
    }


def _sentence(kind: type[Settings], error: ValidationError) -> str:
    """Sentence on the first error of settings."""
    fault = error.errors(include_url=False)[0]
    field = str(fault["loc"][0]) if fault["loc"] else ""
    reason = str(fault.get("ctx", {}).get("error", fault["msg"]))
    if not field:
        return reason
    value = fault["input"]
    texts = value if isinstance(value, list) else [value]
    shown = " ".join(map(_named, texts))
    subject = f"--{option_of(kind, field).name} {shown}"
    if mend := known_mend(fault):
        if fault["type"] == "path_type" and hasattr(value, "save"):
            mend += " of a file; `save` writes a result to one"
        return f"{subject}: {mend}"
    if fault["type"] == "literal_error":
        names = choices_of(kind.model_fields[field].annotation)
        return unknown_name(subject, fault["input"], names)
    return f"{subject}: {reason}"


def _named(value: Any) -> str:
    """Text of a given value: the text or number itself, and the type of any other object."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, int | float | os.PathLike | dict):
        return repr(value)
    return f"({type(value).__name__} object)"


def choices_of(hint: Any) -> tuple[Any, ...]:
    """The values of a literal type, also if None is allowed; empty for other types."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return next(filter(None, map(choices_of, get_args(hint))), ())


def _listed(value: Any) -> Any:
    """Return values as a tuple; a single text, number or path is a list of one."""
    return (value,) if isinstance(value, str | int | float | os.PathLike) else value


def _parted(value: Any) -> Any:
    """Return values as a tuple, with texts split at commas."""
    texts = _listed(value)
    if not isinstance(texts, list | tuple):
        return value
    parts = (text.split(",") if isinstance(text, str) else [text] for text in texts)
    stripped = [each.strip() if isinstance(each, str) else each for part in parts for each in part]
    return tuple(each for each in stripped if each != "")


ColumnName = Annotated[str | None, Option("COLUMN")]
"""A column of a table."""

Files = Annotated[tuple[Path, ...], Option("FILE"), BeforeValidator(_listed)]
"""Files, one or several."""

ColumnNames = Annotated[tuple[str, ...], Option("COLUMN"), BeforeValidator(_listed)]
"""Columns of a table, one or several."""

Words = Annotated[tuple[str, ...], Option("WORD"), BeforeValidator(_listed)]
"""Words or names, one or several."""

Names = Annotated[tuple[str, ...], Option("NAME,..."), BeforeValidator(_parted)]
"""Names: one or several, or several in a comma-separated text."""


def _by_name(value: Any) -> Any:
    """Parse texts NAME=TEXT into a mapping."""
    if not isinstance(value, list):
        return value
    for text in value:
        if "=" not in text:
            raise ValueError("give NAME=TEXT, such as --rename gpt-4o=GPT-4o")
    return dict(text.split("=", 1) for text in value)


NewNames = Annotated[dict[str, str], Option("NAME=TEXT"), BeforeValidator(_by_name)]
"""Replacements of names in the output, by the replaced name."""

Numbers = Annotated[tuple[float, ...], Option("X,..."), BeforeValidator(_parted)]
"""Numbers: one or several, or several in a comma-separated text."""

Result = TypeVar("Result")


def settings_of(function: Callable[..., Any]) -> type[Settings]:
    """Settings class of a front-door function."""
    plain = inspect.unwrap(function)
    kind = plain.__annotations__["settings"]
    # Not `get_type_hints`: types of data are imported for the type checker alone.
    settings_class: type[Settings] = getattr(sys.modules[plain.__module__], kind)
    return settings_class


def front_door(function: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate a function to accept settings, or their fields as keywords.

    score(data, Score(folds=3)) and score(data, folds=3) are equivalent; keywords replace fields of
    the settings. Errors and sentences then name arguments instead of options.
    """
    names = list(inspect.signature(function).parameters)

    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Result:
        kind = settings_of(function)
        data = {name: options.pop(name) for name in list(options) if name in names}
        data |= dict(zip(names, arguments, strict=False))
        base: Settings | None = data.pop("settings", None)
        if base is not None and not isinstance(base, Settings):
            raise InputError(
                f"`settings` is {base!r}; give {kind.__name__} or name its fields, such as "
                f"{next(iter(kind.model_fields))}=..."
            )
        chosen = (
            {} if base is None else {name: getattr(base, name) for name in base.model_fields_set}
        )
        by_option = {option_of(kind, name).name: name for name in kind.model_fields}
        with options_as_arguments(by_option):
            result: Any = found_by(function, kind.from_given({**chosen, **options}), **data)
        sentences = tuple(as_arguments(each, by_option) for each in result.sentences)
        in_python: Result = replace(result, sentences=sentences)
        return in_python

    called.__signature__ = _signature(function)  # type: ignore[attr-defined]
    return called


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function of the front door, a keyword for each of its settings.

    Usual settings come first, as in `--help`.
    """
    plain = inspect.signature(function)
    kind = settings_of(function)
    data = [
        each.replace(default=None) if each.name == "settings" else each
        for each in plain.parameters.values()
    ]
    fields = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.get_default(call_default_factory=True),
            annotation=_plain(field.annotation),
        )
        for name, field in kind.model_fields.items()
    ]
    fields.sort(key=lambda parameter: not option_of(kind, parameter.name).usual)
    return plain.replace(parameters=[*data, *fields])


def _plain(hint: Any) -> Any:
    """Return a type without the notes of `Annotated`, which `help()` would print, at any depth."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _plain(arguments[0])
    if origin in (Union, UnionType):
        return reduce(or_, map(_plain, arguments))
    if isinstance(hint, list):
        # The arguments of a callable.
        return [*map(_plain, hint)]
    if not arguments or origin is Literal:
        return hint
    return origin[tuple(map(_plain, arguments))]


def command_name(function: Callable[..., Any]) -> str:
    """The name of the command of a function of the front door."""
    return function.__name__.strip("_").replace("_", "-")


def files_read(settings: Settings, arguments: Sequence[Any]) -> tuple[Path, ...]:
    """Files among arguments and settings, without files that the command writes."""
    kind = type(settings)
    values = [*arguments]
    for name in kind.model_fields:
        if not option_of(kind, name).writes:
            values.append(getattr(settings, name))
    parts = (value if isinstance(value, list | tuple) else (value,) for value in values)
    return tuple(Path(each) for part in parts for each in part if _is_file(each))


def _is_file(value: Any) -> bool:
    # A text that is too long for a path, or has a null character, is not a path.
    with suppress(OSError, ValueError):
        return isinstance(value, str | Path) and Path(value).is_file()
    return False


def check_out(kind: type[Settings], path: Path, inputs: Sequence[Path]) -> None:
    """Check that a command can write its destination.

    Args:
        kind: the settings of the command.
        path: the destination.
        inputs: files that the command reads.

    Raises:
        InputError: if it cannot be written, or is not of the kind that the command writes.
    """
    if kind.writes_page:
        check_page(path, inputs)
    else:
        check_destination(path, inputs=inputs, folder_only=kind.writes_several_files)


def found_by(
    function: Callable[..., Result], settings: Settings, *arguments: Any, **named: Any
) -> Result:
    """Call a function of the front door, and return its findings with its name and settings.

    Settings that the function itself reports, such as choices it made, take precedence. The last
    sentence names the contents of its input files that were not used.

    Raises:
        InputError: if an output file cannot be written, and as the function does.
    """
    inputs = files_read(settings, (*arguments, *named.values()))
    for name in type(settings).model_fields:
        path = getattr(settings, name)
        if path is not None and (option := option_of(type(settings), name)).writes:
            if name == "out":
                check_out(type(settings), path, inputs)
            else:
                check_file(path, f"--{option.name}", inputs)
    with noting() as notes:
        result: Any = inspect.unwrap(function)(*arguments, **named, settings=settings)
    asked = settings.model_dump(mode="json", exclude={"out"}, fallback=str)
    complete: Result = replace(
        result,
        command=command_name(function),
        settings={**asked, **result.settings},
        differing={**_differing(settings, asked), **result.differing},
        sentences=(*result.sentences, *filter(None, [not_used_sentence(notes)])),
        not_used=(*result.not_used, *not_used_records(notes)),
    )
    return complete


def _differing(settings: Settings, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that differ from their defaults, by option name.

    Args:
        settings: the settings.
        asked: their values, as JSON values.
    """
    kind = type(settings)
    differing: dict[str, Any] = {}
    for name, value in asked.items():
        default = kind.model_fields[name].get_default(call_default_factory=True)
        if getattr(settings, name) == default:
            continue
        option = option_of(kind, name).name
        if isinstance(value, bool):
            differing[f"--{option}" if value else f"--no-{option}"] = None
        elif isinstance(value, dict):
            # Settings of a backend are options of their own.
            differing |= {f"--{setting.replace('_', '-')}": each for setting, each in value.items()}
        else:
            differing[f"--{option}"] = value
    return differing
