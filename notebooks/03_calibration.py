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
# # 3. Are the posteriors calibrated?
#
# **Question.** Of the claims that get a posterior of 0.8, are four in five true; and do priors
# learned from labels make posteriors better?
#
# **Argument.** Factcheck-Bench has human labels of 631 claims in 92 responses, and the human stance
# of every passage toward its claim. The default turns stances into relations by convention: 0.9
# for full support and for refutation, 0.7 for partial support, and 0.5 as every claim's prior.
# Nothing about that is calibrated by design. Learning can choose the prior, or a temperature for
# all relations, or a strength for each stance, by maximum likelihood of the labels.
#
# We take three precautions. What is learned is judged on unseen responses: there are ten folds, and
# no response is ever split. Claims of one response are not independent, so intervals and bands
# resample responses. And calibration is shown by the isotonic (CORP) reliability curve, which has
# no bins to choose, with a *consistency band* around the diagonal: where the curve of perfectly
# calibrated posteriors would lie 95 times in 100, at each point. A binned calibration error is
# above zero even for calibrated posteriors, and its bootstrap is biased further upwards, so it is
# given without an interval; the slope and intercept of a logistic recalibration (1 and 0 if
# calibrated) have one.

# %%
import numpy as np
import pandas as pd

from calibration import corp_curve, score
from calibration.curves import group_calibration
from calibration.figures.shown_figure import ShownFigure
from calibration.figures.style import COLORS, paper_style
from calibration.intervals import IntervalSettings
from calibration.learned_potentials.graph_fitting import cross_fitting, fit_potentials
from calibration.learned_potentials.graph_potentials import Potentials, stance_class
from calibration.recalibration import PlattRecalibrator, cross_fit
from calibration.scores.families.pointwise import LOSSES
from calibration.significance import paired_bootstrap
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.notebook import fast, write_results
from experiments.findings.table import Column, Table
from factormodels import datasets
from factormodels.variants import variant
from inference.batch import claim_posteriors
from inference.tasks import log_probability

NOTEBOOK = "03_calibration"
SEED = 0
REPLICATES = 300 if fast() else 5000
FOLDS = 10


def with_labels(dataset):
    """The responses of a dataset with a labeled claim."""
    graphs = datasets.load(dataset).graphs
    return [graph for graph in graphs if any(atom.label is not None for atom in graph.atoms)]


graphs = with_labels("factcheck-bench")
potentials = {
    "prior": Potentials(("atom_prior",)),
    "prior, temperature": Potentials(),
    "prior, stances": Potentials(("atom_prior", "probability"), stance_class()),
}
if fast():
    del potentials["prior, temperature"]

# %% [markdown]
# ## What the labels teach
#
# The table shows what is fitted to all responses, with intervals, beside the numbers of the
# convention. So few labels could hardly contradict it.

# %%
learned = fit_potentials(graphs, potentials["prior, stances"])
values = pd.DataFrame([vars(row) for row in learned.table()])
values = values[["name", "start", "estimate", "standard_error", "lower", "upper"]]
within = values.start.between(values.lower, values.upper)
print(f"{within.sum()} of {len(values)} stated values lie in the interval of what is learned")
values.round(3)

# %% [markdown]
# ## Scores on responses that were not seen


# %%
def of_labeled(graphs):
    """Posterior, label and response of every labeled claim."""
    rows = [(atom.label, graph.id) for graph in graphs for atom in graph.atoms]
    kept = [row for row, (label, _) in enumerate(rows) if label is not None]
    labels = np.array([int(rows[row][0]) for row in kept])
    return claim_posteriors(graphs)[kept], labels, [rows[row][1] for row in kept]


def log_likelihoods(graphs):
    """Log probability of all labels of each response."""
    values = []
    for graph in graphs:
        known = {atom.id: int(atom.label) for atom in graph.atoms if atom.label is not None}
        values.append(log_probability(graph.to_factor_graph(), known).value)
    return np.array(values)


crossings = {
    name: cross_fitting(graphs, chosen, n_folds=FOLDS, seed=SEED)
    for name, chosen in potentials.items()
}
taught = {name: crossing.learned() for name, crossing in crossings.items()}
default, labels, responses = of_labeled(graphs)
posteriors = {
    "default": default,
    **{name: of_labeled(applied)[0] for name, (_, applied) in taught.items()},
}

SCORES = (
    "brier",
    "log_loss",
    "smooth_ece",
    "calibration_in_the_large",
    "calibration_slope",
    "auroc",
)
rows = []
for name, p in posteriors.items():
    scored = score(
        *(p, labels, responses),
        scores=SCORES,
        intervals=IntervalSettings(n_bootstrap=REPLICATES, seed=SEED),
    )
    row = {"priors": name}
    for estimate in scored.models[0].scores.values():
        row[estimate.name] = estimate.value
        if estimate.name != "smooth_ece":
            row[f"{estimate.name}_lower"] = estimate.lower
            row[f"{estimate.name}_upper"] = estimate.upper
    rows.append(row)
