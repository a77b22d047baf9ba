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
# # 10. Real biographies: from graphs to a table and a figure
#
# **Question.** ChatGPT wrote 157 biographies, people labeled their 4,886 claims, and a weak model
# that compares words related them to passages from Wikipedia. What are the posteriors of such
# graphs worth: as stated, after recalibration, and with strengths learned from labels?
#
# **Argument.** In FR1 every claim has its own copies of its passages: a forest of stars. There a
# prior and a temperature can do no more than Platt scaling of the posteriors
# ([learning](../docs/explanation/learning.md)). One can do more by using everything that a relation
# says, and not only its most probable kind: if the model says *neutral with 0.6, entailment with
# 0.39*, that is evidence, but treated as a neutral relation it is none. Six classes of
# P(entailment), each with a learned strength, do this. A field goes on: log odds that are linear
# in columns of a claim's evidence and position, and hidden causes that join claims of a sentence
# and of a biography.
#
# Every method is judged on biographies that it has not seen, in the same five folds; no biography
# is ever split. Intervals resample biographies. AUROC compares pairs within a fold, because the
# base rates of different folds would rank claims the wrong way round.

# %%
import numpy as np
import pandas as pd

from calibration import corp_curve
from calibration.figures.shown_figure import ShownFigure
from calibration.figures.style import COLORS, DASHES, MARKERS, paper_style
from calibration.learned_potentials.methods import EDGES, METHODS, cross_fit_task
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.claim_scores import difference_rows, labeled_atoms, score_rows
from experiments.findings.figures.positions import CHANGE, FIFTHS, mean_by_fifth
from experiments.findings.notebook import fast, write_results
from experiments.findings.table import Column, Table, interval_column
from factormodels import datasets
from factormodels.variants import variant
from inference import infer

NOTEBOOK = "10_real_biographies"
SEED = 0
REPLICATES = 200 if fast() else 2000

dataset = datasets.load("factscore")
graphs = dataset.graphs[:40] if fast() else dataset.graphs
NAMES = ["default", "base rate", "Platt", "six classes", "with causes of biographies"]
if not fast():
    NAMES += ["boosted trees, neighbors", "linear, neighbors", "with texts"]

# %% [markdown]
# ## One graph
#
# The texts are not included: claims have labels and sentence numbers, passages have ids and the
# claims that they were retrieved for. Below, five claims of the first biography under FR1.

# %%
first = variant(graphs[0], "FR1")
marginals = infer(first.to_factor_graph("implication")).marginals
evidence = {atom.id: [r for r in first.relations if r.target == atom.id] for atom in first.atoms}
claims = pd.DataFrame(
    [
        {
            "claim": atom.id,
            "sentence": atom.sentence,
            "label": atom.label,
            "passages": len(evidence[atom.id]),
            "strongest entailment": max(r.distribution[0] for r in evidence[atom.id]),
            "posterior": marginals[atom.id][1],
        }
        for atom in first.atoms[:5]
    ]
)
claims.round(3)

# %% [markdown]
# ## What the relation model says
#
# The share of pairs by most probable kind, and of true claims by class of the strongest passage.

# %%
views = [variant(graph, "FR1") for graph in graphs]
kinds = pd.Series([str(r.kind) for view in views for r in view.relations])
print(kinds.value_counts(normalize=True).round(3).to_string())

strongest = []
for view in views:
    best = {}
    for r in view.relations:
        best[r.target] = max(best.get(r.target, 0.0), r.distribution[0])
    strongest += [
        {"best": best[a.id], "true": a.label} for a in view.atoms if a.label is not None and best
    ]
strongest = pd.DataFrame(strongest)
strongest["class"] = np.digitize(strongest.best, EDGES)
strongest.groupby("class").true.agg(["size", "mean"]).round(3)

# %% [markdown]
# ## Every method on biographies that it has not seen

# %%
task = cross_fit_task(graphs, 5, SEED)
atoms = labeled_atoms(task.graphs, "biographies")
fold = task.fold[atoms.kept]
p_by_method = {name: METHODS[name](task)[atoms.kept] for name in NAMES}
scores = pd.DataFrame(score_rows(p_by_method, atoms, fold, SEED))
scores.set_index("method")[["brier", "log_loss", "auroc", "slope", "mean"]].round(4)

# %%
differences = pd.DataFrame(
    [
        row
        for name in NAMES[1:]
        for row in difference_rows(
            {"default": p_by_method["default"], name: p_by_method[name]}, [name], atoms, fold, SEED
        )
    ]
)
to_default = differences.set_index("other")
to_default[["brier", "brier_lower", "brier_upper"]].round(4)

# %% [markdown]
# ## Truth and evidence by position
#
# What declines from the first sentences to the last, evidence or truth? Every sentence counts the
# same.

