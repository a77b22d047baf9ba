# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 7. Bounds: what is certain where exact inference is not
#
# **Question.** Where the exact posterior is out of reach, what can be said about $\log Z$ and about
# single probabilities that holds for certain, and when does the Bethe estimate count as a bound?
#
# **Argument.** Hölder's inequality splits a sum of products: for weights $w_k > 0$ with $\sum_k w_k
# = 1$,
#
# $$\sum_x \prod_k f_k(x) \;\le\; \prod_k \Big(\sum_x f_k(x)^{1/w_k}\Big)^{w_k},$$
#
# and it turns round if exactly one weight is positive. Weighted mini-buckets (WMB) apply it
# wherever a table would exceed $i + 1$ variables, so they bound $\log Z$ from both sides and are
# exact once $i$ reaches the induced width. Tree-reweighted belief propagation (TRW) bounds it from
# above by a mean of spanning forests, mean field from below.
#
# The Bethe $\log Z$ of belief propagation is an estimate. It is a *lower bound* on graphs of binary
# pairs in which every cycle has an even number of negative pairs (Ruozzi 2012): no cycle is
# *frustrated*. Entailments and equivalences are positive pairs, contradictions negative ones, so a
# response whose evidence conflicts has frustrated cycles.
#
# Bounds on $\log Z$ give bounds on probabilities: clamp a claim to true and to false, bound both
# partition functions from both sides, and $P(a) \in \big[\tfrac{L_1}{L_1 + U_0}, \tfrac{U_1}{U_1 +
# L_0}\big]$. An interval that lies on one side of one half settles the verdict, whatever the
# algorithm got wrong.

# %%
import numpy as np
import pandas as pd

from calibration.figures.shown_figure import ShownFigure
from calibration.figures.style import COLORS, paper_style
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.notebook import fast, write_results
from experiments.findings.table import Column, Table
from factormodels import FactorGraph, datasets
from factormodels.synthetic import (
    Densities,
    FactLaws,
    Uniform,
    fr2,
    fr3,
    grid,
    mixed_reliability,
)
from factormodels.variants import variant
from inference import Status, get_backend, infer
from inference.messages.frustration import frustration
from inference.mini_buckets.intervals import certified_intervals

NOTEBOOK = "07_bounds"
SEED = 1
ATOMS = 26
LAWS = FactLaws(context_prior=mixed_reliability(0.2))
I_BOUNDS = (1, 2, 3, 4, 6, 8, 10, 12, 13) if fast() else range(1, 14)
STRENGTH = Uniform(0.6, 0.95)  # above one half, so that an entailment is a positive pair
GRAPHS = 6 if fast() else 30
INTERVALS = (4, 8) if fast() else (4, 8, 12)

# %% [markdown]
# ## Hölder's bounds close in
#
# A response of 26 claims with 130 contexts, some of them doubtful, of induced width 13: small
# enough that the truth is known.

# %%
graph = fr2(ATOMS, 5, 0.06, always_related=False, seed=SEED, laws=LAWS)
exact = infer(graph)
rows = [
    {
        "algorithm": "WMB",
        "i_bound": i_bound,
        "lower": posterior.stats["lower"],
        "upper": posterior.stats["upper"],
        "seconds": posterior.stats["seconds"],
    }
    for i_bound in I_BOUNDS
    for posterior in [infer(graph, "wmb", i_bound=i_bound, iterations=20)]
]
trw, bethe, field = infer(graph, "trw"), infer(graph, "lbp"), infer(graph, "cavi", seed=SEED)
rows.append({"algorithm": "TRW", "upper": trw.log_z, "seconds": trw.stats["seconds"]})
rows.append({"algorithm": "mean field", "lower": field.log_z, "seconds": field.stats["seconds"]})
bounds = pd.DataFrame(rows)
bounds["lower_gap"], bounds["upper_gap"] = bounds.lower - exact.log_z, bounds.upper - exact.log_z
bounds["log_z"] = exact.log_z
bounds.round(4)

# %% [markdown]
# ## When Bethe is a bound
#
# Grids of 8 × 8 variables with couplings up to 1, of which a share is made negative; balanced ones
# too, in which half of the pairs are negative and no cycle is frustrated, because the states of
# half the variables were swapped. And responses of 12 claims with 36 contexts related to claims and
# to each other, with a growing share of contradictions. Only runs that converged count: the theorem
# is about fixed points.

# %%
generator = np.random.default_rng(SEED)


def with_signs(graph, negative):
    """Return a grid with the pairs swapped for which `negative(scope)` holds."""
    factors = [
        (scope, np.flip(table, axis=0) if len(scope) == 2 and negative(scope) else table)
        for scope, table in graph.factors()
    ]
    return FactorGraph.from_factors(graph.cardinalities, factors, log=True)


