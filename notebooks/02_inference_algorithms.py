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
# # 2. How inference algorithms compare: error against time
#
# **Question.** Which algorithm gives the least error in a given time, where does loopy belief
# propagation fail, and what holds there?
#
# **Argument.** An algorithm is worth its time if no other is both faster and more accurate: those
# that remain are the *frontier*. Belief propagation takes microseconds and is exact on forests.
# With cycles it is an estimate: its fixed points are stationary points of the Bethe free energy,
# whose error grows with the strength of interactions, and it may not settle. Weighted mini-buckets
# (WMB) split whatever does not fit into tables of $i + 1$ variables, and give a bound instead: by
# Hölder's inequality their $\log Z$ lies on a known side of the true one, however bad the split,
# and at the induced width they are exact. So the two fail differently: belief propagation cannot
# tell that it is wrong, whereas WMB knows how wrong it may be.
#
# The graphs have the shape of FactReasoner's (26 or 31 claims, 93 or 130 contexts); for contrast
# there are grids with random couplings of both signs, which are the hardest to approximate. All are
# small enough to be solved exactly, so the errors are measured against the truth.

# %%
import time

import numpy as np
import pandas as pd

from calibration.figures.shown_figure import ShownFigure
from calibration.figures.style import COLORS, MARKERS, paper_style
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.figures import pareto
from experiments.findings.notebook import fast, write_results
from experiments.findings.table import Column, Table
from factormodels.synthetic import FactLaws, fr2, fr3, grid, mixed_reliability
from inference import Status, get_backend
from inference.messages.frustration import frustration

NOTEBOOK = "02_inference_algorithms"
SEED = 20_261_121
INSTANCES, REPEATS = (1, 1) if fast() else (5, 5)
GRIDS = 3 if fast() else 25
COUPLINGS = [0.25, 1.0, 2.0, 3.0] if fast() else np.linspace(0.25, 3.0, 12).tolist()

# A fifth of the contexts are doubtful; relations are drawn from Beta(8, 2).
DRAWN = {"always_related": False, "laws": FactLaws(context_prior=mixed_reliability(0.2))}
FAMILIES = {
    "fr2-31x3-d05": (
        "FR2, 31 atoms, density 0.05",
        lambda seed: fr2(31, 3, 0.05, seed=seed, **DRAWN),
    ),
    "fr2-26x5-d15": (
        "FR2, 26 atoms, density 0.15",
        lambda seed: fr2(26, 5, 0.15, seed=seed, **DRAWN),
    ),
    "fr3-31x3": (
        "FR3, 31 atoms, density 0.05",
        lambda seed: fr3(31, 3, 0.05, 0.02, seed=seed, **DRAWN),
    ),
    "grid-10x10": (
        "Ising grid, couplings to 1",
        lambda seed: grid(10, 10, coupling=1.0, field=0.5, seed=seed),
    ),
}
ALGORITHMS = {
    "exact": get_backend("exact"),
    "lbp": get_backend("lbp"),
    "trw": get_backend("trw"),
    "wmb-2": get_backend("wmb", i_bound=2),
    "wmb-6": get_backend("wmb", i_bound=6),
    "wmb-10": get_backend("wmb", i_bound=10),
    "cavi": get_backend("cavi", seed=SEED),
    "gibbs": get_backend("gibbs", seed=SEED),
    "ais": get_backend("ais", seed=SEED),
    "wmb_is": get_backend("wmb_is", seed=SEED),
    "ijgp": get_backend("ijgp"),
}

# %% [markdown]
# ## Error and time
#
# Seconds are the shortest of several repeated calls on a graph that the algorithm has seen before,
# on one core; the error is the largest of any marginal. For careful measurements, with interleaved
# rounds and intervals, use `factormodels run bench/inference`.

# %%
rows = []
for family, (_, draw) in FAMILIES.items():
    for number in range(INSTANCES):
        graph = draw(number)
        truth = ALGORITHMS["exact"].infer(graph)
        for name, backend in ALGORITHMS.items():
            seconds = []
            for _ in range(REPEATS + 1):
                started = time.perf_counter()
                posterior = backend.infer(graph)
                seconds.append(time.perf_counter() - started)
            difference = np.abs(posterior.marginals.flat - truth.marginals.flat)
            rows.append(
                {
                    "family": family,
                    "graph": number,
                    "algorithm": name,
                    "seconds": min(seconds[1:]),
                    "largest_error": difference.max(),
                    "mean_error": difference.mean(),
                    "log_z_kind": str(posterior.log_z_kind),
                    "log_z_error": np.nan
                    if posterior.log_z is None
                    else posterior.log_z - truth.log_z,
                    "converged": posterior.status is not Status.NOT_CONVERGED,
                }
            )