# %%
shown = {"true": atoms.labels}
shown |= {f"FR1, {name}": p_by_method[name] for name in ("default", "six classes")}
wide = mean_by_fifth(task.graphs, shown, atoms, SEED)
wide.set_index("of")[[*FIFTHS, CHANGE]].round(3)

# %% [markdown]
# ## The figure

# %%
SHOWN = {"default": "as stated", "six classes": "strengths learned"}
with paper_style():
    figure = ShownFigure(figsize=(7.0, 2.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    left.plot([0, 1], [0, 1], color="0.45", linewidth=0.7, linestyle=(0, (4, 3)))
    for at, (name, label) in enumerate(SHOWN.items()):
        curve = corp_curve(
            p_by_method[name],
            atoms.labels,
            responses=atoms.responses,
            band="consistency",
            n_bootstrap=REPLICATES,
            seed=SEED,
        )
        left.plot(curve.p, curve.recalibrated, color=COLORS[at], linestyle=DASHES[at], label=label)
    left.set(xlim=(0, 1), ylim=(0, 1), xlabel="Predicted probability", ylabel="Observed frequency")
    left.legend(loc="upper left", fontsize=6.5)
    left.set_title("(a) Reliability")

    heights = np.arange(len(scores))[::-1]
    arms = [scores.brier - scores.brier_lower, scores.brier_upper - scores.brier]
    middle.errorbar(scores.brier, heights, xerr=arms, fmt="o", color="black", markersize=3)
    middle.set_yticks(heights, scores.method, fontsize=6.5)
    middle.set_xlabel("Brier score, biographies not seen")
    middle.set_title("(b) Methods")

    for at, row in enumerate(wide.to_dict("records")):
        mean = np.array([row[title] for title in FIFTHS])
        low = mean - np.array([row[f"{title}_lower"] for title in FIFTHS])
        high = np.array([row[f"{title}_upper"] for title in FIFTHS]) - mean
        right.errorbar(
            np.arange(5) + 0.05 * at,
            mean,
            yerr=[low, high],
            color=COLORS[at],
            marker=MARKERS[at],
            markersize=3,
            linewidth=0.9,
            label=row["of"].removeprefix("FR1, "),
        )
    right.set_xticks(range(5), ["1st", "2nd", "3rd", "4th", "5th"])
    right.set(xlabel="Fifth of the biography", ylabel="Share true, or mean posterior")
    right.legend(fontsize=6.5)
    right.set_title("(c) By position")
figure

# %% [markdown]
# ## What is found

# %%
brier = scores.set_index("method").brier
for name, row in to_default.iterrows():
    verdict = (
        "better" if row.brier_lower > 0 else "worse" if row.brier_upper < 0 else "no different"
    )
    print(
        f"{name}: Brier {brier[name]:.4f}, default minus it {row.brier:+.4f} "
        f"[{row.brier_lower:+.4f}, {row.brier_upper:+.4f}]: {verdict}."
    )
falls = wide.set_index("of")[CHANGE]
print(
    f"From the first fifth to the last, truth falls by {-falls['true']:.3f}, stated posteriors by "
    f"{-falls['FR1, default']:.3f}, learned ones by {-falls['FR1, six classes']:.3f}."
)

# %% [markdown]
# Posteriors from stated probabilities rank the claims well but are too cautious: most relations are
# stated to be neutral and leave a claim at one half. Platt scaling corrects the caution but not the
# ranking. Classes of P(entailment) correct both, because relations that are stated to be neutral
# are evidence too. From the first sentences to the last, posteriors from stated probabilities fall
# less than truth does, and learned ones follow more of the decline: most of it is in the evidence
# and only had to be read correctly. *With texts* the field also reads how much of a claim its
# passages hold, in figures that are recorded in place of the texts, and is the best here. All
# methods, and what each column and each cause buys, are in
# [findings](../docs/results/learned-potentials.md).

# %%
write_results(
    NOTEBOOK,
    Artifacts(
        tables={
            "scores": Table(
                scores,
                (
                    Column("method", "Method"),
                    interval_column("brier", "Brier", 4),
                    interval_column("log_loss", "Log loss", 3),
                    interval_column("auroc", "AUROC", 3),
                    interval_column("slope", "Slope", 2),
                ),
                f"{len(graphs)} biographies, {len(atoms.labels):,} labeled claims: scores on "
                "biographies that a method has not seen.",
                note="95% intervals over biographies; AUROC of pairs within a fold.",
            ),
            "differences": Table(
                differences,
                (Column("other", "Less"), interval_column("brier", "Brier", 4)),
                "Every method minus every other, paired by biography.",
                group="method",
            ),
            "positions": Table(
                wide,
                (
                    Column("of", "Of"),
                    *(interval_column(title, title, 3) for title in (*FIFTHS, CHANGE)),
                ),
                "Share of true claims and mean posteriors by position, every sentence counting the "
                "same.",
            ),
        },
        figures={"figure": PaperFigure(figure, scores, "Reliability, methods and positions")},
    ),
)
