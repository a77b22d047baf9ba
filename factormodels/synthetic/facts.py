"""Synthetic responses: atoms and contexts related as in FactReasoner's FR1, FR2 and FR3.

Source of the variants: FactReasoner, section 3.3. Contexts are divided evenly among the atoms that
they were retrieved for; further related pairs, and their kinds, are drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Any, Required, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from factormodels.claims import LEAST_PROBABILITY, Atom, Context, Relation, RelationKind
from factormodels.compile import CompiledFacts
from factormodels.encodings import DEFAULT_ENCODING, KIND_CODES
from factormodels.fact_graph import PARAMETERS_KEY, FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.synthetic.laws import Densities, FactLaws, Seed, choose
from factormodels.synthetic.structure import draw_structure
from factormodels.validation import validated_probability

DEFAULT_LAWS = FactLaws()

_MOST_NAMES_KEPT = 1000

_KINDS: tuple[RelationKind, ...] = tuple(KIND_CODES)


@dataclass(frozen=True, eq=False)
class FactArrays:
    """A response as flat arrays: the content of a `FactGraph`, for millions of variables.

    Variables are the n atoms, named "a1", "a2", ..., then the m contexts, "c1", "c2", ...

    Attributes:
        atom_priors: (n,) prior of each atom.
        context_priors: (m,) prior of each context.
        owners: (m,) index of the atom that each context was retrieved for.
        pairs: (e, 2) variables of each relation, source first.
        kinds: (e,) code of each relation, as in `encodings.KIND_CODES`.
        probabilities: (e,) probability of each relation.
    """

    atom_priors: NDArray[np.float64]
    context_priors: NDArray[np.float64]
    owners: NDArray[np.int64]
    pairs: NDArray[np.int64]
    kinds: NDArray[np.int64]
    probabilities: NDArray[np.float64]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, in order."""
        counts = len(self.atom_priors), len(self.context_priors)
        # The names of millions of variables are not kept.
        return _names(*counts) if sum(counts) < _MOST_NAMES_KEPT else _names.__wrapped__(*counts)

    def to_factor_graph(self, encoding: str = DEFAULT_ENCODING) -> FactorGraph:
        """Return the factor graph of `to_fact_graph`, without intermediate objects.

        Raises:
            InputError: if the encoding is unknown.
        """
        n_atoms, n_contexts = len(self.atom_priors), len(self.context_priors)
        facts = CompiledFacts(
            names=self.names,
            is_atom=np.arange(n_atoms + n_contexts) < n_atoms,
            priors=np.concatenate([self.atom_priors, self.context_priors]),
            pairs=self.pairs,
            kinds=self.kinds,
            probabilities=self.probabilities,
            relation_numbers=np.arange(len(self.pairs)),
        )
        return facts.to_factor_graph(encoding=encoding)

    def to_fact_graph(
        self,
        id: str = "synthetic",
        *,
        labels: Sequence[bool | None] | None = None,
        metadata: Mapping[str, Any] | None = None,
        checked: bool = True,
    ) -> FactGraph:
        """Return the response as a fact graph without texts.

        Args:
            id: name of the response.
            labels: the truth of each atom; None if unknown.
            metadata: further facts about the response.
            checked: whether to validate the arrays as `FactGraph` does; arrays drawn from
                distributions of this package are valid by construction.

        Raises:
            InputError: if they are validated and are not a fact graph.
        """
        names = self.names
        n = len(self.atom_priors)
        atoms = {
            "id": names[:n],
            "prior": self.atom_priors.tolist(),
            "label": [None] * n if labels is None else labels,
        }
        contexts = {
            "id": names[n:],
            "prior": self.context_priors.tolist(),
            "retrieved_for": [(names[owner],) for owner in self.owners.tolist()],
        }
        relations = {
            "source": [names[end] for end in self.pairs[:, 0].tolist()],
            "target": [names[end] for end in self.pairs[:, 1].tolist()],
            "kind": [_KINDS[code] for code in self.kinds.tolist()],
            "probability": self.probabilities.tolist(),
        }
        facts = dict(metadata or {})
        if (self.probabilities < LEAST_PROBABILITY).any():
            # The truth is drawn with these probabilities; they are not statements of a model.
            facts[PARAMETERS_KEY] = True
        if not checked:
            return FactGraph.unchecked(id, atoms, contexts, relations, metadata=facts)
        return FactGraph(
            id=id,
            atoms=tuple(Atom(**row) for row in _rows(atoms)),
            contexts=tuple(Context(**row) for row in _rows(contexts)),
            relations=tuple(Relation(**row) for row in _rows(relations)),
            metadata=facts,
        )


