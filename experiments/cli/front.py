"""Commands made from the functions of the front door: options, help and output are theirs.

A command is named as its function. What the function takes beside its settings are arguments; every
field of the settings is an option, with its help, default and limits. What it returns are findings,
which every command prints, writes and makes a page of in the same way.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from cyclopts import App, CycloptsError, Group, Parameter
from docstring_parser import parse
from docstring_parser.common import DocstringStyle
from rich.console import Console

from experiments.cli.console import (
    INCOMPLETE,
    messages,
    output,
    show_folder,
    show_written,
    write_json,
)
from experiments.cli.progress import TerminalWatcher, announced
from experiments.findings.findings import Findings
from experiments.findings.venues import DEFAULT_VENUE, VENUES, venue_named
from experiments.progress import watched
from experiments.settings import Settings, declared_in, option_of, settings_of
from factormodels.errors import InputError

_OUTPUT = {
    "out": (
        "DIR",
        "Write tables (CSV, LaTeX, Typst, Markdown), figures and findings.json to this folder; "
        "responses alone to a file ending in .jsonl, where there are any.",
    ),
    "report": ("FILE", "Write everything as one page for a browser."),
}
_VENUE = (
    f"What LaTeX tables and figures of --out fit: {', '.join(VENUES)}, or widths of a column and "
    f"of the text in points, such as 219x455. [default: {DEFAULT_VENUE}]"
)
_HYPHEN = "\0-"
"""In place of a hyphen that stands alone, standard input, which is no option."""

_SHOW = (
    "Columns of numbers to show, in this order, by name or title; and NAME=TEXT for what stands in "
    "place of a name: --show brier,auroc --show gpt-4o='GPT-4o'."
)
_JSON = "Print one JSON object and nothing else."


def run_command(function: Callable[..., Findings], arguments: Sequence[str]) -> int:
    """Call a function of the front door as the command of its name; return the exit code.

    Raises:
        InputError: for what no option or argument takes, and as the function does.
    """
    command = command_of(function)
    try:
        tokens = [_HYPHEN if each == "-" else each for each in arguments]
        return int(command(tokens, result_action="return_value") or 0)
    except CycloptsError as error:
        error.verbose = False
        raise InputError(f"{' '.join(str(error).split())} (see {command.name[0]} --help)") from None


def command_of(function: Callable[..., Findings]) -> App:
    """The command of a function of the front door."""
    plain = inspect.unwrap(function)
    kind = settings_of(function)
    name = plain.__name__.strip("_").replace("_", "-")
    told = inspect.getdoc(plain) or ""
    meant = {
        each.arg_name: each.description or "" for each in parse(told, DocstringStyle.GOOGLE).params
    }
    parameters = inspect.signature(plain).parameters.values()
    places = [each for each in parameters if each.name != "settings"]
    panels = {each: Group(_title(each), sort_key=place) for place, each in enumerate(_panels(kind))}
    signature = [
        *(_argument(each, meant.get(each.name, "")) for each in places),
        *(_option(kind, field, panels[declared_in(kind, field)]) for field in _fields(kind)),
        *_outputs(),
    ]

    def call(*typed: Any, **named: Any) -> int:
        arguments = [_as_typed(each) for each in typed]
        given = {field: _as_typed(value) for field, value in named.items()}
        out, report = given.pop("out", None), given.pop("report", None)
        as_json = given.pop("json", False)
        venue = given.pop("venue", None)
        names, chosen = _shown(given.pop("show", None) or ())
        # Before anything is computed.
        venue_named(venue or DEFAULT_VENUE)
        _check_places(out, report)
        if "out" in kind.model_fields:
            # What goes on where it was stopped writes as it goes.
            given["out"] = out
        if "venue" in kind.model_fields:
            given["venue"] = venue
        watcher = TerminalWatcher(messages())
        with announced(messages()), watcher.shown(), watched(watcher):
            findings = plain(*_gathered(places, arguments), settings=kind.of(given))
        if names or chosen:
            findings = findings.presented(names, chosen)
        deliver(findings, out=out, report=report, venue=venue or DEFAULT_VENUE, as_json=as_json)
        return INCOMPLETE if findings.incomplete else 0

    call.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in signature}
    call.__name__ = plain.__name__
    app = App(
        name=f"factormodels {name}",
        help=_help(told),
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


def _fields(kind: type[Settings]) -> list[str]:
    return [name for name in kind.model_fields if option_of(kind, name).command_line]


def _panels(kind: type[Settings]) -> list[type[Settings]]:
    """The classes that declare options, in the order of the help: what is nearest comes first."""
    declaring = {declared_in(kind, name) for name in _fields(kind)}
    return [each for each in kind.__mro__ if each in declaring]


def _title(kind: type[Settings]) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0].removesuffix(".")


_SECTION = re.compile(r"^(Args|Raises|Returns|Examples)::?\n((?:^(?: .*)?\n?)*)", re.MULTILINE)


def _help(docstring: str) -> str:
    """A docstring's prose and, behind it, its examples as lines of a shell."""
    sections = dict(_SECTION.findall(docstring))
    prose = unwrapped(_SECTION.sub("", docstring).strip())
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


