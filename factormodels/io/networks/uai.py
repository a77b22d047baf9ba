"""UAI model files: MARKOV and BAYES networks as in the UAI inference competitions.

A file contains the kind, the number of variables, their cardinalities, the number of factors, each
factor's scope, and each factor's table: its number of entries and the entries, with the last
variable of the scope varying fastest. Numbers are separated by any white space. In a BAYES file the
last variable of a scope is the child. The format has no names: they are stored in a sidecar file
``<path>.names`` with one line per variable: its name and, if its states have names, those names,
separated by tabs. The sidecar is read if it exists; variables without names are called "0", "1",
... For evidence and results see `factormodels.io.networks.uai_results`.

Source: the file formats of the UAI 2014 inference competition.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from factormodels.decoded_values import located
from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph, default_names
from factormodels.io.networks.cycles import refuse_cycle
from factormodels.io.networks.number_tokens import NumberTokens, number_tokens
from factormodels.io.networks.uai_results import write_evidence
from factormodels.io.source.files import read_text, write_text
from factormodels.nouns import counted

logger = logging.getLogger(__name__)

KINDS = ("MARKOV", "BAYES")
"""First words of a UAI model file."""

ROW_SUM_TOLERANCE = 1e-3
"""Tolerance of the sum of a row of a BAYES table, since files have few digits."""


def parse_uai(
    text: str, source: str | os.PathLike[str], *, names: SidecarNames | None = None
) -> FactorGraph:
    """Return the factor graph of the text of a UAI model file.

    Args:
        text: the text.
        source: its file, for messages.
        names: names of its variables and their states; by default, numbers.

    Raises:
        InputError: if the text is malformed, or the names do not fit.
    """
    tokens = number_tokens(text, source, header=1)
    if not len(tokens) or tokens.words[0].upper() not in KINDS:
        tokens.fail(0, f"is where the kind of network should be, {' or '.join(KINDS)}; correct it")
    count = tokens.whole(1, "the number of variables")
    cardinalities = _cardinalities(tokens, count)
    if names is not None and len(names.variables) != count:
        raise InputError(
            f"{names_path(source)}: it has {counted(len(names.variables), 'name')} for the "
            f"{counted(count, 'variable')} "
            f"of {source}; give one per line, or remove it"
        )
    scope_starts, scope_variables, end = _scopes(tokens, 2 + count, count)
    n_factors = len(scope_starts) - 1
    owner = np.repeat(np.arange(n_factors), np.diff(scope_starts))
    # In floating point, since the table size of an absurdly large scope may overflow an integer.
    sizes = np.ones(n_factors)
    with np.errstate(over="ignore"):
        np.multiply.at(sizes, owner, cardinalities[scope_variables])
    table_starts, potentials = _tables(tokens, end, sizes)
    with np.errstate(divide="ignore"):
        log_values = np.log(potentials)
    states = None if names is None else names.named_states(cardinalities.tolist(), source)
    with located(os.fspath(source)):
        graph = FactorGraph(
            names=default_names(count) if names is None else names.variables,
            cardinalities=cardinalities,
            scope_starts=scope_starts,
            scope_variables=scope_variables,
            table_starts=table_starts,
            log_values=log_values,
            evidence=np.full(count, UNOBSERVED, dtype=np.int64),
            state_names=states,
        )
    if tokens.words[0].upper() == "BAYES":
        _check_directed(graph, potentials, os.fspath(source))
    return graph


def _cardinalities(tokens: NumberTokens, count: int) -> NDArray[np.int64]:
    values = tokens.values[2 : 2 + count]
    bad = ~((values >= 1) & (values == np.floor(values)) & (values < 2**53))
    if bad.any() or len(values) < count:
        variable = int(np.argmax(bad)) if bad.any() else len(values)
        tokens.whole(2 + variable, f"the number of states of variable {variable}", least=1)
        tokens.fail(2 + variable, f"is too many states for variable {variable}; correct it")
    return values.astype(np.int64)


def _scopes(
    tokens: NumberTokens, start: int, n_variables: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return scope starts, scope variables, and the position after the last scope."""
    n_factors = tokens.whole(start, "the number of factors")
    numbers, total = tokens.values.tolist(), len(tokens)
    position = start + 1
    heads: list[int] = []
    while len(heads) < n_factors:
        arity = numbers[position] if position < total else np.nan
        if not (0 <= arity <= n_variables and arity.is_integer()):
            factor = len(heads)
            tokens.whole(position, f"the size of the scope of factor {factor}")
            tokens.fail(
                position,
                f"is where the size of the scope of factor {factor} should be, at most the "
                f"{counted(n_variables, 'variable')}; correct it, or the scope before it",
            )
        heads.append(position)
        position += 1 + int(arity)
    is_head = np.zeros(position - start - 1, dtype=bool)
    head_positions = np.array(heads, dtype=np.int64)
    is_head[head_positions - start - 1] = True
    starts = head_positions - start - 1 - np.arange(n_factors)
    places = np.flatnonzero(~is_head) + start + 1
    starts = np.append(starts, len(places))
    values = tokens.values[places[places < total]]
    bad = ~((values >= 0) & (values < n_variables) & (values == np.floor(values)))
    if bad.any() or len(values) < len(places):
        entry = int(np.argmax(bad)) if bad.any() else len(values)
        what = f"a variable of factor {int(np.searchsorted(starts, entry, side='right')) - 1}"
        tokens.whole(int(places[entry]), what)
        tokens.fail(
            int(places[entry]),
            f"is where {what} should be, but variables run from 0 to {n_variables - 1}; correct it",
        )
    return starts, values.astype(np.int64), position


