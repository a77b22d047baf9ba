"""Approximate sums of a smooth function over many points, by third-order deposits on a mesh.

The sum of v_i f(x_i) is approximated by the sum of V_n f(n) over mesh points n. Every v_i is
distributed to the four mesh points around x_i, with weights that are cubic in its position t within
its cell. The weights are linear in the sums of v, v t, v t^2 and v t^3 over the points of the cell,
so that a replicate only needs four sums over ordered points.
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
    """Positions of sorted points in cells of equal width.

    Attributes:
        n_cells: number of cells, including empty cells.
        cell: int64 (c,), the cells that contain points, ascending.
        first: int64 (c,), position of the first point of each of these cells.
        powers: float64 (3, m), first to third power of each point's position within its cell.
    """

    n_cells: int
    cell: Integers
    first: Integers
    powers: Floats

    def deposit(self, values: Floats, shares: Floats) -> Floats:
        """Values on the mesh points, from one below the first cell, (n_cells + 3,).

        Args:
            values: value of each point, (m,).
            shares: `LAGRANGE` or `SPLINE`.
        """
        moments = [np.add.reduceat(values, self.first)]
        moments += [np.add.reduceat(values * power, self.first) for power in self.powers]
        mesh = np.zeros(self.n_cells + 3)
        for offset, masses in enumerate(np.einsum("ij,jc->ic", shares / 6, moments)):
            # Cells are distinct, so that no index occurs twice.
            mesh[self.cell + offset] += masses
        return mesh


def mesh_of(places: Floats, n_cells: int) -> Mesh:
    """Mesh of points at `places`, (m,), ascending in [0, n_cells], in units of cell widths."""
    cell = np.minimum(places.astype(np.int64), n_cells - 1)
    within = places - cell
    first = np.flatnonzero(np.append(True, cell[1:] > cell[:-1]))
    return Mesh(n_cells, cell[first], first, np.stack([within, within**2, within**3]))