models = []
for number in range(GRAPHS):
    attractive = grid(8, 8, coupling=1.0, field=0.5, attractive=True, seed=[SEED, number])
    models.append(("grid, attractive", attractive))
    swapped = generator.random(64) < 0.5
    models.append(
        ("grid, balanced", with_signs(attractive, lambda s, at=swapped: at[s[0]] != at[s[1]]))
    )
    for share in (0.02, 0.05, 0.1, 0.2, 0.35, 0.5):
        chosen = with_signs(attractive, lambda _, q=share: generator.random() < q)
        models.append(("grid, random signs", chosen))
    for share in (0.0, 0.1, 0.25, 0.5):
        shares = Densities(0.7 - share / 2, share, 0.3 - share / 2)
        laws = FactLaws(shares, STRENGTH, STRENGTH, STRENGTH)
        response = fr3(12, 3, 0.06, 0.03, seed=[SEED, number], laws=laws)
        models.append(("response", response))

rows = []
for kind, model in models:
    truth, lbp, signs = infer(model), infer(model, "lbp"), frustration(model)
    rows.append(
        {
            "kind": kind,
            "log_z": truth.log_z,
            "bethe": lbp.log_z,
            "gap": lbp.log_z - truth.log_z,
            "converged": lbp.status is Status.CONVERGED,
            "negative": signs.negative / (signs.negative + signs.positive),
            "cycles": signs.cycles,
            "frustrated": signs.share,
            "balanced": signs.balanced,
        }
    )
bethe_gaps = pd.DataFrame(rows)
bethe_gaps["kind"] = bethe_gaps.kind.where(
    ~((bethe_gaps.kind == "response") & bethe_gaps.balanced), "response, balanced"
)
settled = bethe_gaps[bethe_gaps.converged]
bethe_summary = settled.groupby("kind", as_index=False).agg(
    graphs=("gap", "size"),
    negative=("negative", "mean"),
    frustrated=("frustrated", "mean"),
    least=("gap", "min"),
    mean=("gap", "mean"),
    largest=("gap", "max"),
    above=("gap", lambda gap: (gap > 1e-9).mean()),
)
bethe_summary.round(4)

# %% [markdown]
# ## Certified intervals of single claims
#
# A denser response, of induced width 18: exact inference still answers, to check.

# %%
dense = fr2(ATOMS, 5, 0.08, always_related=False, seed=0, laws=LAWS)
names = dense.names[:ATOMS]
truth, belief = infer(dense), infer(dense, "lbp")
certified = pd.DataFrame(
    {
        "claim": names,
        "exact": truth.marginals.of_state(1, names),
        "lbp": belief.marginals.of_state(1, names),
    }
)
for i_bound in INTERVALS:
    intervals = certified_intervals(dense, names, i_bound=i_bound)
    certified[f"lower_{i_bound}"] = [intervals[name].lower for name in names]
    certified[f"upper_{i_bound}"] = [intervals[name].upper for name in names]
certified = certified.sort_values("exact", ignore_index=True)
widths = pd.DataFrame(
    [
        {
            "i_bound": i_bound,
            "median_width": (upper - lower).median(),
            "largest_width": (upper - lower).max(),
            "decided": ((lower > 0.5) | (upper < 0.5)).mean(),
            "holds": certified.exact.between(lower - 1e-12, upper + 1e-12).mean(),
            "lbp_inside": certified["lbp"].between(lower, upper).mean(),
        }
        for i_bound in INTERVALS
        for lower, upper in [(certified[f"lower_{i_bound}"], certified[f"upper_{i_bound}"])]
    ]
)
widths.round(4)

# %% [markdown]
# ## A real biography
#
# Of the 157 embedded biographies, the one whose graph is the widest when every passage bears on
# every claim and relations are read as distributions (FR2, *mixture*): exact inference would take
# years. The bounds are close all the same, because most of its relations are weak.

# %%
CLAIMS = 6 if fast() else None
biographies = datasets.load("factscore").graphs
predictor = get_backend("exact", search_seconds=0.1)
shapes = [variant(graph, "FR2") for graph in biographies if len(graph.contexts) > 40]
factors = [graph.to_factor_graph("mixture") for graph in shapes]
costs = [predictor.predict(factor) for factor in factors]
widest = max(range(len(factors)), key=lambda at: costs[at].induced_width)
biography, wide = shapes[widest], factors[widest]
bounded = {i_bound: infer(wide, "wmb", i_bound=i_bound, iterations=20) for i_bound in (2, 4, 6)}
print(
    f"{len(biography.atoms)} claims, {len(biography.contexts)} passages, induced width "
    f"{costs[widest].induced_width}, predicted {costs[widest].seconds / 3.2e7:.0f} years"
)
for i_bound, each in bounded.items():
    print(f"i = {i_bound}: log Z in [{each.stats['lower']:.4f}, {each.stats['upper']:.4f}]")

