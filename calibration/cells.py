"""Cells of a long frame, which are claims judged under one setting, and their comparison.

A long frame has a row per claim and cell. Its columns are response, claim, p, label, and the
columns whose values name the cell, such as dataset and backend.

from calibration.cells import agreeing, cells_of
agreeing(cells_of(frame, ["dataset", "backend"]))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.grouping import group_by_response, response_ids
from calibration.intervals import IntervalSettings
from calibration.labels import LabelPolicy, apply_policy
from calibration.scores.definition import JudgedClaims
from calibration.scores.registry import REGISTRY, response_k
from calibration.significance.comparison import compare_judged
from calibration.significance.corrections import adjust
from calibration.validation import Floats, Integers, is_missing, label_array, probability_array
from factormodels.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SAME_POSTERIORS = 5e-3
"""Posteriors that differ by at most this count as equal; their curves look the same."""

CLAIM_COLUMNS = ("claim", "atom")
"""Accepted names of the column of claim ids."""


@dataclass(frozen=True, eq=False)
class CellClaims:
    """The claims of one cell.

    Attributes:
        named: values of the columns that identify the cell, by column.
        ids: texts (n_responses,), ids of the responses, in order.
        index: int64 (n,), the position in `ids` of every claim's response.
        atoms: texts (n,), ids of the claims; null for a response without claims.
        p: float64 (n,), probabilities of being true; NaN if missing.
        label: float64 (n,), labels 1 and 0; NaN if missing.
    """

    named: Mapping[str, Any]
    ids: pa.ChunkedArray
    index: Integers
    atoms: pa.ChunkedArray
    p: Floats
    label: Floats

    @cached_property
    def responses(self) -> tuple[str, ...]:
        """The ids of the responses, in order."""
        return tuple(self.ids.to_pylist())

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Mask of the claims that have a probability, bool (n,)."""
        return ~np.isnan(self.p)

    @property
    def claims(self) -> tuple[Floats, Floats, Integers]:
        """(p, label, index) of claims with a probability, as `calibration.score` takes them."""
        judged = self.judged
        if judged.all():
            # Avoid a copy.
            return self.p, self.label, self.index
        return self.p[judged], self.label[judged], self.index[judged]

    def same_rows(self, other: CellClaims) -> tuple[Integers, Integers]:
        """Positions in two cells of the claims that they have in common, int64 (n,) each."""
        if self.has_the_claims_of(other):
            # The usual case, two cells of one run, needs no matching.
            everything = np.arange(len(self.p))
            return everything, everything
        position = {key: row for row, key in enumerate(self._keys())}
        pairs = [(position[key], row) for row, key in enumerate(other._keys()) if key in position]
        # The reshape gives two columns even without any pair.
        both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def has_the_claims_of(self, other: CellClaims) -> bool:
        """Return whether two cells have the same claims in the same order."""
        return bool(self.ids.equals(other.ids) and self.atoms.equals(other.atoms))

    def in_its_order(self, other: CellClaims) -> Floats | None:
        """Probabilities of another cell, (n,), in this cell's order; None if claims differ."""
        if self.has_the_claims_of(other):
            return other.p
        if len(self.p) != len(other.p):
            return None
        rows, other_rows = self.same_rows(other)
        if len(rows) < len(self.p):
            return None
        ordered = np.empty(len(self.p))
        ordered[rows] = other.p[other_rows]
        return ordered

    def _keys(self) -> Iterable[tuple[str, str]]:
        """(response, claim) of every claim."""
        responses = (self.responses[at] for at in self.index.tolist())
        return zip(responses, self.atoms.to_pylist(), strict=True)


