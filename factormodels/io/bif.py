"""BIF files: Bayesian networks as text, read by pgmpy."""

from __future__ import annotations

import importlib
import os

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError, MissingDependencyError
from factormodels.factor_graph import FactorGraph
from factormodels.io.bif_text import looks_like_bif, plain_bif, read_declarations
from factormodels.io.files import read_text
from factormodels.io.json_records import located

__all__ = ["looks_like_bif", "parse_bif", "read_bif"]

SUM_TOLERANCE = 1e-2
"""How far a distribution may sum from 1: published networks are printed with 2 digits or more."""


def read_bif(path: str | os.PathLike[str]) -> FactorGraph:
    """Factor graph of a BIF file: one factor per variable, over its parents and itself.

    Variables and states keep the order and the names of the file, state 0 being the first that is
    listed. The file may be compressed with gzip.

    Raises:
        InputError: if the file cannot be read, is malformed or cut short, or has a cycle.
        MissingDependencyError: if pgmpy is not installed.
    """
    return parse_bif(read_text(path), path)


def parse_bif(text: str, source: str | os.PathLike[str]) -> FactorGraph:
    """Factor graph of BIF text.

    Raises:
        InputError: if the text is malformed or cut short, or has a cycle.
        MissingDependencyError: if pgmpy is not installed.
    """
    where = os.fspath(source)
    plain = plain_bif(text)
    declared = read_declarations(plain, where)
    names = list(declared.states)
    counts = [len(states) for states in declared.states.values()]
    tables = _pgmpy_tables(plain, where)
    factors = []
    for child, (name, parents) in enumerate(zip(names, declared.parents, strict=True)):
        table = np.asarray(tables.get(name, np.zeros(0)), dtype=np.float64)
        combinations = int(np.prod([counts[parent] for parent in parents], dtype=np.int64))
        if table.shape != (counts[child], combinations):
            raise InputError(
                f"{where}: pgmpy cannot make out the probability block of {name!r}; "
                "write its names and numbers plainly"
            )
        sums = table.sum(axis=0)
        off = np.abs(sums - 1.0) > SUM_TOLERANCE
        if off.any():
            column = int(np.argmax(off))
            raise InputError(
                f"{where}: the probability block of {name!r} sums to {sums[column]:.6g} for "
                f"combination {column} of its parents' states; correct it to sum to 1"
            )
        factors.append(((*parents, child), table.T.ravel()))
    with located(where):
        named = list(declared.states.values())
        return FactorGraph.from_factors(counts, factors, names=names, state_names=named)


def _pgmpy_tables(plain: str, where: str) -> dict[str, NDArray[np.float64]]:
    """Pgmpy's tables by name: (states, combinations of parents' states, last fastest)."""
    try:
        reader = importlib.import_module("pgmpy.readwrite").BIFReader
    except ImportError as error:
        raise MissingDependencyError(
            f"{where}: reading BIF needs pgmpy, which cannot be imported ({error}); "
            "install it with: pip install 'factorfacts[pgmpy]'"
        ) from None
    try:
        return dict(reader(string=plain).variable_cpds)
    except Exception as error:  # pgmpy raises whatever its parsing steps meet
        reason = " ".join(str(error).split())
        raise InputError(
            f"{where}: pgmpy cannot read it ({type(error).__name__}: {reason}); "
            "write its names and numbers plainly"
        ) from None
