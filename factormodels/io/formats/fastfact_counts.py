"""Counts of annotations of FaStfact-Bench: annotation_stats.json of its release.

Source: Wan et al. 2025; Yingjia-Wan/FaStfact, FaStfact-Bench/FastFact_annotation. The file has
counts of the annotators' actions on the claims of 400 responses, in total and by model and
benchmark, but not the claims. `fastfact_annotations` reads the claims themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic import Field

from factormodels.errors import InputError
from factormodels.io.formats.record import ToolRecord, record_of
from factormodels.io.source.places import location
from factormodels.io.tables.records import Source

KEYS = ("overall", "grouped")
"""Keys that identify such a file."""


class _Group(ToolRecord):
    count: int
    annotator_labels: dict[str, int]
    operations: dict[str, int]
    agreements: dict[str, int] = Field(default_factory=dict)
    token_stats: dict[str, float] = Field(default_factory=dict)


class _Grouped(ToolRecord):
    by_model: dict[str, _Group] = Field(default_factory=dict)
    by_prompt_source: dict[str, _Group] = Field(default_factory=dict)


class _Counts(ToolRecord):
    overall: _Group
    grouped: _Grouped


@dataclass(frozen=True)
class AnnotationCounts:
    """Counts of annotators' actions on the claims of some responses.

    Attributes:
        n_responses: number of the responses.
        labels: claims by annotators' label, including claims that they removed.
        operations: claims that they left unchanged, revised, removed or added, keyed by these
            words.
        agreements: verdicts of the pipeline that they agreed with, corrected or left pending.
        tokens: mean tokens of a response by stage of the pipeline.
    """

    n_responses: int
    labels: Mapping[str, int]
    operations: Mapping[str, int]
    agreements: Mapping[str, int]
    tokens: Mapping[str, float]


@dataclass(frozen=True)
class GroupedCounts:
    """Counts of all responses and of parts of them.

    Attributes:
        overall: counts of all responses.
        by_benchmark: counts by the benchmark that the question is from.
        by_model: counts by the model that answered.
    """

    overall: AnnotationCounts
    by_benchmark: Mapping[str, AnnotationCounts]
    by_model: Mapping[str, AnnotationCounts]


def recognize(record: object) -> bool:
    """Return whether a JSON value has counts of annotations."""
    return isinstance(record, dict) and all(isinstance(record.get(key), dict) for key in KEYS)


def read(value: Any, source: Source) -> GroupedCounts:
    """Return the counts in a file.

    Args:
        value: the JSON value.
        source: its file, for errors.

    Raises:
        InputError: if the value is malformed, or a group has no responses.
    """
    stated = record_of(_Counts, value, source, None)
    grouped = {
        "by_prompt_source": stated.grouped.by_prompt_source,
        "by_model": stated.grouped.by_model,
    }
    groups = {"overall": stated.overall} | {
        f"grouped.{by}.{name}": group for by, of in grouped.items() for name, group in of.items()
    }
    for key, group in groups.items():
        numbers = [group.count, *group.annotator_labels.values(), *group.operations.values()]
        if group.count < 1 or min(numbers) < 0:
            raise InputError(
                f"{location(source, None)}: $.{key} counts {group.count} responses, or a number "
                "below 0; give the counts of responses that were annotated"
            )
    return GroupedCounts(
        _counts(stated.overall),
        *(
            MappingProxyType({name: _counts(group) for name, group in of.items()})
            for of in grouped.values()
        ),
    )


def _counts(group: _Group) -> AnnotationCounts:
    return AnnotationCounts(
        group.count,
        group.annotator_labels,
        group.operations,
        group.agreements,
        group.token_stats,
    )