real_names = [atom.id for atom in biography.atoms][:CLAIMS]
real_found = certified_intervals(wide, real_names, i_bound=4, iterations=2)
real_belief = infer(wide, "lbp").marginals.of_state(1, real_names)
real = pd.DataFrame(
    {
        "claim": real_names,
        "lower": [real_found[name].lower for name in real_names],
        "upper": [real_found[name].upper for name in real_names],
        "lbp": real_belief,
    }
)
real["width"] = real.upper - real.lower
print(
    f"Widest certified interval of {len(real)} claims: {real.width.max():.1e}; belief propagation "
    f"lies at most {np.maximum(real.lower - real['lbp'], real['lbp'] - real.upper).max():.1e} "
    "outside."
)

# %% [markdown]
# ## The figure

# %%
STYLES = (("0.75", COLORS[0], COLORS[2]), (4.5, 2.5, 1.0))  # of the intervals, by i-bound
BELOW = {
    "loc": "upper center",
    "bbox_to_anchor": (0.5, -0.2),
    "ncols": 1,
    "fontsize": 6.5,
    "columnspacing": 1.0,
    "handletextpad": 0.5,
}
with paper_style():
    figure = ShownFigure(figsize=(7.0, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1.05, 1.1))

    wmb = bounds[bounds.algorithm == "WMB"]
    left.fill_between(wmb.i_bound, wmb.lower_gap, wmb.upper_gap, color=COLORS[0], alpha=0.2, lw=0)
    left.plot(wmb.i_bound, wmb.upper_gap, "o-", color=COLORS[0], markersize=3)
    left.plot(wmb.i_bound, wmb.lower_gap, "o-", color=COLORS[0], markersize=3)
    for posterior, label, color, dash in (
        (trw, "TRW, upper", COLORS[1], (0, (5, 2))),
        (field, "mean field, lower", COLORS[3], (0, (2, 1.5))),
        (bethe, "Bethe, estimate", COLORS[2], (0, (5, 1.5, 1, 1.5))),
    ):
        gap = posterior.log_z - exact.log_z
        left.axhline(gap, color=color, linestyle=dash)
        # The bounds narrow to the right, where they would cross the estimate's name.
        across, side = (0.06, "left") if posterior is bethe else (1.0, "right")
        left.annotate(
            label, (across, gap), xycoords=("axes fraction", "data"), xytext=(0, 2),
            textcoords="offset points", ha=side, fontsize=6.5,
        )  # fmt: skip
    left.axhline(0, color="black", linewidth=0.6)
    left.set_yscale("symlog", linthresh=0.01)
    left.set(
        xlabel="$i$-bound", ylabel=r"$\log Z$ minus the true one (nats)", title="(a) One response"
    )
    left.set_xticks(range(1, 14, 3))
    left.annotate(
        "within WMB's bounds", (1.8, 0), xytext=(0, -14), textcoords="offset points", fontsize=6.5,
    )  # fmt: skip

    looks = {
        "grid, random signs": ("o", "white", COLORS[0]),
        "grid, balanced": ("s", COLORS[0], COLORS[0]),
        "grid, attractive": ("^", COLORS[0], COLORS[0]),
        "response": ("D", "white", COLORS[1]),
        "response, balanced": ("D", COLORS[1], COLORS[1]),
    }
    for kind, (marker, face, edge) in looks.items():
        of_kind = settled[settled.kind == kind]
        middle.scatter(
            of_kind.frustrated - 0.03 * (kind == "grid, attractive"),  # beside those drawn at 0 too
            of_kind.gap,
            s=11,
            marker=marker,
            facecolor=face,
            edgecolor=edge,
            linewidth=0.7,
            label=kind,
        )
    middle.axhline(0, color="black", linewidth=0.6)
    middle.set_yscale("symlog", linthresh=1e-2)
    middle.set(
        xlabel="Share of frustrated cycles",
        ylabel=r"Bethe minus true $\log Z$ (nats)",
        title="(b) When Bethe is a bound",
    )
    middle.legend(**BELOW)

    positions = np.arange(ATOMS)
    for i_bound, color, line in zip(INTERVALS, STYLES[0], STYLES[1], strict=False):
        right.vlines(
            positions,
            certified[f"lower_{i_bound}"],
            certified[f"upper_{i_bound}"],
            color=color,
            linewidth=line,
            label=f"certified, $i$ = {i_bound}",
        )
    right.plot(positions, certified.exact, "_", color="black", markersize=5, label="exact")
    right.plot(
        positions, certified["lbp"], "x", color=COLORS[1], markersize=3, label="belief propagation"
    )
    right.axhline(0.5, color="0.4", linewidth=0.6, linestyle=(0, (4, 3)))
    right.set(
        xlabel="Claim, by posterior", ylabel="P(true)", ylim=(0, 1), title="(c) Certified intervals"
    )
    right.set_xticks([])
    right.legend(**BELOW)
