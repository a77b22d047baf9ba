"""Commands for the functions of the front door, with options, help and output.

A command has the name of its function. Parameters other than the settings are arguments. Every
field of the settings is an option, with its help, default and limits, and a key in a settings file.
The function returns findings, which all commands print, write and convert to pages in the same way.

cyclopts makes options of a class of settings itself, by `Annotated[Settings, Parameter(name="*")]`.
With cyclopts 5.4 that reads the options of `score` and `assess` in 13 and 25 ms of processor time
and the signatures below in 13 and 35 ms, rebuilt for each call. They are made here because the
class alone has no options whose names differ from their fields' (`--with` of `beside`: "Unknown
option"), none of the settings of a backend (`--damping`), and no place for the values of --config,
which are validated together with those of the command line. The classes would otherwise declare
cyclopts' parameters, and whoever calls `score` from Python would load cyclopts.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType, new_class
from typing import Annotated, Any, get_args

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
    RepeatArgumentError,
    UnusedCliTokensError,
)
from pydantic import Field
from rich.console import Console

from experiments.cli.config import read_configs
from experiments.cli.console import (
    INCOMPLETE,
    LIMIT_REACHED,
    messages,
    output,
    show_folder,
    show_written,
    write_json,
)
from experiments.cli.help import (
    argument_help,
    command_help,
    first_sentence,
    heading_of,
    is_flag,
    meaning_of,
    metavar_of,
    show_panel,
    takes_several,
)
from experiments.cli.progress import TerminalWatcher, announced
from experiments.destination import FILES_MEANING, check_page, form_of
from experiments.findings.findings import Findings
from experiments.findings.venues import DEFAULT_VENUE, VENUE_MEANING, venue_named
from experiments.progress import watched
from experiments.settings import (
    USUAL,
    Files,
    Names,
    NewNames,
    Option,
    Settings,
    check_out,
    command_name,
    declared_in,
    files_read,
    found_by,
    option_of,
    settings_of,
)
from experiments.settings.backend_settings import (
    AlgorithmSettings,
    backends_with,
    core_backends,
    setting_names,
    settings_described,
)
from experiments.settings.limits import FilePath
from factormodels.errors import InputError, unknown_name

logger = logging.getLogger(__name__)

_CONFIG = "config"
_HELP_ALL = "help-all"
_OF_COMMAND_LINE = (_CONFIG, _HELP_ALL)
"""Options that a settings file cannot set."""

_AFTER_OPTIONS = 1_000
"""Position of the heading of a backend's settings."""

_MISSPELLED = 0.8
"""Ratio of `difflib` from which an unknown option is a misspelled one."""

_METAVARS = MappingProxyType({"int": "N", "float": "X", "bool": "true|false"})
"""Placeholders of the values of a backend's settings, by type."""

_ALL_OPTIONS = "--help-all shows every option"

_HYPHEN = "\0-"
"""Stand-in for a lone hyphen, which means standard input and is not an option."""


class Output(Settings):
    """Output.

    Options that every command has, for its results and messages.
    """

    out: Annotated[
        FilePath | None,
        Field(
            description="Write everything to this folder, or one table to this file. A folder "
            f"gets all tables (CSV, LaTeX, Markdown), figures and findings.json. {FILES_MEANING}"
        ),
        Option("PATH", usual=True),
    ] = None

    report: Annotated[FilePath | None, Option("FILE", usual=True)] = None
    """Write everything as an HTML page."""

    show: Annotated[Names, Option("COLUMN,...")] = ()
    """Numeric columns to show, in this order, by name or title: --show brier,auroc."""

    rename: NewNames = Field(default_factory=dict)
    """Replace a name in the output: --rename gpt-4o=GPT-4o; repeatable."""

    venue: Annotated[str, Field(description=VENUE_MEANING), Option("NAME")] = DEFAULT_VENUE

    config: Files = ()
    """YAML file of options, one per line, such as seed: 1; repeatable. The command line takes
    precedence.
    """

    json_: Annotated[bool, USUAL] = False
    """Print a single JSON object instead of tables."""

    help_all: Annotated[bool, USUAL] = False
    """Show every option."""


