"""An external solver's binary as an algorithm: run on files, its output checked and read.

What is timed holds the start of the program and its reading and writing of files: there is no
warm call of a program that ends. The model is written before.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import string
import subprocess
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from experiments.bench.algorithms import ALGORITHMS, BenchAlgorithm
from experiments.bench.answers import BenchAnswer, Prepared
from experiments.bench.solver_output import Output, read_outputs
from experiments.run.processes import FAILED, TIMED_OUT, ChildError
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.io.networks.uai import write_uai

KINDS = ("exact", "upper", "lower", "bethe", "elbo", "none")
PLACEHOLDERS = ("model", "evidence", "out", "folder")

_ERROR_CHARACTERS = 200
_GRACE = 10.0
"""Seconds that a process gets to end a program that took too long, and to say so."""


@dataclass(frozen=True)
class Solver:
    """A program that solves UAI models.

    Attributes:
        name: what tables call it.
        words: its command line, word by word, with placeholders.
        kind: what its log Z is.
        time_limit: seconds that a run may take.
    """

    name: str
    words: tuple[str, ...]
    kind: str
    time_limit: float


def parse_solver(text: str, time_limit: float) -> BenchAlgorithm:
    """The algorithm that a text "NAME=COMMAND" or "NAME:KIND=COMMAND" describes.

    The command is parted into words as a shell does, and no shell sees it. In each word
    {model} stands for the UAI file, {evidence} for its evidence file, {out} for a file name
    without suffix where output may go, {folder} for the temporary folder that holds them all and
    is the current one. KIND says what the program's log Z is; "none" if it is left out.

    Args:
        text: the description.
        time_limit: seconds that a run may take.

    Raises:
        InputError: if the text is no such description, or there is no such program.
    """
    head, equals, command = text.partition("=")
    name, _, kind = head.strip().partition(":")
    where = f"--solver {text!r}"
    if not equals or not name:
        raise InputError(f"{where}: it has no name; write 'NAME=/path/to/binary {{model}} ...'")
    if name in ALGORITHMS:
        raise InputError(f"{where}: {name!r} is an algorithm of the table; choose another name")
    if kind not in ("", *KINDS):
        raise InputError(f"{where}: {kind!r} is not a kind of log Z; use one of {', '.join(KINDS)}")
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise InputError(f"{where}: its command is not a command line ({error})") from None
    if not words or shutil.which(words[0]) is None:
        program = words[0] if words else ""
        raise InputError(
            f"{where}: there is no program {program!r} that can be run; check the path"
        )
    for word in words:
        _check_placeholders(word, where)
    if not any("{model}" in word for word in words):
        raise InputError(f"{where}: its command does not name {{model}}, the file to solve; add it")
    # Absolute, since the program is run from the folder of its files. `abspath` does not follow
    # links, which may choose what a binary does by its name.
    program = os.path.abspath(shutil.which(words[0]) or words[0])  # noqa: PTH100
    solver = Solver(name, (program, *words[1:]), kind or "none", time_limit)
    return BenchAlgorithm(
        name=name,
        summary=f"the program {Path(program).name}, from its start to its end",
        prepare=partial(prepare_solver, solver),
        load=_nothing,
        against="exact",
        grace=_GRACE,
    )


def prepare_solver(solver: Solver, graph: FactorGraph) -> Prepared:
    """Write a model for a solver and return the run of it.

    Raises:
        InputError: if the model cannot be written as a UAI file.
    """
    # Not a context manager: the folder must outlive this call, for as many runs as there will be.
    folder = Path(tempfile.mkdtemp(prefix="factormodels-bench-"))
    model, evidence = folder / "model.uai", folder / "model.uai.evid"
    write_uai(graph, model, evidence_path=evidence)
    places = {
        "model": str(model),
        "evidence": str(evidence),
        "out": str(folder / "out"),
        "folder": str(folder),
    }
    words = [word.format(**places) for word in solver.words]
    run = partial(_run, solver, words, folder)
    # The model outlives every run and goes with what could run it.
    weakref.finalize(run, shutil.rmtree, folder, ignore_errors=True)
    return Prepared(run, partial(_read, solver, graph))


def _run(solver: Solver, words: list[str], folder: Path) -> Output:
    """Run the program once in its folder, and read what it wrote."""
    # What an earlier run wrote must not be read as the answer of this one.
    given = {path.name for path in folder.iterdir() if path.name.startswith("model.uai")}
    for path in folder.iterdir():
        if path.name not in given and path.is_file():
            path.unlink()
    # A session of its own, so that what it starts ends with it.
    with subprocess.Popen(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            printed, complaints = process.communicate(timeout=solver.time_limit)
        except subprocess.TimeoutExpired:
            # The whole group: a solver may be a script that has started others.
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise ChildError(TIMED_OUT, f"no answer within {solver.time_limit:g} s") from None
    text = printed.decode(errors="replace")
    if process.returncode:
        said = (complaints.decode(errors="replace").strip() or text.strip()).splitlines()
        last = f": {said[-1][:_ERROR_CHARACTERS]}" if said else ""
        raise ChildError(FAILED, f"{solver.name} ended with code {process.returncode}{last}")
    # Sorted, so that of two files with the same section always the same one counts.
    files = [path for path in sorted(folder.iterdir()) if path.name not in given and path.is_file()]
    try:
        return read_outputs(files, text)
    except InputError as error:
        raise ChildError(FAILED, str(error)) from None


def _read(solver: Solver, graph: FactorGraph, output: Output) -> BenchAnswer:
    """The output as an answer, its marginals checked against the model."""
    marginals = output.marginals
    if marginals is not None:
        expected = graph.cardinalities.tolist()
        if [len(vector) for vector in marginals] != expected:
            raise ChildError(
                FAILED,
                f"{solver.name} gave {len(marginals)} marginals that do not fit the "
                f"{len(expected)} variables of the model",
            )
    import numpy as np

    return BenchAnswer(
        marginals=None if marginals is None else np.concatenate([np.zeros(0), *marginals]),
        log_z=output.log_z,
        log_z_kind="none" if output.log_z is None else solver.kind,
        status="exact" if solver.kind == "exact" else "converged",
    )


def _check_placeholders(word: str, where: str) -> None:
    try:
        names: Mapping[str, None] = dict.fromkeys(
            field for _, field, _, _ in string.Formatter().parse(word) if field is not None
        )
    except ValueError as error:
        raise InputError(f"{where}: {word!r} has an unmatched brace ({error}); double it") from None
    for name in names:
        if name not in PLACEHOLDERS:
            known = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
            raise InputError(f"{where}: {{{name}}} stands for nothing; use {known}")


def _nothing() -> None:
    """Load nothing: a program loads itself, within its time."""
