"""The page of the command line, made from the help texts of the application itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

_CODE_OR_OPTION = re.compile(r"(`[^`]*`)|(?<![\w-])--[a-z][a-z-]*")

CONVENTIONS = (
    (
        "inputs are arguments; `--out` and `--json` are options",
        "ruff: `ruff check PATH`",
        "--out --json",
    ),
    ("every setting is an option; `--help-all` lists them", "ruff, uv", "--help-all"),
    (
        "`--config FILE` contains options; the command line takes precedence",
        "ruff, inspect",
        "--config",
    ),
    ("lists are separated by commas: `--show brier,auroc`", "lm-eval: `--tasks a,b`", "--show"),
    (
        "options whose values may contain commas are repeated: `--response a --response b`",
        "inspect: `-T KEY=VALUE`",
        "--response",
    ),
    (
        "settings of a backend are options, or follow its name: `--backend lbp,damping=0.5`",
        "lm-eval: `--model_args a=1,b=2`",
        "assess draw infer",
    ),
    ("`--model PROVIDER/NAME`, with its key in the environment", "inspect, litellm", "--model"),
    (
        "`--dry-run` shows the plan and does nothing",
        "uv: `uv sync --dry-run`",
        "--dry-run",
    ),
    (
        "limits stop before the next call: `--max-cost 2`, `--max-calls 500`",
        "inspect: `--token-limit`",
        "--max-cost --max-calls",
    ),
    ("KEY=VALUE after the study replaces a key", "Hydra, dvc: `dvc exp run -S`", "run"),
    ("two results are given in order, earlier first", "git, dvc: `dvc metrics diff`", "diff"),
    ("a kind, then a name of this kind", "inspect: `inspect list tasks`", "list"),
    ("serves a page on this machine until stopped", "inspect: `inspect view`", "explore"),
    ("the suffix of the second file determines the format", "pandoc", "convert draw"),
)
"""Convention, a tool of the field that has it, and the commands that follow it: all commands with
the given options, or the named commands."""


def page() -> str:
    """Page: every command with its text, its examples, arguments and options."""
    from experiments.cli.main import COMMANDS, HELP

    parts = [
        "# Command line\n",
        "Every command with its options, from the help texts. Invalid input gives one sentence on "
        "standard error and exit code 2, an interrupt exit code 130. A command that finishes "
        "without posteriors or model answers that its result needs exits with 1; one that reaches "
        "a limit on calls or costs exits with 3. `factormodels --install-completion` enables "
        "completion of commands and options in the shell.\n",
        "`--help` shows the usual options, `--help-all` every option. Write a list as one word: "
        "`--show brier,auroc`. `--config paper.yaml` takes options from a file, one per line, such "
        "as `venue: acl` and `show: [brier, auroc]`; the command line takes precedence. Settings "
        "of a backend are options too: `--backend lbp --damping 0.5` is the same as `--backend "
        "lbp,damping=0.5`.\n",
        "Conventions shared by several commands follow other tools of the field:\n",
        _conventions(),
        *_prose(HELP),
    ]
    for name in sorted(COMMANDS):
        prose, taken = described_command(name)
        parts += [f"## factormodels {name}\n", *_prose(prose), *_rows(taken)]
    return "\n".join(parts)


@cache
def described_command(name: str) -> tuple[str, list[tuple[str, str]]]:
    """Text of a command, and its arguments and options with their meaning."""
    from experiments.cli.front import described
    from experiments.cli.main import function_named

    return described(function_named(name))


def followers(which: str) -> list[str]:
    """Return the commands that have all options of a convention, or the commands that it names."""
    from experiments.cli.main import COMMANDS

    if not which.startswith("--"):
        return which.split()
    options = set(which.split())
    return [
        name
        for name in sorted(COMMANDS)
        if options <= {taken.split()[0] for taken, _ in described_command(name)[1]}
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
