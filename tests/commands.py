"""The command line, called in this process as a person calls it."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from experiments.cli.main import command_line


@dataclass(frozen=True)
class Called:
    """Output and exit code of a command."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """All that it wrote."""
        return self.stdout + self.stderr


_PROBING = {"assess", "coherence", "fastfact", "omissions", "select", "self-knowledge"}

_OF_THE_PROBE = ("--probe", "--no-probe", "--dry-run")


def without_probe(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command, without the probe of the model that it would ask first.

    Scripted servers answer what their test is about, and know nothing of the probe's questions. A
    test of the probe gives --probe.
    """
    listed = list(arguments)
    asks = bool({*listed[:1]} & _PROBING and {"--model", "--relevance"} & {*listed})
    return listed if not asks or {*_OF_THE_PROBE} & {*listed} else [*listed, "--no-probe"]


def called(*arguments: str, input: str = "") -> Called:
    """Call a command; as a terminal's, the streams are UTF-8 and strict on output."""
    written, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    given = io.TextIOWrapper(io.BytesIO(input.encode()), "utf-8")
    with ExitStack() as streams:
        streams.enter_context(redirect_stdout(written))
        streams.enter_context(redirect_stderr(errors))
        streams.enter_context(patch.object(sys, "stdin", given))
        try:
            code = command_line(without_probe(arguments))
        except SystemExit as end:
            code = int(end.code or 0)
    texts = []
    for stream in (written, errors):
        stream.flush()
        stream.seek(0)
        texts.append(stream.read())
    return Called(code, *texts)
