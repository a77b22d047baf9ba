"""Random structure of a synthetic response: its related pairs, in flat arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.nouns import counted
from factormodels.synthetic.laws import whole


@dataclass(frozen=True, eq=False)
class ResponseStructure:
    """The related pairs of a response.

    Attributes:
        n_atoms: number of atoms.
        owners: (m,) index of the atom that each context was retrieved for.
        evidence: (e, 2) related pairs (context, atom), in the order of contexts, then atoms.
        context_pairs: (r, 2) related pairs of contexts, the earlier first, in order.
    """

    n_atoms: int
    owners: NDArray[np.int64]
    evidence: NDArray[np.int64]
    context_pairs: NDArray[np.int64]

    def variable_pairs(self) -> NDArray[np.int64]:
        """All pairs as variables, (e + r, 2): the atoms first, then the contexts."""
        pairs = np.concatenate([self.evidence, self.context_pairs])
        pairs[:, 0] += self.n_atoms
        pairs[len(self.evidence) :, 1] += self.n_atoms
        return pairs


def draw_structure(
    generator: np.random.Generator,
    n_atoms: int,
    contexts_per_atom: int | Sequence[int],
    *,
    density: float = 0.0,
    context_density: float = 0.0,
    always_related: bool = True,
    reach: int | None = None,
) -> ResponseStructure:
    """Draw the related pairs of a response in time linear in their number.

    Args:
        generator: source of randomness.
        n_atoms: number of atoms.
        contexts_per_atom: contexts retrieved for each atom, or one number per atom.
        density: probability that a context and an atom are related.
        context_density: probability that two contexts are related.
        always_related: whether contexts are always related to the atom they were retrieved for.
        reach: maximum distance, in the order of atoms, between the atom and the context's own atom
            (or the own atoms of two contexts) of a related pair; it limits the induced width of
            large graphs. None: no limit.

    Raises:
        InputError: if a number is out of range.
    """
    owners = _owners(n_atoms, contexts_per_atom)
    evidence = _evidence(generator, owners, n_atoms, density, reach)
    if always_related:
        context, atom = evidence.T
        foreign = (context * n_atoms + atom)[owners[context] != atom]
        keys = np.concatenate([foreign, np.arange(len(owners)) * n_atoms + owners])
        keys.sort()
        evidence = _divided(keys, n_atoms)
    context_pairs = _context_pairs(generator, owners, context_density, reach)
    return ResponseStructure(n_atoms, owners, evidence, context_pairs)


def _owners(n_atoms: int, contexts_per_atom: int | Sequence[int]) -> NDArray[np.int64]:
    n_atoms = whole(n_atoms, "n_atoms", 0)
    if isinstance(contexts_per_atom, int | np.integer):
        # The same number for all atoms.
        counts: Any = whole(contexts_per_atom, "contexts_per_atom", 0)
    else:
        per_atom = list(contexts_per_atom)
        if len(per_atom) != n_atoms:
            raise InputError(
                f"contexts_per_atom has {counted(len(per_atom), 'entry', 'entries')}; give one for "
                f"each of {counted(n_atoms, 'atom')}"
            )
        counts = np.array(
            [whole(c, f"contexts_per_atom[{at}]", 0) for at, c in enumerate(per_atom)],
            dtype=np.int64,
        )
    return np.repeat(np.arange(n_atoms), counts)


def _evidence(
    generator: np.random.Generator,
    owners: NDArray[np.int64],
    n_atoms: int,
    density: float,
    reach: int | None,
) -> NDArray[np.int64]:
    if reach is None:
        return _random_pairs(generator, len(owners), n_atoms, density)
    reach = whole(reach, "reach", 0)
    pairs = _random_pairs(generator, len(owners), 2 * reach + 1, density)
    pairs[:, 1] += owners[pairs[:, 0]] - reach
    return pairs[(pairs[:, 1] >= 0) & (pairs[:, 1] < n_atoms)]


def _context_pairs(
    generator: np.random.Generator,
    owners: NDArray[np.int64],
    density: float,
    reach: int | None,
) -> NDArray[np.int64]:
    count = len(owners)
    if density <= 0.0:
        return np.zeros((0, 2), dtype=np.int64)
    if reach is None:
        pairs = _random_pairs(generator, count, count, density)
        return pairs[pairs[:, 0] < pairs[:, 1]]
    after = np.searchsorted(owners, owners + reach, side="right")
    window = int((after - np.arange(count)).max(initial=1)) - 1
    pairs = _random_pairs(generator, count, window, density)
    pairs[:, 1] += pairs[:, 0] + 1
    return pairs[pairs[:, 1] < after[pairs[:, 0]]]


def _random_pairs(
    generator: np.random.Generator, rows: int, columns: int, density: float
) -> NDArray[np.int64]:
    return _divided(_random_cells(generator, rows * columns, density), columns)


def _divided(cells: NDArray[np.int64], columns: int) -> NDArray[np.int64]:
    """Return the row and column, (n, 2), of cells that are numbered row by row."""
    pairs = np.empty((len(cells), 2), dtype=np.int64)
    np.divmod(cells, max(columns, 1), out=(pairs[:, 0], pairs[:, 1]))
    return pairs


def _random_cells(
    generator: np.random.Generator, total: int, probability: float
) -> NDArray[np.int64]:
    # The gaps between successes of independent trials are geometric, so that time and memory are
    # proportional to the number of related pairs, not of all pairs.
    if probability <= 0.0 or total == 0:
        return np.zeros(0, dtype=np.int64)
    if probability >= 1.0:
        return np.arange(total)
    pieces = []
    last = -1
    while last < total:
        expected = (total - last) * probability
        count = int(expected + 4.0 * math.sqrt(expected)) + 16
        gaps = np.minimum(generator.geometric(probability, count), total + 1)
        cells = last + np.cumsum(gaps)
        pieces.append(cells[cells < total])
        last = int(cells[-1])
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