measured = pd.DataFrame(rows)
comparison = measured.groupby(["family", "algorithm"], sort=False, as_index=False).agg(
    seconds=("seconds", "median"),
    largest_error=("largest_error", "max"),
    mean_error=("mean_error", "mean"),
    log_z_kind=("log_z_kind", lambda kinds: " or ".join(dict.fromkeys(kinds))),
    log_z_error=("log_z_error", "mean"),
    converged=("converged", "mean"),
)
comparison["on_frontier"] = False
for family in FAMILIES:
    of_family = comparison[comparison.family == family]
    points = {row.algorithm: (row.seconds, row.largest_error) for row in of_family.itertuples()}
    kept = set(pareto(points))
    comparison.loc[of_family.index, "on_frontier"] = [
        points[name] in kept for name in of_family.algorithm
    ]
comparison.round(5)

# %% [markdown]
# ## Where belief propagation fails
#
# A grid of 10 × 10 variables, fields up to 0.5, couplings drawn from $[-J, J]$: about half of its
# cycles are frustrated, and $J$ says how much that matters. For belief propagation: the error of
# marginals, and of the Bethe $\log Z$ per variable. For WMB: the same error of its marginals, and
# the interval of $\log Z$ between its two bounds.

# %%
rows = []
for coupling in COUPLINGS:
    for number in range(GRIDS):
        graph = grid(10, 10, coupling=coupling, field=0.5, seed=SEED + number)
        truth = ALGORITHMS["exact"].infer(graph)
        row = {"coupling": coupling, "graph": number, "log_z": truth.log_z}
        row["frustrated"] = frustration(graph).share
        for name in ("lbp", "wmb-6", "wmb-10"):
            posterior = ALGORITHMS[name].infer(graph)
            difference = np.abs(posterior.marginals.flat - truth.marginals.flat)
            row[f"{name}_error"] = difference.max()
            if name == "lbp":
                row["bethe"] = posterior.log_z
                row["lbp_converged"] = posterior.status is Status.CONVERGED
            else:
                row[f"{name}_lower"] = posterior.stats["lower"]
                row[f"{name}_upper"] = posterior.stats["upper"]
        rows.append(row)
grids = pd.DataFrame(rows)
for name in ("wmb-6", "wmb-10"):
    grids[f"{name}_holds"] = grids.log_z.between(
        grids[f"{name}_lower"] - 1e-9, grids[f"{name}_upper"] + 1e-9
    )
failure = grids.groupby("coupling", as_index=False).agg(
    frustrated=("frustrated", "mean"),
    lbp_converged=("lbp_converged", "mean"),
    lbp_error=("lbp_error", "median"),
    lbp_worst=("lbp_error", "max"),
    wmb_6_error=("wmb-6_error", "median"),
    wmb_10_error=("wmb-10_error", "median"),
    wmb_6_holds=("wmb-6_holds", "mean"),
    wmb_10_holds=("wmb-10_holds", "mean"),
)
settled = grids[grids.lbp_converged]
failure["lbp_worst_converged"] = failure.coupling.map(settled.groupby("coupling").lbp_error.max())
failure.round(3)

# %% [markdown]
# ## The figure

# %%
LOOKS = {
    name: {"color": COLORS[at % len(COLORS)], "marker": MARKERS[at % len(MARKERS)]}
    for at, name in enumerate(ALGORITHMS)
}
FLOOR = 1e-6
SIZE = 100  # variables of a grid

with paper_style():
    figure = ShownFigure(figsize=(6.9, 4.5), layout="constrained")
    panels = figure.add_gridspec(2, 4, height_ratios=(1.0, 1.15))
    above = [figure.add_subplot(panels[0, at]) for at in range(4)]
    for axes, (family, (title, _)) in zip(above, FAMILIES.items(), strict=True):
        of_family = comparison[comparison.family == family]
        points = {
            row.algorithm: (row.seconds, max(row.largest_error, FLOOR))
            for row in of_family.itertuples()
        }
        front = np.array(pareto(points))
        axes.step(*front.T, where="post", color="0.7", linewidth=0.8, zorder=1)
        for name, point in points.items():
            axes.plot(*point, linestyle="none", markersize=4.5, **LOOKS[name])
        axes.set(xscale="log", yscale="log", ylim=(FLOOR / 2, 2), xlabel="seconds")
        axes.set_title(title.replace(", ", "\n", 1), fontsize=7.5)
        axes.tick_params(labelleft=axes is above[0])
    above[0].set_ylabel(r"Largest $|\Delta p|$")
    handles = [
        above[0].plot([], [], linestyle="none", markersize=4.5, label=name, **LOOKS[name])[0]
        for name in ALGORITHMS
    ]

    errors, bounds = figure.add_subplot(panels[1, :2]), figure.add_subplot(panels[1, 2:])
    shown = {"lbp": "belief propagation", "wmb-6": "WMB, $i$ = 6", "wmb-10": "WMB, $i$ = 10"}
    for name, title in shown.items():
        spread = grids.groupby("coupling")[f"{name}_error"].quantile([0.0, 0.5, 1.0]).unstack()
        color = LOOKS[name]["color"]
        errors.fill_between(spread.index, spread[0.0], spread[1.0], color=color, alpha=0.15, lw=0)
        errors.plot(spread.index, spread[0.5], label=title, **LOOKS[name])
    errors.set(xlabel="Largest coupling $J$", ylabel=r"Largest $|\Delta p|$", ylim=(0, 1))
    errors.legend(loc="upper left", title="median and range")

    for name in ("wmb-6", "wmb-10"):
        low = (grids[f"{name}_lower"] - grids.log_z).groupby(grids.coupling).mean() / SIZE
        high = (grids[f"{name}_upper"] - grids.log_z).groupby(grids.coupling).mean() / SIZE
        color = LOOKS[name]["color"]
        bounds.fill_between(low.index, low, high, color=color, alpha=0.25, lw=0)
        bounds.plot(low.index, low, high.index, high, color=color, linewidth=0.8)
        bounds.fill([], [], color=color, alpha=0.25, label=f"{shown[name]}, bounds")
    bounds.scatter(
        grids.coupling[grids.lbp_converged],
        ((grids.bethe - grids.log_z) / SIZE)[grids.lbp_converged],
        s=9,
        color=LOOKS["lbp"]["color"],
        label="Bethe, converged",
        zorder=3,
    )
    bounds.scatter(
        grids.coupling[~grids.lbp_converged],
        ((grids.bethe - grids.log_z) / SIZE)[~grids.lbp_converged],
        s=9,
        facecolor="white",
        edgecolor=LOOKS["lbp"]["color"],
        linewidth=0.8,
        label="Bethe, not converged",
        zorder=3,
    )
    bounds.axhline(0, color="black", linewidth=0.6)
    bounds.set(xlabel="Largest coupling $J$", ylabel=r"$(\log Z - \log Z_{\rm true})$ / variable")
    bounds.legend(loc="upper left")
    figure.legend(handles=handles, loc="outside upper center", ncols=6)
