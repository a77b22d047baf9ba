"""Commands made from the functions of the front door: options, help and output are theirs.

A command is named as its function. What the function takes beside its settings are arguments; every
field of the settings is an option, with its help, default and limits. What it returns are findings,
which every command prints, writes and makes a page of in the same way.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from keyword import iskeyword
from pathlib import Path
from types import new_class
from typing import Annotated, Any, get_args

from cyclopts import App, CycloptsError, Group, Parameter
from docstring_parser import parse
from docstring_parser.common import DocstringStyle
from pydantic import BeforeValidator, Field
from rich.console import Console

from experiments.cli.console import (
    INCOMPLETE,
    LIMIT_REACHED,
    messages,
    output,
    show_folder,
    show_written,
    write_json,
)
from experiments.cli.options import (
    TakenOption,
    fields_set,
    options_of,
    set_option,
    spelled_as_options,
    with_keys_in_options,
)
from experiments.cli.progress import TerminalWatcher, announced
from experiments.destination import check_destination, check_file
from experiments.findings.findings import Findings
from experiments.findings.venues import DEFAULT_VENUE, venue_named
from experiments.progress import watched
from experiments.settings import (
    SET,
    Names,
    Option,
    Settings,
    command_name,
    files_read,
    found_by,
    settings_of,
)
from experiments.settings.limits import FilePath
from factormodels.errors import FactormodelsError, InputError


def _by_name(value: Any) -> Any:
    """Texts NAME=TEXT as a mapping."""
    return dict(each.split("=", 1) for each in value) if isinstance(value, list) else value


class Output(Settings, together={"show": "naming venue"}):
    """Output."""

    out: Annotated[FilePath | None, Option("PATH")] = None
    """Write tables (CSV, LaTeX, Markdown), figures and findings.json to this folder; or the
    first table to a file that ends in .csv, .parquet, .tex or .md, responses to .jsonl."""

    report: Annotated[FilePath | None, Option("FILE")] = None
    """Write everything as one page for a browser."""

    show: Annotated[Names, Option("COLUMN,...")] = ()
    """Columns of numbers to show, in this order, by name or title: --show brier,auroc."""

    naming: Annotated[dict[str, str], Option("NAME=TEXT", rest=True), BeforeValidator(_by_name)] = (
        Field(default_factory=dict)
    )
    """What stands in place of a name: --show gpt-4o=GPT-4o."""

    venue: Annotated[str, Option("NAME")] = DEFAULT_VENUE
    """What LaTeX tables and figures of --out fit: article, acl, icml, neurips, iclr, aaai, slides,
    or widths of a column and of the text in points, such as 219x455."""

    json_: bool = False
    """Print one JSON object and nothing else."""


_HYPHEN = "\0-"
"""In place of a hyphen that stands alone, standard input, which is no option."""


def run_command(function: Callable[..., Findings], arguments: Sequence[str]) -> int:
    """Call a function of the front door as the command of its name; return the exit code.

    Raises:
        InputError: for what no option or argument takes, and as the function does.
    """
    command = command_of(function)
    try:
        return int(command(tokens_of(function, arguments), result_action="return_value") or 0)
    except CycloptsError as error:
        error.verbose = False
        said = " ".join(str(error).split())
        raise InputError(f"{said} (see {command.name[0]} --help)") from None
    except FactormodelsError as error:
        sentence = spelled_as_options(settings_of(function), str(error))
        error.args = (sentence, *error.args[1:])
        raise


def tokens_of(function: Callable[..., Findings], arguments: Sequence[str]) -> list[str]:
    """What `command_of` a function is called with for the words of a command line."""
    words = with_keys_in_options(_with_output(settings_of(function)), arguments)
    return [_HYPHEN if each == "-" else each for each in words]


def command_of(function: Callable[..., Findings]) -> App:
    """The command of a function of the front door."""
    plain = inspect.unwrap(function)
    kind = settings_of(function)
    told = inspect.getdoc(plain) or ""
    meant = {
        each.arg_name: each.description or "" for each in parse(told, DocstringStyle.GOOGLE).params
    }
    parameters = inspect.signature(plain).parameters.values()
    places = [each for each in parameters if each.name != "settings"]
    both = _with_output(kind)
    options = _arranged(both)
    panels = {
        each: Group(_title(Further if each is Settings else each), sort_key=place)
        for place, each in enumerate(dict.fromkeys(option.panel for option in options))
    }
    signature = [
        *(_argument(each, meant.get(each.name, "")) for each in places),
        *(_parameter(option, panels[option.panel]) for option in options),
    ]
    takes = {
        each.name: option for each, option in zip(signature[len(places) :], options, strict=True)
    }

    def call(*typed: Any, **named: Any) -> int:
        arguments = [_as_typed(each) for each in typed]
        given: dict[str, Any] = {}
        for name, value in named.items():
            option = takes[name]
            if option.name == SET or value is None:
                continue
            given |= {option.head: value} if option.is_flag else option.fields(_as_typed(value))
        settings = both.from_given({**fields_set(both, named.get(SET) or ()), **given})
        watcher = TerminalWatcher(messages())
        own = {name: getattr(settings, name) for name in settings.model_fields_set}
        asked = kind(**{name: value for name, value in own.items() if name in kind.model_fields})
        # Before anything is computed.
        venue_named(settings.venue)
        _check_destinations(settings, asked, _gathered(places, arguments))
        with announced(messages()), watcher.shown(), watched(watcher):
            findings = found_by(function, asked, *_gathered(places, arguments))
        told = (spelled_as_options(kind, each) for each in findings.sentences)
        findings = replace(findings, sentences=tuple(told))
        if settings.naming or settings.show:
            findings = findings.presented(settings.naming, settings.show)
        deliver(findings, settings)
        if findings.limit_reached:
            return LIMIT_REACHED
        return INCOMPLETE if findings.incomplete else 0

    call.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in signature}
    call.__name__ = plain.__name__
    app = App(
        name=f"factormodels {command_name(function)}",
        help=_help(told, kind),
        help_format="plaintext",
        version_flags=[],
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        print_error=False,
        default_parameter=Parameter(negative=(), show_default=False),
        group_parameters=Group("Options", sort_key=0),
        console=Console(markup=False, highlight=False, emoji=False),
    )
    app.default(call)
    app["--help"].show = False
    return app


def _gathered(places: Sequence[inspect.Parameter], given: Sequence[Any]) -> Sequence[Any]:
    """Arguments in their places, those of a place that takes several as one."""
    last = places[-1] if places else None
    if last is None or last.annotation != "Overrides" or len(given) < len(places):
        return given
    return [*given[: len(places) - 1], list(given[len(places) - 1 :])]


def described(function: Callable[..., Findings]) -> tuple[str, list[tuple[str, str]]]:
    """The help of a command, and what it takes, each with its meaning: for the documentation."""
    command = command_of(function)
    rows = []
    for parameter in inspect.signature(command.default_command or function).parameters.values():
        note = next(each for each in get_args(parameter.annotation) if isinstance(each, Parameter))
        name = next(iter(note.name or ()), parameter.name)
        rows.append((f"{name} {note.metavar or ''}".strip(), note.help or ""))
    return command.help, rows


def _as_typed(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_typed(each) for each in value]
    return type(value)("-") if str(value) == _HYPHEN else value


@cache
def _with_output(kind: type[Settings]) -> type[Output]:
    """The settings of a command and those of its output, which go before, in one class."""
    both: type[Output] = new_class(kind.__name__, (Output, kind))
    return both


class Further(Settings):
    """All settings."""


def _arranged(kind: type[Settings]) -> list[TakenOption]:
    """Options in the order of the help: what is nearest comes first, and output last."""
    order = [*(each for each in kind.__mro__ if each is not Output), Output]

    def place_of(option: TakenOption) -> tuple[int, int]:
        return order.index(option.panel), list(option.panel.model_fields).index(option.first)

    options = sorted(options_of(kind), key=place_of)
    place = next(i for i, option in enumerate(options) if option.panel is Output)
    return [*options[:place], set_option(kind), *options[place:]]


def _title(kind: type[Settings]) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0].removesuffix(".")


_SECTION = re.compile(r"^(Args|Raises|Returns|Examples)::?\n((?:^(?: .*)?\n?)*)", re.MULTILINE)


def _help(docstring: str, kind: type[Settings]) -> str:
    """A docstring's prose and, behind it, its examples as lines of a shell."""
    sections = dict(_SECTION.findall(docstring))
    prose = spelled_as_options(kind, unwrapped(_SECTION.sub("", docstring).strip()))
    examples = sections.get("Examples", "").strip("\n")
    return f"{prose}\n\nExamples\n\n{examples}" if examples else prose


