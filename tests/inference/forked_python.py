"""Run Python in forks of an interpreter that has loaded Numba, which takes most of a second."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

from tests.processes import ROOT

_SERVER = """
import gc, json, os, sys
import numpy
from numba import njit

# Rules of typing and of compiling are loaded by the first function. Nothing of ours is imported.
njit(lambda values, at: values[at] + 1)(numpy.arange(2), 1)
gc.collect()
gc.freeze()
for line in sys.stdin:
    process = os.fork()
    if process == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
else:
    sys.exit()
code, folder, *streams = json.loads(line)
os.chdir(folder)
for number, path in enumerate(streams):
    stream = os.open(path, os.O_RDWR)
    os.dup2(stream, number)
    os.close(stream)
exec(code, {"__name__": "__main__"})
"""


def run_with_numba(code: str, *, folder: Path = ROOT) -> tuple[str, str]:
    """Return what code that must succeed writes on its output and its errors, 64 KB at most.

    It runs as in `run_python`, but where Numba has been imported and has compiled one function, and
    nothing of this checkout has been imported.

    Args:
        code: what it runs.
        folder: its current folder.
    """
    server = _server(os.environ.get("NUMBA_CACHE_DIR"))
    assert server.stdin is not None
    assert server.stdout is not None
    with TemporaryDirectory() as pipes, ExitStack() as readers:
        # Pipes, which no limit on the size of files reaches.
        paths = [Path(pipes, name) for name in ("output", "errors")]
        for path in paths:
            os.mkfifo(path)
        output, errors = (
            readers.enter_context(os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK)))
            for path in paths
        )
        server.stdin.write(f"{json.dumps([code, str(folder), os.devnull, *map(str, paths)])}\n")
        server.stdin.flush()
        limit = Timer(600.0, server.kill)
        limit.start()
        try:
            status = server.stdout.readline()
        finally:
            limit.cancel()
        written = output.read(), errors.read()
    assert status == "0\n", written[1]
    return written


@cache
def _server(kept: str | None) -> subprocess.Popen[str]:
    """An interpreter that forks for each line which it reads, until this process ends.

    Args:
        kept: folder of machine code, which Numba looks for in the environment when it is imported.
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    if kept is None:
        environment.pop("NUMBA_CACHE_DIR", None)
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    # Its input is closed, so that it ends.
    atexit.register(server.__exit__, None, None, None)
    return server
