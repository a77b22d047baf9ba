"""An upper bound on log Z of dense binary graphs of pairs that accounts for contradictory ties.

Bounds of forests and mini-buckets grow with the number of ties that cannot all be satisfied, since
they consider only a few at a time. Here every variable's log cosh is bounded by a quadratic, and a
determinant sums over all states at once. With spins s of -1 and 1, the potential is exp(h.s + sum J
s s):

1. Variables C of which no two are tied are summed over: each gives 2 cosh(u), u = h_c + J_c s,
   and log cosh u <= log cosh x + l(x) (u^2 - x^2), l(x) = tanh(x) / 2x, for any x.
2. The remaining function is quadratic in the other spins. With K = couplings + diagonal D positive
   semidefinite, exp(s'Ks / 2) is the mean of exp(z's) over z ~ N(0, K). The sum over s is a product
   of cosh, each bounded as in 1. The mean over z is then a Gaussian integral.

3. Any three spins, or two spins and a fixed one, satisfy s s' + s s'' + s' s'' >= -1, also with
   signs of spins changed. The products under the Gaussian may violate this inequality. If so, a
   multiple of the left side minus the right side is added to the exponent, which does not decrease
   for any state.

Every choice of x, D and the multiples gives a bound; a gradient descent tightens it, with a barrier
for K. It is exact without ties. Tables with zeros are bounded by tables without.

Source: Jaakkola & Jordan 2000, "Bayesian parameter estimation via variational methods", for the
quadratic; Hubbard 1959, "Calculation of partition functions", for the Gaussian; Barahona & Mahjoub
1986, "On the cut polytope", for the inequalities of three, as Wainwright & Jordan 2006,
"Log-determinant relaxation for approximate inference in discrete Markov random fields", use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, lapack
from scipy.optimize import minimize
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from factormodels.arrays import Floats
from factormodels.factor_graph import FactorGraph
from inference.backend import InferenceError, zero_partition
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.stop import Stop

_MATRICES = 12
"""Number of matrices, as large as the couplings of the joined variables, in memory at a time."""

_FLOOR = 30.0
"""Distance of zeros below the largest log entry of their table, in nats."""

_DEEPEST = 1e6
"""Largest such distance of any entry: larger couplings would leave no digits to the others."""

_BARRIERS = (0.1, 0.01)
_FIRST = {"summed": 3.0, "joined": 20.0, "diagonal": 0.1}
_STEPS = 300
_TRIANGLES_PER_SPIN = 10
"""Inequalities that are added at a time, per joined variable."""

_TRIANGLES_PER_ROW = 100
"""Maximum number of inequalities with the same first spin and signs, which leaves room for
others."""

_BROKEN = 0.05
"""Least violation of an inequality that is added."""

_LEAST_GAIN = 0.01
_PATIENCE = 3
"""Rounds of inequalities that gain less than that, in nats, after which no more are added."""

_ROUNDING = 1e-10

_IMPOSSIBLE = 1e12
"""Value in place of infinity, from which a line search would not return."""


@dataclass(frozen=True)
class QuadraticBound:
    """The bound as one of the algorithms of `auto`: see the module.

    Attributes:
        memory_limit: bytes that its matrices may take.
    """

    memory_limit: int

    def solve_until(self, graph: FactorGraph, stop: Stop) -> Posterior:
        """Return the tightest bound found in the time; the marginals are its gradient.

        Raises:
            InferenceError: if a variable is not binary, a factor has more than two variables, very
                many variables are tied to each other, or there was no time for a first step.
            ZeroPartitionError: if a table has no positive entry.
        """
        spins = _Spins.of(graph, self.memory_limit)
        search = _Search(spins, stop)
        n_summed, n_joined = len(spins.summed), len(spins.joined)
        at = np.concatenate(
            [
                np.full(n_summed, np.log(_FIRST["summed"])),
                np.full(n_joined, np.log(_FIRST["joined"])),
                # A matrix with a dominant diagonal is positive definite.
                _FIRST["diagonal"] + np.abs(spins.couplings).sum(axis=1),
            ]
        )
        # Threads of the library wait for each other longer than such matrices take.
        with threadpool_limits(1, user_api="blas"):
            while search(at)[0] == _IMPOSSIBLE:
                at[n_summed : n_summed + n_joined] += 1.0
            for barrier in _BARRIERS:
                search.barrier = barrier
                at = search.descend(at)
            wasted = 0
            while wasted < _PATIENCE and not stop.over:
                before = search.bound
                at = search.descend(search.with_triangles(at))
                wasted = 0 if before - search.bound > _LEAST_GAIN else wasted + 1
        if search.spin_means is None:
            raise InferenceError("there was no time for a first quadratic bound")
        true = 0.5 * (1.0 + np.clip(search.spin_means, -1.0, 1.0))
        values = np.column_stack([1.0 - true, true]).ravel()
        return Posterior(
            marginals=Marginals.of(graph, values),
            log_z=search.bound + _ROUNDING * max(1.0, abs(search.bound)),
            log_z_kind=LogZKind.UPPER,
            status=Status.NOT_CONVERGED if stop.over else Status.CONVERGED,
            stats={
                "iterations": search.calls,
                "summed": n_summed,
                "joined": n_joined,
                "triangles": len(search.triangles.signs),
            },
        )


@dataclass(frozen=True, eq=False)
class _Spins:
    """A binary graph of pairs as fields and couplings of spins -1 and 1.

    Attributes:
        constant: logarithm of what all states share.
        fields: float64 (n,), h.
        summed, joined: int64, the variables of which no two are tied, and the others.
        ties: sparse (n_summed, n_joined), couplings between them.
        couplings: float64 (n_joined, n_joined), symmetric with a zero diagonal.
    """

    constant: float
    fields: Floats
    summed: NDArray[np.int64]
    joined: NDArray[np.int64]
    ties: Any
    couplings: Floats

    @classmethod
    def of(cls, graph: FactorGraph, memory_limit: int) -> _Spins:
        """Return the spins of a graph without evidence."""
        arities = np.diff(graph.scope_starts)
        if (graph.cardinalities != 2).any() or arities.max(initial=0) > 2:
            raise InferenceError("a quadratic bound is of binary variables and factors of pairs")
        n, starts, values = graph.n_variables, graph.table_starts[:-1], graph.log_values
        if len(values):
            tops = np.maximum.reduceat(values, starts)
            if np.isneginf(tops).any():
                raise zero_partition()
            tops = np.repeat(tops, np.diff(graph.table_starts))
            values = np.where(np.isneginf(values), tops - _FLOOR, values)
            values = np.maximum(values, tops - _DEEPEST)
        constant, fields = float(values[starts[arities == 0]].sum()), np.zeros(n)
        first = graph.scope_starts[:-1]
        single, pair = np.flatnonzero(arities == 1), np.flatnonzero(arities == 2)
        # A log table of one spin is its mean plus s times half the difference.
        tables = values[starts[single][:, None] + np.arange(2)]
        constant += float(tables.mean(axis=1).sum())
        np.add.at(fields, graph.scope_variables[first[single]], 0.5 * (tables @ [-1.0, 1.0]))
        # One of two spins is its mean plus h s + h' s' + J s s': contrasts of its four entries.
        tables = values[starts[pair][:, None] + np.arange(4)]
        left, right = (graph.scope_variables[first[pair] + side] for side in (0, 1))
        constant += float(tables.mean(axis=1).sum())
        np.add.at(fields, left, 0.25 * (tables @ [-1.0, -1.0, 1.0, 1.0]))
        np.add.at(fields, right, 0.25 * (tables @ [-1.0, 1.0, -1.0, 1.0]))
        strengths = 0.25 * (tables @ [1.0, -1.0, -1.0, 1.0])
        ends = (np.append(left, right), np.append(right, left))
        matrix = csr_array((np.tile(strengths, 2), ends), shape=(n, n))
        summed = _untied(matrix)
        joined = np.setdiff1d(np.arange(n), summed)
        if 8 * len(joined) * (_MATRICES * len(joined) + 2 * len(summed)) > memory_limit:
            raise InferenceError(f"{len(joined)} variables are too many for a quadratic bound")
        ties, couplings = matrix[summed][:, joined], matrix[joined][:, joined].toarray()
        return cls(constant, fields, summed, joined, ties, couplings)


def _untied(matrix: Any) -> NDArray[np.int64]:
    """Return variables without ties among them, greedily by fewest ties, int64, ascending."""
    free = np.ones(matrix.shape[0], dtype=np.bool_)
    chosen = []
    for variable in np.argsort(np.diff(matrix.indptr), kind="stable"):
        if free[variable]:
            chosen.append(variable)
            free[matrix.indices[matrix.indptr[variable] : matrix.indptr[variable + 1]]] = False
    return np.sort(np.array(chosen, dtype=np.int64))


class _Triangles(NamedTuple):
    """Inequalities sign_0 s s' + sign_1 s s'' + sign_2 s' s'' >= -1.

    Attributes:
        pairs: int64 (m, 3), indices of the products in a flat matrix of the products of all joined
            spins and a last spin that is always 1.
        signs: float64 (m, 3), with an even number of negative signs per row.
    """

    pairs: NDArray[np.int64]
    signs: Floats


_NO_TRIANGLES = _Triangles(np.empty((0, 3), dtype=np.int64), np.empty((0, 3)))


def _broken(products: Floats, stop: Stop) -> _Triangles:
    """Return the inequalities that a matrix of products of spins violates, the worst first."""
    n = len(products)
    later = np.tri(n, k=-1, dtype=np.bool_).T
    broken = []
    for first in range(n - 2):
        if stop.over:
            break
        row, rest = products[first, first + 1 :], products[first + 1 :, first + 1 :]
        for sign in (1.0, -1.0):
            for other in (1.0, -1.0):
                # Signs a, b and a b: an even number is negative, so that some state attains
                # equality.
                value = 1.0 + sign * row[:, None] + other * row + sign * other * rest
                at = np.flatnonzero((value < -_BROKEN) & later[first + 1 :, first + 1 :])
                value = value.ravel()[at]
                worst = np.argsort(value, kind="stable")[:_TRIANGLES_PER_ROW]
                second, third = np.divmod(at[worst], len(row))
                columns = (value[worst], first, second + first + 1, third + first + 1, sign, other)
                broken.append(np.column_stack(np.broadcast_arrays(*columns)))
    if not broken:
        return _NO_TRIANGLES
    rows = np.concatenate(broken)
    rows = rows[np.argsort(rows[:, 0], kind="stable")[: _TRIANGLES_PER_SPIN * n]]
    first, second, third = rows[:, 1:4].T.astype(np.int64)
    pairs = np.column_stack([first * n + second, first * n + third, second * n + third])
    return _Triangles(pairs, np.column_stack([rows[:, 4], rows[:, 5], rows[:, 4] * rows[:, 5]]))


class _Search:
    """The bound and its gradient as a function of its parameters; the best is kept.

    The parameters are the logarithms of x of the summed variables, of x of the joined ones, the
    diagonal D, and the multiples of the triangles.
    """

    def __init__(self, spins: _Spins, stop: Stop) -> None:
        self.spins, self.stop = spins, stop
        self.barrier = 0.0
        self.calls = 0
        self.bound = np.inf
        self.spin_means: Floats | None = None
        self.triangles = _NO_TRIANGLES
        self.products = np.eye(len(spins.joined) + 1)

    def descend(self, at: Floats) -> Floats:
        """Return parameters of a smaller bound, found from given ones."""
        if not len(at):
            return at
        bounds: list[tuple[float | None, None]] = [(None, None)] * len(at)
        for multiple in range(len(at) - len(self.triangles.signs), len(at)):
            bounds[multiple] = (0.0, None)
        options = {"maxiter": _STEPS, "maxcor": 20}
        result = minimize(self, at, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return np.asarray(result.x)

    def with_triangles(self, at: Floats) -> Floats:
        """Return the parameters with the active triangles, and those violated at `at`."""
        self(at)
        n_others = len(at) - len(self.triangles.signs)
        count = at[n_others:] > 0.0
        more = _broken(self.products, self.stop)
        self.triangles = _Triangles(
            *(
                np.concatenate([kept[count], new])
                for kept, new in zip(self.triangles, more, strict=True)
            )
        )
        return np.concatenate([at[:n_others], at[n_others:][count], np.zeros(len(more.signs))])

    def __call__(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the bound minus the barrier, and its gradient; infinite if undefined."""
        spins, n_summed, n = self.spins, len(self.spins.summed), len(self.spins.joined)
        flat = np.zeros(len(parameters))
        if self.stop.over:
            # A value that cannot be improved ends the line search, and with it the descent.
            return -_IMPOSSIBLE, flat
        self.calls += 1
        # x of step 1 and of step 2, and l(x).
        points = np.exp(np.clip(parameters[: n_summed + n], -20.0, 50.0))
        slopes = np.tanh(points) / (2.0 * points)
        summed, joined = slice(None, n_summed), slice(n_summed, None)
        diagonal, multiples = np.split(parameters[n_summed + n :], [n])
        pairs, signs = self.triangles
        # The triangles as couplings, with the last spin, which is 1, as fields.
        added = np.bincount(pairs.ravel(), (signs * multiples[:, None]).ravel(), (n + 1) ** 2)
        added = added.reshape(n + 1, n + 1)
        outer, inner = spins.fields[spins.summed], spins.fields[spins.joined] + added[:n, n]
        ties, weights = spins.ties, slopes[summed]
        # K: couplings, the squares of step 1, the triangles, and D.
        covariance = spins.couplings + 2.0 * (ties.T @ (ties * weights[:, None])).toarray()
        covariance += added[:n, :n] + added[:n, :n].T
        covariance[np.diag_indices_from(covariance)] += diagonal
        # The part that is linear in the joined spins: b = h + 2 T' (l h_c), with T the ties.
        field = inner + 2.0 * (ties.T @ (weights * outer))
        # With L = diag(l) of the joined spins, the mean over z ~ N(0, K) of exp((b + z)' L (b + z))
        # is det(I - 2 K L)^(-1/2) exp(b' P^(-1) b), P = L^(-1) - 2 K.
        precision = np.diag(1.0 / slopes[joined]) - 2.0 * covariance
        inverse, log_determinant = _inverse(precision)
        barrier, log_room = _inverse(covariance)
        if inverse is None or barrier is None:
            return _IMPOSSIBLE, flat
        mean = inverse @ field
        # log 2 cosh(x) - l x^2 of all variables; s'Ds / 2 is sum(D) / 2 in every state; each
        # triangle adds its right side, 1.
        logs = np.logaddexp(points, -points) - slopes * points**2
        bound = float(
            spins.constant
            + logs.sum()
            + weights @ outer**2
            - 0.5 * diagonal.sum()
            + multiples.sum()
            - 0.5 * (log_determinant + np.log(slopes[joined]).sum())
            + field @ mean
        )
        # Derivatives: these moments for K, twice the moments for a coupling, twice the mean for b.
        moments = inverse + 2.0 * np.outer(mean, mean)
        along = ties @ mean
        if bound < self.bound:
            self.bound = bound
            self.spin_means = np.empty(len(spins.fields))
            self.spin_means[spins.joined] = 2.0 * mean
            self.spin_means[spins.summed] = 2.0 * weights * (outer + 2.0 * along)
        # By l of the joined spins: (P^(-1) + 2 m m') / 2 l^2 - 1 / 2 l on the diagonal.
        joined_moments = np.diagonal(moments) / (2.0 * slopes[joined] ** 2) - 0.5 / slopes[joined]
        moments = moments - self.barrier * barrier
        self.products[:n, :n] = 2.0 * moments
        self.products[:n, n] = self.products[n, :n] = 2.0 * mean
        quadratic = np.asarray((ties @ moments) * ties.toarray()).sum(axis=1)
        # By all l, with -x^2 of the logs. The bound depends on x through l alone, since tanh(x) = 2
        # l x.
        squares = (
            np.concatenate([outer**2 + 4.0 * outer * along + 2.0 * quadratic, joined_moments])
            - points**2
        )
        # d l / d log x = (1 / cosh(x)^2 - 2 l) / 2, near 0 by its series -x^2 / 3.
        small = points < 1e-3
        bends = np.where(
            small,
            -2.0 * points**2 / 6.0,
            0.5 * (1.0 / np.cosh(np.minimum(points, 300.0)) ** 2 - 2.0 * slopes),
        )
        # For a multiple: the mean excess of its triangle's left side over -1.
        slack = 1.0 + (signs * self.products.ravel()[pairs]).sum(axis=1)
        gradient = np.concatenate([bends * squares, np.diagonal(moments) - 0.5, slack])
        return bound - self.barrier * log_room, gradient


def _inverse(matrix: Floats) -> tuple[Floats | None, float]:
    """Return the inverse of a positive definite matrix and its log determinant, or None and inf."""
    if not len(matrix):
        return matrix, 0.0
    try:
        factor = cholesky(matrix, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None, np.inf
    half, _ = lapack.dpotri(factor, lower=True)
    inverse = np.tril(half) + np.tril(half, -1).T
    return inverse, 2.0 * float(np.log(np.diagonal(factor)).sum())
