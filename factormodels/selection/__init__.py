"""Selection of the subclaims of a response that count (Core), before they are assessed.

Import the main functions:

    from factormodels.selection import Core, select, Subclaim
"""

from __future__ import annotations

from factormodels.selection.bleached import (
    bleached_claims,
    domains,
    fill_templates,
    read_templates,
    templates_of,
)
from factormodels.selection.entailment import CachedRelations, Entailments, pairwise_entailments
from factormodels.selection.expected import (
    ExpectedSelection,
    expected_weight,
    redundancy,
    select_expected,
)
from factormodels.selection.program import (
    Program,
    Solution,
    SolverSettings,
    conflicts_of,
    solve,
)
from factormodels.selection.stage import (
    Core,
    Selection,
    adjusted_precision,
    most_entailments,
    restricted,
    select,
    select_atoms,
    selecting,
)
from factormodels.selection.subclaims import Subclaim, subclaims_of
from factormodels.selection.weights import (
    Informativeness,
    Relevance,
    UnjudgedClaimError,
    Weighting,
    uniform,
)

__all__ = [
    "CachedRelations",
    "Core",
    "Entailments",
    "ExpectedSelection",
    "Informativeness",
    "Program",
    "Relevance",
    "Selection",
    "Solution",
    "SolverSettings",
    "Subclaim",
    "UnjudgedClaimError",
    "Weighting",
    "adjusted_precision",
    "bleached_claims",
    "conflicts_of",
    "domains",
    "expected_weight",
    "fill_templates",
    "most_entailments",
    "pairwise_entailments",
    "read_templates",
    "redundancy",
    "restricted",
    "select",
    "select_atoms",
    "select_expected",
    "selecting",
    "solve",
    "subclaims_of",
    "templates_of",
    "uniform",
]
