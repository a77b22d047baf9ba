"""Tasks of worker processes, in a module that imports little: the processes start quickly."""

from __future__ import annotations

import os
import signal

from factormodels.errors import InputError


def square(first_process: int, deadly: int, number: int) -> int:
    """The square of a number; over one of them every process but the first dies."""
    if number == deadly and os.getpid() != first_process:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == -deadly:
        raise InputError("the sentence\nof the task")
    return number**2


def die() -> None:
    """End the process."""
    os._exit(3)
