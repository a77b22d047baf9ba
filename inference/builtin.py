"""The backends that come with the package."""

from __future__ import annotations

from inference.registry import Entry

ENTRIES = (
    Entry(
        name="auto",
        target="inference.auto:Auto",
        summary="exact where that fits a budget, otherwise the tightest bounds within it",
        log_z_kind="upper",
        limits="any graph; stats say which algorithm was chosen and why",
    ),
    Entry(
        name="exact",
        target="inference.exact:Exact",
        summary="variable elimination over a bucket tree: every marginal and log Z, exact",
        log_z_kind="exact",
        limits="induced width to about 25 (binary); refuses what does not fit",
    ),
    Entry(
        name="lbp",
        target="inference.lbp:LoopyBeliefPropagation",
        summary="loopy belief propagation: exact on forests, an estimate elsewhere",
        log_z_kind="bethe",
    ),
    Entry(
        name="wmb",
        target="inference.wmb:WeightedMiniBuckets",
        summary="weighted mini-buckets: certified bounds on log Z from both sides, anytime",
        log_z_kind="upper",
        limits="any graph; tables of i_bound + 1 variables; exact at the induced width",
    ),
    Entry(
        name="enumeration",
        target="inference.enumeration:Enumeration",
        summary="sum over every assignment: the oracle that the others are held against",
        log_z_kind="exact",
        limits="to about 20 binary variables",
    ),
    Entry(
        name="pgmpy",
        target="inference.pgmpy_backend:PgmpyVariableElimination",
        summary="pgmpy's VariableElimination, a reference by other hands: exact",
        log_z_kind="exact",
        limits="slow: one query per variable; induced width to about 24 (binary), 10^4 variables",
        requires=("pgmpy",),
        extra="pgmpy",
    ),
)