def unwrapped(text: str | None) -> str:
    """A docstring with a line for each paragraph, for the terminal to wrap.

    Lines that are indented, which are examples, stay as they are.
    """
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(
        part if part.startswith("  ") else part.replace("\n", " ") for part in paragraphs
    )


def _argument(parameter: inspect.Parameter, meant: str) -> inspect.Parameter:
    name = parameter.name.strip("_").upper()
    note = Parameter(name=[name], help=" ".join(meant.split()), show_default=False)
    # In Python a text may be data themselves; a person at a terminal names where they are.
    given_as: Any = str if parameter.annotation == "str" else Path
    if parameter.annotation == "Overrides":
        # As many as there are, between options too.
        return inspect.Parameter(
            parameter.name, inspect.Parameter.VAR_POSITIONAL, annotation=Annotated[str, note]
        )
    if parameter.annotation.startswith("Sequence["):
        given_as = list[Path]
    if parameter.default is None:
        given_as = given_as | None
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.POSITIONAL_ONLY,
        default=parameter.default,
        annotation=Annotated[given_as, note],
    )


def _parameter(option: TakenOption, panel: Group) -> inspect.Parameter:
    note = Parameter(
        name=f"--{option.name}",
        help=option.help,
        metavar=option.metavar,
        group=panel,
        negative=f"--no-{option.name}" if option.is_flag and option.default is not False else (),
        show_default=False,
        # What stands behind an option is its value, whatever it begins with.
        allow_leading_hyphen=True,
    )
    given_as: Any = bool if option.is_flag else list[str]
    noted = Annotated[given_as | None, note]
    # A keyword of Python's is no name of a parameter.
    name = option.name.replace("-", "_") + "_" * iskeyword(option.name)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=noted)


def _check_destinations(settings: Output, asked: Settings, arguments: Sequence[Any]) -> None:
    """Raise an error for a file or folder that cannot be written, before anything is computed."""
    inputs = files_read(asked, arguments)
    if settings.out is not None:
        several = type(asked).writes_several_files
        check_destination(settings.out, inputs=inputs, folder_only=several)
    if settings.report is not None:
        check_file(settings.report, "--report", inputs)


def deliver(found: Findings, settings: Output) -> None:
    """Write findings where they are asked for, and print them."""
    from experiments.findings.terminal import show_findings

    # A run has written what it found, and a dry run has nothing to keep.
    written: list[Path] = []
    if settings.out is not None and found.written is None:
        written = found.save(settings.out, venue=settings.venue)
    if settings.report is not None:
        written.append(found.report(settings.report))
    if settings.json_:
        write_json(found.as_json())
        return
    console = output()
    show_findings(console, found)
    show_written(console, written)
    if found.written:
        show_folder(console, found.folder, found.written)
