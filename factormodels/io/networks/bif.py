"""BIF files: Bayesian networks as text.

The text is split into tokens in a single pass, so that any content is read or refused in linear
time. Source of the format: the Interchange Format for Bayesian Networks 0.15 (Cozman 1998), as used
by bnlearn's repository of networks.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from factormodels.decoded_values import located, shown
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.io.networks.cycles import refuse_cycle
from factormodels.io.networks.number_tokens import plain_float
from factormodels.io.source.places import location
from factormodels.nouns import counted

SUM_TOLERANCE = 1e-2
"""Tolerance of the sum of a distribution, since published networks have 2 digits or more."""

_MOST_BY_DEFAULT = 2**24
"""Maximum entries of a table with a default; without one, the length of the file limits them."""

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r'|"(?P<quoted>[^"\n]*)"'
    r"|(?P<mark>[{}()\[\];,|])"
    # The slashes of a web address do not begin a comment.
    r'|(?P<word>(?:[^\s{}()\[\];,|"/]|/(?![/*])|(?<=:)//)+)',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Token:
    """A word or a mark.

    Attributes:
        text: the word, without its quotes, or the mark.
        mark: the mark; empty for a word.
        start: its index in the text of the file.
    """

    text: str
    mark: str
    start: int


@dataclass(frozen=True)
class _Network:
    """The blocks of a text.

    Attributes:
        states: names of the states by name of the variable, both in the order of the file.
        blocks: contents of the parentheses and of the braces of each probability block.
    """

    states: Mapping[str, tuple[str, ...]]
    blocks: Sequence[tuple[list[_Token], list[_Token]]]


def looks_like_bif(text: str) -> bool:
    """Return whether a text begins with the word `network`, after any comments."""
    return next((token.text for token in _tokens(text)), "") == "network"


def parse_bif(text: str, source: str | os.PathLike[str]) -> FactorGraph:
    """Return the factor graph of BIF text: one factor per variable, over its parents and itself.

    Variables and states keep the order and the names of the file, where state 0 is the first one.
    An unknown name denotes the variable that differs only in case, if there is exactly one.

    Raises:
        InputError: if the text is malformed or incomplete, or has a cycle.
    """
    where = os.fspath(source)
    network = _network(text, source)
    names = list(network.states)
    parents, bodies = _parents(network, where)
    refuse_cycle(parents, names, where, "drop one of them")
    factors = []
    for child, (name, above) in enumerate(zip(names, parents, strict=True)):
        of_parents = [network.states[names[parent]] for parent in above]
        block_at = f"{where}: the probability block of {name!r}"
        table = _table(bodies[child], len(network.states[name]), of_parents, block_at)
        factors.append(((*above, child), table.ravel()))
    counts = [len(listed) for listed in network.states.values()]
    with located(where):
        named = list(network.states.values())
        return FactorGraph.from_factors(counts, factors, names=names, state_names=named)


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is not None and kind != "comment":
            yield _Token(match[kind].strip(), match["mark"] or "", match.start())


def _network(text: str, source: str | os.PathLike[str]) -> _Network:
    """Return the blocks of a text."""
    where = os.fspath(source)
    tokens = list(_tokens(text))
    if not tokens or tokens[0].text != "network":
        raise InputError(f"{where}: it does not begin with 'network', as BIF does; name a BIF file")
    opened, closed = (sum(token.mark == brace for token in tokens) for brace in "{}")
    if opened != closed:
        raise InputError(
            f"{where}: it has {opened} opening and {closed} closing braces; complete the file"
        )
    states: dict[str, tuple[str, ...]] = {}
    blocks = []
    index = 0
    while index < len(tokens):
        begin = tokens[index]
        start = _next(tokens, index, "{;")
        end = start
        if start < len(tokens) and tokens[start].mark == "{":
            end = _closing(tokens, start)
        head, body = tokens[index + 1 : start], tokens[start + 1 : end]
        if begin.text == "variable":
            name = _joined(head)
            if name in states:
                raise InputError(f"{where}: the variable {name!r} is declared twice; rename one")
            states[name] = _states(name, body, where)
        elif begin.text == "probability":
            if not head or head[0].mark != "(" or head[-1].mark != ")":
                raise InputError(
                    f"{_line(text, source, begin)}: a probability block begins as "
                    "`probability ( variable | parents )`; write it so"
                )
            blocks.append((head[1:-1], body))
        elif begin.text not in ("network", "property"):
            raise InputError(
                f"{_line(text, source, begin)}: {shown(begin.text)} begins no block; give "
                "`variable`, `probability` or `property`"
            )
        index = end + 1
    if not states:
        raise InputError(f"{where}: it declares no variable; complete the file")
    return _Network(states, blocks)


def _line(text: str, source: str | os.PathLike[str], token: _Token) -> str:
    return location(source, text.count("\n", 0, token.start) + 1)


def _next(tokens: Sequence[_Token], index: int, marks: str) -> int:
    """Return the index of the first of some marks from an index on; the end if there is none."""
    while index < len(tokens) and (not tokens[index].mark or tokens[index].mark not in marks):
        index += 1
    return index


def _closing(tokens: Sequence[_Token], index: int) -> int:
    """Return the index of the brace that closes the one at an index; the end if there is none."""
    depth = 0
    while index < len(tokens):
        depth += {"{": 1, "}": -1}.get(tokens[index].mark, 0)
        if not depth:
            break
        index += 1
    return index


def _joined(tokens: Iterable[_Token]) -> str:
    return " ".join(token.text for token in tokens)


def _split(tokens: Iterable[_Token], marks: str) -> list[list[_Token]]:
    """Split tokens at some marks, keeping empty parts."""
    parts: list[list[_Token]] = [[]]
    for token in tokens:
        if token.mark and token.mark in marks:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _states(name: str, body: Sequence[_Token], where: str) -> tuple[str, ...]:
    """Return the states in the block of a variable."""
    index = 0
    while index < len(body) and body[index].text != "type":
        index = _next(body, index, ";") + 1
    close = _next(body, index, "}")
    marks = [token.mark for token in body[index : index + 6]]
    count = body[index + 3].text if len(marks) == 6 else ""
    shape_fits = marks == ["", "", "[", "", "]", "{"] and count.isascii() and count.isdigit()
    if not shape_fits or close == len(body):
        raise InputError(
            f"{where}: the block of the variable {name!r} cannot be read; write it as "
            "`type discrete [ count ] { states };`"
        )
    listed = body[index + 6 : close]
    parts = _split(listed, ",")
    # Names may contain spaces only if they are separated by commas.
    words = (
        [_joined(part) for part in parts] if len(parts) > 1 else [token.text for token in listed]
    )
    states = tuple(dict.fromkeys(word for word in words if word))
    if count.lstrip("0") != str(len(states)):
        raise InputError(
            f"{where}: variable {name!r} declares {shown(count)} states and lists "
            f"{len(states)} different ones; make the two agree"
        )
    return states


def _parents(network: _Network, where: str) -> tuple[list[list[int]], list[list[_Token]]]:
    """Return the positions of each variable's parents, and the inside of its probability block."""
    names = list(network.states)
    index = {name: position for position, name in enumerate(names)}
    spelled: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        spelled.setdefault(name.casefold(), []).append(position)

    def known(name: str) -> int | None:
        alike = spelled.get(name.casefold(), [])
        return index.get(name, alike[0] if len(alike) == 1 else None)

    parents: list[list[int]] = [[] for _ in names]
    bodies: dict[int, list[_Token]] = {}
    for head, body in network.blocks:
        named = [name for part in _split(head, ",|") if (name := _joined(part))]
        if len(named) == 1 and known(named[0]) is None:
            # Some files have no bar.
            named = [token.text for token in head]
        if not named:
            raise InputError(
                f"{where}: a probability block names no variable; write it as "
                "`probability ( variable | parents ) { ... }`"
            )
        places = []
        for name in named:
            parent = known(name)
            if parent is None:
                raise InputError(
                    f"{where}: the probability block of {named[0]!r} names {name!r}, which is not "
                    "declared; declare it or correct the name"
                )
            places.append(parent)
        child, *above = places
        if child in bodies:
            raise InputError(f"{where}: {names[child]!r} has two probability blocks; keep one")
        if len(set(above)) < len(above):
            raise InputError(f"{where}: {names[child]!r} names a parent twice; name each once")
        parents[child], bodies[child] = above, body
    for position, name in enumerate(names):
        if position not in bodies:
            raise InputError(
                f"{where}: variable {name!r} has no probability block; add one, or complete the "
                "file"
            )
    return parents, [bodies[position] for position in range(len(names))]


