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
        name="cavi",
        target="inference.cavi:CoordinateAscent",
        summary="mean field by coordinate ascent: a certified lower bound on log Z",
        log_z_kind="elbo",
        limits="any graph; marginals are overconfident where variables depend on each other",
    ),
    Entry(
        name="gibbs",
        target="inference.gibbs:BlockGibbs",
        summary="Gibbs sampling of forests of variables: marginals with standard errors",
        log_z_kind="none",
        limits="any graph; exact on forests; status says whether the chains agree",
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
    Entry(
        name="mean_field",
        target="inference.pyro_vi:MeanField",
        summary="mean field in Pyro, enumerated exactly: the bound of 'cavi' by gradients",
        log_z_kind="elbo",
        limits="some thousand factors; slower than 'cavi'",
        requires=("pyro", "torch"),
        extra="pyro",
    ),
    Entry(
        name="structured",
        target="inference.pyro_vi:Structured",
        summary="variational inference in Pyro with a spanning forest: a tighter lower bound",
        log_z_kind="elbo",
        limits="some thousand factors; exact on forests",
        requires=("pyro", "torch"),
        extra="pyro",
    ),
    Entry(
        name="numpyro",
        target="inference.numpyro_backend:NumPyroGibbs",
        summary="NumPyro's DiscreteGibbs, a reference by other hands: single-site sampling",
        log_z_kind="none",
        limits="some hundred variables: a sweep evaluates every factor for every variable",
        requires=("numpyro", "jax"),
        extra="jax",
    ),
)
