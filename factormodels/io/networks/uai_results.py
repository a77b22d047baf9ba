"""UAI evidence and result files: observations, marginals (MAR), partition function (PR)."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.io.networks.number_tokens import NumberTokens, number_tokens
from factormodels.io.source.files import read_text, write_text
from factormodels.nouns import counted

logger = logging.getLogger(__name__)

SUM_TOLERANCE = 1e-3
"""Tolerance of the sum of a marginal, since result files have 4 digits or more."""


def read_evidence(path: str | os.PathLike[str], graph: FactorGraph | None = None) -> dict[int, int]:
    """Read the observed states in a UAI evidence file, by index of the variable.

    The number of words determines one of two forms (line ends are ignored):

    - ``k v1 s1 ... vk sk``, 1 + 2k words: k observations, as in the 2014 competition;
    - ``1 k v1 s1 ... vk sk``, 2 + 2k words: one sample of k observations, as in earlier ones.

    An empty file and a first word 0 mean that nothing was observed; words after the 0 are ignored
    with a warning, as in other programs.

    Args:
        path: the file.
        graph: the model; if given, variables and states must exist in it.

    Raises:
        InputError: if the file cannot be read, has neither form, contains several samples, observes
            a variable in two states, or does not fit the model.
    """
    return parse_evidence(read_text(path), path, graph)


def parse_evidence(
    text: str, path: str | os.PathLike[str], graph: FactorGraph | None = None
) -> dict[int, int]:
    """Return the result of `read_evidence` for the text of a file.

    Raises:
        InputError: as in `read_evidence`.
    """
    tokens = number_tokens(text, path)
    if not len(tokens):
        return {}
    start, count = _evidence_form(tokens)
    evidence: dict[int, int] = {}
    for position in range(start, start + 2 * count, 2):
        variable = tokens.whole(position, "an observed variable")
        state = tokens.whole(position + 1, f"the observed state of variable {variable}")
        if graph is not None:
            _check_against(graph, tokens, position, variable, state)
        if evidence.setdefault(variable, state) != state:
            tokens.fail(
                position + 1,
                f"is the second state given for variable {variable}, after {evidence[variable]}; "
                "keep one",
            )
    return evidence


def write_evidence(evidence: Mapping[int, int], path: str | os.PathLike[str]) -> None:
    """Write observed states, by index of the variable, on one line: ``k v1 s1 ... vk sk``.

    Raises:
        InputError: if an index or state is not a whole number from 0, or the file cannot be
            written.
    """
    words = [str(len(evidence))]
    for variable, state in evidence.items():
        for value in (variable, state):
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole or value < 0:
                raise InputError(
                    f"{path}: evidence {variable!r}: {state!r} is not an index of a variable with "
                    "an index of a state; give whole numbers from 0"
                )
            words.append(str(value))
    write_text(path, " ".join(words) + "\n")


def read_marginals(path: str | os.PathLike[str]) -> list[NDArray[np.float64]]:
    """Read the marginals in a MAR file: one probability vector per variable, in order.

    The word MAR is followed by the number of variables, and for each its number of states and their
    probabilities. The older form, which begins with the number of samples of evidence, is read if
    that number is one.

    Raises:
        InputError: if the file cannot be read or is malformed, or a vector is not a distribution.
    """
    tokens = _result_tokens(path, "MAR")
    try:
        return _vectors(tokens, 1)
    except InputError:
        if len(tokens) > 1 and tokens.values[1] == 1 and _fits(tokens, 2):
            return _vectors(tokens, 2)
        raise


def read_log10_partition(path: str | os.PathLike[str]) -> float:
    """Read the decimal logarithm of the partition function in a PR file; -inf if it is 0.

    Raises:
        InputError: if the file cannot be read or is malformed.
    """
    tokens = _result_tokens(path, "PR")
    # The older form begins with the number of samples of evidence, here 1.
    at = 2 if len(tokens) == 3 and tokens.values[1] == 1 else 1
    if at >= len(tokens):
        tokens.fail(at, "where log10 Z should be; complete the file")
    if len(tokens) > at + 1:
        tokens.fail(at + 1, "follows log10 Z; remove what follows it")
    value = float(tokens.values[at])
    if not value < np.inf:
        tokens.fail(at, "is where log10 Z should be, a number or -inf; correct it")
    return value


def _evidence_form(tokens: NumberTokens) -> tuple[int, int]:
    """Return the position of the first observation and the number of observations."""
    words, first = len(tokens), tokens.whole(0, "the number of observations")
    if words == 1 + 2 * first:
        return 1, first
    if first == 0:
        logger.warning(
            "%s: it announces no observation, so the %d numbers after that are ignored",
            tokens.source,
            words - 1,
        )
        return 1, 0
    second = tokens.whole(1, "an observed variable")
    if first == 1 and words == 2 + 2 * second:
        return 2, second
    if _samples_fit(tokens, first):
        raise InputError(
            f"{tokens.source}: it holds {first} samples of evidence; keep one sample per file"
        )
    raise InputError(
        f"{tokens.source}: it has {counted(words, 'number')}, but {counted(first, 'observation')} "
        f"{'takes' if first == 1 else 'take'} {1 + 2 * first}, and {counted(first, 'sample')}, the "
        f"first of {counted(second, 'observation')}, {'does' if first == 1 else 'do'} not fit "
        "either; "
        "write the number of observations, then a variable and a state for each"
    )


def _samples_fit(tokens: NumberTokens, samples: int) -> bool:
    position = 1
    for _ in range(samples):
        if position >= len(tokens):
            return False
        position += 1 + 2 * tokens.whole(position, "the number of observations of a sample")
    return position == len(tokens)


def _check_against(
    graph: FactorGraph, tokens: NumberTokens, position: int, variable: int, state: int
) -> None:
    if variable >= graph.n_variables:
        tokens.fail(
            position,
            "is not a variable of the model, whose variables run from 0 to "
            f"{graph.n_variables - 1}; "
            "correct it, or take the model's own evidence file",
        )
    states = int(graph.cardinalities[variable])
    if state >= states:
        tokens.fail(
            position + 1,
            f"is not a state of variable {variable}, whose states run from 0 to {states - 1}; "
            "correct it, or take the model's own evidence file",
        )


def _result_tokens(path: str | os.PathLike[str], kind: str) -> NumberTokens:
    tokens = number_tokens(read_text(path), path, header=1)
    if not len(tokens) or tokens.words[0].upper() != kind:
        tokens.fail(0, f"is where {kind} should be; name a file that begins with {kind}")
    return tokens


def _fits(tokens: NumberTokens, start: int) -> bool:
    try:
        _vectors(tokens, start)
    except InputError:
        return False
    return True


def _vectors(tokens: NumberTokens, start: int) -> list[NDArray[np.float64]]:
    count = tokens.whole(start, "the number of variables")
    position = start + 1
    vectors: list[NDArray[np.float64]] = []
    for variable in range(count):
        states = tokens.whole(position, f"the number of states of variable {variable}", least=1)
        if position + states >= len(tokens):
            tokens.fail(
                len(tokens),
                f"within the {counted(states, 'probability', 'probabilities')} of variable "
                f"{variable}; complete the file",
            )
        vector = tokens.values[position + 1 : position + 1 + states]
        problem = _problem(vector)
        if problem:
            tokens.fail(position, f"begins the marginal of variable {variable}, which {problem}")
        vectors.append(vector)
        position += 1 + states
    if position < len(tokens):
        tokens.fail(
            position,
            f"follows the marginals of the {counted(count, 'variable')}; remove what follows",
        )
    return vectors


def _problem(vector: NDArray[np.float64]) -> str:
    outside = ~((vector >= 0.0) & (vector <= 1.0))
    if outside.any():
        state = int(np.argmax(outside))
        return f"has probability {vector[state]} for state {state}; give one between 0 and 1"
    if abs(float(vector.sum()) - 1.0) > SUM_TOLERANCE:
        return f"sums to {vector.sum():.6g}; give probabilities that sum to 1"
    return ""