def _table(
    body: Sequence[_Token], states: int, parents: Sequence[tuple[str, ...]], where: str
) -> NDArray[np.float64]:
    """Return P(state | states of the parents), a row per combination, the last parent fastest.

    A `default` is the row of every combination without a row.
    """
    # With Python integers, since the combinations of many parents may exceed 64 bits.
    combinations = math.prod(map(len, parents))
    known = [frozenset(listed) for listed in parents]
    rows: dict[tuple[str, ...], list[float]] = {}
    default: list[float] | None = None
    whole: NDArray[np.float64] | None = None
    for statement in _split(body, ";"):
        if not statement or statement[0].text == "property":
            continue
        if statement[0].text == "default" and default is None and whole is None:
            default = _numbers(statement[1:], states, f"{where}, its default,")
            continue
        if statement[0].text == "table" and whole is None and default is None and not rows:
            numbers = _numbers(statement[1:], states * combinations, where)
            # In a single `table`, the variable's own state varies slowest.
            whole = np.array(numbers).reshape(states, combinations).T
            continue
        close = _next(statement, 0, ")")
        if statement[0].mark != "(" or close == len(statement) or whole is not None:
            raise InputError(
                f"{where} has {shown(_joined(statement))}; give either one `table` alone, or rows "
                "`(states of the parents) numbers` and at most one `default`"
            )
        row = tuple(_joined(part) for part in _split(statement[1:close], ","))
        fits = len(row) == len(parents) and all(map(frozenset.__contains__, known, row))
        if not fits or row in rows:
            reason = "a second row" if fits else "a row"
            raise InputError(
                f"{where} has {reason} for ({', '.join(row)}); give one row for each combination "
                "of states of its parents"
            )
        row_at = f"{where}, row ({', '.join(row)}),"
        rows[row] = _numbers(statement[close + 1 :], states, row_at)
    if whole is None:
        if default is not None and states * combinations > _MOST_BY_DEFAULT:
            raise InputError(
                f"{where} has a default for {_count(combinations)} combinations of its parents' "
                f"states; at most {_MOST_BY_DEFAULT:,} probabilities may follow from a default, so "
                "give the variable fewer parents"
            )
        if default is None and len(rows) != combinations:
            missing = next(row for row in product(*parents) if row not in rows)
            raise InputError(
                f"{where} has {len(rows)} of {_count(combinations)} rows; add the row for "
                f"({', '.join(missing)})"
            )
        whole = np.empty((combinations, states))
        if default is not None:
            whole[:] = default
        places = [{state: index for index, state in enumerate(listed)} for listed in parents]
        for row, numbers in rows.items():
            at = 0
            for of_parent, state in zip(places, row, strict=True):
                at = at * len(of_parent) + of_parent[state]
            whole[at] = numbers
    sums = whole.sum(axis=1)
    off = np.abs(sums - 1.0) > SUM_TOLERANCE
    if off.any():
        row_number = int(np.argmax(off))
        raise InputError(
            f"{where} sums to {sums[row_number]:.6g} for combination {row_number} of its parents' "
            "states; correct it to sum to 1"
        )
    return whole


def _numbers(tokens: Sequence[_Token], count: int, where: str) -> list[float]:
    numbers = []
    for token in tokens:
        if token.mark == ",":
            continue
        try:
            probability = plain_float(token.text)
        except ValueError:
            raise InputError(
                f"{where} has {shown(token.text)} where a number should be; correct it"
            ) from None
        if not 0.0 <= probability <= 1.0:
            raise InputError(f"{where} has {shown(token.text)}; probabilities lie between 0 and 1")
        numbers.append(probability)
    if len(numbers) != count:
        raise InputError(
            f"{where} has {counted(len(numbers), 'number')}; its states require {_count(count)}"
        )
    return numbers


def _count(number: int) -> str:
    """Return a count as text, shortened if it is very long."""
    return str(number) if number < 10**18 else "over 10^18"