scores = pd.DataFrame(rows)
scores.set_index("priors")[list(SCORES)].round(4)

# %%
TITLES = {"brier": "Brier score", "log_loss": "log loss", "log_likelihood": "-log P(labels)"}


def compared(loss, p, other):
    """Test of the first's mean loss minus the second's, paired over responses."""
    losses = [np.where(labels == 1, *LOSSES[loss](each)) for each in (p, other)]
    return paired_bootstrap(*losses, responses, n_bootstrap=REPLICATES, seed=SEED)


tests = {
    (name, score): compared(score, posteriors[name], default)
    for name in taught
    for score in ("brier", "log_loss")
}
tests |= {
    (name, "log_likelihood"): paired_bootstrap(
        -log_likelihoods(applied),
        -log_likelihoods(graphs),
        [graph.id for graph in graphs],
        n_bootstrap=REPLICATES,
        seed=SEED,
    )
    for name, (_, applied) in taught.items()
}
differences = pd.DataFrame(
    [
        {
            "priors": name,
            "score": TITLES[score],
            "difference": test.value,
            "lower": test.lower,
            "upper": test.upper,
            "p_value": test.p_value,
        }
        for (name, score), test in tests.items()
    ]
)
differences.round(4)

# %% [markdown]
# ## Reliability
#
# The share of claims at whose posterior the curve lies outside its band, and where the default's
# posteriors are too low (gap above 0) or too high. Claims on which no passage bears keep their
# prior, one half; one partial support makes it 0.7.

# %%
curves = {
    name: corp_curve(
        p, labels, responses=responses, band="consistency", n_bootstrap=REPLICATES, seed=SEED
    )
    for name, p in posteriors.items()
}
summary = []
for name, curve in curves.items():
    p, terms = posteriors[name], curve.decomposition
    height = np.interp(p, curve.p, curve.recalibrated)
    low, high = np.interp(p, curve.at, curve.lower), np.interp(p, curve.at, curve.upper)
    summary.append(
        {
            "priors": name,
            "miscalibration": terms.miscalibration,
            "discrimination": terms.discrimination,
            "uncertainty": terms.uncertainty,
            "outside_band": np.mean((height < low) | (height > high)),
        }
    )
summary = pd.DataFrame(summary)
scores = scores.merge(summary, on="priors")
summary.round(4)

# %%
GROUPS = ("below 0.5", "0.5", "to 0.75", "to 0.95", "to 1")
group = np.array(GROUPS)[np.digitize(default, [0.5 - 1e-9, 0.5 + 1e-9, 0.75, 0.95])]
group_gaps = group_calibration(
    default,
    labels,
    group,
    order=GROUPS,
    responses=responses,
    n_bootstrap=REPLICATES,
    seed=SEED,
)
gaps = pd.DataFrame(
    {
        "posterior": group_gaps.groups,
        "claims": group_gaps.n_atoms,
        "mean": group_gaps.mean_predicted,
        "true": group_gaps.observed,
        "gap": group_gaps.gap,
        "lower": group_gaps.lower,
        "upper": group_gaps.upper,
    }
)
gaps.round(3)

# %% [markdown]
# Pooling folds has a price. Each fold has its own learned prior, estimated on the others, so a fold
# with few true claims gets a high one. As a result, claims without evidence are ranked the wrong
# way round, which lowers the area under the ROC curve of the learned posteriors, and only of those.

# %%
undecided = group == "0.5"
in_fold = crossings["prior"].fold
folds = {graph.id: number for graph, number in zip(graphs, in_fold, strict=True)}
fold = np.array([folds[response] for response in responses])
priors = [each.values["atom_prior"] for each in taught["prior"][0].values()]
shares = [labels[undecided & (fold == number)].mean() for number in range(FOLDS)]
correlation = np.corrcoef(priors, shares)[0, 1]
print(f"correlation of a fold's prior with its share of true claims: {correlation:.2f}")

# %% [markdown]
# ## Where labels can teach
#
# The stances above come from people. In 157 biographies by ChatGPT the relations come from a weak
# model that compares words, and 4,886 claims are labeled, so there is something to learn. We learn
# a prior and a temperature, and compare them with two methods that need no graph: Platt scaling of
# the default, and the share of true claims.

