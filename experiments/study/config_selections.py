"""Selections of a study: which atoms of a response count in its measures, and what decides it."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from experiments.study.config_parts import STRICT, Count, Probability, Strength, known

EVERYTHING = "all"
"""The selection that keeps every atom."""

SELECTIONS = (EVERYTHING, "core")
"""Which atoms count: all, or those that Core selects."""

Path = Annotated[str, Field(min_length=1)]


def _name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]*", name):
        raise ValueError("names stand side by side in a column; use letters, digits, '.', '_', '-'")
    return name


@dataclass(frozen=True)
class SelectionChoice:
    """Which atoms of a response count in measures and tests; posteriors do not depend on it.

    Attributes:
        selection: `all`, or `core`: as many as inform, of which none entails another.
        name: what tables call it; that of the selection if absent.
        weights: what an atom is worth.
        rule: which atoms exclude each other: if either entails the other, or both.
        relations: who says which atom entails which.
        path: the file of recorded judgements (absent: those of the data), or the model's folder.
        domain: domain of the bleached claims of `informativeness`; that of each response if absent.
        templates: file of bleached claims by domain.
        share: least share of the selected atoms that their sentences entail.
        time_limit: seconds for one response; after them the best set found is taken and said so.
        branch_limit: branchings of the exact method.
    """

    __pydantic_config__: ClassVar = STRICT

    selection: Annotated[str, known(lambda: SELECTIONS, "selection")]
    name: Annotated[str, AfterValidator(_name)] = ""
    weights: Literal["uniform", "informativeness"] = "uniform"
    rule: Literal["either", "both"] = "either"
    relations: Literal["lexical", "recorded", "nli"] = "lexical"
    path: Path | None = None
    domain: str | None = None
    templates: Path | None = None
    share: Probability | None = None
    time_limit: Strength = 3.0
    branch_limit: Count = 5000

    def __post_init__(self) -> None:
        given = [
            one.name
            for one in fields(self)
            if one.name not in ("selection", "name") and getattr(self, one.name) != one.default
        ]
        if self.selection == EVERYTHING and given:
            raise ValueError(f"{given[0]} has no part in the selection 'all'; leave it out")
        if self.relations == "lexical" and self.path is not None:
            raise ValueError("lexical relations need no path; leave it out, or use recorded or nli")
        if self.relations == "nli" and self.path is None:
            raise ValueError("the relations 'nli' need the path of the model's folder; give it")

    @property
    def title(self) -> str:
        """What tables call it."""
        return self.name or self.selection
