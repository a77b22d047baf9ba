"""Every command ends with the code that the help documents, whatever stops it."""

from __future__ import annotations

import errno
import re

import pytest

from experiments.cli import main
from factormodels.errors import InputError, LimitReachedError, MissingDependencyError
from tests.experiments.conftest import invoke

COMMANDS = main.COMMANDS

STOPPED: tuple[tuple[BaseException, int], ...] = (
    (InputError("t.csv: it is none; give another"), 2),
    (MissingDependencyError("x is not installed; run: pip install x"), 2),
    (OSError(errno.ENOSPC, "No space left on device", "t.csv"), 2),
    (MemoryError(), 2),
    (LimitReachedError("3 calls were made; raise the limit"), 3),
    (KeyboardInterrupt(), 130),
)

NOT_FINDING_ALL = {
    "assess",
    "coherence",
    "datasets",
    "fastfact",
    "omissions",
    "probe",
    "revise",
    "run",
    "self-knowledge",
}
"""Commands that may end with 1."""


@pytest.mark.parametrize(("error", "code"), STOPPED, ids=lambda value: type(value).__name__)
def test_each_cause_of_a_stop_has_its_exit_code(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise error

    monkeypatch.setattr(main, "run_command", stopped)
    assert invoke("infer", code=code).stderr.startswith("factormodels: ")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_called_wrongly_ends_with_2(name: str) -> None:
    invoke(name, "--no-such-option", code=2)


def test_the_help_documents_the_codes_and_who_ends_with_1() -> None:
    shown = invoke("--help-all").stdout
    codes = re.findall(r"^ +(\d+) {3,}\w", shown[shown.index("Exit codes") :], re.MULTILINE)
    assert codes == ["0", "1", "2", "3", "130", "143"]
    assert set(COMMANDS) >= NOT_FINDING_ALL
    (names,) = re.findall(r" 1 +some results are missing: (.*?) 2 ", " ".join(shown.split()))
    assert set(names.split(", ")) == NOT_FINDING_ALL
