"""Support for notebooks: the fast mode, and the folder of results.

from experiments.findings.notebook import fast, write_results
draws = 500 if fast() else 10_000

Two environment variables are read on demand: FACTORMODELS_FAST=1 requests less precise numbers in
less time, and FACTORMODELS_RESULTS names the folder of results.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import cyclopts

from experiments.findings.artifacts import Artifacts, Origin, write_artifacts
from factormodels.errors import FactormodelsError, InputError
from factormodels.io.json import plain_hash
from factormodels.io.source.files import results_folder as existing_folder

FAST = "FACTORMODELS_FAST"
RESULTS = "FACTORMODELS_RESULTS"


def fast() -> bool:
    """Return True if a notebook should run in seconds, at the cost of wider intervals.

    Raises:
        InputError: if FACTORMODELS_FAST is set to anything but 0 or 1.
    """
    value = os.environ.get(FAST, "0")
    if value not in ("", "0", "1"):
        raise InputError(f"{FAST} is {value!r}; set it to 1 for the fast mode, or to 0")
    return value == "1"


def results_folder(notebook: str) -> Path:
    """The folder of a notebook's results, ``results/notebooks/NAME`` of the checkout.

    Args:
        notebook: its name without suffix, such as ``01_worked_examples``.
    """
    return Path(os.environ.get(RESULTS, "../results/notebooks")) / notebook


def write_results(notebook: str, artifacts: Artifacts) -> tuple[str, ...]:
    """Write a notebook's tables and figures into its folder of results; return the files' names.

    Each file records the notebook's name, whether it ran in the fast mode, and the hash of both and
    of its script.

    Args:
        notebook: its name without suffix; it runs in the folder of its script.
        artifacts: the tables and figures.

    Raises:
        InputError: if its script is not in the working folder, or a file cannot be written.
    """
    script = Path(f"{notebook}.py")
    if not script.is_file():
        raise InputError(
            f"{script}: there is no such file in {Path.cwd()}; run a notebook in its own folder, "
            "beside its script"
        )
    # The script is an input too: an edited script makes other artifacts.
    asked = {"notebook": notebook, "script": script.read_text(encoding="utf-8"), "fast": fast()}
    origin = Origin(f"{notebook} (fast mode)" if fast() else notebook, plain_hash(asked))
    folder = results_folder(notebook)
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(path.name for path in write_artifacts(artifacts, folder, origin))


def answer_question(answer: Callable[..., Artifacts], script: str) -> None:
    """Run a script that answers one question, with its parameters as options of a command line.

    Tables and figures are written to the folder of --out, by default `results/questions/NAME`. The
    process ends with exit code 2 and one sentence if an option or the data cannot be used.

    Args:
        answer: makes the tables and figures; its keyword parameters are the options.
        script: path of the script, whose text is part of the origin that the files record.
    """
    path = Path(script)
    app = cyclopts.App(name=path.name, help_format="plaintext", version_flags=())
    app.default(answer)

    @app.meta.default
    def _(
        *tokens: Annotated[str, cyclopts.Parameter(show=False, allow_leading_hyphen=True)],
        out: Path | None = None,
    ) -> None:
        artifacts = app(tokens, result_action="return_value").with_points()
        name = path.stem.replace("_", "-")
        asked = {"script": path.read_text(encoding="utf-8"), "options": [*tokens]}
        folder = Path("results/questions") / name if out is None else out
        with existing_folder(folder):
            files = write_artifacts(artifacts, folder, Origin(name, plain_hash(asked)))
        sys.stdout.write("".join(f"{line}\n" for line in (*artifacts.remarks, *files)))

    try:
        app.meta()
    except FactormodelsError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