# %%
biographies = [variant(graph, "FR1") for graph in with_labels("factscore")]
biographies = biographies[:30] if fast() else biographies
weak = cross_fitting(biographies, Potentials(), n_folds=5, seed=SEED)
learned_p, labels, responses = of_labeled(weak.learned()[1])
weak_default = of_labeled(biographies)[0]
platt = cross_fit(PlattRecalibrator(), weak_default, labels, responses, n_folds=5, seed=SEED)
in_fold = dict(zip([graph.id for graph in biographies], weak.fold, strict=True))
folds = np.array([in_fold[response] for response in responses])
rate = np.array([labels[folds != fold].mean() for fold in range(5)])[folds]
rivals = [
    (name, p, compared("brier", learned_p, p))
    for name, p in (("default", weak_default), ("platt", platt.p), ("base rate", rate))
]
weak_scores = pd.DataFrame(
    [
        {
            "rival": name,
            "brier": np.mean((p - labels) ** 2),
            "learned": np.mean((learned_p - labels) ** 2),
            "difference": test.value,
            "lower": test.lower,
            "upper": test.upper,
        }
        for name, p, test in rivals
    ]
)
weak_scores.round(4)

# %% [markdown]
# ## The figure

# %%
SHOWN = {"default": "(a) Default priors", "prior": "(b) Learned prior, unseen responses"}
with paper_style():
    figure = ShownFigure(figsize=(7.0, 3.0), layout="constrained")
    panels = figure.add_gridspec(2, 3, height_ratios=(5, 1), width_ratios=(1, 1, 0.85))
    for at, (name, title) in enumerate(SHOWN.items()):
        curve, color = curves[name], COLORS[at]
        axes = figure.add_subplot(panels[0, at])
        axes.fill_between(
            curve.at, curve.lower, curve.upper, color="0.75", lw=0, label="consistency band, 95%"
        )
        axes.plot([0, 1], [0, 1], color="0.45", linewidth=0.7, linestyle=(0, (4, 3)))
        axes.plot(curve.p, curve.recalibrated, color=color, linewidth=1.3, label="isotonic curve")
        axes.set(xlim=(0, 1), ylim=(0, 1), title=title)
        axes.tick_params(labelbottom=False, labelleft=at == 0)
        terms = curve.decomposition
        axes.text(
            0.97,
            0.04,
            f"Brier {terms.score:.4f}\n= MCB {terms.miscalibration:.4f}\n"
            f"− DSC {terms.discrimination:.4f}\n+ UNC {terms.uncertainty:.4f}",
            ha="right",
            va="bottom",
            fontsize=6.5,
        )
        axes.legend(loc="upper left", fontsize=6.5)
        below = figure.add_subplot(panels[1, at])
        edges = np.linspace(0, 1, len(curve.histogram) + 1)
        below.bar(edges[:-1], curve.histogram, np.diff(edges), align="edge", color=color)
        below.set(xlim=(0, 1), xlabel="Predicted probability", ylim=(0, 300))
        below.tick_params(labelleft=at == 0)
        if at == 0:
            axes.set_ylabel("Observed frequency")
            below.set_ylabel("Claims")

    axes = figure.add_subplot(panels[:, 2])
    kinds = [score for score in TITLES.values() if score != TITLES["log_likelihood"]]
    names = list(taught)
    for at, score in enumerate(kinds):
        of_score = differences[differences.score == score].set_index("priors").loc[names]
        heights = np.arange(len(names)) + 0.22 * (at - 0.5)
        axes.errorbar(
            of_score.difference,
            heights,
            xerr=[of_score.difference - of_score.lower, of_score.upper - of_score.difference],
            fmt="os"[at],
            color=COLORS[2 + at],
            markersize=4,
            capsize=2,
            linewidth=0.9,
            label=score,
        )
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_yticks(range(len(names)), [f"{name}" for name in names], rotation=90, va="center")
    axes.set_ylim(len(names) - 0.4, -0.75)
    axes.set(xlabel="Learned minus default (below 0: better)", title="(c) Paired difference, 95%")
    axes.legend(loc="upper right", fontsize=6.5)
figure

# %% [markdown]
# ## What is found

# %%
default, chosen = scores.set_index("priors").loc["default"], scores.set_index("priors").loc["prior"]
print(
    f"Default priors: Brier {default.brier:.4f} [{default.brier_lower:.4f}, "
    f"{default.brier_upper:.4f}], log loss {default.log_loss:.4f}, miscalibration "
    f"{default.miscalibration:.4f}; {default.outside_band:.0%} of claims outside the band."
)
slope, intercept = "calibration_slope", "calibration_in_the_large"
print(
    f"Their slope is {default[slope]:.2f} [{default[slope + '_lower']:.2f}, "
    f"{default[slope + '_upper']:.2f}], their intercept {default[intercept]:+.2f} "
    f"[{default[intercept + '_lower']:+.2f}, {default[intercept + '_upper']:+.2f}]."
)
print(
    f"Learned prior, unseen responses: Brier {chosen.brier:.4f}, log loss {chosen.log_loss:.4f}, "
    f"miscalibration {chosen.miscalibration:.4f}; {chosen.outside_band:.0%} outside the band."
)
for row in gaps[(gaps.lower > 0) | (gaps.upper < 0)].itertuples():
    print(
        f"Posterior {row.posterior}: {row.claims} claims, mean {row.mean:.3f}, {row.true:.0%} "
        f"true, gap {row.gap:+.3f} [{row.lower:+.3f}, {row.upper:+.3f}]."
    )
