"""Files whose functions a call enters; of a command, `python -m tests.entered_files score t.csv`.

A file counts if one of its functions runs outside of imports. Class bodies, decorators and module
code do not count.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

ROOT = Path(__file__).parent.parent
PACKAGES = ("factormodels", "inference", "calibration", "experiments")

Result = TypeVar("Result")


def entered_by(call: Callable[[], Result]) -> tuple[Result, list[str]]:
    """Return the result of a call, and the files of the packages whose functions ran."""
    folders = tuple(f"{ROOT / package}/" for package in PACKAGES)
    entered: set[str] = set()
    importing = 0

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal importing
        code = frame.f_code
        if code.co_name == "<module>":
            importing += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not importing and code.co_filename.startswith(folders):
            entered.add(code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = call()
    finally:
        sys.setprofile(before)
    return result, sorted(str(Path(file).relative_to(ROOT)) for file in entered)


def entered_files(arguments: list[str]) -> tuple[int, list[str]]:
    """Run a command, and return its exit code and the files of the packages that it enters."""
    from experiments.cli.main import command_line

    return entered_by(lambda: command_line(arguments))


def main() -> None:
    """Write the files, by package, that the command of the arguments enters."""
    with contextlib.redirect_stdout(io.StringIO()):
        code, files = entered_files(sys.argv[1:])
    sys.stdout.write("\n".join([*files, f"{len(files)} files, exit code {code}\n"]))


if __name__ == "__main__":
    main()