def _option(kind: type[Settings], field: str, panel: Group) -> inspect.Parameter:
    info, option = kind.model_fields[field], option_of(kind, field)
    hint = info.annotation
    many = get_origin(hint) in (tuple, list, frozenset, dict)
    is_flag = hint is bool or hint == bool | None
    given_as: Any = bool if is_flag else list[str] if many else str
    default = info.get_default(call_default_factory=True)
    note = Parameter(
        name=f"--{option.name}",
        help=_meaning(info.description or "", hint, default),
        metavar="" if is_flag else option.metavar or _word(hint),
        group=panel,
        negative=f"--no-{option.name}" if is_flag and default is not False else (),
        show_default=False,
        # What stands behind an option is its value, whatever it begins with.
        allow_leading_hyphen=True,
    )
    noted = Annotated[given_as | None, note]
    return inspect.Parameter(field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=noted)


def _word(hint: Any) -> str:
    """What stands in the place of a value of a type."""
    kinds = [each for each in (get_args(hint) or (hint,)) if each is not type(None)]
    if get_origin(hint) is Literal:
        return "NAME"
    first = kinds[0] if kinds else str
    return {int: "N", float: "X", Path: "FILE"}.get(first, "TEXT")


def _meaning(description: str, hint: Any, default: Any) -> str:
    """The help of an option: what it means, what may be chosen, and the default."""
    text = " ".join(description.split())
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    if choices:
        text += f" One of {', '.join(map(str, choices))}."
    if default or type(default) in (int, float):
        shown = ", ".join(map(str, default)) if isinstance(default, tuple) else default
        text += f" [default: {shown}]"
    return text


def _outputs() -> list[inspect.Parameter]:
    """The options of every command, which say where findings go."""
    group = Group("Output", sort_key=9)
    notes: dict[str, Any] = {
        name: Annotated[
            Path | None, Parameter(name=f"--{name}", help=text, metavar=word, group=group)
        ]
        for name, (word, text) in _OUTPUT.items()
    }
    notes["venue"] = Annotated[
        str | None, Parameter(name="--venue", help=_VENUE, metavar="NAME", group=group)
    ]
    show = Parameter(name="--show", help=_SHOW, metavar="COLUMN,...", group=group)
    notes["show"] = Annotated[list[str] | None, show]
    notes["json"] = Annotated[bool | None, Parameter(name="--json", help=_JSON, group=group)]
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=note)
        for name, note in notes.items()
    ]


def _shown(given: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """What stands in place of names, and the columns to show, in order."""
    pairs = dict(text.split("=", 1) for text in given if "=" in text)
    columns = [name.strip() for text in given if "=" not in text for name in text.split(",")]
    return pairs, list(filter(None, columns))


def _check_places(out: Path | None, report: Path | None) -> None:
    """Raise an error for a place that cannot be written to, before a computation of an hour."""
    if out is not None and out.is_file() and out.suffix != ".jsonl":
        raise InputError(f"--out {out}: this is a file; name a folder")
    if report is not None and report.is_dir():
        raise InputError(f"--report {report}: this is a folder; name a file in it")
    if report is not None and not report.absolute().parent.is_dir():
        raise InputError(f"--report {report}: name a file in an existing folder")


def deliver(
    found: Findings, *, out: Path | None, report: Path | None, venue: str, as_json: bool
) -> None:
    """Write findings where they are asked for, and print them."""
    from experiments.findings.terminal import show_findings

    # A run has written what it found, and a dry run has nothing to keep.
    written = [] if out is None or found.written is not None else found.save(out, venue=venue)
    if report is not None:
        written.append(found.report(report))
    if as_json:
        write_json(found.as_json())
        return
    console = output()
    show_findings(console, found)
    show_written(console, written)
    if found.written:
        show_folder(console, found.folder, found.written)