clear = differences[(differences.lower > 0) | (differences.upper < 0)]
print(
    f"Of {len(differences)} comparisons of learned with default priors, {len(clear)} have an "
    "interval without 0."
)
for row in weak_scores.itertuples():
    print(
        f"Biographies, learned minus {row.rival}: {row.difference:+.4f} [{row.lower:+.4f}, "
        f"{row.upper:+.4f}]."
    )

# %% [markdown]
# The default posteriors of these human stances are not far from calibrated: slope and intercept
# cannot be told from 1 and 0. They are too cautious about one group, claims with a posterior of
# about 0.7, most of which one passage supports in part: more of them are true. A learned prior
# reduces the miscalibration term by a fifth. But its gain on unseen responses is a thousandth in
# Brier score, which cannot be told from chance with 92 responses; learning a strength for each
# stance gives a higher log loss, which cannot be told from chance either. Learned priors do not
# beat the default here; that is a statement about this amount of data as much as about priors.
#
# On the biographies they do, because the probabilities stated by a weak model leave room for it.
# But they gain no more than Platt scaling: on stars, a prior and a temperature only recalibrate.
# Notebook 10 has strengths that do more.

# %%
write_results(
    NOTEBOOK,
    Artifacts(
        tables={
            "scores": Table(
                scores,
                (
                    Column("priors", "Priors"),
                    Column("brier", "Brier", digits=4, lower="brier_lower", upper="brier_upper"),
                    Column(
                        "log_loss",
                        "Log loss",
                        digits=4,
                        lower="log_loss_lower",
                        upper="log_loss_upper",
                    ),
                    Column("smooth_ece", "Smooth ECE", digits=3),
                    Column("miscalibration", "MCB", digits=4),
                    Column(
                        "calibration_in_the_large",
                        "Intercept",
                        digits=2,
                        lower="calibration_in_the_large_lower",
                        upper="calibration_in_the_large_upper",
                    ),
                    Column(
                        "calibration_slope",
                        "Slope",
                        digits=2,
                        lower="calibration_slope_lower",
                        upper="calibration_slope_upper",
                    ),
                ),
                "Factcheck-Bench, 631 labeled claims of 92 responses: scores of exact posteriors "
                "under default priors, and under priors learned from other responses.",
                note="95% intervals of a bootstrap over responses.",
            ),
            "differences": Table(
                differences,
                (
                    Column("score", "Score"),
                    Column(
                        "difference",
                        "Learned minus default",
                        digits=4,
                        lower="lower",
                        upper="upper",
                    ),
                    Column("p_value", "p", "$p$", digits=2),
                ),
                "Learned priors against the default on unseen responses (below 0: learned is "
                "better).",
                group="priors",
                note="Studentised bootstrap over responses, 95% intervals.",
            ),
            "gaps": Table(
                gaps,
                (
                    Column("posterior", "Posterior"),
                    Column("claims", "Claims", right=True),
                    Column("mean", "Mean", digits=3),
                    Column("true", "True", digits=3),
                    Column("gap", "Gap", digits=3, lower="lower", upper="upper"),
                ),
                "Default priors: where posteriors are too low (gap above 0) or too high.",
                note="95% intervals of a bootstrap over responses.",
            ),
            "learned": Table(
                values,
                (
                    Column("name", "Parameter"),
                    Column("start", "Stated", digits=2),
                    Column("estimate", "Learned", digits=3, lower="lower", upper="upper"),
                ),
                "What the labels of all responses teach, with 95% intervals.",
            ),
            "biographies": Table(
                weak_scores,
                (
                    Column("rival", "Rival"),
                    Column("brier", "Brier", digits=4),
                    Column("learned", "Learned", digits=4),
                    Column(
                        "difference", "Learned minus rival", digits=4, lower="lower", upper="upper"
                    ),
                ),
                f"{len(biographies)} biographies: a learned prior and temperature against the "
                "default and what needs no graph.",
            ),
        },
        figures={
            "figure": PaperFigure(
                figure,
                pd.concat(
                    [
                        pd.DataFrame(
                            {
                                "priors": name,
                                "p": curve.at,
                                "isotonic": np.interp(curve.at, curve.p, curve.recalibrated),
                                "lower": curve.lower,
                                "upper": curve.upper,
                            }
                        )
                        for name, curve in curves.items()
                    ]
                ),
                "Reliability of posteriors on Factcheck-Bench",
            )
        },
    ),
)
