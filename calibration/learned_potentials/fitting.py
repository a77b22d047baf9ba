"""Joint estimation of a field's potentials, couplings and biases from labels.

A field is a conditional random field (Lafferty, McCallum and Pereira 2001). Given the columns, the
log odds of a claim are a potential of its columns, and a hidden cause joins the claims of a group.
Folds, penalties and seeds are the rows of a single batch.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from calibration.folds import response_folds
from calibration.learned_potentials.columns import ClaimTable
from calibration.learned_potentials.modules import MakeModule, PotentialBatch, batch_of
from calibration.learned_potentials.trees import (
    Forest,
    forest_of,
    log_partition,
    marginal_log_odds,
)
from calibration.validation import Floats, Integers, is_number, member_named, whole_number
from factormodels.errors import InputError
from factormodels.nouns import counted

if TYPE_CHECKING:
    from torch import Tensor


class Objective(StrEnum):
    """Objective of the fit, which is minimized."""

    LIKELIHOOD = "likelihood"
    """The negative log likelihood of all labels of each response together."""
    LOG_LOSS = "log_loss"
    """-log of the posterior of each label by itself, summed over labeled claims."""
    BRIER = "brier"
    """The squared error of the posterior of each labeled claim, summed."""


PENALTIES = (3.0, 30.0, 300.0)
"""Penalties from which inner folds choose."""

_INNER_FOLDS, _INNER_ITERATIONS = 3, 100
_COUPLING = 0.8
"""Initial couplings; at 0 the gradient of the cost vanishes."""

_HELD = 60.0
"""Log odds that fix a claim at its label: the other state has weight 1e-26."""

_TOLERANCE = 1e-3
"""Largest entry of the gradient at convergence, along directions with a curvature of about 1. The
remaining error is about a thousandth of a standard error. Searches continue to a tenth of it."""

_CURVATURE = 1 / 6
"""Curvature p (1 - p) of the log loss of an uncertain claim."""

LEAST_SPREAD = 1e-9
"""A column with a smaller standard deviation counts as constant."""

_MOST_COUPLING = 30.0
"""Bound on couplings in predictions. The tanh of half of a larger coupling rounds to 1, so that two
certain neighbors would have no finite log odds."""

_MOST_LOG_ODDS = 30.0
"""Bound on posterior log odds: finite evidence must not give a probability of 0 or 1."""

_MOST_COLUMN = 1e100
"""Largest magnitude in a column; the square of a larger value is not finite."""

_MEMORY = 20
"""Number of pairs (step, change of gradient) that L-BFGS keeps."""


@dataclass(frozen=True)
class FieldSettings:
    """Settings of the fit of a field.

    Attributes:
        potential: name in `modules.POTENTIALS`, or a function from the number of columns to a
            module.
        objective: name of an `Objective`.
        penalty: weight of half the squared weights of standardized columns. With None, inner folds
            of responses choose from `PENALTIES`.
        coupling_penalty: weight of half the squared couplings and biases of causes. The default
            corresponds to a normal prior with mean 0 and standard deviation 0.32. The labels of a
            few responses, which would overstate the dependence between claims, move it little; the
            labels of a hundred responses outweigh it.
        n_seeds: number of members with different seeds, whose probabilities are averaged; 1 for a
            linear potential.
        max_iterations: number of iterations after which a search ends as not converged.
        seed: seed of inner folds and members.
    """

    potential: str | MakeModule = "linear"
    objective: str = Objective.LOG_LOSS
    penalty: float | None = None
    coupling_penalty: float = 10.0
    n_seeds: int = 3
    max_iterations: int = 300
    seed: int = 0


@dataclass(frozen=True, eq=False)
class ColumnScale:
    """Standardization of columns, which are first clipped to the range of the training claims.

    Attributes:
        lower: smallest value of each column among the training claims, (d,).
        upper: largest value, (d,).
        mean: mean, (d,).
        spread: standard deviation, (d,); 1 for a constant column.
    """

    lower: Floats
    upper: Floats
    mean: Floats
    spread: Floats

    def __call__(self, values: Floats) -> Floats:
        """Return standardized columns, (n, d)."""
        inside = np.clip(values, self.lower, self.upper)
        return np.asarray((inside - self.mean) / self.spread)


@dataclass(frozen=True, eq=False)
class Field:
    """A fitted field.

    Attributes:
        columns: names of the columns.
        causes: levels of the causes.
        scale: standardization of the columns.
        potential: name of the potential; "custom" for the user's own module.
        batch: architecture of the potential.
        parameters: float64 (members, k), parameters of the potential.
        couplings: float64 (members, levels).
        biases: float64 (members, levels).
        standard_errors: float64 (k + 2 levels,), clustered by response; None with several members.
        penalty: penalty of the fit.
        converged: whether the final gradient is below the tolerance.
    """

    columns: tuple[str, ...]
    causes: tuple[str, ...]
    scale: ColumnScale
    potential: str
    batch: PotentialBatch
    parameters: Floats
    couplings: Floats
    biases: Floats
    standard_errors: Floats | None
    penalty: float
    converged: bool

    def log_odds(self, table: ClaimTable) -> Floats:
        """Log odds of each claim from its columns alone, averaged over members, (n,).

        Raises:
            InputError: if the columns of the table differ from those of the field.
        """
        import torch

        with torch.no_grad():
            values = torch.from_numpy(self._standardized(table))
            return np.asarray(self.batch(torch.from_numpy(self.parameters), values).mean(0))

    def probabilities(self, table: ClaimTable, shift: float = 0.0) -> Floats:
        """Posterior probability of each claim, (n,).

        Args:
            table: the claims, with the field's columns and groups.
            shift: number added to the log odds of every claim.

        Raises:
            InputError: if the columns of the table differ from those of the field.
        """
        import torch

        forest = forest_of([(name, table.groups[name]) for name in self.causes])
        values = torch.from_numpy(self._standardized(table))
        couplings = np.clip(self.couplings, -_MOST_COUPLING, _MOST_COUPLING)
        with torch.no_grad():
            log_odds = self.batch(torch.from_numpy(self.parameters), values) + shift
            posterior = marginal_log_odds(
                log_odds, torch.from_numpy(couplings), torch.from_numpy(self.biases), forest
            )
            bounded = posterior.clamp(-_MOST_LOG_ODDS, _MOST_LOG_ODDS)
            return np.asarray(torch.sigmoid(bounded).mean(0))

    def _standardized(self, table: ClaimTable) -> Floats:
        if table.names != self.columns:
            raise InputError(
                f"the field reads the columns {', '.join(self.columns)}; those of the table are "
                f"{', '.join(table.names)}"
            )
        return self.scale(table.values)


_Row = tuple[Integers, float, int]
"""A search of a batch: its training claims, penalty and seed."""


def fit_field(table: ClaimTable, settings: FieldSettings | None = None) -> Field:
    """Fit a field to all labels of a table.

    Raises:
        InputError: for no label, labels of one kind, no column, or bad settings.
    """
    return fit_fields(table, [table.labeled], settings, with_errors=True)[0]


def fit_fields(
    table: ClaimTable,
    parts: Sequence[Integers],
    settings: FieldSettings | None = None,
    *,
    with_errors: bool = False,
) -> list[Field]:
    """Fit a field to each of several parts of the labeled claims, in a single batch.

    Args:
        table: the claims.
        parts: positions of the training claims of each field.
        settings: settings of each fit.
        with_errors: whether to compute standard errors of fields with one member.

    Raises:
        InputError: as `fit_field`, for any part.
    """
    settings = FieldSettings() if settings is None else settings
    member_named(Objective, settings.objective, "objective")
    whole_number(settings.max_iterations, "max_iterations", 1)
    n_seeds = whole_number(settings.n_seeds, "n_seeds", 1)
    for name in ("penalty", "coupling_penalty"):
        weight = getattr(settings, name)
        none_too = ", or None" if name == "penalty" else ""
        if not ((is_number(weight) and 0 <= weight < np.inf) or (weight is None and none_too)):
            raise InputError(f"{name} is {weight!r}; give a finite number of 0 or more{none_too}")
    for part in parts:
        _check(table, part)
    potential, batch = settings.potential, batch_of(settings.potential, len(table.names))
    if batch.is_linear:
        n_seeds = 1
    scale = _scale(table.values)
    forest = forest_of(list(table.groups.items()))
    problem = _Problem(table, forest, scale(table.values), batch, settings)
    if settings.penalty is None:
        # Inner folds leave causes out: they hardly affect the best penalty, but cost most time.
        inner = replace(settings, max_iterations=_INNER_ITERATIONS)
        alone = replace(problem, forest=Forest((), ()), settings=inner)
        penalties = _chosen_penalties(alone, parts)
    else:
        penalties = [float(settings.penalty)] * len(parts)
    rows = [
        (part, penalty, settings.seed + member)
        for part, penalty in zip(parts, penalties, strict=True)
        for member in range(n_seeds)
    ]
    values, gradients = problem.solved(rows)
    fields = []
    for number, penalty in enumerate(penalties):
        members = slice(number * n_seeds, (number + 1) * n_seeds)
        ends = [batch.size, batch.size + len(forest.parents)]
        parameters, couplings, biases = np.split(values[members], ends, axis=1)
        errors = None
        if with_errors and n_seeds == 1:
            errors = problem.errors(rows[members][0], values[members][0])
        fields.append(
            Field(
                table.names,
                tuple(table.groups),
                scale,
                potential if isinstance(potential, str) else "custom",
                batch,
                parameters,
                couplings,
                biases,
                errors,
                penalty,
                bool((gradients[members] <= _TOLERANCE).all()),
            )
        )
    return fields


def _check(table: ClaimTable, part: Integers) -> None:
    labels = table.labels[part]
    if not len(labels):
        raise InputError("no training claim has a label; give labeled responses")
    if labels.min() == labels.max():
        word = "true" if labels[0] else "false"
        raise InputError(
            f"all {counted(len(labels), 'claim')} to learn from are {word}; give labels of both "
            "kinds"
        )
    bad = np.flatnonzero(~np.isfinite(table.values).all(axis=0))
    if len(bad):
        raise InputError(f"column {table.names[bad[0]]!r} holds a value that is not finite")
    large = np.flatnonzero((np.abs(table.values) > _MOST_COLUMN).any(axis=0))
    if len(large):
        raise InputError(
            f"column {table.names[large[0]]!r} holds a number larger than {_MOST_COLUMN:g}; give "
            "it in another unit"
        )


def _scale(values: Floats) -> ColumnScale:
    spread = values.std(axis=0)
    return ColumnScale(
        values.min(axis=0),
        values.max(axis=0),
        values.mean(axis=0),
        np.where(spread > LEAST_SPREAD, spread, 1.0),
    )


def sandwich(bread: Floats, scores: Floats) -> Floats:
    """Sandwich covariance H^-1 (sum of s s^T) H^-1 R/(R - 1), (k, k), clustered by response.

    H is the curvature of the objective with its penalty, and `bread` its inverse, (k, k). The R
    rows s of `scores`, (R, k), are the derivatives of each response's contribution (Liang & Zeger
    1986, "Longitudinal data analysis using generalized linear models", equation 6; the factor for
    few clusters is from Cameron & Miller 2015, equation 12).
    """
    n_responses = len(scores)
    return np.asarray(n_responses / max(n_responses - 1, 1) * bread @ (scores.T @ scores) @ bread)


def _chosen_penalties(problem: _Problem, parts: Sequence[Integers]) -> list[float]:
    """Penalty of each part with the smallest log loss on inner folds of responses."""
    labels, rows, unseen, owners = problem.table.labels, [], [], []
    seed = problem.settings.seed
    for number, part in enumerate(parts):
        responses = problem.table.responses[part]
        n_folds = min(_INNER_FOLDS, len(np.unique(responses)))
        inner = response_folds(responses, n_folds, seed) if n_folds > 1 else np.zeros(0, np.int64)
        for fold in range(n_folds if n_folds > 1 else 0):
            taught = part[inner != fold]
            if labels[taught].min() != labels[taught].max():
                rows += [(taught, penalty, seed) for penalty in PENALTIES]
                unseen += [part[inner == fold]] * len(PENALTIES)
                owners.append(number)
    # If nothing can be held out, choose the penalty that keeps the field near the base rate.
    losses = np.zeros((len(parts), len(PENALTIES))) - np.arange(len(PENALTIES)) * 1e-9
    if rows:
        values, _ = problem.solved(rows)
        part_losses = problem.losses(values, unseen).reshape(-1, len(PENALTIES))
        np.add.at(losses, owners, part_losses)
    return [PENALTIES[best] for best in losses.argmin(axis=1)]


@dataclass(frozen=True, eq=False)
class _Problem:
    """Costs of the fields of a table, one row per field.

    Attributes:
        table: the claims.
        forest: their causes.
        columns: standardized columns, (n, d).
        batch: architecture of the potential.
        settings: settings of the fit.
    """

    table: ClaimTable
    forest: Forest
    columns: Floats
    batch: PotentialBatch
    settings: FieldSettings

    def _whitening(self, sizes: Tensor, penalties: Tensor) -> Tensor:
        """Matrix of search directions for each row, (b, k + 2 levels, k + 2 levels).

        The curvature of a linear potential is approximated by the curvature of logistic regression.
        Correlated columns then move together, and the steepness hardly depends on the penalty.
        """
        import torch

        whole = torch.eye(self.batch.size + 2 * len(self.forest.parents), dtype=torch.float64)
        if self.batch.is_linear:
            columns = torch.from_numpy(self.columns)
            around = torch.cat([columns, torch.ones_like(columns[:, :1])], 1)
            products = around.T @ around / len(around) + 1e-3 * torch.eye(around.shape[1])
            curvature = _CURVATURE * sizes[:, None, None] * products
            curvature = curvature + torch.diag_embed(penalties[:, None] * self.batch.penalized())
            inverse_root = torch.linalg.inv(torch.linalg.cholesky(curvature)).mT
            whole = whole.repeat(len(sizes), 1, 1) / sizes.sqrt()[:, None, None]
            whole[:, : inverse_root.shape[1], : inverse_root.shape[1]] = inverse_root
        return whole

    def solved(self, rows: Sequence[_Row]) -> tuple[Floats, Floats]:
        """Final parameters (b, k + 2 levels) and gradients (b,) of a joint search of all rows."""
        import torch

        levels = len(self.forest.parents)
        start = self.batch.starts([seed for _, _, seed in rows])
        rest = start.new_zeros(len(rows), 2 * levels)
        rest[:, :levels] = _COUPLING
        start = torch.cat([start, rest], 1)
        signs = self._signs([part for part, _, _ in rows])
        penalties = torch.tensor([penalty for _, penalty, _ in rows], dtype=torch.float64)
        sizes = (signs != 0).sum(1).double()
        moved: Any = torch.zeros_like(start, requires_grad=True)
        search = _lbfgs()(
            [moved],
            max_iter=self.settings.max_iterations,
            history_size=_MEMORY,
            tolerance_grad=_TOLERANCE / 10,
            tolerance_change=0.0,
            line_search_fn="strong_wolfe",
        )
        # For operations on few numbers, threads cost more time than they save.
        with threadpool_limits(1):
            whitening = self._whitening(sizes, penalties)

            def cost() -> Any:
                moved.grad = None
                values = start + (whitening @ moved[..., None])[..., 0]
                total: Any = self._cost(values, signs, penalties).sum()
                total.backward()
                return total.detach()

            search.step(cost)
            cost()
            values = start + (whitening @ moved.detach()[..., None])[..., 0]
            steepest = moved.grad.abs().amax(1)
        return values.numpy(), steepest.numpy()

    def losses(self, values: Floats, unseen: Sequence[Integers]) -> Floats:
        """Total log loss of each row on held-out claims, (b,)."""
        import torch

        signs = self._signs(unseen)
        judged = replace(self, settings=replace(self.settings, objective=Objective.LOG_LOSS))
        with torch.no_grad(), threadpool_limits(1):
            return np.asarray(judged._lost(torch.from_numpy(values), signs))

    def errors(self, row: _Row, values: Floats) -> Floats | None:
        """Standard errors of a row's parameters over responses, (k + 2 levels,).

        None if the cost has no curvature in some direction.
        """
        import torch

        part, penalty, _ = row
        signs, penalties = self._signs([part]), torch.tensor([penalty], dtype=torch.float64)
        at = torch.from_numpy(values)

        def cost(parameters: Tensor) -> Tensor:
            return self._cost(parameters[None], signs, penalties).sum()

        slopes = []
        with threadpool_limits(1):
            derivatives: Any = torch.autograd.functional
            curvature = derivatives.hessian(cost, at).numpy()
            for response in np.unique(self.table.responses[part]):
                # Only this response's labels are fixed: log Z of all others cancels.
                owned = torch.from_numpy(self.table.responses == response)
                asked = at.clone().requires_grad_()
                lost = self._lost(asked[None], torch.where(owned, signs, 0.0)).sum()
                slopes.append(torch.autograd.grad(lost, asked)[0].numpy())
        if np.linalg.eigvalsh((curvature + curvature.T) / 2).min() <= 1e-9:
            return None
        variances = np.diag(sandwich(np.linalg.inv(curvature), np.array(slopes)))
        # If the labels are fitted exactly, rounding can make a variance negative.
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)))

    def _signs(self, parts: Sequence[Integers]) -> Tensor:
        """Labels of each part, (b, n): 1 for true, -1 for false, 0 for claims outside it."""
        import torch

        truth = np.where(self.table.labels == 1, 1.0, -1.0)
        signs = np.zeros((len(parts), len(truth)))
        for row, part in zip(signs, parts, strict=True):
            row[part] = truth[part]
        return torch.from_numpy(signs)

    def _lost(self, values: Tensor, signs: Tensor) -> Tensor:
        """Cost of the labels under each row, without penalties, (b,)."""
        import torch

        odds = self.batch(values[:, : self.batch.size], torch.from_numpy(self.columns))
        couplings, biases = values[:, self.batch.size :].chunk(2, dim=1)
        rest = couplings, biases, self.forest
        if self.settings.objective == Objective.LIKELIHOOD:
            observed = log_partition(odds + _HELD * signs, *rest) - _HELD * (signs > 0).sum(1)
            return log_partition(odds, *rest) - observed
        odds = marginal_log_odds(odds, *rest)
        if self.settings.objective == Objective.BRIER:
            # The factor 2 gives penalties about the same effect as under the log loss.
            lost = 2.0 * torch.sigmoid(-signs * odds) ** 2
        else:
            lost = torch.nn.functional.softplus(-signs * odds)
        return torch.where(signs != 0, lost, 0.0).sum(1)

    def _cost(self, values: Tensor, signs: Tensor, penalties: Tensor) -> Tensor:
        size = self.batch.size
        squares = (self.batch.penalized() * values[:, :size] ** 2).sum(1)
        couplings = (values[:, size:] ** 2).sum(1)
        return (
            self._lost(values, signs)
            + penalties / 2 * squares
            + self.settings.coupling_penalty / 2 * couplings
        )


@cache
def _lbfgs() -> Any:
    """PyTorch's L-BFGS, which does not import PyTorch's compiler."""
    from torch.optim import LBFGS

    class UncompiledLBFGS(LBFGS):
        # The decorator excludes this method from compilation, for which it imports the compiler.
        # Nothing is compiled here, and the import takes longer than a small fit.
        add_param_group: Any = inspect.unwrap(LBFGS.add_param_group)

    return UncompiledLBFGS
