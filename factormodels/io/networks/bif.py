"""BIF files: Bayesian networks as text, whose tables pgmpy reads.

pgmpy passes over blocks and rows that it cannot make out, or fails without telling where; so what a
text declares, its variables, states, parents and rows, is read here first and every gap in it told.
"""

from __future__ import annotations

import importlib
import math
import os
import re
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError, MissingDependencyError
from factormodels.factor_graph import FactorGraph
from factormodels.io.json_records import located, shown
from factormodels.io.networks.cycles import find_cycle

SUM_TOLERANCE = 1e-2
"""How far a distribution may sum from 1: published networks are printed with 2 digits or more."""


def parse_bif(text: str, source: str | os.PathLike[str]) -> FactorGraph:
    """Factor graph of BIF text: one factor per variable, over its parents and itself.

    Variables and states keep the order and the names of the file, state 0 being the first that is
    listed.

    Raises:
        InputError: if the text is malformed or cut short, or has a cycle.
        MissingDependencyError: if pgmpy is not installed.
    """
    where = os.fspath(source)
    plain = _plain(text)
    declared = _declarations(plain, where)
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


_COMMENT_OR_TEXT = re.compile(r'("[^"]*")|/\*.*?\*/|//[^\n]*', re.DOTALL)
_VARIABLE = re.compile(
    r"\bvariable\s+([^{]+?)\s*\{[^}]*?\btype\s+\w+\s*\[\s*(\d+)\s*\]\s*\{([^}]*)\}"
)
_PROBABILITY = re.compile(r"\bprobability\s*\(([^)|]+)(?:\|([^)]*))?\)\s*\{([^}]*)\}")
_VARIABLE_BLOCK = re.compile(r"^\s*variable\b", re.MULTILINE)
_NETWORK = re.compile(r"\s*network\b")


@dataclass(frozen=True)
class _Declarations:
    """What a BIF text declares.

    Attributes:
        states: names of the states by name of the variable, both in the order of the file.
        parents: for each variable, the positions of its parents, in the order of its block.
    """

    states: dict[str, tuple[str, ...]]
    parents: list[list[int]]


def looks_like_bif(text: str) -> bool:
    """Whether a text begins as BIF does: with the word `network`, after any comments."""
    return _NETWORK.match(_without_comments(text)) is not None


def _plain(text: str) -> str:
    """Text without comments and quotes, its lines ended by line feeds."""
    return "\n".join(_without_comments(text).replace('"', " ").splitlines()) + "\n"


def _declarations(plain: str, source: str) -> _Declarations:
    """What a text made plain by `_plain` declares.

    Raises:
        InputError: if it is cut short, declares something twice or not at all, has a row that does
            not fit, or its parents form a cycle.
    """
    if _NETWORK.match(plain) is None:
        raise InputError(
            f"{source}: it does not begin with 'network', as BIF does; name a BIF file"
        )
    opened, closed = plain.count("{"), plain.count("}")
    if opened != closed:
        raise InputError(
            f"{source}: it has {opened} opening and {closed} closing braces; complete the file"
        )
    states = _states(plain, source)
    parents, bodies = _parents(plain, list(states), source)
    names = list(states)
    cycle = find_cycle(parents)
    if cycle is not None:
        circle = " -> ".join(names[variable] for variable in [*cycle, cycle[0]])
        raise InputError(f"{source}: the parents form the cycle {circle}; drop one of them")
    for name, above in zip(names, parents, strict=True):
        of_parents = [states[names[parent]] for parent in above]
        where = f"{source}: the probability block of {name!r}"
        _check_rows(bodies[name], len(states[name]), of_parents, where)
    return _Declarations(states, parents)


def _without_comments(text: str) -> str:
    return _COMMENT_OR_TEXT.sub(lambda match: match[1] or " ", text)


