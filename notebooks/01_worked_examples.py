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
# # 1. The worked examples of FactReasoner, by every backend
#
# **Question.** Does every algorithm reproduce posteriors that are known in closed form, and how
# much does each context contribute to them?
#
# **Argument.** FactReasoner explains itself with one claim and two passages: $c_1$ entails $a_1$
# with probability 0.8, $c_2$ contradicts it with 0.9; the claim's prior is 0.5, the passages' 0.99.
# Under the paper's encoding a relation weighs a false source alike for both states of its target,
# so that
#
# $$\frac{P(a_1)}{P(\lnot a_1)} =
#   \frac{0.8\,(0.99 \cdot 0.1 + 0.01 \cdot 0.9)}{(0.99 \cdot 0.2 + 0.01 \cdot 0.8)\,0.9}
#   \quad\Rightarrow\quad P(a_1) = \frac{48}{151} \approx 0.318,$$
#
# which the paper prints as 0.32. The embedded data hold this graph and fifteen others with
# posteriors as fractions, found by hand. An exact algorithm has to reproduce them up to rounding.
# Belief propagation has to reproduce them if the graph is a forest, but not if it has a cycle; mean
# field does not have to if variables depend on each other; a sampler is off by chance.
#
# A context's contribution is the posterior with it minus the posterior without it. Removal is
# exact, and contributions need not add up to the distance from the prior. In log-odds they do if
# contexts are independent given the claim; two contexts that conflict share what they contribute.

# %%
from fractions import Fraction

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm

from calibration.figures.shown_figure import ShownFigure
from calibration.figures.style import COLORS, paper_style
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.notebook import fast, write_results
from experiments.findings.table import Column, Table
from factormodels import datasets
from inference import entries, get_backend
from inference.tasks import without_variables

NOTEBOOK = "01_worked_examples"
SEED = 20_261_121
DRAWS = 500 if fast() else 5_000

examples = {graph.id: graph for graph in datasets.load("worked-examples").graphs}
golden = {name: graph.metadata["golden"] for name, graph in examples.items()}
factor_graphs = {
    name: graph.to_factor_graph(encoding=golden[name]["encoding"])
    for name, graph in examples.items()
}

# %% [markdown]
# ## Every backend on every example
#
# The error is the largest of a marginal whose fraction is known. Samplers and ascents get the seed
# above; everything else is as the registry builds it. In the fast mode, the two backends that
# compile a program for every graph answer only the three graphs whose contexts are studied below
# (gray: not run). A backend whose library is not installed is left out.

# %%
SETTINGS = {
    "gibbs": {"seed": SEED, "draws": DRAWS},
    "numpyro": {"seed": SEED, "draws": DRAWS},
    "mean_field": {"seed": SEED, "restarts": 1 if fast() else 5},
}
STUDIED = {
    "factreasoner-example-1": "Example 1",
    "factreasoner-release-graph": "release graph",
    "conflict-chain": "conflict chain",
}
backends = {
    name: get_backend(name, **SETTINGS.get(name, {}))
    for name, entry in entries().items()
    if not entry.missing
}
asked = {name: list(examples) for name in backends}
if fast():
    # Each graph is compiled anew, which takes seconds.
    asked |= {"numpyro": list(STUDIED)[:1], "pgmax": list(STUDIED)}
rows = []
for name, backend in backends.items():
    for example in asked[name]:
        posterior = backend.infer(factor_graphs[example])
        for variable, fraction in golden[example]["fractions"].items():
            probability = posterior.marginals[variable][1]
            rows.append((name, example, variable, float(Fraction(fraction)), probability))
answers = pd.DataFrame(rows, columns=["backend", "example", "variable", "golden", "probability"])
answers["error"] = (answers.probability - answers.golden).abs()
errors = answers.pivot_table(
    "error", "backend", "example", aggfunc="max", sort=False, observed=False
)
errors = errors.loc[list(backends), list(examples)]

# %%
first = answers[(answers.example == "factreasoner-example-1") & (answers.variable == "a1")]
comparison = pd.DataFrame(
    {
        "backend": list(backends),
        "log_z": [entries()[name].log_z_kind for name in backends],
        "example_1": first.set_index("backend").probability.loc[list(backends)].to_numpy(),
        "largest_error": errors.max(axis=1).to_numpy(),
        "where": errors.idxmax(axis=1).to_numpy(),
        "examples": errors.notna().sum(axis=1).to_numpy(),
    }
)
comparison.round(6)

# %% [markdown]
# ## What each context contributes
#
# `without_variables` gives the posterior of the claim with each context removed, all from one
# elimination. The release graph has two contexts that support the claim and conflict with each
# other; in the conflict chain a third context contradicts the one that contradicts the claim.


# %%
def log_odds(p):
    return np.log(p) - np.log1p(-p)


parts = []
for example, title in STUDIED.items():
    contexts = examples[example].context_ids
    effects = without_variables(factor_graphs[example], contexts, ["a1"])
    parts.append(
        pd.DataFrame(
            {
                "graph": title,
                "context": contexts,
                "posterior": effects.present,
                "without": effects.without,
                "contribution": effects.contribution,
                "log_odds": log_odds(effects.present) - log_odds(effects.without),
            }
        )
    )
contributions = pd.concat(parts, ignore_index=True)
contributions.round(4)

