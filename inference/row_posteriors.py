"""Posteriors of one graph under many rows of evidence, as a data frame.

Solve a table of evidence:

    from inference import infer_rows
    posteriors = infer_rows(graph, pandas.read_csv("rows.csv"))

Rows that observe the same variables share a structure, which `exact` plans once; equal rows are
solved once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import FactormodelsError, InputError, unknown_name
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import Backend, ZeroPartitionError
from inference.batch import batch_results, workers_of
from inference.evidence import checked_graph, without_evidence
from inference.evidence_rows import Place, as_frame, observed_states
from inference.posterior import Posterior, Status
from inference.registry import as_backend

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_array

IMPOSSIBLE = "impossible"
"""Status of a row with evidence of probability zero."""

_STATUSES = (*map(str, Status), IMPOSSIBLE)

_PART_ENTRIES = 2**21
"""Maximum number of probabilities that are computed at a time."""

_KEPT_ENTRIES = 2**23
"""Maximum number of probabilities that are cached for equal rows of later parts."""

_TABLE_ENTRIES = 2**22
"""Maximum number of table entries of the graphs that are built at a time."""


def infer_rows(
    graph: FactorGraph,
    frame: Any,
    backend: str | Backend = "auto",
    *,
    variables: Sequence[str] | None = None,
    threads: int | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Return the posterior of a graph under each row of a table of evidence.

    The probabilities equal those of `infer` for the graph with the evidence of one row, to the last
    bit for backends with `identical_batches`. The frame takes about 30 bytes per row; `stream_rows`
    yields it in parts.

    Args:
        graph: the graph; its own evidence applies to every row.
        frame: a row for each case and a column for each observed variable: a data frame of pandas
            or polars, an Arrow table, or mappings. A cell is the name of a state, or its number
            from 0 if no names are numbers; a missing cell is not observed.
        backend: name of a registered backend, or a backend instance.
        variables: names of the variables to report; all by default.
        threads: number of threads; None: the number of available processors.
        settings: settings of the backend, if it is given by name.

    Returns:
        A row for each row of evidence, variable and state, in that order, with the columns `row`
        (its label in the index), `variable`, `state` (name or number), `p`, `observed` (whether the
        variable is), `log_z` (log partition function given the evidence, or NaN) and `status` (as
        in `Posterior`). If the evidence has probability zero, `status` is "impossible", `log_z` is
        -inf and `p` is NaN.

    Raises:
        InputError: for an unknown column, state, variable, backend or setting; the message names
            the nearest known one.
        InferenceError: if the backend cannot answer; the message names the row.
    """
    return _whole(_task(graph, frame, backend, settings, variables, threads))


def stream_rows(
    graph: FactorGraph,
    frame: Any,
    backend: str | Backend = "auto",
    *,
    variables: Sequence[str] | None = None,
    threads: int | None = None,
    **settings: Any,
) -> Iterator[pd.DataFrame]:
    """Yield the result of `infer_rows` in parts of at most about 60 MB each.

    Arguments and errors are those of `infer_rows`; a row that cannot be solved raises at its turn.
    """
    task = _task(graph, frame, backend, settings, variables, threads)
    return (task.frame(*part) for part in task.solve())


def infer_named_rows(
    graph: FactorGraph, frame: Any, backend: Backend, locate: Place | None
) -> pd.DataFrame:
    """Return the result of `infer_rows` for a file; `locate` gives places in errors."""
    return _whole(_task(graph, frame, backend, {}, None, None, locate))


def _whole(task: _Task) -> pd.DataFrame:
    """Return the frame of all rows."""
    count = len(task.rows)
    p = np.empty((count, task.n_entries))
    log_z, status = np.empty(count), np.empty(count, dtype=np.int8)
    for part, of_part, log_z[part], status[part] in task.solve():
        p[part] = of_part
    return task.frame(slice(0, count), p, log_z, status)


