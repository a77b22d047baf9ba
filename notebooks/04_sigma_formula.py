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
# # 4. What does σ predict?
#
# **Question.** A model judges its own claims. Is $\sigma = (1-SU)/(2-SU-SK)$ a prediction of how
# many of them are supported?
#
# **Argument.** SK is the share of supported claims that the model judges correct, SU the share of
# unsupported ones that it judges incorrect. With factuality $F$ it judges the share
# $q(F) = SK\,F + (1-SU)(1-F)$ correct. The Self-Known paper sets $q(F) = F$ and solves for $F$:
# that is σ, the one factuality at which a model *says* as often "correct" as it *is* correct.
# Multiplied out,
#
# $$\frac{\sigma}{1-\sigma} = \frac{F}{1-F} \cdot \frac{FP}{FN},$$
#
# with FP the unsupported claims that are judged correct and FN the supported ones that are judged
# incorrect. So three questions, not one:
#
# 1. *In sample*, σ = F is the hypothesis FP = FN, a statement about errors. It is McNemar's test,
#    and since claims of one response are not independent, the test has to know of responses.
# 2. *Out of sample*, does σ of some responses predict the factuality of others better than simply
#    their own factuality?
# 3. *Under label shift*, where factuality changes and the law of judgements stays, σ cannot move:
#    it is a function of SK and SU alone. Rogan and Gladen's estimate reads the same line backwards,
#    from the share judged correct that is seen to $\hat F = (q+SU-1)/(SK+SU-1)$, and follows.
#
# No language model is asked here. Judgements are first *simulated*, for simulated responses and for
# the human labels of Factcheck-Bench, which shows what the formula does. Then they are *real*: the
# votes that SelfCheckGPT published on GPT-3's sentences and, if `factormodels-data.yaml` names
# files under `self-judged`, GPT-4's confidence in its own claims. The labels of 157 biographies by
# ChatGPT show how real factuality moves along a response.

# %%
from dataclasses import replace

import numpy as np
import pandas as pd

from calibration.figures.shown_figure import ShownFigure
from calibration.figures.style import COLOURS, DASHES, paper_style
from calibration.intervals import IntervalSettings
from calibration.self_knowledge import (
    ClaimLabel,
    ClaimRecord,
    ModelJudgement,
    Setting,
    Truth,
    as_claims,
    claims_of_counts,
    label_positions,
    label_shift,
    prediction_errors,
    rejections,
    rogan_gladen,
    sigma,
    simulate_counts,
)
from calibration.self_knowledge.balance import judged_counts
from calibration.significance.mcnemar import clustered_mcnemar_counts, mcnemar_counts
from experiments.analyses.ours.sigma_on_labels import in_sample
from experiments.analyses.ours.sigma_shift import prediction_row
from experiments.analyses.user_data import user_data
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.notebook import fast, write_results
from experiments.findings.table import Column, Table, interval_column
from experiments.settings.judged_claims import ClaimColumns, judged_claims, judged_graphs
from experiments.settings.labelled_claims import claims_of_graphs
from factormodels import datasets
from factormodels.io.tables import read_table

NOTEBOOK = "04_sigma_formula"
SEED = 20_261_121
DRAWN = 15 if fast() else 200  # samples of each population
SPLITS = 20 if fast() else 100  # of a sample in halves
SAMPLES = 400 if fast() else 4000  # for the level of the tests
ASKED = Setting.DIRECT_ASKING

# %% [markdown]
# ## One line, read in two directions
#
# A model with SK = 0.9 and SU = 0.8, and responses of which 30 % of the claims are supported.

# %%
KNOWN, UNKNOWN, FACTUALITY = 0.9, 0.8, 0.3
judged = KNOWN * FACTUALITY + (1 - UNKNOWN) * (1 - FACTUALITY)
geometry = {
    "factuality": FACTUALITY,
    "judged_correct": judged,
    "sigma": float(sigma(KNOWN, UNKNOWN)),
    "rogan_gladen": float(rogan_gladen(judged, KNOWN, UNKNOWN)),
}
worked = pd.DataFrame({"quantity": list(geometry), "value": list(geometry.values())})
worked.round(4)