def _tables(
    tokens: NumberTokens, start: int, sizes: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return table starts and potentials of tables of the given sizes."""
    total, n_factors = len(tokens), len(sizes)
    ends = start + np.cumsum(1.0 + sizes)
    heads = np.concatenate([[start], ends[:-1]]) if n_factors else np.zeros(0)
    inside = heads[heads < total].astype(np.int64)
    wrong = tokens.values[inside] != sizes[: len(inside)]
    if wrong.any():
        factor = int(np.argmax(wrong))
        earlier = ", or the table before it if that is too short or too long" if factor else ""
        tokens.fail(
            int(inside[factor]),
            f"should be {sizes[factor]:.0f}, the number of entries in the table of factor {factor} "
            f"by its scope; correct it{earlier}",
        )
    if n_factors and ends[-1] > total:
        factor = int(np.argmax(ends > total))
        n_read = max(total - int(heads[factor]) - 1, 0)
        tokens.fail(
            total,
            f"after {n_read} of the {sizes[factor]:.0f} entries of the table of factor {factor} "
            f"(of {n_factors}); complete the file",
        )
    is_entry = np.ones((int(ends[-1]) if n_factors else start) - start, dtype=bool)
    is_entry[inside - start] = False
    places = np.flatnonzero(is_entry) + start
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    potentials = tokens.values[places]
    _check_potentials(tokens, places, potentials, starts)
    _check_rest(tokens, start + len(is_entry))
    return starts, potentials


def _check_potentials(
    tokens: NumberTokens,
    places: NDArray[np.int64],
    potentials: NDArray[np.float64],
    starts: NDArray[np.int64],
) -> None:
    def refuse(entry: int, message: str) -> NoReturn:
        factor = int(np.searchsorted(starts, entry, side="right")) - 1
        what = f"is entry {entry - starts[factor]} of the table of factor {factor}"
        tokens.fail(int(places[entry]), f"{what}; {message}")

    bad = ~((potentials >= 0.0) & (potentials < np.inf))
    if bad.any():
        refuse(int(np.argmax(bad)), "a potential is a finite number not below 0, so correct it")
    if "e-" in tokens.text or "E-" in tokens.text:
        for entry in np.flatnonzero(potentials == 0.0).tolist():
            mantissa = tokens.words[places[entry]].lower().partition("e")[0]
            if mantissa.strip("+-.0"):
                refuse(entry, "too small for a float, it would be read as 0, so rescale the table")


def _check_rest(tokens: NumberTokens, start: int) -> None:
    """Check that only lists of whole numbers follow the tables, each after its length; log a
    warning.

    Some published networks have such lists (of query variables, for example) after their tables;
    other programs do not read beyond the tables.
    """
    position = start
    while position < len(tokens):
        length = float(tokens.values[position])
        last = position + 1 + (int(length) if length.is_integer() and length >= 0 else len(tokens))
        following = tokens.values[position + 1 : last]
        if last > len(tokens) or not np.all(following % 1 == 0):
            tokens.fail(start, "follows the last table; remove what follows the tables")
        position = last
    if start < len(tokens):
        logger.warning(
            "%s: %d whole numbers after the last table are not part of the model and are ignored",
            tokens.source,
            len(tokens) - start,
        )


def _check_directed(graph: FactorGraph, potentials: NDArray[np.float64], source: str) -> None:
    parents: list[list[int]] = [[] for _ in range(graph.n_variables)]
    tables_of = np.zeros(graph.n_variables, dtype=np.int64)
    bounds, variables = graph.scope_starts.tolist(), graph.scope_variables.tolist()
    nonempty = np.flatnonzero(np.diff(graph.scope_starts))
    for factor in nonempty.tolist():
        *above, child = variables[bounds[factor] : bounds[factor + 1]]
        parents[child].extend(above)
        tables_of[child] += 1
    advice = "correct a scope (its last variable is the child), or call the network MARKOV"
    refuse_cycle(parents, graph.names, source, advice)
    if np.any(tables_of != 1):
        variable = int(np.flatnonzero(tables_of != 1)[0])
        logger.warning(
            "%s: variable %s is the child of %d tables, not of 1 as in a Bayesian network; "
            "the product of the tables is used unchanged",
            source,
            graph.names[variable],
            tables_of[variable],
        )
    _warn_of_row_sums(graph, potentials, nonempty, source)


def _warn_of_row_sums(
    graph: FactorGraph,
    potentials: NDArray[np.float64],
    factors: NDArray[np.int64],
    source: str,
) -> None:
    if not len(factors):
        return
    states = graph.cardinalities[graph.scope_variables[graph.scope_starts[factors + 1] - 1]]
    rows = np.diff(graph.table_starts)[factors] // states
    owner = np.repeat(factors, rows)
    lengths = np.repeat(states, rows)
    in_first_place = np.cumsum(rows) - rows
    within = np.arange(len(owner)) - np.repeat(in_first_place, rows)
    sums = np.add.reduceat(potentials, graph.table_starts[owner] + within * lengths)
    off = np.abs(sums - 1.0) > ROW_SUM_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        logger.warning(
            "%s: %d of the %d rows of the conditional tables do not sum to 1 (the first belongs to "
            "factor %d and sums to %g); the tables are used unchanged",
            source,
            int(off.sum()),
            len(sums),
            owner[row],
            sums[row],
        )


def write_uai(
    graph: FactorGraph,
    path: str | os.PathLike[str],
    *,
    evidence_path: str | os.PathLike[str] | None = None,
) -> None:
    """Write a factor graph as a MARKOV file, and its names, unless they are "0", "1", ..., as a
    sidecar.

    Tables are written as potentials, with the digits that reproduce the logarithm: tables that came
    from a file are written bit for bit, others up to one rounding of exp and log.

    Args:
        graph: the factor graph.
        path: the file; the names are written to ``<path>.names``.
        evidence_path: the file for the graph's evidence, which a model file cannot contain.

    Raises:
        InputError: if a potential is outside the range of floats, a name does not fit on a line,
            the graph has evidence and no path is given for it, or a file cannot be written.
    """
    observed = {int(v): int(graph.evidence[v]) for v in np.flatnonzero(graph.evidence >= 0)}
    if observed and evidence_path is None:
        raise InputError(
            f"{path}: the graph has evidence, which a UAI model file cannot hold; "
            "give evidence_path, or absorb the evidence first"
        )
    words = _potential_words(graph, os.fspath(path))
    _check_names(graph, path)
    scopes, tables = [], []
    bounds = graph.table_starts.tolist()
    scope_bounds, scope_words = graph.scope_starts.tolist(), list(map(str, graph.scope_variables))
    for f in range(graph.n_factors):
        scope = scope_words[scope_bounds[f] : scope_bounds[f + 1]]
        scopes.append(" ".join([str(len(scope)), *scope]))
        table = words[bounds[f] : bounds[f + 1]]
        tables.append(f"{len(table)}\n {' '.join(table)}")
    head = ["MARKOV", str(graph.n_variables), " ".join(map(str, graph.cardinalities))]
    write_text(path, "\n".join([*head, str(graph.n_factors), *scopes, "", *tables]) + "\n")
    _write_names(graph, path)
    if evidence_path is not None:
        write_evidence(observed, evidence_path)


def _potential_words(graph: FactorGraph, path: str) -> list[str]:
    logs = graph.log_values
    finite = logs > -np.inf
    smallest, largest = np.log(np.finfo(np.float64).tiny), np.log(np.finfo(np.float64).max)
    outside = finite & ((logs < smallest) | (logs > largest))
    if outside.any():
        at = int(np.argmax(outside))
        factor = int(np.searchsorted(graph.table_starts, at, side="right")) - 1
        raise InputError(
            f"{path}: factor {factor}: entry {at - graph.table_starts[factor]} of its log table is "
            f"{logs[at]}, and its exponential is outside the range of floats; "
            "add a constant to the log table"
        )
    potentials = np.exp(logs)
    # Among the floats near the exponential whose logarithm is the table's entry, the one with the
    # fewest digits is most likely the original number.
    up, down = np.nextafter(potentials, np.inf), np.nextafter(potentials, 0.0)
    rounded = np.array([float(f"{value:.15g}") for value in potentials.tolist()])
    candidates = [np.nextafter(down, 0.0), np.nextafter(up, np.inf), down, up, potentials, rounded]
    chosen = potentials
    with np.errstate(divide="ignore"):
        for candidate in candidates:
            chosen = np.where(np.log(candidate) == logs, candidate, chosen)
    return [repr(value) for value in chosen.tolist()]


@dataclass(frozen=True)
class SidecarNames:
    """The content of a sidecar.

    Attributes:
        variables: the name of each variable.
        states: names of each variable's states; empty if its states are numbers.
    """

    variables: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]

    def named_states(
        self, cardinalities: Sequence[int], path: str | os.PathLike[str]
    ) -> tuple[tuple[str, ...], ...] | None:
        """Return the names of the states of each variable, or numbers; None if no variable has any.

        Raises:
            InputError: if a variable has more or fewer names of states than states.
        """
        if not any(self.states):
            return None
        for number, (names, count) in enumerate(zip(self.states, cardinalities, strict=True), 1):
            if names and len(names) != count:
                raise InputError(
                    f"{names_path(path)}: line {number} names {counted(len(names), 'state')} of "
                    f"{self.variables[number - 1]!r}, which has {count}; name all or none"
                )
        return tuple(
            names or default_names(count)
            for names, count in zip(self.states, cardinalities, strict=True)
        )


def names_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of the sidecar file with the names of a model's variables."""
    return Path(f"{os.fspath(path)}.names")


def read_names(path: str | os.PathLike[str]) -> SidecarNames | None:
    """Read the names in the sidecar file of the model at `path`; return None if there is none.

    Raises:
        InputError: if the sidecar cannot be read or has an empty or repeated name.
    """
    sidecar = names_path(path)
    if not sidecar.exists():
        return None
    lines = read_text(sidecar).split("\n")
    if not lines[-1]:
        lines.pop()
    lines_of: dict[str, int] = {}
    states = []
    for number, line in enumerate((line.removesuffix("\r") for line in lines), start=1):
        name, *state_names = line.split("\t")
        if not name:
            raise InputError(f"{sidecar}: line {number} is empty; give each variable a name")
        if name in lines_of:
            raise InputError(
                f"{sidecar}: lines {lines_of[name]} and {number} both hold {name!r}; "
                "names are unique"
            )
        lines_of[name] = number
        states.append(tuple(state_names))
    return SidecarNames(tuple(lines_of), tuple(states))


def _check_names(graph: FactorGraph, path: str | os.PathLike[str]) -> None:
    """Check that each name fits on a line.

    Raises:
        InputError: for the first name that does not.
    """
    states = (name for names in graph.state_names or () for name in names)
    for what, names in (("variable", graph.names), ("state", states)):
        for name in names:
            if not name or any(mark in name for mark in "\n\r\t") or not _encodable(name):
                raise InputError(
                    f"{path}: the {what} name {name!r} does not fit on a line of the names file; "
                    f"rename the {what}"
                )


def _write_names(graph: FactorGraph, path: str | os.PathLike[str]) -> None:
    """Write the sidecar of the model at `path`, unless names are numbers and no sidecar exists.

    Raises:
        InputError: if a name does not fit on a line, or the file cannot be written.
    """
    _check_names(graph, path)
    states = graph.state_names or [()] * graph.n_variables
    named = graph.names != default_names(graph.n_variables) or graph.state_names is not None
    # An existing sidecar of another model would give this one wrong names.
    if named or names_path(path).exists():
        lines = ("\t".join((name, *names)) for name, names in zip(graph.names, states, strict=True))
        write_text(names_path(path), "".join(f"{line}\n" for line in lines))


def _encodable(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
