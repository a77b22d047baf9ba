"""Many graphs in one call: batches of ours, and what a peer can do with the same graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.bench.answers import BenchAnswer, Prepared
from factormodels.factor_graph import FactorGraph


def prepare_batch(
    name: str, settings: Mapping[str, Any], graphs: Sequence[FactorGraph]
) -> Prepared:
    """`infer_batch` with a registered backend, ready for graphs."""
    from experiments.study.backend_settings import build_backend
    from inference import infer_batch

    built = build_backend(name, settings)

    def read(posteriors: Sequence[Any]) -> BenchAnswer:
        statuses = dict.fromkeys(str(posterior.status) for posterior in posteriors)
        worst = next((s for s in statuses if s == "not_converged"), next(iter(statuses)))
        flat = [posterior.marginals.flat for posterior in posteriors]
        return BenchAnswer(np.concatenate(flat), status=worst)

    return Prepared(partial(infer_batch, graphs, built), read)


def prepare_each(
    prepare: Callable[[FactorGraph], Prepared], graphs: Sequence[FactorGraph]
) -> Prepared:
    """An algorithm for one graph, run on graphs one after another, their models built."""
    prepared = [prepare(graph) for graph in graphs]

    def read(results: Sequence[Any]) -> BenchAnswer:
        answers = [one.read(result) for one, result in zip(prepared, results, strict=True)]
        parts = [np.zeros(0) if a.marginals is None else a.marginals for a in answers]
        statuses = dict.fromkeys(answer.status for answer in answers)
        worst = next((s for s in statuses if s == "not_converged"), next(iter(statuses)))
        return BenchAnswer(np.concatenate(parts), status=worst)

    return Prepared(lambda: [one.run() for one in prepared], read)


def prepare_union(
    prepare: Callable[[FactorGraph], Prepared], graphs: Sequence[FactorGraph]
) -> Prepared:
    """An algorithm for one graph, run on graphs side by side as one."""
    return prepare(union(graphs))


def load_batch(name: str, settings: Mapping[str, Any]) -> None:
    """Load a backend and compile what a batch runs, which a single graph may not."""
    from experiments.study.backend_settings import build_backend
    from factormodels.synthetic import fr2
    from inference import infer_batch

    # More than one graph, or the batch's own kernels would not be compiled.
    infer_batch([fr2(4, 2, 0.1, seed=seed) for seed in (0, 1)], build_backend(name, settings))


def union(graphs: Sequence[FactorGraph]) -> FactorGraph:
    """One graph that holds several, side by side; a variable is called "GRAPH/NAME"."""
    # Names stay as they are, so a single graph is answered as itself.
    if len(graphs) == 1:
        return graphs[0]

    def starts(name: str) -> Any:
        lengths = [np.diff(getattr(graph, name)) for graph in graphs]
        return np.concatenate([[0], np.cumsum(np.concatenate(lengths))])

    offsets = np.cumsum([0, *(graph.n_variables for graph in graphs)])
    # The last offset is the total and belongs to no graph, hence not strict.
    scopes = [graph.scope_variables + at for graph, at in zip(graphs, offsets, strict=False)]
    return FactorGraph(
        names=tuple(f"{at}/{name}" for at, graph in enumerate(graphs) for name in graph.names),
        cardinalities=np.concatenate([graph.cardinalities for graph in graphs]),
        scope_starts=starts("scope_starts"),
        scope_variables=np.concatenate(scopes),
        table_starts=starts("table_starts"),
        log_values=np.concatenate([graph.log_values for graph in graphs]),
        evidence=np.concatenate([graph.evidence for graph in graphs]),
    )
