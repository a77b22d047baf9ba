"""Sums over many points of a smooth function, taken on a mesh of few: deposits of third order.

The sum of v_i f(x_i) is nearly that of V_n f(n) over mesh points n, if every v_i is shared among
the four mesh points around x_i by weights that are cubic in its place t within its cell. They are
linear in the sums of v, v t, v t^2 and v t^3 over the points of the cell, so that a replicate needs
four sums over points in order and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.validation import Floats, Integers

LAGRANGE = np.array(
    [[0, -2, 3, -1], [6, -3, -6, 3], [0, 6, 3, -3], [0, -1, 0, 1]], dtype=np.float64
)
"""Six times the weight of each of four mesh points, by powers of t: cubic interpolation of f."""

SPLINE = np.array([[1, -3, 3, -1], [4, 0, -6, 3], [1, 3, 3, -3], [0, 0, 0, 1]], dtype=np.float64)
"""Six times the weight of each of four mesh points, by powers of t: the cubic B-spline."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """Where sorted points lie in cells of equal width.

    Attributes:
        n_cells: number of cells, of which the points fill some.
        cell: int64 (c,), the cells that hold points, ascending.
        first: int64 (c,), position of each such cell's first point.
        powers: float64 (3, m), first to third power of each point's place within its cell.
    """

    n_cells: int
    cell: Integers
    first: Integers
    powers: Floats

    def deposit(self, values: Floats, shares: Floats) -> Floats:
        """Values on the mesh points, from one below the first cell, (n_cells + 3,).

        Args:
            values: what each point has, (m,).
            shares: `LAGRANGE` or `SPLINE`.
        """
        moments = [np.add.reduceat(values, self.first)]
        moments += [np.add.reduceat(values * power, self.first) for power in self.powers]
        mesh = np.zeros(self.n_cells + 3)
        for offset, masses in enumerate(np.einsum("ij,jc->ic", shares / 6, moments)):
            # Cells do not repeat, so that each mesh point is named once.
            mesh[self.cell + offset] += masses
        return mesh


def mesh_of(places: Floats, n_cells: int) -> Mesh:
    """Mesh of points at `places`, (m,), ascending in [0, n_cells], in cell widths."""
    cell = np.minimum(places.astype(np.int64), n_cells - 1)
    within = places - cell
    first = np.flatnonzero(np.append(True, cell[1:] > cell[:-1]))
    return Mesh(n_cells, cell[first], first, np.stack([within, within**2, within**3]))