figure

# %% [markdown]
# ## What is found

# %%
for family, (title, _) in FAMILIES.items():
    of_family = comparison[comparison.family == family].set_index("algorithm")
    names = ", ".join(of_family.index[of_family.on_frontier])
    print(
        f"{title}: the frontier is {names}; lbp errs by {of_family.largest_error['lbp']:.1e} "
        "at most."
    )
strongest = failure.iloc[-1]
print(
    f"Grids with couplings to {strongest.coupling:g}: belief propagation settles on "
    f"{strongest.lbp_converged:.0%} of them; its median error is {strongest.lbp_error:.2f}, "
    f"that of WMB {strongest.wmb_6_error:.2f} (i = 6) and {strongest.wmb_10_error:.3f} (i = 10). "
    f"Where it settled, on any grid, it erred by up to {settled.lbp_error.max():.2f}."
)
print(
    f"log Z lay between WMB's bounds on {failure.wmb_6_holds.mean():.0%} (i = 6) and "
    f"{failure.wmb_10_holds.mean():.0%} (i = 10) of {len(grids)} grids."
)

# %% [markdown]
# On graphs of claims and contexts belief propagation is hard to beat: its cost is hardly
# measurable, and its error is small, because interactions are moderate and cycles are few. That is
# a property of these graphs, not of the algorithm. Where exact elimination is possible, it is the
# next step, and it leaves little room in between: in marginals, WMB is seldom on the frontier here.
#
# On grids with strong couplings the error of belief propagation grows until some marginals are
# completely wrong, and convergence is no guarantee, because it also converges to wrong answers.
# WMB's marginals are estimates too, and inaccurate at small $i$, but its bounds held on every
# graph, as they must. The gap between them says when to raise $i$; at the induced width (13 here)
# it is exact. That is what it is for: graphs that are too wide, and answers that need a guarantee.


# %%
def scientific(value):
    return "–" if np.isnan(value) else f"{value:.1e}"


write_results(
    NOTEBOOK,
    Artifacts(
        tables={
            "algorithms": Table(
                comparison,
                (
                    Column("algorithm", "Algorithm", bold="on_frontier"),
                    Column("seconds", "Seconds", show=scientific, right=True),
                    Column("largest_error", "Largest error", show=scientific, right=True),
                    Column("mean_error", "Mean error", show=scientific, right=True),
                    Column("log_z_kind", "log Z"),
                    Column("log_z_error", "minus true", digits=3),
                    Column("converged", "Converged", digits=2),
                ),
                "Error against time. Errors are those of marginals; what log Z is and by how many "
                "nats it differs from the true one stand side by side, because bounds and "
                "estimates do not compare.",
                group="family",
                note="Bold: on the frontier, so that no other is both faster and more accurate.",
            ),
            "failure": Table(
                failure,
                (
                    Column("coupling", "J", "$J$", digits=2),
                    Column("frustrated", "Frustrated", digits=2),
                    Column("lbp_converged", "Converged", digits=2),
                    Column("lbp_error", "BP, median", digits=3),
                    Column("lbp_worst", "BP, worst", digits=3),
                    Column("wmb_6_error", "WMB 6, median", digits=3),
                    Column("wmb_10_error", "WMB 10, median", digits=3),
                    Column("wmb_6_holds", "Bounds hold", digits=2),
                ),
                "Grids of 10 x 10 variables with couplings from [-J, J]: largest error of a "
                "marginal by belief propagation and weighted mini-buckets.",
            ),
        },
        figures={"figure": PaperFigure(figure, grids, "Inference algorithms: error, time, bounds")},
    ),
)
