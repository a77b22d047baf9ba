"""Execute the notebooks; `make notebooks` runs it.

    python -m tests.execute_notebooks notebooks results/notebooks

A notebook is a Python file in jupytext's percent format. Each runs in a kernel of its own, in its
own folder, and is written with its outputs to the second folder. The first cell that fails ends the
command with its error.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

logger = logging.getLogger(__name__)

CELL_SECONDS = 600
"""How long one cell may take."""


def notebooks_in(folder: Path) -> list[Path]:
    """Return the notebooks of a folder, in the order of their names; none if it does not exist."""
    return sorted(folder.glob("*.py"))


def execute(notebook: Path, results: Path) -> Path:
    """Execute a notebook from its own folder and return the executed copy in `results`.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails; nothing is written then.
    """
    import jupytext
    from nbclient import NotebookClient

    document = jupytext.read(notebook)
    resources = {"metadata": {"path": str(notebook.parent)}}
    client = NotebookClient(
        document, timeout=CELL_SECONDS, kernel_name="python3", resources=resources
    )
    client.execute()
    results.mkdir(parents=True, exist_ok=True)
    executed = results / f"{notebook.stem}.ipynb"
    jupytext.write(document, executed)
    return executed


def main(folder: Path, results: Path) -> None:
    """Execute every notebook of a folder."""
    notebooks = notebooks_in(folder)
    if not notebooks:
        logger.info("there are no notebooks in %s: nothing was executed", folder)
    for notebook in notebooks:
        logger.info("%s -> %s", notebook, execute(notebook, results))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    main(*map(Path, sys.argv[1:]))