# %%
totals = contributions.groupby("graph", sort=False).agg(
    posterior=("posterior", "first"),
    parts=("contribution", "sum"),
    log_odds_parts=("log_odds", "sum"),
)
totals["whole"] = totals.posterior - 0.5
totals["log_odds_whole"] = log_odds(totals.posterior)
totals.round(4)

# %% [markdown]
# ## The figure

# %%
with paper_style():
    figure = ShownFigure(figsize=(7.0, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1.0))
    left.patch.set(facecolor="white", edgecolor="0.55", hatch="/////")
    image = left.imshow(errors.clip(lower=1e-9), norm=LogNorm(1e-9, 1), cmap="Blues")
    for at in range(1, len(examples)):
        left.axvline(at - 0.5, color="0.85", linewidth=0.5)
    for at in range(1, len(backends)):
        left.axhline(at - 0.5, color="0.85", linewidth=0.5)
    left.set_xticks(range(len(examples)), list(examples), rotation=60, ha="right", fontsize=6)
    left.set_yticks(range(len(backends)), list(backends), fontsize=6.5)
    left.set_title("(a) Largest error of a known marginal\n(hatched: no answer)")
    left.spines[:].set_visible(False)
    left.tick_params(length=0)
    figure.colorbar(image, ax=left, shrink=0.7, ticks=[1e-9, 1e-6, 1e-3, 1])

    height, ticks, labels = 0.0, [], []
    for title, bars in contributions.groupby("graph", sort=False):
        for row in bars.itertuples():
            color = COLORS[0] if row.log_odds > 0 else COLORS[1]
            right.barh(height, row.log_odds, height=0.7, color=color)
            ticks.append(height)
            labels.append(row.context)
            height += 1
        right.barh(height, totals.log_odds_whole[title], height=0.7, color="0.35")
        right.plot(
            totals.log_odds_parts[title],
            height,
            "D",
            mfc="white",
            mec="black",
            ms=4,
            zorder=3,
            label="sum of the parts" if title == "Example 1" else None,
        )
        ticks.append(height)
        labels.append("all")
        right.text(
            0.01,
            ticks[-len(bars) - 1] - 0.62,
            title,
            fontsize=7,
            style="italic",
            transform=right.get_yaxis_transform(),
        )
        height += 1.9
    right.legend(loc="center right", bbox_to_anchor=(1.0, 0.77))
    right.axvline(0, color="black", linewidth=0.6)
    right.set_yticks(ticks, labels)
    right.tick_params(axis="y", length=0)
    right.invert_yaxis()
    right.set_xlabel("Contribution to the log-odds of $a_1$ (nats)")
    right.set_title("(b) What each context contributes")
figure

# %% [markdown]
# ## What is found

# %%
exact_kind = comparison[comparison.log_z == "exact"]
cyclic = "factreasoner-release-graph"
print(f"P(a1) of Example 1: {contributions.posterior[0]:.6f}; the fraction is {48 / 151:.6f}.")
print(
    f"The {len(exact_kind)} exact backends are off by {exact_kind.largest_error.max():.0e} at most."
)
forests = errors.drop(columns=cyclic)
for name in ("lbp", "trw"):
    print(
        f"{name}: {forests.loc[name].max():.0e} at most on the 15 forests, "
        f"{errors.loc[name, cyclic]:.1e} on the one graph with a cycle."
    )
print(f"Mean field is off by up to {errors.loc['cavi'].max():.2f} ({errors.loc['cavi'].idxmax()}).")
for title, row in totals.iterrows():
    print(
        f"{title}: contributions sum to {row.log_odds_parts:+.3f} nats, "
        f"the evidence together moves the claim by {row.log_odds_whole:+.3f}."
    )

# %% [markdown]
# Every exact backend, from whatever library, reproduces the paper and the fractions. Belief
# propagation is exact on the forests and wrong if two contexts of a claim conflict, because that
# closes a cycle; mean field is wrong even on the simplest graphs. Contributions in log-odds add up
# for Example 1, where the contexts are independent given the claim, but not if contexts bear on
# each other: in the conflict chain, their sum even has the opposite sign to the whole.

# %%
write_results(
    NOTEBOOK,
    Artifacts(
        tables={
            "backends": Table(
                comparison,
                (
                    Column("backend", "Backend"),
                    Column("log_z", "log Z"),
                    Column("example_1", "P(a1)", r"$P(a_1)$", digits=4),
                    Column("largest_error", "Largest error", show="{:.0e}".format, right=True),
                    Column("where", "on"),
                    Column("examples", "Examples", right=True),
                ),
                "Worked examples with known posteriors, by every backend: the posterior of "
                "Example 1 (48/151 = 0.3179), and the largest error of a marginal on any example.",
            ),
            "contributions": Table(
                contributions,
                (
                    Column("context", "Context removed"),
                    Column("posterior", "P(a1)", r"$P(a_1)$", digits=4),
                    Column("without", "without", digits=4),
                    Column("contribution", "Contribution", digits=4),
                    Column("log_odds", "in log-odds", digits=3),
                ),
                "What each context contributes to the posterior of the claim.",
                group="graph",
            ),
        },
        figures={"figure": PaperFigure(figure, answers, "Worked examples of FactReasoner")},
    ),
)
