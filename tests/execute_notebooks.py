"""Execute the notebooks, or bring their twins into step; `make notebooks` executes them in full.

    python -m tests.execute_notebooks                 # notebooks/ into results/notebooks
    python -m tests.execute_notebooks --fast          # in seconds, as the tests do
    python -m tests.execute_notebooks --sync          # write notebooks/*.ipynb anew

A notebook is a Python file in jupytext's percent format, and beside it the same without outputs as
.ipynb. Each runs in a kernel of its own, in its own folder, and is written with its outputs to the
second folder; a warning is an error there. A notebook that fails or takes too long is named at the
end, and the others are executed all the same; the command then ends with exit code 1.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import cyclopts

from experiments.findings.notebook import FAST, RESULTS

logger = logging.getLogger(__name__)

CELL_SECONDS = 600
"""How long one cell may take."""

_WARNINGS_ARE_ERRORS = (
    "import warnings; warnings.simplefilter('error'); "
    "warnings.filterwarnings('ignore', module='ipykernel')"
)
"""What every kernel runs first; what ipykernel warns itself of is not the notebook's."""


def notebooks_in(folder: Path) -> list[Path]:
    """Return the notebooks of a folder, in the order of their names; none if it does not exist."""
    return sorted(folder.glob("*.py"))


def execute(notebook: Path, results: Path, *, fast: bool = False) -> Path:
    """Execute a notebook from its own folder and return the executed copy in `results`.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails; no copy is written then.
        nbclient.exceptions.CellTimeoutError: if a cell takes longer than `CELL_SECONDS`; likewise.
        nbclient.exceptions.DeadKernelError: if the process of the kernel ends; likewise.
    """
    import jupytext
    from nbclient import NotebookClient

    document = jupytext.read(notebook)
    client = NotebookClient(
        document,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(notebook.parent)}},
        extra_arguments=[
            f"--IPKernelApp.exec_lines={_WARNINGS_ARE_ERRORS}",
            # It remarks that it is reached without encryption, which stays on this machine.
            "--IPKernelApp.log_level=ERROR",
        ],
    )
    settings = {FAST: str(int(fast)), RESULTS: str(results.resolve())}
    client.execute(env={**os.environ, **settings})
    results.mkdir(parents=True, exist_ok=True)
    executed = results / f"{notebook.stem}.ipynb"
    jupytext.write(document, executed)
    return executed


def twin(notebook: Path) -> str:
    """Return the text of the .ipynb beside a notebook: the same cells, without outputs."""
    import jupytext

    document: Any = jupytext.read(notebook)
    for number, cell in enumerate(document.cells):
        # Jupytext draws these by chance, and the same script is to give the same file.
        cell["id"] = f"cell-{number:02d}"
    return str(jupytext.writes(document, fmt="ipynb"))


def synchronise(folder: Path) -> None:
    """Write the twin of every notebook of a folder anew."""
    for notebook in notebooks_in(folder):
        notebook.with_suffix(".ipynb").write_text(twin(notebook), encoding="utf-8")


def main(
    folder: Path = Path("notebooks"),
    results: Path = Path("results/notebooks"),
    *,
    fast: bool = False,
    sync: bool = False,
) -> None:
    """Execute every notebook of a folder, or with --sync write their twins.

    Raises:
        SystemExit: with exit code 1 after the last notebook, if any has failed.
    """
    from nbclient.exceptions import CellControlSignal, DeadKernelError

    notebooks = notebooks_in(folder)
    if not notebooks:
        logger.info("there are no notebooks in %s: nothing was executed", folder)
    if sync:
        synchronise(folder)
        return
    failed = []
    for notebook in notebooks:
        started = time.perf_counter()
        try:
            executed = execute(notebook, results, fast=fast)
        except (CellControlSignal, DeadKernelError) as error:
            failed.append(notebook)
            logger.error("%s failed: %s", notebook, error)
        else:
            logger.info("%s -> %s in %.0f s", notebook, executed, time.perf_counter() - started)
    if failed:
        names = ", ".join(map(str, failed))
        logger.error("%d of %d notebooks failed: %s", len(failed), len(notebooks), names)
        raise SystemExit(1)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    cyclopts.run(main)