def _states(plain: str, source: str) -> dict[str, tuple[str, ...]]:
    states: dict[str, tuple[str, ...]] = {}
    known: set[str] = set()
    for name, count, listed in _VARIABLE.findall(plain):
        # pgmpy takes names that differ in case alone for one.
        if name.lower() in known:
            raise InputError(
                f"{source}: the variable {name!r} is declared twice (case aside); rename one"
            )
        known.add(name.lower())
        words = [word.strip() for word in listed.split("," if "," in listed else None)]
        states[name] = tuple(dict.fromkeys(word for word in words if word))
        if len(states[name]) != int(count):
            raise InputError(
                f"{source}: variable {name!r} declares {count} states and lists "
                f"{len(states[name])} different ones; make the two agree"
            )
    blocks = len(_VARIABLE_BLOCK.findall(plain))
    if not blocks:
        raise InputError(f"{source}: it declares no variable; complete the file")
    if len(states) != blocks:
        raise InputError(
            f"{source}: {len(states)} of the {blocks} variable blocks can be read; "
            "write each as `type discrete [ count ] { states };`"
        )
    return states


def _parents(plain: str, names: list[str], source: str) -> tuple[list[list[int]], dict[str, str]]:
    """Positions of each variable's parents, and the inside of its block by name."""
    index = {name.lower(): position for position, name in enumerate(names)}
    parents: list[list[int]] = [[] for _ in names]
    bodies: dict[str, str] = {}
    for head, tail, body in _PROBABILITY.findall(plain):
        words = [head, *tail.split(",")]
        if not tail and head.strip().lower() not in index:
            words = head.replace(",", " ").split()
        told = [word.strip() for word in words if word.strip()]
        if not told:
            raise InputError(
                f"{source}: a probability block names no variable; write it as "
                "`probability ( variable | parents ) { ... }`"
            )
        child, *above = told
        for name in (child, *above):
            if name.lower() not in index:
                raise InputError(
                    f"{source}: the probability block of {child!r} names {name!r}, which is not "
                    "declared; declare it or correct the name"
                )
        position = index[child.lower()]
        if names[position] in bodies:
            raise InputError(f"{source}: {child!r} has two probability blocks; keep one")
        parents[position] = [index[name.lower()] for name in above]
        if len(set(parents[position])) < len(above):
            raise InputError(f"{source}: {child!r} names a parent twice; name each once")
        bodies[names[position]] = body
    for name in names:
        if name not in bodies:
            raise InputError(
                f"{source}: variable {name!r} has no probability block; add one, or complete the "
                "file"
            )
    return parents, bodies


def _check_rows(body: str, states: int, parents: list[tuple[str, ...]], where: str) -> None:
    """Check that there is one table, or one row for each combination of the parents' states."""
    combinations = math.prod(map(len, parents))
    rows: set[tuple[str, ...]] = set()
    statements = [words for part in body.split(";") if (words := part.strip())]
    for statement in statements:
        if statement.startswith("property"):
            continue
        if statement.startswith("table"):
            _check_numbers(statement.removeprefix("table"), states * combinations, where)
            rows.update(product(*parents))
            continue
        match = re.fullmatch(r"\(([^)]*)\)(.*)", statement, re.DOTALL)
        if match is None:
            raise InputError(
                f"{where} has {shown(statement)}, which is neither `table` nor a row "
                "`(states of the parents) numbers`; write it so"
            )
        row = tuple(word.strip() for word in match[1].split(","))
        fits = len(row) == len(parents) and all(map(tuple.__contains__, parents, row))
        if not fits or row in rows:
            reason = "a second row" if fits else "a row"
            raise InputError(
                f"{where} has {reason} for ({', '.join(row)}); give one row for each combination "
                "of states of its parents"
            )
        rows.add(row)
        _check_numbers(match[2], states, f"{where}, row ({', '.join(row)}),")
    if len(rows) != combinations:
        missing = next(row for row in product(*parents) if row not in rows)
        raise InputError(
            f"{where} has {len(rows)} of {combinations} rows; add that for ({', '.join(missing)})"
        )


def _check_numbers(text: str, count: int, where: str) -> None:
    words = re.split(r"[\s,]+", text.strip(" ,\t\n"))
    for word in words:
        try:
            probability = float(word)
        except ValueError:
            raise InputError(f"{where} has {word!r} where a number should be; correct it") from None
        if not 0.0 <= probability <= 1.0:
            raise InputError(f"{where} has {word}; probabilities lie between 0 and 1")
    if len(words) != count:
        raise InputError(f"{where} has {len(words)} numbers; its states ask for {count}")