def _task(
    graph: FactorGraph,
    table: Any,
    backend: str | Backend,
    settings: dict[str, Any],
    variables: Sequence[str] | None,
    threads: int | None,
    locate: Place | None = None,
) -> _Task:
    built = as_backend(backend, **settings)
    frame = as_frame(table)
    names = checked_graph(graph).names if variables is None else tuple(variables)
    for name in names:
        if name not in graph.index:
            raise InputError(unknown_name(f"the variable {name!r}", name, graph.names))
    positions, states = observed_states(graph, frame, locate)
    bare = replace(graph, evidence=np.full(graph.n_variables, UNOBSERVED, dtype=np.int64))
    reported = np.array([graph.index[name] for name in names], dtype=np.int64)
    return _Task(
        bare,
        built,
        frame.index.to_flat_index(),
        positions,
        states,
        reported,
        workers_of(built, threads),
    )


@dataclass(frozen=True, eq=False)
class _Task:
    """A graph and the rows of evidence under which it is to be solved.

    Attributes:
        graph: the graph without evidence.
        backend: the backend.
        rows: labels of the rows.
        positions: int64 (n_observed,), the variables that some row observes.
        states: int32 (n_rows, n_observed), their states or `UNOBSERVED`.
        reported: int64, positions of the variables to report.
        workers: maximum number of threads.
    """

    graph: FactorGraph
    backend: Backend
    rows: pd.Index
    positions: NDArray[np.int64]
    states: NDArray[np.int32]
    reported: NDArray[np.int64]
    workers: int

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of states of each reported variable."""
        return self.graph.cardinalities[self.reported]

    @property
    def n_entries(self) -> int:
        """Number of probabilities per row."""
        return int(self.counts.sum())

    @cached_property
    def _strides(self) -> csr_array:
        """Stride of each variable in each table, int64 (n_factors, n_variables)."""
        from scipy.sparse import csr_array

        graph = self.graph
        strides = np.ones(len(graph.scope_variables), dtype=np.int64)
        cardinalities = graph.cardinalities[graph.scope_variables]
        last = graph.scope_starts[1:] - 1
        arities = np.diff(graph.scope_starts)
        # From the last variable of a scope, whose states are adjacent, to the first.
        for back in range(1, int(arities.max(initial=0))):
            at = last[arities > back] - back
            strides[at] = strides[at + 1] * cardinalities[at + 1]
        return csr_array(
            (strides, graph.scope_variables, graph.scope_starts),
            shape=(graph.n_factors, graph.n_variables),
        )

    def solve(
        self,
    ) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.float64], NDArray[np.int8]]]:
        """Yield ranges of rows with probabilities (rows, n_entries), log Z and status code.

        Raises:
            FactormodelsError: if the backend cannot answer for a row, which the message names.
        """
        if not len(self.rows):
            return
        cases, case_of = np.unique(self.states, axis=0, return_inverse=True)
        case_of = case_of.ravel()
        last = np.zeros(len(cases), dtype=np.int64)
        np.maximum.at(last, case_of, np.arange(len(case_of)))
        kept: dict[int, tuple[NDArray[np.float64], float, int]] = {}
        most_kept = _KEPT_ENTRIES // max(self.n_entries, 1)
        step = max(_PART_ENTRIES // max(self.n_entries, 1), 1)
        for start in range(0, len(case_of), step):
            part = slice(start, min(start + step, len(case_of)))
            needed, within = np.unique(case_of[part], return_inverse=True)
            p = np.empty((len(needed), self.n_entries))
            log_z, status = np.empty(len(needed)), np.empty(len(needed), dtype=np.int8)
            for at, case in enumerate(needed.tolist()):
                if case in kept:
                    p[at], log_z[at], status[at] = kept[case]
            new = np.array([case not in kept for case in needed.tolist()])
            try:
                p[new], log_z[new], status[new] = self._cases(cases[needed[new]])
            except _FailedCaseError as failure:
                case = needed[new][failure.number]
                row = self.rows[part][int(np.argmax(within == np.searchsorted(needed, case)))]
                raise type(failure.error)(f"row {row}: {failure.error}") from failure.error
            kept = {case: value for case, value in kept.items() if last[case] >= part.stop}
            for at in np.flatnonzero(new & (last[needed] >= part.stop)).tolist():
                if len(kept) >= most_kept:
                    break
                kept[int(needed[at])] = p[at].copy(), float(log_z[at]), int(status[at])
            yield part, p[within], log_z[within], status[within]

    def frame(
        self,
        part: slice,
        p: NDArray[np.float64],
        log_z: NDArray[np.float64],
        status: NDArray[np.int8],
    ) -> pd.DataFrame:
        """Return the long frame of a range of rows."""
        import pandas as pd

        count, size, counts = len(p), self.n_entries, self.counts
        names = [self.graph.names[position] for position in self.reported]
        seen = self._is_observed(self.states[part])
        of_states = np.concatenate([np.arange(n) for n in counts] or [counts])
        state: Any = np.tile(of_states.astype(np.int32), count)
        if self.graph.state_names is not None:
            texts = [t for v in self.reported for t in self.graph.state_names[v]]
            codes, every = pd.factorize(np.array(texts, dtype=object))
            state = pd.Categorical.from_codes(np.tile(codes, count), pd.Index(every))
        of_variables = np.repeat(np.arange(len(names), dtype=np.int32), counts)
        return pd.DataFrame(
            {
                "row": self.rows[part].repeat(size),
                "variable": pd.Categorical.from_codes(
                    np.tile(of_variables, count), pd.Index(names, dtype=object)
                ),
                "state": state,
                "p": p.ravel(),
                "observed": np.repeat(seen, counts, axis=1).ravel(),
                "log_z": np.repeat(log_z, size),
                "status": pd.Categorical.from_codes(np.repeat(status, size), pd.Index(_STATUSES)),
            },
            copy=False,
        )

    def _is_observed(self, states: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return whether each reported variable is observed in each row, (rows, n_reported)."""
        seen = np.zeros((len(states), self.graph.n_variables), dtype=bool)
        seen[:, self.positions] = states != UNOBSERVED
        return seen[:, self.reported]

    def _cases(
        self, cases: NDArray[np.int32]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int8]]:
        """Return probabilities (n_cases, n_entries), log Z and the status of distinct rows.

        Raises:
            _FailedCaseError: if the backend cannot answer for one.
        """
        p = np.full((len(cases), self.n_entries), np.nan)
        log_z = np.full(len(cases), -np.inf)
        status = np.full(len(cases), _STATUSES.index(IMPOSSIBLE), dtype=np.int8)
        seen = cases != UNOBSERVED
        strides = self._strides
        # Sort rows that observe the same variables together.
        order = np.lexsort(seen.T[::-1]) if seen.shape[1] else np.arange(len(cases))
        changes = np.flatnonzero((seen[order][1:] != seen[order][:-1]).any(axis=1)) + 1
        waiting: list[tuple[_Pattern, NDArray[Any], NDArray[np.int32]]] = []
        entries = 0
        for members in np.split(order, changes) if len(order) else ():
            columns = np.flatnonzero(seen[members[0]])
            pattern = _Pattern.of(self.graph, self.positions[columns], self.reported, strides)
            size = max(len(pattern.kept), 1)
            step = max(_TABLE_ENTRIES // size, 1)
            for start in range(0, len(members), step):
                chosen = members[start : start + step]
                states = cases[np.ix_(chosen, columns)]
                waiting.append((pattern, chosen, states))
                entries += size * len(chosen)
                if entries >= _TABLE_ENTRIES:
                    self._solve_waiting(waiting, p, log_z, status)
                    waiting, entries = [], 0
        self._solve_waiting(waiting, p, log_z, status)
        return p, log_z, status

    def _solve_waiting(
        self,
        waiting: Sequence[tuple[_Pattern, NDArray[Any], NDArray[np.int32]]],
        p: NDArray[np.float64],
        log_z: NDArray[np.float64],
        status: NDArray[np.int8],
    ) -> None:
        """Solve cases of several patterns in one batch, and write the results in place."""
        graphs = [
            pattern.absorbed.with_log_values(tables)
            for pattern, _, states in waiting
            for tables in pattern.log_values(self.graph.log_values, states)
        ]
        results = iter(batch_results(graphs, self.backend, self.workers))
        for pattern, chosen, states in waiting:
            for number, observed in zip(chosen.tolist(), states, strict=True):
                result = next(results)
                if isinstance(result, ZeroPartitionError):
                    continue
                if not isinstance(result, Posterior):
                    raise _FailedCaseError(number, result)
                p[number] = pattern.marginals(result.marginals.flat, observed)
                log_z[number] = np.nan if result.log_z is None else result.log_z
                status[number] = _STATUSES.index(str(result.status))


class _FailedCaseError(Exception):
    """A case without an answer, by its number in the request."""

    def __init__(self, number: int, error: FactormodelsError) -> None:
        super().__init__(number)
        self.number, self.error = number, error


@dataclass(frozen=True, eq=False)
class _Pattern:
    """Rows that observe the same variables: the remaining graph, for any states.

    Attributes:
        absorbed: the graph without the observed variables; its log tables are ignored.
        kept: int64, entries of the graph's log tables that remain if every observed state is 0.
        strides: int64 (n_factors, n_observed), shift of a factor's entries per observed state.
        lengths: int64 (n_factors,), number of remaining entries of each factor.
        source: int64 (n_entries,), index of each reported probability in the marginals of
            `absorbed`; -1 if its variable is observed.
        starts: int64 (n_observed,), start of each observed variable's probabilities among the
            reported ones; -1 if it is not reported.
    """

    absorbed: FactorGraph
    kept: NDArray[np.int64]
    strides: csr_array
    lengths: NDArray[np.int64]
    source: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        graph: FactorGraph,
        positions: NDArray[np.int64],
        reported: NDArray[np.int64],
        strides: csr_array,
    ) -> _Pattern:
        """Return the pattern in which the variables of `positions` are observed."""
        evidence = np.full(graph.n_variables, UNOBSERVED, dtype=np.int64)
        evidence[positions] = 0
        unnamed = replace(graph, evidence=evidence, state_names=None)
        absorbed, kept = without_evidence(unnamed)
        observed = evidence == 0
        counts = graph.cardinalities[reported]
        before = np.concatenate([[0], np.cumsum(absorbed.cardinalities)])
        source = np.concatenate(
            [
                np.full(count, -1) if observed[v] else before[v] + np.arange(count)
                for v, count in zip(reported.tolist(), counts.tolist(), strict=True)
            ]
            or [counts]
        )
        first = dict(zip(reported.tolist(), (np.cumsum(counts) - counts).tolist(), strict=True))
        return cls(
            absorbed=absorbed,
            kept=kept,
            strides=strides[:, positions],
            lengths=np.diff(absorbed.table_starts),
            source=source,
            starts=np.array([first.get(v, -1) for v in positions.tolist()], dtype=np.int64),
        )

    def log_values(
        self, log_values: NDArray[np.float64], states: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the log tables of `absorbed` for each row, (n_rows, n_entries), read-only."""
        moved = (self.strides @ states.T.astype(np.int64)).T
        rows: NDArray[np.float64] = log_values[self.kept + np.repeat(moved, self.lengths, axis=1)]
        rows.flags.writeable = False
        return rows

    def marginals(
        self, flat: NDArray[np.float64], states: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the reported probabilities, with 1 for observed states."""
        result: NDArray[np.float64] = np.where(self.source < 0, 0.0, flat[self.source])
        known = self.starts >= 0
        result[self.starts[known] + states[known]] = 1.0
        return result