# %% [markdown]
# ## In sample and out of sample
#
# Four populations of the same factuality, 0.6, whose models err differently, and the human labels
# of Factcheck-Bench, of which judgements are drawn at fixed rates. Each is drawn many times.
# `identity` is $F \cdot FP / (F \cdot FP + (1-F) \cdot FN)$ from the counts of a sample; `gap` is
# σ of one half of the responses less the factuality of the other, over splits in halves; the RMSE
# are those of four predictions of the other half.

# %%
POPULATIONS = {
    "errors balance": Truth(self_known=0.8, self_unknown=0.7),
    "too trusting": Truth(self_known=0.9, self_unknown=0.4),
    "too strict": Truth(self_known=0.5, self_unknown=0.9),
    "hardly informed": Truth(self_known=0.6, self_unknown=0.5),
}
subjects = {
    name: [claims_of_counts(counts, ASKED) for counts in simulate_counts(truth, DRAWN, SEED + at)]
    for at, (name, truth) in enumerate(POPULATIONS.items())
}
BENCHMARK = "Factcheck-Bench"
labelled = claims_of_graphs(datasets.load("factcheck-bench").graphs, BENCHMARK).records
correct = np.array([0.8 if one.label is ClaimLabel.SUPPORTED else 1 - 0.7 for one in labelled])
subjects[BENCHMARK] = []
for at in range(DRAWN):
    draws = np.random.default_rng(SEED + at).random(len(labelled))
    drawn_claims = [
        replace(claim, direct_asking=ModelJudgement.TRUE if yes else ModelJudgement.FALSE)
        for claim, yes in zip(labelled, draws < correct, strict=True)
    ]
    subjects[BENCHMARK].append(as_claims(drawn_claims))

samples = pd.DataFrame(
    [
        {"population": name, **prediction_row(claims, ASKED, SPLITS, SEED)}
        for name, each in subjects.items()
        for claims in each
    ]
)
samples["identity_error"] = (samples.identity - samples.sigma).abs()
samples["in_sample"] = samples.sigma - samples.factuality
samples["rejected"] = samples.p_value <= 0.05
WHAT = ("sigma", "factuality", "in_sample", "gap", "rejected", "identity_error")
ERRORS = ("rmse_sigma", "rmse_factuality", "rmse_rogan_gladen", "rmse_emq")
prediction = samples.groupby("population", sort=False)[[*WHAT, *ERRORS]].mean().reset_index()
prediction.set_index("population").round(3)

# %% [markdown]
# ## The level of the test
#
# In the first population σ = F holds (0.3/0.5 = 0.6). A test at 5 % has to reject it in 5 % of the
# samples.

# %%
TRUTH = POPULATIONS["errors balance"]
TESTS = {
    "McNemar, claims independent": lambda counts: (
        mcnemar_counts(
            int(counts[:, 1].sum()),
            int(counts[:, 2].sum()),
            int(counts.sum()),
            method="chi-square",
        ).p_value
    ),
    "McNemar, clustered by response": lambda counts: (
        clustered_mcnemar_counts(counts[:, 1], counts[:, 2], counts.sum(axis=1)).p_value
    ),
}
rejected = rejections(TRUTH, TESTS, SAMPLES, seed=SEED)
levels = pd.DataFrame({"test": list(rejected), "rejected": list(rejected.values())})
levels["standard_error"] = np.sqrt(levels.rejected * (1 - levels.rejected) / SAMPLES)
levels.round(3)

# %% [markdown]
# ## Label shift
#
# Half of the responses give SK and SU. The other half is reweighted to another factuality, and each
# prediction is compared with that. With two kinds of judgement, EMQ is Rogan and Gladen's estimate
# clipped to [0, 1]; without clipping it can be anywhere if judgements say little. This is one
# sample of each population; bands in the figure contain 95 % of the predictions over splits.

# %%
GRID = np.linspace(0.05, 0.95, 19)
SHIFTED = ("errors balance", "hardly informed", "Factcheck-Bench")
shifts = {
    name: label_shift(subjects[name][0], ASKED, prevalences=GRID, n_splits=SPLITS, seed=SEED)
    for name in SHIFTED
}
shifted = pd.DataFrame(
    [{"population": name, **row} for name, shift in shifts.items() for row in shift.rows()]
)
shown = shifted[shifted.prevalence.round(2).isin([0.2, 0.4, 0.6, 0.8])]
errors = shown.pivot_table(
    "root_mean_square_error", ["population", "prevalence"], "predictor", sort=False
).reset_index()
errors.columns.name = None
errors.round(3)