def cells_of(
    frame: pd.DataFrame,
    by: Sequence[str],
    *,
    p: str = "p",
    label: str | None = None,
    response: str | None = None,
    claim: str | None = None,
) -> list[CellClaims]:
    """Cells of a long frame, in order of first appearance.

    Args:
        frame: a row per claim and cell.
        by: columns whose values name the cell.
        p: column of the probabilities; a missing one is NaN.
        label: column of the labels; None for the column `label`, if present.
        response: column of response ids; None for the column `response`, if present.
        claim: column of claim ids, unique within a response and cell; None for `claim` or `atom`.
            Without a column, the claims of a response are identified by their order.

    Raises:
        InputError: for a missing column, bad values, or a claim that occurs twice in a cell.
    """
    by = [by] if isinstance(by, str) else list(by)
    label = label or _known(frame, "label")
    response = response or _known(frame, "response")
    claim = claim or _known(frame, *CLAIM_COLUMNS)
    wanted: dict[str, list[str | None]] = {
        "by": [*by],
        "p": [p],
        "label": [label],
        "response": [response],
        "claim": [claim],
    }
    for argument, names in wanted.items():
        for name in names:
            if name is not None and name not in frame:
                raise InputError(
                    f"the frame has no column {name!r}; set {argument} to one of "
                    f"{', '.join(map(str, frame.columns))}"
                )
    if not by:
        raise InputError("by names no column; name the columns that identify a cell")
    cells = []
    for key, rows in frame.groupby(by, sort=False, dropna=False):
        named = dict(zip(by, key, strict=True))
        try:
            cells.append(_cell(named, rows, p, label, response, claim))
        except InputError as error:
            where = ", ".join(f"{name} {value}" for name, value in named.items())
            raise InputError(f"{where}: {error}") from None
    return cells


def _known(frame: pd.DataFrame, *names: str) -> str | None:
    return next((name for name in names if name in frame), None)


def _cell(
    named: Mapping[str, Any],
    rows: pd.DataFrame,
    p: str,
    label: str | None,
    response: str | None,
    claim: str | None,
) -> CellClaims:
    import pyarrow as pa

    values = np.array([np.nan if is_missing(value) else value for value in rows[p]], dtype=object)
    known = np.array([value == value for value in values], dtype=np.bool_)
    probabilities = np.full(len(rows), np.nan)
    if known.any():
        probabilities[known] = probability_array(values[known], p)
    labels = np.full(len(rows), np.nan)
    if label is not None:
        labels = label_array([None if is_missing(value) else value for value in rows[label]], label)
    owners = range(len(rows)) if response is None else response_ids(rows[response], response)
    grouping = group_by_response(list(owners), response or "responses")
    order = rows.groupby(grouping.index).cumcount()
    atoms = list(map(str, order if claim is None else response_ids(rows[claim], claim)))
    keys = list(zip(grouping.index.tolist(), atoms, strict=True))
    if len(set(keys)) < len(keys):
        raise InputError("it has a claim twice; give each claim of a response once")
    ids = pa.chunked_array([pa.array(list(map(str, grouping.responses)), pa.string())])
    texts = pa.chunked_array([pa.array(atoms, pa.string())])
    return CellClaims(named, ids, grouping.index, texts, probabilities, labels)


def paired_claims(
    first: CellClaims,
    second: CellClaims,
    *,
    unlabeled: str = LabelPolicy.EXCLUDE,
    k: str | float = "median",
    folds: Mapping[str, int] | None = None,
) -> tuple[JudgedClaims, JudgedClaims] | None:
    """Labeled claims with a probability in both cells, as `compare_judged` takes them.

    Args:
        first: one cell.
        second: another cell of the same claims.
        unlabeled: treatment of claims without a label, as in `apply_policy`.
        k: choice of the K of F1@K, as in `choose_k`.
        folds: fold of each response, if probabilities are cross-fitted.

    Returns:
        The claims of each cell, in the same order; None if there are none.

    Raises:
        InputError: for unlabeled claims under the policy "error".
    """
    first_rows, second_rows = first.same_rows(second)
    both = first.judged[first_rows] & second.judged[second_rows]
    if not both.any():
        return None
    # From here on position i is the same claim on both sides.
    first_rows, second_rows = first_rows[both], second_rows[both]
    # The policy decides by label alone, so that the claims it keeps are the same for both.
    scored = apply_policy(first.p[first_rows], first.label[first_rows], unlabeled)
    if not scored.p.size:
        return None
    owners = first.index[first_rows][scored.kept]
    fold = None if folds is None else _folds(folds, first, owners)
    of_first, of_second = (
        _judged(p, scored.y, owners, k, fold)
        for p in (scored.p, second.p[second_rows][scored.kept])
    )
    return of_first, of_second