def draw_facts(
    n_atoms: int,
    contexts_per_atom: int | Sequence[int],
    density: float | Densities = 0.0,
    context_density: float | Densities = 0.0,
    *,
    always_related: bool = True,
    reach: int | None = None,
    seed: Seed,
    laws: FactLaws = DEFAULT_LAWS,
) -> FactArrays:
    """Draw a response.

    The structure, the kinds and the numbers come from separate random streams: with the same seed,
    other laws change the numbers and leave the structure and the kinds unchanged.

    Args:
        n_atoms: number of atoms.
        contexts_per_atom: contexts retrieved for each atom, or one number per atom.
        density: probability that a context is related to an atom that it was not retrieved for: in
            total (kinds then follow `laws.shares`), or for each kind.
        context_density: the same for two contexts.
        always_related: whether a context is always related to the atom it was retrieved for, by a
            kind in the proportions of `density` (or `laws.shares` if that is 0); if False, that
            pair is treated like any other.
        reach: maximum distance, in the order of atoms, between the atoms of related pairs, where a
            context has the position of its own atom; None: no limit.
        seed: seed of the random numbers, or a generator.
        laws: distributions of the priors, the kinds and the probabilities.

    Raises:
        InputError: if a number is out of range.
    """
    evidence_densities = _densities(density, laws, "density")
    context_densities = _densities(context_density, laws, "context_density")
    shape, kind, strength = np.random.default_rng(seed).spawn(3)
    structure = draw_structure(
        shape,
        n_atoms,
        contexts_per_atom,
        density=evidence_densities.total,
        context_density=context_densities.total,
        always_related=always_related,
        reach=reach,
    )
    contexts = len(structure.owners)
    kinds = [
        _draw_kinds(kind, evidence_densities, laws, len(structure.evidence)),
        _draw_kinds(kind, context_densities, laws, len(structure.context_pairs)),
    ]
    all_kinds = np.concatenate(kinds)
    return FactArrays(
        atom_priors=laws.atom_prior.sample(strength, n_atoms),
        context_priors=laws.context_prior.sample(strength, contexts),
        owners=structure.owners,
        pairs=structure.variable_pairs(),
        kinds=all_kinds,
        probabilities=laws.sample_probabilities(strength, all_kinds),
    )


class DrawingSettings(TypedDict, total=False):
    """Keyword arguments of `draw_facts`."""

    always_related: bool
    reach: int | None
    seed: Required[Seed]
    laws: FactLaws


def fr1_forest(
    n_atoms: int,
    contexts_per_atom: int | Sequence[int],
    *,
    encoding: str = DEFAULT_ENCODING,
    **settings: Unpack[DrawingSettings],
) -> FactorGraph:
    """Return an FR1 graph: every context is related to its own atom only, so it is a forest.

    Arguments are those of `draw_facts`; `encoding` names the encoding of relations.
    """
    return draw_facts(n_atoms, contexts_per_atom, **settings).to_factor_graph(encoding)


def fr2(
    n_atoms: int,
    contexts_per_atom: int | Sequence[int],
    density: float | Densities,
    *,
    encoding: str = DEFAULT_ENCODING,
    **settings: Unpack[DrawingSettings],
) -> FactorGraph:
    """Return an FR2 graph: any context may be related to any atom; arguments as in `fr1_forest`."""
    return draw_facts(n_atoms, contexts_per_atom, density, **settings).to_factor_graph(encoding)


def fr3(
    n_atoms: int,
    contexts_per_atom: int | Sequence[int],
    density: float | Densities,
    context_density: float | Densities,
    *,
    encoding: str = DEFAULT_ENCODING,
    **settings: Unpack[DrawingSettings],
) -> FactorGraph:
    """Return an FR3 graph: contexts may also be related; arguments as in `fr1_forest`."""
    facts = draw_facts(n_atoms, contexts_per_atom, density, context_density, **settings)
    return facts.to_factor_graph(encoding)


def fact_graph(
    n_atoms: int,
    contexts_per_atom: int | Sequence[int],
    density: float | Densities = 0.0,
    context_density: float | Densities = 0.0,
    **settings: Unpack[DrawingSettings],
) -> FactGraph:
    """Return the fact graph whose factor graph `fr1_forest`, `fr2` or `fr3` returns.

    Arguments are those of `draw_facts`.
    """
    facts = draw_facts(n_atoms, contexts_per_atom, density, context_density, **settings)
    return facts.to_fact_graph()


@lru_cache(maxsize=256)
def _names(n_atoms: int, n_contexts: int) -> tuple[str, ...]:
    """Return the names of the variables; many responses have the same numbers of them."""
    atoms = [f"a{number}" for number in range(1, n_atoms + 1)]
    return (*atoms, *[f"c{number}" for number in range(1, n_contexts + 1)])


def _rows(columns: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _densities(density: float | Densities, laws: FactLaws, what: str) -> Densities:
    if isinstance(density, Densities):
        return density
    total = validated_probability(density, what)
    scale = total / laws.shares.total
    return Densities(*(scale * share for share in astuple(laws.shares)))


def _draw_kinds(
    generator: np.random.Generator, densities: Densities, laws: FactLaws, size: int
) -> NDArray[np.int64]:
    shares = densities if densities.total > 0.0 else laws.shares
    return choose(generator, astuple(shares), size)
