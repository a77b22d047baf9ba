"""The page of the command line, made from the help texts of the application itself."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CODE_OR_OPTION = re.compile(r"(`[^`]*`)|(?<![\w-])--[a-z][a-z-]*")

CONVENTIONS = (
    (
        "what is read is an argument; `--out` and `--json` are options",
        "ruff: `ruff check PATH`",
        "--out --json",
    ),
    ("each setting is an option of its own; `--help-all` lists them", "ruff, uv", "--help-all"),
    (
        "`--config FILE` holds options, and the command line goes before it",
        "ruff, inspect",
        "--config",
    ),
    ("a list is one word with commas: `--show brier,auroc`", "lm-eval: `--tasks a,b`", "--show"),
    (
        "values that may hold commas are repeated: `--response a --response b`",
        "inspect: `-T KEY=VALUE`",
        "--response",
    ),
    (
        "a backend's settings are options, or part of its name: `--backend lbp,damping=0.5`",
        "lm-eval: `--model_args a=1,b=2`",
        "assess draw infer",
    ),
    ("`--model PROVIDER/NAME`, its key in the environment", "inspect, litellm", "--model"),
    (
        "`--dry-run` says what would be done",
        "uv: `uv sync --dry-run`",
        "--dry-run",
    ),
    (
        "limits stop before a call: `--max-cost 2`, `--max-calls 500`",
        "inspect: `--token-limit`",
        "--max-cost --max-calls",
    ),
    ("words KEY=VALUE behind the study replace its keys", "Hydra, dvc: `dvc exp run -S`", "run"),
    ("two results stand in a row, the earlier first", "git, dvc: `dvc metrics diff`", "diff"),
    ("a kind, then a name of that kind", "inspect: `inspect list tasks`", "list"),
    ("a page on this machine, until it is stopped", "inspect: `inspect view`", "explore"),
    ("the suffix of the second file is the format", "pandoc", "convert draw"),
)
"""What commands do alike, the tool that people of this field know it from, and which commands do:
those that have all these options, or those that are named."""


def page() -> str:
    """Page: every command with its text, its examples, arguments and options."""
    from experiments.cli.front import described
    from experiments.cli.main import COMMANDS, HELP, function_named

    parts = [
        "# Command line\n",
        "As `factormodels --help` and `factormodels COMMAND --help` show it. Bad input is one "
        "sentence on standard error and exit code 2, an interrupt exit code 130. A command that is "
        "done, but lacks posteriors, or answers of a model that its result needs, ends with exit "
        "code 1; one that reaches a limit on calls or costs, with exit code 3. "
        "`factormodels --install-completion` lets the shell complete commands and options.\n",
        "`--help` shows what nine in ten people need, `--help-all` every option. A list is one "
        "word: `--show brier,auroc`. `--config paper.yaml` takes options from a file, with a line "
        "for each, such as `venue: acl` and `show: [brier, auroc]`; what stands on the command "
        "line goes before what stands in a file. The settings of a backend are options too: "
        "`--backend lbp --damping 0.5` is `--backend lbp,damping=0.5`.\n",
        "What several commands do alike is what other tools of this field do:\n",
        _conventions(),
        *_prose(HELP),
    ]
    for name in sorted(COMMANDS):
        prose, taken = described(function_named(name))
        parts += [f"## factormodels {name}\n", *_prose(prose), *_rows(taken)]
    return "\n".join(parts)


def followers(which: str) -> list[str]:
    """The commands that have all options of a convention, or those that it names."""
    from experiments.cli.front import described
    from experiments.cli.main import COMMANDS, function_named

    if not which.startswith("--"):
        return which.split()
    options = set(which.split())
    return [
        name
        for name in sorted(COMMANDS)
        if options <= {taken.split()[0] for taken, _ in described(function_named(name))[1]}
    ]


def _conventions() -> str:
    from experiments.cli.main import COMMANDS

    lines = ["| convention | as in | commands |", "| --- | --- | --- |"]
    for convention, tool, which in CONVENTIONS:
        commands = followers(which)
        names = "all" if len(commands) == len(COMMANDS) else ", ".join(f"`{c}`" for c in commands)
        lines.append(f"| {convention} | {tool} | {names} |")
    return "\n".join(lines) + "\n"


def _prose(help_text: str) -> list[str]:
    """Paragraphs of a help text; indented ones are commands."""
    parts: list[str] = []
    indented = False
    for block in re.split(r"\n\s*\n", help_text.strip("\n")):
        before, indented = indented, all(line.startswith("  ") for line in block.splitlines())
        if indented:
            lines = "\n".join(line[2:] for line in block.splitlines())
            if before:  # one box, with the empty line between them
                parts[-1] = parts[-1].removesuffix("```\n") + f"\n{lines}\n```\n"
            else:
                parts.append(f"```console\n{lines}\n```\n")
        elif len(block.split()) <= 3 and not block.endswith("."):
            parts.append(f"**{block.strip()}**\n")
        else:
            parts.append(" ".join(_escaped(block).split()) + "\n")
    return parts


def _rows(taken: Iterable[tuple[str, str]]) -> list[str]:
    rows = [
        f"| `{name}` | {'<br>'.join(map(_cell, meaning.splitlines()))} |" for name, meaning in taken
    ]
    return ["| | |\n| --- | --- |\n" + "\n".join(rows) + "\n"]


def _cell(line: str) -> str:
    return " ".join(_escaped(line).split())


def _escaped(text: str) -> str:
    # An option is code too, and stays whole at the end of a line.
    parts = re.split(
        r"(`[^`]*`)", _CODE_OR_OPTION.sub(lambda match: match[1] or f"`{match[0]}`", text)
    )
    return "".join(
        part if position % 2 else re.sub(r"([*_<>|\[\]$])", r"\\\1", part)
        for position, part in enumerate(parts)
    )