def claims_of_each(
    first: CellClaims,
    second: CellClaims,
    *,
    unlabeled: str = LabelPolicy.EXCLUDE,
    k: str | float = "median",
    folds: Mapping[str, int] | None = None,
) -> tuple[JudgedClaims, JudgedClaims] | None:
    """Labeled claims of each of two cells, within the responses in which both have some.

    Use it for cells of different claims, such as two selections. Arguments and errors are as in
    `paired_claims`.
    """
    sides = []
    for cell in (first, second):
        if not cell.judged.any():
            return None
        p, label, index = cell.claims
        scored = apply_policy(p, label, unlabeled)
        # By name rather than number: two cells may number their responses differently.
        names = np.array(cell.responses, dtype=object)[index[scored.kept]]
        sides.append((scored.p, scored.y, names))
    # A test pairs by response, so a response that only one side has cannot be used.
    both = set(sides[0][2].tolist()) & set(sides[1][2].tolist())
    if not both:
        return None
    judged = []
    for p, y, names in sides:
        kept = np.array([name in both for name in names.tolist()], dtype=np.bool_)
        fold = None if folds is None else np.array([folds[name] for name in names[kept].tolist()])
        judged.append(_judged(p[kept], y[kept], names[kept], k, fold))
    of_first, of_second = judged
    return of_first, of_second


def _folds(folds: Mapping[str, int], cell: CellClaims, owners: Integers) -> Integers:
    """Fold of each claim, (n,)."""
    present, inverse = np.unique(owners, return_inverse=True)
    return np.array([folds[cell.responses[at]] for at in present.tolist()])[inverse]


def _judged(
    p: Floats, y: Floats, responses: NDArray[Any], k: str | float, folds: Integers | None
) -> JudgedClaims:
    grouping = group_by_response(responses)
    return JudgedClaims(p, y, grouping, response_k(k, grouping), folds)


def largest_difference(first: CellClaims, second: CellClaims) -> float:
    """Largest absolute difference between two cells' probabilities of a claim; NaN if none."""
    first_rows, second_rows = first.same_rows(second)
    differences = np.abs(first.p[first_rows] - second.p[second_rows])
    # `fmax` ignores NaN, and returns it only if there is no number.
    return float(np.fmax.reduce(differences, initial=np.nan))


def are_close(p: Floats, other: Floats, within: float = SAME_POSTERIORS) -> bool:
    """Return whether probabilities (n,) of the same claims agree; NaN agrees with NaN."""
    return bool(np.isclose(p, other, rtol=0, atol=within, equal_nan=True).all())


def same_posteriors(first: CellClaims, second: CellClaims, within: float = SAME_POSTERIORS) -> bool:
    """Return whether two cells agree on the claims that they have in common."""
    first_rows, second_rows = first.same_rows(second)
    return are_close(first.p[first_rows], second.p[second_rows], within)


LEVEL = 0.05
"""Corrected p-values below this are significant."""


def significantly_best(
    cells: Sequence[Callable[[], CellClaims]],
    values: Sequence[float],
    measure: str,
    *,
    unlabeled: str = LabelPolicy.EXCLUDE,
    k: str | float = "median",
    n_resamples: int = 10_000,
    seed: int = 0,
) -> list[int]:
    """Positions of the cells that are significantly the best in a measure; empty if no cell is.

    The cell with the best value, and cells with equal probabilities, are significantly the best
    if every other cell differs from it in a paired permutation test over responses. P-values are
    corrected by Holm for the number of tests.

    Args:
        cells: functions that read the cells, all of the same claims; two are in memory at a time.
        values: value of the measure for each cell.
        measure: name of a score in `REGISTRY` that has a good direction.
        unlabeled, k: as in `paired_claims`.
        n_resamples: permutations of each test.
        seed: their seed.

    Raises:
        InputError: for unlabeled claims under the policy "error".
    """
    scores = np.asarray(values, dtype=np.float64)
    # An infinite log loss cannot be tested, and the best cell must be tested against all others.
    if not np.isfinite(scores).all():
        return []
    # Start with the nearest: the first cell that does not differ ends the search.
    ranked = -scores if REGISTRY[measure].higher_is_better else scores
    first, *others = np.argsort(ranked, kind="stable").tolist()
    best = cells[first]()
    leaders, p_values = [first], []
    for position in others:
        other = cells[position]()
        # Cells with equal results share the first place; neither prevents the other from having it.
        if same_posteriors(best, other):
            leaders.append(position)
            continue
        sides = paired_claims(best, other, unlabeled=unlabeled, k=k)
        # A permutation test needs at least two responses.
        if sides is None or len(sides[0].grouping.responses) < 2:
            return []
        (difference,) = compare_judged(
            *sides,
            [measure],
            n_resamples=n_resamples,
            intervals=IntervalSettings(seed=seed),
        )
        p_values.append(difference.p_value)
        if not p_values[-1] < LEVEL:
            return []
    # The leader is compared with every other cell, which makes one family of tests for Holm.
    return leaders if p_values and float(np.max(adjust(p_values))) < LEVEL else []


