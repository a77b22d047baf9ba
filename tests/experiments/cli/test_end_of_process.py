"""End of a process whose threads are still working, as after an interrupt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.experiments.conftest import environment

pytestmark = pytest.mark.kill

# A thread holds the lock of all imports when the process ends, and what is taken apart then wants
# to import, as connections of litellm do. The lock is taken last of what is done at exit.
CODE = """
import _imp, atexit, sys, threading, time, types
from experiments.evaluators.batches.threads import AT_WORK

class Late:
    def __del__(self):
        import colorsys

# What a module holds is taken apart while imports still look for locks.
sys.modules["keeper"] = keeper = types.ModuleType("keeper")
keeper.late, ending = Late(), threading.Event()

def hold():
    ending.wait()
    _imp.acquire_lock()
    time.sleep(3600)

def end():
    print("done at exit")
    ending.set()
    time.sleep(0.2)

atexit.register(end)
threading.Thread(target=hold, name=AT_WORK, daemon=True).start()

from experiments.cli.main import main

sys.argv = ["factormodels", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(("asked", "code"), [("--version", 0), ("--no-such-option", 2)])
def test_a_thread_that_holds_the_lock_of_imports_does_not_keep_the_process(
    tmp_path: Path, asked: str, code: int
) -> None:
    ended = _ended(CODE, asked, tmp_path)
    assert ended.returncode == code, ended.stderr
    assert ended.stdout.endswith("done at exit\n")


def test_the_process_ends_without_pythons_private_name(tmp_path: Path) -> None:
    code = CODE.replace("sys.argv = ", "del atexit._run_exitfuncs\nending.set()\nsys.argv = ")
    ended = _ended(code, "--no-such-option", tmp_path)
    assert ended.returncode == 2, ended.stderr
    assert "done at exit" not in ended.stdout


# A second interrupt arrives while the process ends.
INTERRUPTED_TWICE = """
import atexit, os, signal, sys
from experiments.cli import main as command_line

def interrupted(*_):
    raise KeyboardInterrupt

command_line.run_command = interrupted
# A test run in the background of a shell ignores interrupts, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
sys.argv = ["factormodels", "infer"]
command_line.main()
"""


# The first one arrives while the command is imported.
INTERRUPTED_EARLY = """
import sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == "experiments.cli.main":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from factormodels.__main__ import main
main()
"""


@pytest.mark.parametrize("code", [INTERRUPTED_TWICE, INTERRUPTED_EARLY], ids=["twice", "early"])
def test_no_interrupt_ends_in_a_traceback(tmp_path: Path, code: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (130, "factormodels: interrupted\n")


# An interrupt arrives when the handlers of signals are the system's again.
INTERRUPTED_LATE = """
import os, signal, sys, types
from experiments.cli.main import main

class Late:
    def __del__(self, kill=os.kill, process=os.getpid(), number=signal.SIGINT):
        kill(process, number)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.modules["keeper"] = keeper = types.ModuleType("keeper")
keeper.late = Late()
sys.argv = ["factormodels", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(("asked", "code"), [("--version", 0), ("--no-such-option", 2)])
def test_an_interrupt_while_python_takes_itself_apart_changes_no_exit_code(
    tmp_path: Path, asked: str, code: int
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_LATE, asked],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr


def _ended(code: str, argument: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code with an argument in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, argument],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
