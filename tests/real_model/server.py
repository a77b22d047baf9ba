"""Start and stop the server of a real model for a test or for `make real-model`."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.processes import ROOT
from tests.real_model.serve import model_file

MODEL_ENVIRONMENT = ROOT / ".venv-model"
"""What `make model` installs: the server and the models, apart from what runs the packages."""

_SERVE = Path(__file__).with_name("serve.py")


@dataclass(frozen=True)
class RealModel:
    """A model that a server of this machine answers for.

    Attributes:
        name: the model, as `--model` takes it.
        api_base: address of the server, as `--api-base` takes it.
        pid: id of the server's process.
    """

    name: str
    api_base: str
    pid: int

    @property
    def options(self) -> tuple[str, ...]:
        """The options that name the model on a command line."""
        return ("--model", self.name, "--api-base", self.api_base)


def is_installed() -> bool:
    """Return whether the server and the small model are installed."""
    return (MODEL_ENVIRONMENT / "installed").exists()


def served(
    model: str,
    executable: Path | None,
    *,
    slots: int,
    context: int,
    threads: int = 1,
    in_turn: bool = False,
) -> AbstractContextManager[RealModel]:
    """Serve a model with a compiled `llama-server`, or with the server of the wheel.

    Args:
        model: as `serve.py` takes it.
        executable: the `llama-server`.
        slots: number of requests answered at a time.
        context: tokens of one request.
        threads: threads of the server.
        in_turn: whether requests take the slots in turn, so that each of as many prompts keeps a
            cache of its own.

    Raises:
        RuntimeError: if the server does not start.
    """
    if executable is not None:
        file = model_file(model, MODEL_ENVIRONMENT)
        return serving_with(
            executable, file, slots=slots, context=context, threads=threads, in_turn=in_turn
        )
    options = {"--slots": slots, "--context": context, "--threads": threads}
    words = [str(word) for option in options.items() for word in option]
    return serving(model, *words, *(["--in-turn"] if in_turn else []))


@contextmanager
def serving(model: str, *options: str) -> Iterator[RealModel]:
    """Serve a model on a free port of the loopback interface, in a process of its own.

    Args:
        model: as `serve.py` takes it.
        options: more of its options.

    Raises:
        RuntimeError: if the server does not start.
    """
    command = [str(MODEL_ENVIRONMENT / "bin/python"), str(_SERVE), model, *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            # Libraries of the server may write lines of their own.
            address = next((line for line in process.stdout if line.startswith("http://")), "")
            if not address:
                raise RuntimeError(f"the server did not start: {process.stderr.read()[-2000:]}")
            yield RealModel(
                f"openai/{Path(model).name.removesuffix('.gguf')}",
                f"{address.strip()}/v1",
                process.pid,
            )
        finally:
            process.kill()


@contextmanager
def serving_with(
    executable: Path,
    model: Path,
    *,
    slots: int,
    context: int,
    threads: int,
    in_turn: bool = False,
    seconds: float = 120.0,
) -> Iterator[RealModel]:
    """Serve a model with a `llama-server` that was compiled for this processor.

    Wheels of llama.cpp run on any processor of the last ten years; one compiled for the processor
    at hand reads prompts in a fraction of the time.

    Args:
        executable: the `llama-server`.
        model: a GGUF file.
        slots: number of requests answered at a time.
        context: tokens of one request.
        threads: threads of the server.
        in_turn: whether requests take the slots in turn.
        seconds: limit of the time that loading may take.

    Raises:
        RuntimeError: if the server does not answer in time.
    """
    name = model.name.removesuffix(".gguf")
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    options = {
        "--model": str(model),
        "--alias": name,
        "--host": "127.0.0.1",
        "--port": str(port),
        "--parallel": str(slots),
        "--ctx-size": str(context * slots),
        "--threads": str(threads),
        "--threads-batch": str(threads),
    }
    if in_turn:
        options |= {"--slot-prompt-similarity": "0", "--cache-ram": "0"}
    words = [word for option in options.items() for word in option]
    with subprocess.Popen(
        [str(executable), *words, "--no-warmup", "--log-disable"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            _wait_until_ready(process, f"{address}/health", seconds)
            yield RealModel(f"openai/{name}", f"{address}/v1", process.pid)
        finally:
            process.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _wait_until_ready(process: subprocess.Popen[bytes], address: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(address, trust_env=False).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise RuntimeError(f"the server did not answer at {address} within {seconds:g} s")