class Agreeing(NamedTuple):
    """Cells whose probabilities agree.

    Attributes:
        positions: positions of the cells, ascending.
        apart: the largest difference between two of their probabilities of one claim; 0 for a
            single cell, and for cells without probabilities.
        answered: whether they have any probability; cells without probabilities form a group too.
    """

    positions: tuple[int, ...]
    apart: float
    answered: bool


class AgreeingGroups(NamedTuple):
    """Groups of cells that agree.

    Attributes:
        groups: the groups; every cell is in one group.
        spread: the largest difference of any two cells' probabilities of one claim.
    """

    groups: tuple[Agreeing, ...]
    spread: float


def agreeing(cells: Iterable[CellClaims], within: float = SAME_POSTERIORS) -> AgreeingGroups:
    """Group the cells of the same claims whose probabilities differ by at most `within`.

    Two cells also differ if only one of them has a probability for a claim. A cell joins the first
    group whose range it does not widen beyond `within`. One cell is in memory at a time, with two
    arrays per group.

    Args:
        cells: the cells.
        within: largest difference between two cells of a group.
    """
    groups: list[_Range] = []
    for position, cell in enumerate(cells):
        for number, group in enumerate(groups):
            wider = group.joined(position, cell)
            if wider is not None and wider.apart <= within:
                groups[number] = wider
                break
        else:
            # One cell is kept for all groups of the same claims.
            alike = (group.first for group in groups if group.first.has_the_claims_of(cell))
            groups.append(_Range(next(alike, cell), (position,), cell.p, cell.p))
    agreed = tuple(Agreeing(group.positions, group.apart, group.answered) for group in groups)
    return AgreeingGroups(agreed, _spread(groups))


@dataclass(frozen=True)
class _Range:
    """Smallest and largest probability of every claim of `first`, over cells that agree."""

    first: CellClaims
    positions: tuple[int, ...]
    lowest: Floats
    highest: Floats

    @property
    def apart(self) -> float:
        return _widest(self.lowest, self.highest)

    @property
    def answered(self) -> bool:
        return not np.isnan(self.lowest).all()

    def joined(self, position: int, cell: CellClaims) -> _Range | None:
        """The range with another cell; None if its claims or missing probabilities differ."""
        p = self.first.in_its_order(cell)
        if p is None or not np.array_equal(np.isnan(p), np.isnan(self.lowest)):
            return None
        return replace(
            self,
            positions=(*self.positions, position),
            lowest=np.minimum(self.lowest, p),
            highest=np.maximum(self.highest, p),
        )


def _spread(groups: Sequence[_Range]) -> float:
    if len(groups) < 2:
        return 0.0
    first = groups[0].first
    same = [group for group in groups if first.has_the_claims_of(group.first)]
    lowest = reduce(np.fmin, [group.lowest for group in same])
    highest = reduce(np.fmax, [group.highest for group in same])
    return _widest(lowest, highest)


def _widest(lowest: Floats, highest: Floats) -> float:
    """Largest difference; 0 if there is none."""
    return float(np.fmax.reduce(highest - lowest, initial=0.0))