figure

# %% [markdown]
# ## What is found

# %%
first, last = wmb.iloc[0], wmb.iloc[-1]
print(
    f"WMB: gap of {first.upper - first.lower:.2f} nats at i = {first.i_bound:.0f}, "
    f"{last.upper - last.lower:.1g} at i = {last.i_bound:.0f}, the induced width."
)
print(
    f"TRW lies {trw.log_z - exact.log_z:.2f} above, "
    f"mean field {exact.log_z - field.log_z:.2f} below."
)
balanced = settled[settled.balanced]
tangled = settled[~settled.balanced]
print(
    f"Bethe exceeds log Z on {(balanced.gap > 1e-9).sum()} of {len(balanced)} balanced graphs "
    f"(largest gap {balanced.gap.max():+.1e}) and on {(tangled.gap > 1e-9).sum()} of "
    f"{len(tangled)} with frustrated cycles (up to {tangled.gap.max():+.2f} nats)."
)
for row in widths.itertuples():
    print(
        f"i = {row.i_bound}: intervals hold for {row.holds:.0%} of claims, median width "
        f"{row.median_width:.4f}, largest {row.largest_width:.3f}; they decide {row.decided:.0%} "
        f"of verdicts, and belief propagation lies inside {row.lbp_inside:.0%} of them."
    )

# %% [markdown]
# Memory buys certainty: a larger $i$ generally tightens both of Hölder's bounds, and at the induced
# width they meet. TRW and mean field do not get tighter. On balanced graphs Bethe never exceeded
# $\log Z$, as the theorem says, however many pairs were negative: it is frustration, not
# contradiction, that breaks the bound. With frustrated cycles Bethe can lie on either side, and
# without knowing the truth nobody can say on which. For single claims, the certified interval often
# settles the verdict long before it pins down the probability. On the widest real graph, which is
# out of reach for exact inference, a small $i$ pins it down to many digits: the graph is very wide,
# but its relations are weak.

# %%
write_results(
    NOTEBOOK,
    Artifacts(
        tables={
            "bounds": Table(
                bounds,
                (
                    Column("algorithm", "Algorithm"),
                    Column(
                        "i_bound",
                        "i",
                        "$i$",
                        show=lambda i: "" if np.isnan(i) else f"{i:.0f}",
                        right=True,
                    ),
                    Column("lower_gap", "Lower minus true", digits=4),
                    Column("upper_gap", "Upper minus true", digits=4),
                ),
                "Bounds on log Z of a response of 26 claims minus the true value, in nats.",
            ),
            "bethe": Table(
                bethe_summary,
                (
                    Column("kind", "Graphs"),
                    Column("graphs", "Number", right=True),
                    Column("negative", "Negative pairs", digits=2),
                    Column("frustrated", "Frustrated cycles", digits=2),
                    Column("least", "Least gap", digits=3),
                    Column("mean", "Mean", digits=3),
                    Column("largest", "Largest", digits=3),
                    Column("above", "Above log Z", digits=2),
                ),
                "Bethe log Z minus the true one, where belief propagation converged, in nats.",
            ),
            "intervals": Table(
                widths,
                (
                    Column("i_bound", "i", "$i$", right=True),
                    Column("median_width", "Median width", digits=4),
                    Column("largest_width", "Largest", digits=3),
                    Column("decided", "Verdicts decided", digits=2),
                    Column("holds", "Holds", digits=2),
                    Column("lbp_inside", "BP inside", digits=2),
                ),
                "Certified intervals of the posteriors of 26 claims.",
            ),
            "real": Table(
                real,
                (
                    Column("claim", "Claim"),
                    Column("lbp", "BP", digits=6, lower="lower", upper="upper"),
                    Column("width", "Width", show="{:.1e}".format, right=True),
                ),
                "Claims of the widest of 157 real biographies: belief propagation, and certified "
                "intervals (i = 4).",
            ),
            "claims": Table(
                certified,
                (
                    Column("claim", "Claim"),
                    Column(
                        "exact",
                        "Exact",
                        digits=3,
                        lower=f"lower_{INTERVALS[-1]}",
                        upper=f"upper_{INTERVALS[-1]}",
                    ),
                    Column("lbp", "BP", digits=3),
                ),
                f"Posterior of every claim with its certified interval (i = {INTERVALS[-1]}).",
            ),
        },
        figures={"figure": PaperFigure(figure, bethe_gaps, "Bounds on log Z and on posteriors")},
    ),
)
