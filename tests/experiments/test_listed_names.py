"""Sentences that list the names of a registry list all of them."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import pytest

from calibration.recalibration import RECALIBRATORS
from experiments.asking.searchers import GIVEN, RETRIEVERS, EvidenceSettings
from experiments.evaluators.assess import AssessSettings
from experiments.findings.venues import DEFAULT_VENUE, VENUES
from experiments.methods.score import ScoreSettings
from experiments.settings import Settings, meanings_of
from factormodels.extraction.asking.table import ASSESSORS

DOCS = Path(__file__).parents[2] / "docs"


def option(kind: type[Settings], name: str) -> str:
    """Return the help of a field."""
    return meanings_of(kind)[name]


def page(name: str) -> str:
    """Return a page of the how-to guides."""
    return (DOCS / "how-to" / name).read_text(encoding="utf-8")


LISTS: dict[str, tuple[str, Collection[str]]] = {
    # The page is about one venue, acl, and the default is no other venue.
    "docs/how-to/acl-table.md": (page("acl-table.md"), VENUES.keys() - {DEFAULT_VENUE}),
    "docs/how-to/assessors.md": (page("assessors.md"), ASSESSORS),
    "the help of assess --assessor": (option(AssessSettings, "assessors"), ASSESSORS),
    "the help of assess --retriever": (
        option(EvidenceSettings, "retriever"),
        {GIVEN, *RETRIEVERS},
    ),
    "the help of score --recalibrate": (option(ScoreSettings, "recalibrate"), RECALIBRATORS),
}
"""Texts that list names, and the names."""


@pytest.mark.parametrize("where", LISTS)
def test_a_list_of_names_lists_all(where: str) -> None:
    text, names = LISTS[where]
    # On the command line - may replace _.
    words = {word.replace("-", "_") for word in re.findall(r"[\w-]+", text)}
    missing = sorted(name for name in names if name.replace("-", "_") not in words)
    assert not missing, f"{where} does not name {', '.join(missing)}; add it to the list"
