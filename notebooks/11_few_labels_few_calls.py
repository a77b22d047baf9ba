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
# # 11. Twenty hours and fifty dollars
#
# **Question.** Somebody wants to know how much of what a model writes about people is true. She has
# twenty hours of annotators and fifty dollars for a model that says which passage supports which
# claim. What does she ask the model, what does she have labeled, and what does she know then?
#
# **Argument.** Most pairs of a claim and a passage say nothing. The dollars go to the passages that
# were found for a claim, then to others, and a claim is left once a relation decides it
# ([few calls](../docs/how-to/few-calls.md)). The posteriors that
# come of it are no truth, but they tell claims apart, and labels of a few claims tell how far they
# can be trusted ([few labels](../docs/how-to/few-labels.md)). The biographies of FActScore have all
# their relations and labels, so that both can be hidden and, at the end, looked at.

# %%
import numpy as np
import pandas as pd

from calibration.estimation import (
    QUANTITIES,
    Unit,
    draw,
    estimate,
    inclusion_probabilities,
    planned_error,
    spread,
)
from calibration.figures.panels import PAGE, nth_look, panels
from calibration.grouping import group_by_response
from experiments.evaluators.calls.asking_orders import (
    asking_orders,
    first_of_each,
    posteriors,
    true,
)
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.notebook import fast, write_results
from experiments.findings.table import Column, Table, interval_column
from factormodels import datasets, variant
from factormodels.extraction.stages.relations import relation_pairs

NOTEBOOK = "11_few_labels_few_calls"
SEED = 0
HOURS, DOLLARS = 20.0, 50.0
READING, LABELING = 2.0, 1.0
TOKENS_A_CALL, DOLLARS_A_MILLION = 620, 14.0

graphs = datasets.load("factscore").graphs
if fast():
    graphs = sorted(graphs, key=lambda graph: len(graph.atoms) * len(graph.contexts))[:40]
    DOLLARS, HOURS = DOLLARS / 30, HOURS / 4
new = [variant(graph, "FR2") for graph in graphs[1::2] if graph.atoms and graph.contexts]
pairs = [relation_pairs(graph, "FR2") for graph in new]
total = sum(map(len, pairs))
print(f"{len(new)} biographies, {total:,} pairs of a claim and a passage.")

# %% [markdown]
# ## Fifty dollars
#
# A call takes 620 tokens, and a million cost 14 dollars. Each biography has its share of the calls.
# There are no texts here, so that among the passages of one kind those found first come first.

# %%
price = TOKENS_A_CALL * DOLLARS_A_MILLION / 1e6
bought = min(1.0, int(DOLLARS / price) / total)
RULE = "settled at 0.5"
orders = asking_orders(new, pairs, (0.5,), SEED)
print(f"{bought:.0%} of the calls; all would cost {total * price:.0f} dollars.")


everything = posteriors(new, pairs, orders["never settled"])
SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
frontier = pd.DataFrame(
    [
        {"order": name, "share": share, "kept": np.mean(true(p) == true(everything))}
        for name, order in orders.items()
        for share in (*SHARES, bought)
        for p in [posteriors(new, pairs, first_of_each(order, pairs, share))]
    ]
).sort_values(["order", "share"], kind="stable", ignore_index=True)
frontier.pivot_table("kept", "order", "share").round(3)

# %%
p = posteriors(new, pairs, first_of_each(orders[RULE], pairs, bought))

# %% [markdown]
# ## Twenty hours
#
# A person reads a biography in two minutes and labels a claim in one. Whole biographies share the
# reading among their claims, and single claims differ more from each other: the plan says which
# narrows the interval more.

# %%
atoms = [(graph.id, atom.label) for graph in new for atom in graph.atoms]
labeled = np.array([label is not None for _, label in atoms])
responses = np.array([response for response, _ in atoms])[labeled]
y = np.array([label for _, label in atoms])[labeled].astype(float)
forecast = {
    "fifty dollars": p[labeled],
    "all pairs": everything[labeled],
}
grouping = group_by_response(responses)
minutes = {
    Unit.CLAIM: np.full(y.size, READING + LABELING),
    Unit.RESPONSE: READING + LABELING * grouping.sizes.astype(float),
}


def chances(unit):
    expected = spread(forecast["fifty dollars"], grouping, unit)
    free = np.ones(expected.size, dtype=bool)
    most = 0
    for n in range(1, expected.size + 1):
        probabilities = inclusion_probabilities(expected, minutes[unit], n, free)
        if probabilities @ minutes[unit] > 60 * HOURS:
            break
        most = n
    probabilities = inclusion_probabilities(expected, minutes[unit], most, free)
    return (
        most,
        probabilities,
        planned_error(expected, probabilities, forecast["fifty dollars"], grouping),
    )