# %% [markdown]
# ## Real judgements
#
# A sentence counts as judged correct if at least half of its 20 votes say so, a claim if the
# confidence is at least 0.9. The biographies have no judgements, so only their labels are shown, by
# fifth.

# %%
votes = judged_graphs(datasets.load("selfcheck").graphs, "selfcheck")
ALONE = ("", "")  # neither models nor conditions are told apart
real: dict[str, list[ClaimRecord]] = {"SelfCheckGPT votes": votes.records(ALONE, 0.5)}
for name, path in user_data().places("self-judged").items():
    given = judged_claims(read_table(path), ClaimColumns(setting=ASKED))
    real[f"GPT-4, {name}"] = given.records(ALONE, 0.9)

by_position = pd.DataFrame(
    [
        {"subject": name, **row}
        for name, records in real.items()
        for row in in_sample(records, 5, IntervalSettings("delta"))
    ]
)
ahead = pd.DataFrame(
    [
        {"subject": name, **row}
        for name, records in real.items()
        for row in prediction_errors(
            judged_counts(as_claims(records), ASKED, 1, "incorrect")[:, -1:],
            n_splits=SPLITS,
            seed=SEED,
        ).rows()
    ]
)
biographies = claims_of_graphs(datasets.load("factscore").graphs, "factscore").records
table = label_positions(biographies, n_positions=5, intervals=IntervalSettings("delta"))
own = table["factuality"]
fifths = pd.DataFrame(
    {
        "position": table.positions,
        "factuality": own.estimate,
        "factuality_lower": own.lower,
        "factuality_upper": own.upper,
    }
)
WANTED = ["position", "self_known", "self_unknown", "sigma", "factuality", "reading"]
by_position.set_index("subject")[WANTED].round(3)

# %%
RMSE = ["rmse_sigma", "rmse_factuality", "rmse_emq", "sigma_less_factuality", "sigma_less_emq"]
ahead.set_index("subject")[RMSE].round(3)

# %%
fifths.round(3)

# %% [markdown]
# ## The figure