def run_command(function: Callable[..., Findings], arguments: Sequence[str]) -> int:
    """Call a function of the front door as the command of its name; return the exit code.

    Raises:
        InputError: for invalid options or arguments, and as the function does.
    """
    every = f"--{_HELP_ALL}" in arguments
    helps = every or not {"--help", "-h"}.isdisjoint(arguments)
    words = ["--help"] if helps else words_of(arguments)
    command = command_of(
        function,
        every=every,
        helps=helps,
        backend=_typed_backend(arguments) if helps else "",
        words=None if helps else words,
    )
    try:
        return int(command(words, result_action="return_value") or 0)
    except CycloptsError as error:
        reason = _refusal(function, words, error)
        raise InputError(seeing_help(reason, command.name[0])) from None
    except InputError as error:
        error.args = (naming_options(str(error), arguments),)
        raise


def seeing_help(reason: str, command: str) -> str:
    """Add the command that shows valid options to the message of a wrong command line."""
    return (
        f"{reason}; see {command} --help"
        if reason.endswith(")")
        else f"{reason} (see {command} --help)"
    )


def naming_options(message: str, arguments: Sequence[str]) -> str:
    """Add the option whose value caused an error to its message, as typed.

    Libraries below the command line do not know options: the name --venue is added to "the venue
    'emnlp' is unknown". A message that names the option, or begins with an option or an argument,
    such as a file, is unchanged.

    Args:
        message: the message.
        arguments: words of the command line after the name of the command.
    """
    for word in arguments:
        option = word.partition("=")[0]
        # The parser reads one hyphen before a letter as two.
        if re.fullmatch(r"-[a-z]", option) and f"-{option}" not in arguments:
            message = re.sub(rf"(?<![\w-])-{option}(?![\w-])", option, message)
    if message.startswith(("--", *(f"{word}{sign}" for word in arguments for sign in ":,"))):
        return message
    typed = [
        (option, value if sign else behind)
        for word, behind in pairwise([*arguments, ""])
        for option, sign, value in [word.partition("=")]
        if option.startswith("--")
    ]
    about = [
        f"{option} {value}"
        for option, value in typed
        if any(repr(part.strip()) in message for part in {value, *value.split(",")} if part)
    ]
    if len(about) != 1 or re.search(rf"{about[0].partition(' ')[0]}(?![\w-])", message):
        return message
    return f"{about[0]}: {message}"


def _typed_backend(arguments: Sequence[str]) -> str:
    """Return the name of the backend among the words of a command line; "" if there is none."""
    for word, behind in pairwise([*arguments, ""]):
        option, sign, value = word.partition("=")
        if option == "--backend":
            return (value if sign else behind).partition(",")[0]
    return ""


def words_of(arguments: Iterable[str]) -> list[str]:
    """Return the words of a command line in the form that `command_of` expects."""
    return [_HYPHEN if word == "-" else word for word in arguments]