plans = {unit: chances(unit) for unit in Unit}
for unit, (n, _, error) in plans.items():
    print(
        f"{n} units, each a {unit}, in {HOURS:g} hours: a standard error of {error:.4f} is planned."
    )
best = min(plans, key=lambda unit: plans[unit][2])
print(f"Labeled are units of a {best}.")

# %% [markdown]
# ## What is known at the end
#
# The share of true claims, from these labels: alone, with the posteriors of fifty dollars, and with
# those that all calls would have bought. What all labels say stands beside.

# %%
n, probability, _ = plans[best]
kept = draw(probability, SEED)
weights = np.where(kept, 1 / probability, 1.0)
if best is Unit.RESPONSE:
    kept, weights = kept[grouping.index], weights[grouping.index]
hidden = np.where(kept, y, np.nan)
rows = []
for name, posterior in forecast.items():
    estimated = estimate(QUANTITIES["share"](posterior, hidden, responses, weights=weights))
    if not rows:
        rows.append(
            {
                "from": "labels alone",
                "share": estimated.labels_value,
                "share_lower": estimated.labels_lower,
                "share_upper": estimated.labels_upper,
                "saved": 1.0,
            }
        )
    rows.append(
        {
            "from": f"labels, posteriors of {name}",
            "share": estimated.value,
            "share_lower": estimated.lower,
            "share_upper": estimated.upper,
            "saved": estimated.labels_saved,
        }
    )
shares = pd.DataFrame(rows)
truth = y.mean()
print(f"All labels say {truth:.3f}.")
shares.round(3)

# %% [markdown]
# ## The figure

# %%
with panels(1, 2, (PAGE, 2.6)) as (figure, (axes,)):
    left, right = axes
    for look, (name, part) in enumerate(frontier.groupby("order", sort=False)):
        left.plot(part.share, part.kept, label=name, **nth_look(look))
    left.axvline(bought, color="0.6", linewidth=0.7)
    left.set(xlabel="share of calls; the line: what the dollars buy", ylabel="verdicts kept")
    left.legend(fontsize=6)
    heights = np.arange(len(shares))[::-1]
    arms = [shares.share - shares.share_lower, shares.share_upper - shares.share]
    right.errorbar(shares.share, heights, xerr=arms, fmt="o", color="black", markersize=3)
    right.axvline(truth, color="0.6", linewidth=0.7)
    right.set_yticks(heights, shares["from"], fontsize=6)
    right.set_ylim(-0.5, len(shares) - 0.5)
    right.set_xlabel("share of true claims; the line: by all labels")
figure

# %% [markdown]
# ## What is found

# %%
at = frontier[np.isclose(frontier.share, bought)].set_index("order").kept
others = at.drop(RULE)
print(
    f"{DOLLARS:.3g} dollars buy {bought:.0%} of the calls and {at[RULE]:.1%} of the "
    f"verdicts that all would give; the best of the other orders has {others.max():.1%} "
    f"({others.idxmax()})."
)
alone, few, every = (shares.share_upper - shares.share_lower).tolist()
print(
    f"{HOURS:g} hours say the share of true claims to within {alone:.3f} by labels alone, "
    f"{few:.3f} with the posteriors of these dollars, {every:.3f} with those of all calls."
)

# %% [markdown]
# The order of asking matters as much as the number of calls. For the share of true claims the
# posteriors need not be complete, nor calibrated: the labels find out what they are worth. By
# commands, the same is `factormodels assess --few-calls` and `factormodels estimate --choose`.

# %%
write_results(
    NOTEBOOK,
    Artifacts(
        tables={
            "frontier": Table(
                frontier,
                (
                    Column("order", "Order"),
                    Column("share", "Share of calls", digits=2),
                    Column("kept", "Verdicts kept", digits=3),
                ),
                "Share of verdicts that are those of all calls.",
            ),
            "shares": Table(
                shares,
                (
                    Column("from", "From"),
                    interval_column("share", "True", 3),
                    Column("saved", "Labels saved", digits=2),
                ),
                f"Share of true claims after {HOURS:g} hours of labeling.",
                note="95% intervals over biographies.",
            ),
        },
        figures={"figure": PaperFigure(figure, shares, "Verdicts by calls, and what labels say")},
    ),
)