# %%
PREDICTORS = {
    "sigma": ("σ", "black", "-"),
    "factuality": ("factuality of the half", COLOURS[2], DASHES[2]),
    "emq": ("Rogan–Gladen, clipped", COLOURS[0], "-"),
}
BELOW = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "fontsize": 6.5}
with paper_style():
    figure = ShownFigure(figsize=(7.0, 5.3), layout="constrained")
    (first, second), (third, fourth) = figure.subplots(2, 2)

    first.plot((0, 1), (0, 1), color="0.6", linewidth=0.8, linestyle=(0, (1, 1)))
    first.plot((0, 1), (1 - UNKNOWN, KNOWN), color=COLOURS[1], linewidth=1.3)
    crossing, observed = geometry["sigma"], geometry["judged_correct"]
    first.plot(crossing, crossing, "o", color="black", zorder=3)
    first.vlines(crossing, 0, crossing, color="black", linewidth=0.7, linestyle=DASHES[1])
    arrow = {"arrowstyle": "-|>", "color": COLOURS[0], "shrinkA": 0, "shrinkB": 0, "linewidth": 1}
    first.annotate("", (FACTUALITY, observed), (0, observed), arrowprops=arrow)
    first.annotate("", (FACTUALITY, 0), (FACTUALITY, observed), arrowprops=arrow)
    first.text(crossing + 0.02, 0.04, "σ", fontsize=9)
    first.text(FACTUALITY + 0.02, 0.04, "Rogan–Gladen", fontsize=7.5, color=COLOURS[0])
    first.text(0.02, observed + 0.02, "$q$ observed", fontsize=7.5, color=COLOURS[0])
    first.text(0.71, 0.63, "$q(F)$", fontsize=8.5, color=COLOURS[1], va="top")
    first.text(0.88, 0.94, "$q = F$", fontsize=7.5, color="0.45", ha="right")
    first.set(
        xlim=(0, 1),
        ylim=(0, 1),
        xlabel="Factuality $F$",
        ylabel="Share judged correct $q$",
        title="(a) One line, read in two directions",
    )

    generator = np.random.default_rng(SEED)
    for at, row in enumerate(prediction.itertuples()):
        own = samples[samples.population == row.population]
        jitter = at + generator.uniform(-0.25, 0.25, len(own))
        second.plot(own.gap, jitter, ".", color=COLOURS[0], markersize=3, alpha=0.5, mec="none")
        second.plot(row.gap, at, "d", mfc="white", mec="black", markersize=5, zorder=3)
    second.axvline(0, color="black", linewidth=0.6)
    second.set_yticks(range(len(prediction)), prediction.population)
    second.tick_params(axis="y", length=0)
    second.set_ylim(len(prediction) - 0.5, -0.5)
    second.set(
        xlabel="σ of one half less factuality of the other", title="(b) Samples, and their mean"
    )

    titles = {
        "errors balance": "(c) Label shift, a model that knows",
        "hardly informed": "(d) Label shift, a model that hardly knows",
    }
    for axes, (name, title) in zip((third, fourth), titles.items(), strict=True):
        shift = shifts[name]
        axes.plot((0, 1), (0, 1), color="0.6", linewidth=0.8, linestyle=(0, (1, 1)))
        for predictor, (label, colour, dash) in PREDICTORS.items():
            own = shift["predictor"] == predictor
            low, high, mean = (shift[name][own] for name in ("lower", "upper", "mean"))
            axes.fill_between(GRID, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(GRID, mean, color=colour, linestyle=dash, label=label)
        truth = POPULATIONS[name]
        axes.set(
            xlim=(0, 1),
            ylim=(0, 1),
            xlabel="Factuality after the shift",
            ylabel="Predicted factuality",
            title=f"{title}\nSK = {truth.self_known:g}, SU = {truth.self_unknown:g}",
        )
    third.legend(loc="upper left", fontsize=6.5)
figure

# %% [markdown]
# ## What is found

# %%
off = samples.identity_error.max()
print(f"The identity holds in all {len(samples)} samples, to {off:.0e}.")
for row in prediction.itertuples():
    print(
        f"{row.population}: mean σ {row.sigma:.3f}, factuality {row.factuality:.3f}, gap in sample "
        f"{row.in_sample:+.3f}, out of sample {row.gap:+.3f}; σ = F rejected in {row.rejected:.0%} "
        f"of samples; RMSE of σ {row.rmse_sigma:.3f}, of the factuality of the half "
        f"{row.rmse_factuality:.3f}, of EMQ {row.rmse_emq:.3f}."
    )
for row in levels.itertuples():
    print(f"{row.test}: rejects a true σ = F in {row.rejected:.1%} of samples.")
for name, shift in shifts.items():
    off_by = {
        key: shift["root_mean_square_error"][shift["predictor"] == key] for key in ("sigma", "emq")
    }
    worst = {key: float(each.max()) for key, each in off_by.items()}
    best = GRID[off_by["emq"] < off_by["sigma"]]
    print(
        f"Label shift, {name}: σ is off by up to {worst['sigma']:.2f}, EMQ by up to "
        f"{worst['emq']:.2f}; EMQ is the better one at {len(best)} of {len(GRID)} factualities."
    )

first_fifth, last_fifth = fifths.factuality.iloc[0], fifths.factuality.iloc[-2]
print(
    f"Biographies: factuality {first_fifth:.3f} in the first fifth, {last_fifth:.3f} in the last."
)
for name in real:
    rows = by_position[by_position.subject == name]
    last = rows.iloc[-1]
    (error,) = ahead[ahead.subject == name].to_dict("records")
    print(
        f"{name}: σ {last.sigma:.3f}, factuality {last.factuality:.3f}, p {last.clustered:.3g}; "
        f"σ = F rejected in {(rows.reading[:-1] == 'rejected').sum()} of 5 fifths. RMSE of σ less "
        f"that of the labelled half's factuality {error['sigma_less_factuality']:+.3f} "
        f"[{error['sigma_less_factuality_lower']:.3f}, {error['sigma_less_factuality_upper']:.3f}]."
    )

# %% [markdown]
# σ is a statement about errors, not a prediction of factuality. It equals the factuality of its own
# sample only if there are as many unsupported claims judged correct as supported ones judged
# incorrect: at the same factuality it is far too high for a model that trusts itself too much, and
# far too low for a strict one. Out of sample the gap is the same. Splitting tests the same
# hypothesis honestly, and shows what an in-sample test cannot: even if errors balance, σ predicts
# other responses a little worse than the plain factuality of the labelled half, without which SK
# and SU cannot be computed at all. Treating claims as independent rejects a true hypothesis several
# times too often.
#
# Under label shift σ does not move, so it is right for one factuality at most. Reading the line
# backwards from the judgements of the new claims follows the shift, at the price of more variance:
# without a shift it is no better than σ of a model whose errors balance, and for a model that
# hardly knows anything ($SK + SU - 1 = 0.1$) it is of little use.
#
# Real judgements say the same. The votes are far too strict: σ = F is rejected in every fifth, and
# σ of one half predicts the other worse than its plain factuality does. Real factuality does move,
# as the biographies show from their first fifth to their last. `factormodels run
# ours/sigma-on-labels` covers other thresholds, GPT-4's own confidence, and the question whether
# real judgements keep their law while factuality moves.

# %%
write_results(
    NOTEBOOK,
    Artefacts(
        tables={
            "worked": Table(
                worked,
                (Column("quantity", "Quantity"), Column("value", "Value", digits=4)),
                "A model with SK = 0.9 and SU = 0.8, where 30% of the claims are supported.",
            ),
            "prediction": Table(
                prediction,
                (
                    Column("population", "Population"),
                    Column("sigma", "σ", r"$\sigma$", digits=3),
                    Column("factuality", "F", "$F$", digits=3),
                    Column("in_sample", "σ − F in sample", r"$\sigma - F$ in sample", digits=3),
                    Column("gap", "out of sample", digits=3),
                    Column("rejected", "σ = F rejected", r"$\sigma = F$ rejected", digits=2),
                    Column("rmse_sigma", "RMSE σ", r"RMSE $\sigma$", digits=3),
                    Column("rmse_factuality", "RMSE F", "RMSE $F$", digits=3),
                    Column("rmse_emq", "RMSE Rogan–Gladen", "RMSE Rogan--Gladen", digits=3),
                ),
                "Sigma against factuality in sample, and as a prediction of other responses.",
                note=(
                    f"Means over {DRAWN} samples; judgements are drawn, not a model's. Out of "
                    "sample: sigma of one half of the responses less the factuality of the other. "
                    "Rejected: by McNemar's test clustered by response, at 5%. RMSE: of the "
                    "prediction of the other half's factuality; Rogan and Gladen's estimate is "
                    "brought into [0, 1]."
                ),
            ),
            "real": Table(
                by_position,
                (
                    Column("subject", "Judgements"),
                    Column("position", "Position"),
                    interval_column("self_known", "SK", 3),
                    interval_column("self_unknown", "SU", 3),
                    interval_column("sigma", "σ", 3),
                    interval_column("factuality", "F", 3),
                    Column("reading", "σ = F", r"$\sigma = F$"),
                ),
                "Sigma against human labels, by position.",
                note="Linearised 95% intervals over responses; by position corrected by Holm.",
            ),
            "real-prediction": Table(
                ahead,
                (
                    Column("subject", "Judgements"),
                    interval_column("rmse_sigma", "RMSE σ", 3),
                    interval_column("rmse_factuality", "RMSE F", 3),
                    interval_column("rmse_emq", "RMSE EMQ", 3),
                    interval_column("sigma_less_factuality", "σ less F", 3),
                    interval_column("sigma_less_emq", "σ less EMQ", 3),
                ),
                "Errors of predictions of one half of the responses from the other.",
            ),
            "biographies": Table(
                fifths,
                (
                    Column("position", "Position"),
                    interval_column("factuality", "F", 3),
                ),
                "Share of supported claims in 157 biographies by ChatGPT, by position.",
                note="Mean over sentences, with linearised 95% intervals over responses.",
            ),
            "levels": Table(
                levels,
                (
                    Column("test", "Test"),
                    Column("rejected", "Rejected", digits=3),
                    Column("standard_error", "Standard error", digits=3),
                ),
                "Share of samples in which a true hypothesis, sigma = factuality, is rejected at "
                "5%.",
            ),
            "shift": Table(
                errors,
                (
                    Column("prevalence", "Factuality", digits=2),
                    Column("sigma", "RMSE σ", r"RMSE $\sigma$", digits=3),
                    Column("factuality", "Factuality of the half", digits=3),
                    Column("emq", "Rogan–Gladen, clipped", "Rogan--Gladen, clipped", digits=3),
                ),
                "Errors of predictions as the factuality shifts and the law of judgements stays.",
                group="population",
            ),
        },
        figures={"figure": PaperFigure(figure, shifted, "Sigma and what it predicts")},
    ),
)
