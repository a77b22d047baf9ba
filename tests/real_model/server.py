"""Start and stop the server of a real model for a test or for `make real-model`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.processes import ROOT

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