def _refusal(function: Callable[..., Findings], words: Sequence[str], error: CycloptsError) -> str:
    """Error message for the words of a command line, in the user's terms."""
    name = command_name(function)
    places = [*map(_place, _places(function))]
    if isinstance(error, UnusedCliTokensError):
        superfluous = ", ".join(map(repr, error.unused_tokens or ()))
        takes = f"takes {' and '.join(places)}" if places else "takes no argument"
        them = "it" if len(error.unused_tokens or ()) == 1 else "them"
        return f"{superfluous}: factormodels {name} {takes} besides options; leave {them} out"
    both = _with_output(settings_of(function))
    by_option = _fields_by_option(both)
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        option = (error.keyword or error.argument.name).lstrip("-")
        if not error.argument.field_info.is_keyword and error.keyword is None:
            return f"{option} is missing; write factormodels {name} {' '.join(places)}"
        if option in by_option:
            metavar = metavar_of(both, by_option[option])
            return f"--{option}: the value is missing; write --{option} {metavar}"
        behind = dict(pairwise(words))
        of_backend = _settings_of_backend(both, {"backend": behind.get("--backend")})
        if option in of_backend:
            return f"--{option}: the value is missing; write --{option} VALUE"
        return _no_option(both, option, "VALUE", [*by_option, *of_backend])
    if isinstance(error, CoercionError) and error.token is not None and error.token.keyword:
        return f"{error.token.keyword}: this option takes no value; leave {error.token.value!r} out"
    if isinstance(error, RepeatArgumentError):
        option = str(error.token.keyword)
        given = [word for word in words if word.partition("=")[0] in _spellings(option)]
        if len(set(given)) > 1:
            return f"{' and '.join(given)} contradict each other; keep one"
        return f"{option} is given {len(given)} times; keep one"
    # The parser reads a dot as part of an option, and its error message says so.
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("--") and "." in name:
            return _no_option(both, name.removeprefix("--"), "VALUE", by_option)
    error.verbose = False
    return " ".join(str(error).split())


def _spellings(option: str) -> tuple[str, str]:
    """Names of a flag and of its negation."""
    name = option.removeprefix("--no-").removeprefix("--")
    return f"--{name}", f"--no-{name}"


def _no_option(
    kind: type[Settings], name: str, value: str, known: Iterable[str], in_file: str = ""
) -> str:
    """Error message for an option that a command lacks.

    Args:
        kind: settings of the command.
        name: name of the option.
        value: its value as typed.
        known: names of the command's options.
        in_file: the file that has the option; "" for the command line.
    """
    from difflib import get_close_matches

    known = list(known)
    subject = f"{in_file}: the option {name!r}" if in_file else f"the option --{name}"
    if advice := kind.instead_of(name, value):
        return f"{subject} is unknown; {advice}"
    # A misspelled option is likelier than the setting of a backend that has its name.
    misspelled = get_close_matches(name, known, n=1, cutoff=_MISSPELLED)
    if not misspelled and (have := backends_with(name)):
        setting = f"it is a setting of {', '.join(have)}"
        return f"{subject} is unknown; {setting}, and this command uses no backend"
    options = known if in_file else [f"--{each}" for each in known]
    return unknown_name(subject, name if in_file else f"--{name}", options, _ALL_OPTIONS)


def _places(function: Callable[..., Findings]) -> list[inspect.Parameter]:
    """Parameters of a function that become arguments of its command."""
    parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
    # The command line requires a file or a dataset where a program may pass `text`.
    instead = "text" in settings_of(function).model_fields
    return [
        each.replace(default=each.empty) if instead and each.default is None else each
        for each in parameters
        if each.name != "settings"
    ]


def _place(parameter: inspect.Parameter) -> str:
    """Placeholder of an argument, in brackets if the argument is optional."""
    name = parameter.name.strip("_").upper()
    if parameter.annotation == "Overrides":
        return f"[{name}...]"
    several = "..." * parameter.annotation.startswith("Sequence[")
    return f"{name}{several}" if parameter.default is parameter.empty else f"[{name}{several}]"


