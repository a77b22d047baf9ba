"""Datasets that come with the package, each with a card that documents its source.

Load a dataset:

    from factormodels import datasets
    datasets.load("factcheck-bench").graphs
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from types import MappingProxyType
from typing import Any

from factormodels.errors import InputError, unknown_name
from factormodels.fact_graph import FactGraph
from factormodels.io.relation_record import RelationRecord, parse_relation_record

__all__ = [
    "Card",
    "Dataset",
    "card",
    "load",
    "names",
    "relation_record",
    "relation_records",
    "with_claim_relations",
]

# Every dataset by name, with the options of its loader.
_OPTIONS_BY_DATASET: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "factcheck-bench": ("stances",),
        **dict.fromkeys(("factscore", "selfcheck", "worked-examples", "demonstration"), ()),
        "at-odds": (),
    }
)
_RELATED = ("factscore", "selfcheck")
"""Datasets with embedded relations between their claims."""


@dataclass(frozen=True)
class Card:
    """Description and source of a dataset.

    Attributes:
        name: name for `load`.
        title: title in words.
        description: content and purpose.
        source: source of the data.
        license: license of the data.
        counts: numbers of responses, claims and so on, by name.
        notes: limitations that users should know.
    """

    name: str
    title: str
    description: str
    source: str
    license: str
    counts: Mapping[str, int]
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", MappingProxyType(dict(self.counts)))
        object.__setattr__(self, "notes", tuple(self.notes))


@dataclass(frozen=True)
class Dataset:
    """A loaded dataset.

    Attributes:
        name: name for `load`.
        card: its card.
        graphs: one fact graph per response, in the order of the file.
        sha256: hexadecimal SHA-256 of the data file's bytes.
    """

    name: str
    card: Card
    graphs: tuple[FactGraph, ...]
    sha256: str


def names() -> tuple[str, ...]:
    """Return the names of the datasets."""
    return tuple(_OPTIONS_BY_DATASET)


def card(name: str) -> Card:
    """Return the card of a dataset without loading the data.

    Raises:
        InputError: if no dataset has that name.
    """
    _check(name, {})
    return Card(**json.loads(_content(name, ".card.json")))


def load(name: str, **options: Any) -> Dataset:
    """Load a dataset: its fact graphs, its card and the hash of its file.

    Args:
        name: one of `names()`.
        options: for "factcheck-bench": `stances`, the relations of stances that differ from the
            default (see `factormodels.io.formats.stances`). Other datasets have no options.

    Raises:
        InputError: for an unknown name or option, or an invalid value of an option.
    """
    from factormodels.io.json import decode_lines

    _check(name, options)
    content = _content(name, ".jsonl")
    records = decode_lines(content.decode("utf-8"), f"dataset {name}")
    if name == "factcheck-bench":
        from factormodels.io.formats.factcheck_bench import graph_from_record

        graphs = tuple(graph_from_record(obj, options.get("stances")) for _, obj in records)
    elif name == "factscore":
        from factormodels.io.formats.factscore_derived import graph_from_object

        graphs = tuple(graph_from_object(obj, checked=False) for _, obj in records)
    else:
        from factormodels.io.fact_graph_json import parse_fact_graph

        graphs = tuple(parse_fact_graph(obj, f"dataset {name}", line) for line, obj in records)
    return Dataset(name, card(name), graphs, hashlib.sha256(content).hexdigest())


def with_claim_relations(dataset: Dataset) -> tuple[FactGraph, ...]:
    """Return a dataset's responses with the lexical model's relations between nearby claims.

    The claims of a pair are at most three claims apart. The relations were computed from the texts,
    which are not embedded. Neutral ones are left out.

    Raises:
        InputError: for a dataset other than factscore and selfcheck.
    """
    from factormodels.claims import Relation
    from factormodels.encodings import KIND_CODES
    from factormodels.io.json import decode_lines

    if dataset.name not in _RELATED:
        raise InputError(
            f"relations between the claims of {dataset.name!r} are not embedded; take one of "
            f"{', '.join(_RELATED)}"
        )
    content = _content(dataset.name, ".claims.jsonl").decode("utf-8")
    by_response: dict[str, list[list[Any]]] = {}
    for _, obj in decode_lines(content, f"claims of {dataset.name}"):
        record: Any = obj
        by_response[record["id"]] = record["relations"]
    kinds = {code: kind for kind, code in KIND_CODES.items()}
    return tuple(
        replace(
            graph,
            relations=(
                *graph.relations,
                *(
                    Relation(graph.atoms[first].id, graph.atoms[second].id, kinds[code], p)
                    for first, second, code, p in by_response.get(graph.id, ())
                ),
            ),
        )
        for graph in dataset.graphs
    )


_RECORD = ".relations.jsonl"


def relation_records() -> tuple[str, ...]:
    """Return the names of the embedded records of models' answers about relations.

    A name is DATASET.MODEL, or DATASET.MODEL.prompts for answers to several prompts.
    """
    files = resources.files(__name__).joinpath("data").iterdir()
    return tuple(
        sorted(file.name.removesuffix(_RECORD) for file in files if file.name.endswith(_RECORD))
    )


def relation_record(name: str) -> RelationRecord:
    """Return recorded answers of a model about the relations of a dataset.

    Raises:
        InputError: if no record has that name.
    """
    if name not in relation_records():
        raise InputError(unknown_name(f"the record {name!r}", name, relation_records()))
    file = resources.files(__name__).joinpath("data", name + _RECORD)
    return parse_relation_record(file.read_text(encoding="utf-8"), f"record {name}")


def _check(name: str, options: Mapping[str, Any]) -> None:
    if name not in _OPTIONS_BY_DATASET:
        raise InputError(unknown_name(f"the dataset {name!r}", name, _OPTIONS_BY_DATASET))
    for option in options:
        if option not in _OPTIONS_BY_DATASET[name]:
            known = ", ".join(_OPTIONS_BY_DATASET[name]) or "none"
            raise InputError(
                f"the option {option!r} of the dataset {name!r} is unknown; its options: {known}"
            )


def _content(name: str, suffix: str) -> bytes:
    file = name.replace("-", "_") + suffix
    return resources.files(__name__).joinpath("data", file).read_bytes()
