"""What is measured: the project's backends and peers by other hands, as a table.

A backend is timed from factor graph to posterior. A peer is given its own model, built outside
the timing (`experiments.bench.peers`). A further algorithm is a further entry of `ALGORITHMS`; any
registered backend can be asked for by its name without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from experiments.bench import batches, peers
from experiments.bench.answers import Prepared, answer_of
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph


@dataclass(frozen=True)
class BenchAlgorithm:
    """An algorithm that can be measured; its functions can be pickled.

    Attributes:
        name: what it is asked for by, and what tables call it.
        summary: one line: what it is and what its time holds.
        prepare: takes a graph and returns what is timed.
        load: loads the libraries and compiles what is compiled once for all graphs.
        requires: libraries that it needs beside the core.
        against: the algorithm of ours that its time is divided by; "" for none.
        batch: whether `prepare` takes a sequence of graphs, all answered by one call.
        grace: seconds that it gets beyond a limit of time, which it keeps by itself.
    """

    name: str
    summary: str
    prepare: Callable[[Any], Prepared]
    load: Callable[[], Any]
    requires: tuple[str, ...] = ()
    against: str = ""
    batch: bool = False
    grace: float = 0.0

    @property
    def missing(self) -> tuple[str, ...]:
        """The libraries of this algorithm that are not installed."""
        return tuple(library for library in self.requires if find_spec(library) is None)


def prepare_backend(name: str, settings: Mapping[str, Any], graph: FactorGraph) -> Prepared:
    """A registered backend with settings, ready for a graph."""
    from experiments.study.backend_settings import build_backend

    built = build_backend(name, settings)
    return Prepared(partial(built.infer, graph), answer_of)


def load_backend(name: str, settings: Mapping[str, Any]) -> None:
    """Load a backend and compile its kernels."""
    from experiments.study.backend_settings import build_backend
    from inference.warm_up import warm_up

    warm_up(build_backend(name, settings))


def backend(
    backend_name: str, summary: str = "", name: str = "", against: str = "", **settings: Any
) -> BenchAlgorithm:
    """A registered backend with settings as an algorithm.

    Args:
        backend_name: its name in the registry.
        summary: one line; that of the registry if it is empty.
        name: what tables call it; the name of the backend if it is empty.
        against: the algorithm that its time is divided by.
        settings: settings of the backend.
    """
    from inference import entries

    entry = entries().get(backend_name)
    return BenchAlgorithm(
        name=name or backend_name,
        summary=summary or (entry.summary if entry else ""),
        prepare=partial(prepare_backend, backend_name, settings),
        load=partial(load_backend, backend_name, settings),
        requires=entry.requires if entry else (),
        against=against,
    )


def _batch(name: str) -> BenchAlgorithm:
    from inference import entries

    return BenchAlgorithm(
        f"{name}-batch",
        f"infer_batch with {name}: all graphs in one call",
        partial(batches.prepare_batch, name, {}),
        partial(batches.load_batch, name, {}),
        requires=entries()[name].requires,
        batch=True,
    )


def _table() -> dict[str, BenchAlgorithm]:
    ours = (
        backend("exact"),
        backend("auto"),
        backend("lbp"),
        backend("lbp", "our belief propagation, stopped as pgmax is", "lbp-1e-5", tolerance=1e-5),
        backend("lbp_jax"),
        backend("trw"),
        backend("wmb", "mini-buckets, i-bound 2: bounds from both sides", "wmb-2", i_bound=2),
        backend("wmb", "mini-buckets, i-bound 6: bounds from both sides", "wmb-6", i_bound=6),
        backend("wmb", "mini-buckets, i-bound 10: bounds from both sides", "wmb-10", i_bound=10),
        backend("wmb", "mini-buckets, i-bound 14: bounds from both sides", "wmb-14", i_bound=14),
        backend("cavi"),
        backend("gibbs"),
    )
    batched = (
        _batch("exact"),
        _batch("lbp"),
        _batch("lbp_jax"),
        BenchAlgorithm(
            "exact-each",
            "exact, one graph after another",
            partial(batches.prepare_each, partial(prepare_backend, "exact", {})),
            partial(load_backend, "exact", {}),
            against="exact-batch",
            batch=True,
        ),
        BenchAlgorithm(
            "pyagrum-each",
            "pyagrum, one graph after another",
            partial(batches.prepare_each, peers.pyagrum_junction_tree),
            peers.load_pyagrum,
            requires=("pyagrum",),
            against="exact-batch",
            batch=True,
        ),
        BenchAlgorithm(
            "pgmax-union",
            "pgmax on all graphs side by side as one",
            partial(batches.prepare_union, peers.pgmax_belief_propagation),
            peers.load_pgmax,
            requires=("pgmax", "jax"),
            against="lbp-batch",
            batch=True,
        ),
    )
    others = (
        BenchAlgorithm(
            "pyagrum",
            "pyAgrum's Shafer-Shenoy junction tree, model built before",
            peers.pyagrum_junction_tree,
            peers.load_pyagrum,
            requires=("pyagrum",),
            against="exact",
        ),
        BenchAlgorithm(
            "pgmpy",
            "pgmpy's junction tree, model built and triangulated before",
            peers.pgmpy_junction_tree,
            peers.load_pgmpy,
            requires=("pgmpy", "networkx"),
            against="exact",
        ),
        BenchAlgorithm(
            "pgmax",
            "PGMax's belief propagation, jitted, iterations chosen before; float32",
            peers.pgmax_belief_propagation,
            peers.load_pgmax,
            requires=("pgmax", "jax"),
            against="lbp-1e-5",
        ),
    )
    return {algorithm.name: algorithm for algorithm in (*ours, *others, *batched)}


ALGORITHMS: Mapping[str, BenchAlgorithm] = MappingProxyType(_table())
"""The algorithms that families name."""


def parse_algorithm(text: str) -> BenchAlgorithm:
    """The algorithm that a text names.

    It is a name of the table, a registered backend, or a registered backend with
    settings, as in "wmb:i_bound=8,gap=false"; "pgmpy:" is the backend and not the bare library.

    Raises:
        InputError: for an unknown name or setting.
    """
    from experiments.study.backend_settings import build_backend
    from factormodels.io.plain_yaml import parse_assignment
    from inference import entries

    if text in ALGORITHMS:
        return ALGORITHMS[text]
    name, colon, rest = text.partition(":")
    if name not in entries():
        # The table and the registry share names; each is listed once.
        names = ", ".join(dict.fromkeys([*ALGORITHMS, *entries()]))
        raise InputError(f"the algorithm {name!r} is unknown; use one of {names}")
    pairs = [parse_assignment(part, f"algorithm {text!r}") for part in rest.split(",") if part]
    settings = dict(pairs)
    # Built once to check the settings now, rather than in the middle of the measurement.
    if colon:
        build_backend(name, settings, f"algorithm {name!r}: {{}}".format)
    return backend(name, name=text, **settings)


def parse_algorithms(texts: Iterable[str]) -> tuple[BenchAlgorithm, ...]:
    """The algorithms that texts name; a text without settings may hold several names.

    Raises:
        InputError: for an unknown name or setting.
    """
    # A comma parts names, but within settings it parts those.
    names = [
        name for text in texts for name in ([text] if ":" in text else text.split(",")) if name
    ]
    return tuple(parse_algorithm(name) for name in dict.fromkeys(names))
