"""The data of a study: responses by dataset, with a hash of the used responses."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.columns.cell_names import RECORDED
from experiments.study.network_files import is_network
from experiments.study.packed_graphs import HELD, PART, KnownClaims, PackedPart, Responses
from factormodels.conventions import DEFAULT, GraphConventions
from factormodels.errors import FactormodelsError, InputError, nearest, unknown_name
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant as variant_of

if TYPE_CHECKING:
    from experiments.study.config import DatasetChoice, Subset
    from experiments.study.reading import LoadedStudy

_MANY_BYTES = 4 * 2**20
"""Bytes that can be read during the second or so that a process takes to start."""

Related = Mapping[tuple[str, str], FactGraph | str]
"""By relation model and variant, a response with new relations, or the reason for missing ones."""


@dataclass(frozen=True)
class StudyData:
    """The responses of one dataset of a study.

    Attributes:
        name: name in the study.
        graphs: one recorded fact graph per response, packed if there are many.
        sha256: hash of the graphs' JSON.
        related: one entry per response, if a study finds new relations.
        known_claims: the columns of their claims, if already known.
    """

    name: str
    graphs: Sequence[FactGraph]
    sha256: str
    related: tuple[Related, ...] = ()
    known_claims: KnownClaims | None = None

    @cached_property
    def claims(self) -> KnownClaims:
        """The columns of their claims."""
        return self.known_claims or KnownClaims.of(self.graphs)

    @property
    def n_atoms(self) -> int:
        """Number of atoms of all responses."""
        return int(self.claims.n_atoms.sum())

    @property
    def n_labeled(self) -> int:
        """Number of atoms with a human label."""
        return len(self.claims.label) - int(self.claims.label.null_count)


class NoRelationsError(FactormodelsError):
    """A response without any relation from a relation model; the message has the reason."""


def related_graph(
    graph: FactGraph,
    related: Related,
    relation_model: str,
    variant: str,
    conventions: GraphConventions = DEFAULT,
) -> FactGraph:
    """A view of a response, with the relations of a relation model of the study.

    Raises:
        NoRelationsError: if there are none because answers are missing.
    """
    if relation_model != RECORDED:
        outcome = related[relation_model, variant]
        if isinstance(outcome, str):
            raise NoRelationsError(outcome)
        graph = outcome
    return variant_of(graph, variant, conventions)


Each = Callable[[Callable[[Any], PackedPart], Iterable[Any]], Iterable[PackedPart]]
"""Function like `map` that may use several processes."""


def load_data(loaded: LoadedStudy, each: Each | None = None) -> tuple[StudyData, ...]:
    """The datasets of a study, in its order.

    Args:
        loaded: the study.
        each: makes the parts of large datasets in parallel; None for no parallelism.

    Raises:
        InputError: for an unknown dataset or option, an invalid file, no responses, or repeated
            ids.
    """
    return tuple(
        load_dataset(choice, loaded.folder, loaded.blame(f"datasets[{position}]"), each)
        for position, choice in enumerate(loaded.study.datasets)
    )


def load_dataset(
    choice: DatasetChoice, folder: Path, where: str, each: Each | None = None
) -> StudyData:
    """The responses of one dataset.

    Args:
        choice: the dataset.
        folder: base folder of its relative path.
        where: beginning of errors.
        each: as in `load_data`.

    Raises:
        InputError: for an unknown dataset or option, an invalid file, no responses, or repeated
            ids.
    """
    try:
        all_ = None if each is None else _by_parts(choice, folder, each)
        responses = all_ or Responses.of(_graphs(choice, folder))
        kept = _subset(responses.graphs, choice.subset)[: choice.limit]
        if len(kept) < len(responses.graphs):
            responses = Responses.of(map(responses.graphs.__getitem__, kept))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if not responses.graphs:
        raise InputError(f"{where}: {choice.title!r} contains no response; name other data")
    ids = Counter(() if responses.distinct else (graph.id for graph in responses.graphs))
    if repeated := [id for id, count in ids.items() if count > 1]:
        raise InputError(
            f"{where}: {choice.title!r} has two responses {repeated[0]!r}; give each its own id"
        )
    return StudyData(
        choice.title, responses.graphs, responses.sha256, known_claims=responses.claims
    )


def _by_parts(choice: DatasetChoice, folder: Path, each: Each) -> Responses | None:
    """The unfiltered responses of a dataset, if it is large and valid; otherwise None.

    Errors of a part are raised when the dataset is read as a whole.
    """
    try:
        cut = _cut(choice, folder)
        responses = None if cut is None else Responses.of_parts(each(*cut))
    except InputError:
        return None
    return responses if responses is not None and responses.distinct else None


def _cut(
    choice: DatasetChoice, folder: Path
) -> tuple[Callable[[Any], PackedPart], Iterable[Any]] | None:
    """Function that makes the parts of a large dataset, with the arguments of each; None without
    parts."""
    if choice.synthetic is not None:
        first, last = choice.synthetic.get("first", 1), choice.synthetic.get("n_responses")
        if not (isinstance(first, int) and isinstance(last, int)) or last - first < HELD:
            return None
        starts = range(first, last + 1, PART)
        numbers = (range(start, min(start + PART, last + 1)) for start in starts)
        return partial(_synthetic_part, choice.synthetic), numbers
    path = folder / choice.path if choice.path is not None else None
    if path is None or not path.is_file() or path.stat().st_size < _MANY_BYTES:
        return None
    from factormodels.io.reading import parts_of_lines

    lines = parts_of_lines(path, PART)
    return None if lines is None else (partial(_read_part, path), lines)


def _synthetic_part(arguments: Mapping[str, Any], numbers: range) -> PackedPart:
    return PackedPart.of(tuple(_synthetic(arguments, numbers)))


def _read_part(path: Path, part: tuple[int, Sequence[str]]) -> PackedPart:
    from factormodels.io.reading import graphs_of_lines

    return PackedPart.of(graphs_of_lines(*part, path))


def _graphs(choice: DatasetChoice, folder: Path) -> Iterable[FactGraph]:
    """The unfiltered responses of a choice."""
    if choice.synthetic is not None:
        return _synthetic(choice.synthetic)
    if choice.path is not None:
        from factormodels.io import read_each

        path = folder / choice.path
        if is_network(path):
            raise InputError(
                f"{path}: this is a network, and fact graphs are needed here; use `factormodels "
                "infer` for a network, or a study whose datasets are all networks"
            )
        return read_each(path)
    from factormodels import datasets

    return datasets.load(choice.name, **choice.options).graphs


def _synthetic(arguments: Mapping[str, Any], numbers: range | None = None) -> Iterable[FactGraph]:
    """Generated responses; a distribution is a number, or the two ends of an interval.

    Args:
        arguments: arguments as in a study.
        numbers: numbers of the responses, from 1; None for the numbers of the arguments.
    """
    from factormodels.synthetic import Constant, Uniform, each_labeled_response

    parameters = inspect.signature(each_labeled_response).parameters
    options: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in parameters:
            near = nearest(name, parameters)
            hint = f"did you mean {near!r}?" if near else f"use some of {', '.join(parameters)}"
            raise InputError(f"synthetic.{name}: there is no such key; {hint}")
        if name in ("strength", "atom_prior", "context_prior"):
            ends = value if isinstance(value, list) else [value]
            if len(ends) not in (1, 2) or not all(isinstance(end, int | float) for end in ends):
                raise InputError(f"synthetic.{name}: {value!r} is neither a number nor [low, high]")
            value = Constant(*ends) if len(ends) == 1 else Uniform(*ends)
        options[name] = tuple(value) if name == "n_atoms" and isinstance(value, list) else value
    missing = [
        name
        for name, parameter in parameters.items()
        if parameter.default is inspect.Parameter.empty and name not in options and name != "seed"
    ]
    if missing:
        raise InputError(f"the key 'synthetic.{missing[0]}' is missing; give it")
    if numbers is not None:
        options |= {"first": numbers.start, "n_responses": numbers.stop - 1}
    return _drawn(lambda: each_labeled_response(**{"seed": 0, **options}))


def _drawn(draw: Callable[[], Iterable[FactGraph]]) -> Iterator[FactGraph]:
    """Yield generated responses; any error from an argument is the user's mistake."""
    try:
        yield from draw()
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise InputError(f"synthetic: {error}") from None
        raise InputError(f"synthetic: an argument does not fit ({error}); correct it") from None