def command_of(
    function: Callable[..., Findings],
    *,
    every: bool = True,
    helps: bool = True,
    backend: str = "",
    words: Iterable[str] | None = None,
) -> App:
    """The command of a function of the front door.

    Args:
        function: the function.
        every: True if the help covers every option, False for the usual ones.
        helps: True to include help texts, whose loading takes as long as a small graph.
        backend: backend whose settings the help includes; "" for none.
        words: words of the command line that the command will be called with; options that are not
            among them are left out, since the parser takes its time over each. None for all
            options.

    Raises:
        InputError: for an unknown backend.
        MissingDependencyError: if a library that the backend needs is not installed.
    """
    kind = settings_of(function)
    both = _with_output(kind)
    places = _places(function)
    meanings = argument_help(function) if helps else {}
    fields = _arranged(both)
    if words is not None:
        typed = _option_names(words)
        fields = [field for field in fields if option_of(both, field).name in typed]
    # A command's own description of a field takes precedence, as for --out of a page.
    owners = {field: kind if field in kind.model_fields else both for field in fields}
    headings = {
        heading: Group(heading, sort_key=number)
        for number, heading in enumerate(
            dict.fromkeys(heading_of(declared_in(both, field)) for field in fields)
        )
    }
    signature = [
        *(_argument(each, meanings.get(each.name, ""), every=every) for each in places),
        *(
            _parameter(
                both,
                field,
                headings[heading_of(declared_in(both, field))],
                metavar_of(owners[field], field),
                meaning_of(owners[field], field, every=every) if helps else "",
                every=every,
            )
            for field in fields
        ),
        *_parameters_of_backend(both, backend),
        _others(),
    ]

    def call(*typed: Any, **words: Any) -> int:
        arguments = [_as_typed(each) for each in typed]
        settings = _settings(both, words)
        watcher = TerminalWatcher(messages())
        values = {name: getattr(settings, name) for name in settings.model_fields_set}
        asked = kind(**{name: value for name, value in values.items() if name in kind.model_fields})
        # Check before anything is computed.
        venue_named(settings.venue)
        _check_destinations(settings, asked, _gathered(places, arguments))
        with announced(messages(), watcher.step), watcher.shown(), watched(watcher):
            findings = found_by(function, asked, *_gathered(places, arguments))
        # Some commands replace names themselves, since they write files or a page.
        names = {} if "rename" in kind.model_fields else settings.rename
        if names or settings.show:
            findings = _presented(findings, names, settings)
        deliver(findings, settings)
        if findings.limit_reached:
            return LIMIT_REACHED
        return INCOMPLETE if findings.incomplete else 0

    call.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in signature}
    call.__name__ = inspect.unwrap(function).__name__
    name = f"factormodels {command_name(function)}"
    app = App(
        name=name,
        usage=f"Usage: {' '.join([name, *map(_place, places), '[OPTIONS]'])}",
        help=command_help(function, every=every) if helps else "",
        help_format="plaintext",
        help_formatter=show_panel,
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


def _option_names(words: Iterable[str]) -> set[str]:
    """Names of the options that words may be, in any spelling that the parser takes."""
    names = {
        word.partition("=")[0].lstrip("-").replace("_", "-").lower()
        for word in words
        if word.startswith("-")
    }
    return names | {name.removeprefix("no-") for name in names}


def _presented(findings: Findings, names: Mapping[str, str], settings: Output) -> Findings:
    """Findings with the given names and the requested columns.

    If no table has a requested column, findings that are already written, or that may have cost
    money, are shown with all columns and a warning.

    Raises:
        InputError: if no table of other findings has a requested column.
    """
    try:
        shown = findings.presented(chosen=settings.show)
    except InputError as error:
        # Imported here, since few commands ask models.
        from experiments.asking.settings import AnswerSettings

        if findings.written is None and not isinstance(settings, AnswerSettings):
            raise InputError(f"--show: {error}") from None
        logger.warning("--show: %s; every column is shown", error)
        shown = findings
    return shown.presented(names)


def _settings(kind: type[Output], words: Mapping[str, Any]) -> Output:
    """Build settings from the command line and from files; the command line takes precedence.

    Raises:
        InputError: for an unknown or repeated option, an unreadable file, or an invalid value.
    """
    by_option = _fields_by_option(kind)
    typed = {
        name.strip("_").replace("_", "-"): _as_typed(value)
        for name, value in words.items()
        if value is not None
    }
    in_files = read_configs(map(Path, typed.pop(_CONFIG, ())))
    by_option = {name: field for name, field in by_option.items() if name not in _OF_COMMAND_LINE}
    values = {name: value for name, (value, _) in in_files.items()}
    for name, value in typed.items():
        field = by_option.get(name)
        if isinstance(value, list) and not (field and takes_several(kind, field)):
            if len(value) > 1:
                raise InputError(f"--{name} is given {len(value)} times; keep one")
            value = value[0] if field else _value_of(name, value[0])
        values[name] = value
    by_field = {by_option[name]: values.pop(name) for name in [*values] if name in by_option}
    # Last, because it imports the backend.
    settings_of_backend = _settings_of_backend(kind, by_field) if values else {}
    for name in values:
        if name not in settings_of_backend:
            known = [*by_option, *settings_of_backend, *_settings_of_backends(kind)]
            subject = f"--{name}" if name in typed else f"{in_files[name][1]}: {name!r}"
            if elsewhere := _of_another_backend(kind, name, by_field):
                raise InputError(f"{subject}: {elsewhere}")
            if reason := kind.absent_output.get(name):
                raise InputError(f"{subject}: {reason.format(value=values[name])}")
            file = "" if name in typed else in_files[name][1]
            raise InputError(_no_option(kind, name, str(values[name]), known, file))
    if values:
        backend_settings = {settings_of_backend[name]: value for name, value in values.items()}
        by_field["backend_settings"] = backend_settings
    try:
        return kind.from_given(by_field)
    except InputError as error:
        named = re.match("--([a-z-]+)", str(error))
        option = named[1] if named else ""
        if option in typed or option not in in_files:
            raise
        raise InputError(f"{in_files[option][1]}: {error}") from None


def _value_of(name: str, text: str) -> Any:
    """Value of a backend setting as typed, read by YAML's rules."""
    from factormodels.io.yaml import parse_yaml

    return parse_yaml(text, f"--{name}")


def _settings_of_backend(kind: type[Settings], by_field: Mapping[str, Any]) -> dict[str, str]:
    """Settings of the requested backend, by option name."""
    if not issubclass(kind, AlgorithmSettings):
        return {}
    names = setting_names(_backend_of(kind, by_field))
    return {name.replace("_", "-"): name for name in names}


def _settings_of_backends(kind: type[Settings]) -> list[str]:
    """Options for the settings of any backend."""
    backends = core_backends() if issubclass(kind, AlgorithmSettings) else []
    return [name.replace("_", "-") for backend in backends for name in setting_names(backend)]


def _of_another_backend(kind: type[Settings], option: str, by_field: Mapping[str, Any]) -> str:
    """Sentence on a setting that only other backends have; "" if none has it.

    Raises:
        InputError: if there is no such backend.
    """
    if not issubclass(kind, AlgorithmSettings):
        return ""
    from inference.registry import get_entry

    backend = get_entry(_backend_of(kind, by_field)).name
    have = backends_with(option)
    lacks = f"the backend {backend!r} has no such setting"
    return f"{lacks}; it is a setting of {', '.join(have)}: --backend {have[0]}" if have else ""


def _backend_of(kind: type[AlgorithmSettings], by_field: Mapping[str, Any]) -> str:
    """Name of the requested backend, or of the default."""
    return str(by_field.get("backend") or kind.model_fields["backend"].default).partition(",")[0]


def _gathered(places: Sequence[inspect.Parameter], arguments: Sequence[Any]) -> Sequence[Any]:
    """Positional arguments, with repeated ones gathered into one."""
    last = places[-1] if places else None
    if last is None or last.annotation != "Overrides" or len(arguments) < len(places):
        return arguments
    return [*arguments[: len(places) - 1], list(arguments[len(places) - 1 :])]


def described(function: Callable[..., Findings]) -> tuple[str, list[tuple[str, str]]]:
    """Help of a command, and its arguments and options with descriptions, for the documentation."""
    command = command_of(function)
    rows = []
    for parameter in inspect.signature(command.default_command or function).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
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
    """Combine the settings of a command and of its output, which take precedence, in one class."""
    both: type[Output] = new_class(kind.__name__, (Output, kind))
    return both


@cache
def _fields_by_option(kind: type[Settings]) -> dict[str, str]:
    """Fields of settings by option name."""
    fields = [name for name in kind.model_fields if name not in kind.absent_output]
    options = {field: option_of(kind, field) for field in fields}
    return {option.name: field for field, option in options.items() if option.command_line}


def _arranged(kind: type[Settings]) -> list[str]:
    """Fields in the order of the help: the most specific first, output last."""
    order = [*(each for each in kind.__mro__ if each is not Output), Output]

    def place_of(field: str) -> tuple[int, int]:
        owner = declared_in(kind, field)
        return order.index(owner), list(owner.model_fields).index(field)

    return sorted(_fields_by_option(kind).values(), key=place_of)


def _argument(parameter: inspect.Parameter, meaning: str, *, every: bool) -> inspect.Parameter:
    name = parameter.name.strip("_").upper()
    shown = meaning if every else first_sentence(meaning)
    note = Parameter(name=[name], help=shown, show_default=False)
    # In Python a text may be data; at a terminal it names a file or dataset.
    given_as: Any = str if parameter.annotation == "str" else Path
    if parameter.annotation == "Overrides":
        # Any number of arguments, also between options.
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


def _parameter(
    kind: type[Settings], field: str, heading: Group, metavar: str, meaning: str, *, every: bool
) -> inspect.Parameter:
    option = option_of(kind, field)
    flag = is_flag(kind, field)
    default = kind.model_fields[field].get_default(call_default_factory=True)
    note = Parameter(
        name=f"--{option.name}",
        help=meaning,
        metavar=metavar,
        group=heading,
        negative=f"--no-{option.name}" if flag and default is not False else (),
        show=every or option.usual,
        show_default=False,
        # The word after an option is its value, even if it begins with a hyphen.
        allow_leading_hyphen=True,
    )
    given_as: Any = bool if flag else list[str]
    return inspect.Parameter(
        # The suffix avoids Python keywords and names of arguments.
        f"{option.name.replace('-', '_')}_",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[given_as | None, note],
    )


def _parameters_of_backend(kind: type[Settings], backend: str) -> Iterator[inspect.Parameter]:
    """Yield the settings of a backend as options, for the help; none without a backend."""
    if not backend or not issubclass(kind, AlgorithmSettings):
        return
    heading = Group(f"Settings of the backend {backend}", sort_key=_AFTER_OPTIONS)
    for each in settings_described(backend):
        # An option of the command, such as --seed, has the value.
        if each.option.removeprefix("--") in _fields_by_option(kind):
            continue
        note = Parameter(
            name=each.option,
            help=f"{each.meaning} [default: {each.default}]".strip(),
            metavar=_METAVARS.get(each.type, "VALUE"),
            group=heading,
            show_default=False,
        )
        yield inspect.Parameter(
            f"of_backend_{each.setting}",
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[list[str] | None, note],
        )


def _others() -> inspect.Parameter:
    """Collect options that the command does not declare: settings of its backend, or mistakes."""
    note = Parameter(show=False, allow_leading_hyphen=True)
    return inspect.Parameter(
        "others", inspect.Parameter.VAR_KEYWORD, annotation=Annotated[list[str], note]
    )


def _check_destinations(settings: Output, asked: Settings, arguments: Sequence[Any]) -> None:
    """Check that files and folders can be written, before anything is computed."""
    inputs = files_read(asked, arguments)
    if settings.out is not None:
        check_out(type(asked), settings.out, inputs)
    if settings.report is not None:
        check_page(settings.report, inputs, option="--report")


def deliver(findings: Findings, settings: Output) -> None:
    """Write findings to the requested places, and print them."""
    from experiments.findings.terminal import show_findings

    # A run has already written its findings, and a dry run has none.
    written: list[Path] = []
    kept_in = settings.out if findings.written is None else None
    in_folder = kept_in is not None and not form_of(kept_in)
    on_page = settings.report is not None and findings.page is None
    if on_page or in_folder:
        findings = findings.with_figures()
    if kept_in is not None:
        written = findings.save(kept_in, venue=settings.venue)
    if settings.report is not None:
        written.append(findings.report(settings.report))
    if settings.json_:
        write_json(findings.as_json())
        return
    console = output()
    show_findings(console, findings)
    show_written(console, written)
    if findings.written:
        show_folder(console, findings.folder, findings.written)