def _subset(graphs: Sequence[FactGraph], subset: Subset) -> Sequence[int]:
    """Indices of the responses that a subset keeps, in the order of the data."""
    from experiments.study.config import Subset

    if subset == Subset():
        return range(len(graphs))
    for name, wanted, present in (
        ("responses", subset.responses, [graph.id for graph in graphs]),
        ("topics", subset.topics, [graph.topic for graph in graphs]),
    ):
        of_data = dict.fromkeys(present)
        for value in wanted or ():
            if value not in of_data:
                raise InputError(_absent(f"subset.{name}: {value!r}", value, list(of_data)))
    kept = [
        position
        for position, graph in enumerate(graphs)
        if (subset.responses is None or graph.id in subset.responses)
        and (subset.topics is None or graph.topic in subset.topics)
        and (not subset.labeled or any(atom.label is not None for atom in graph.atoms))
    ]
    if subset.sample is None:
        return kept
    if subset.sample > len(kept):
        raise InputError(
            f"subset.sample: {subset.sample} responses were requested and there are {len(kept)}; "
            "request fewer"
        )
    import numpy as np

    # Draw without replacement, then restore the order of the data.
    drawn = np.random.default_rng(subset.seed).choice(len(kept), subset.sample, replace=False)
    return [kept[index] for index in sorted(drawn.tolist())]


def _absent(subject: str, name: str, present: list[str]) -> str:
    if len(present) <= 20:
        return unknown_name(subject, name, present)
    # Too many to list, so show the nearest name only.
    near = nearest(name, present)
    return f"{subject} is unknown" + (f"; did you mean {near!r}?" if near else "; check the data")
