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
# incorrect. So two questions, not one:
#
# 1. *In sample*, σ = F is the hypothesis FP = FN, a statement about errors. It is McNemar's test,
#    and since claims of one response are not independent, the test has to know of responses.
# 2. *Out of sample*, does σ of some responses predict the factuality of others better than simply
#    their own factuality?
#
# Rogan and Gladen's estimate reads the same line backwards, from the share judged correct that is
# seen to $\hat F = (q+SU-1)/(SK+SU-1)$.
#
# No language model is asked here. Judgments are first *drawn* at known rates for the human labels
# of Factcheck-Bench, which shows what the formula does. Then they are *real*: the votes that
# SelfCheckGPT published on GPT-3's sentences and, if `factormodels-data.yaml` names files under
# `self-judged`, GPT-4's confidence in its own claims. The labels of 157 biographies by ChatGPT show
# how real factuality moves along a response.

# %%
from dataclasses import replace

import numpy as np
import pandas as pd

from calibration.figures.shown_figure import ShownFigure
from calibration.figures.style import COLORS, DASHES, paper_style
from calibration.intervals import IntervalSettings
from calibration.self_knowledge import (
    ClaimLabel,
    ClaimRecord,
    ModelJudgment,
    Setting,
    as_claims,
    in_sample_balance,
    label_positions,
    out_of_sample,
    prediction_errors,
    rogan_gladen,
    sigma,
)
from calibration.self_knowledge.balance import judged_counts
from experiments.analyses.user_data import user_data
from experiments.columns.judged_claims import judged_claims, judged_graphs
from experiments.columns.options import ClaimColumns
from experiments.columns.placed_claims import claims_of_graphs
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.figures.positions import balance_rows
from experiments.findings.notebook import fast, write_results
from experiments.findings.table import Column, Table, interval_column
from factormodels import datasets
from factormodels.io.tables.data_table import read_table

NOTEBOOK = "04_sigma_formula"
SEED = 20_261_121
DRAWN = 15 if fast() else 200  # samples of each model
SPLITS = 20 if fast() else 100  # of a sample in halves
ASKED = Setting.DIRECT_ASKING

# %% [markdown]
# ## One line, read in two directions
#
# A model with SK = 0.9 and SU = 0.8, and responses of which 30% of the claims are supported.

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
# Four models that err differently judge the claims of Factcheck-Bench, whose human labels stay:
# each judgment is drawn at the model's SK or SU, many times. `identity_error` is how far σ is from
# $F \cdot FP / (F \cdot FP + (1-F) \cdot FN)$, from the counts of a sample; `gap` is σ of one half
# of the responses minus the factuality of the other, over splits in halves; the RMSE are those of
# three predictions of the other half.

# %%
MODELS = {  # SK and SU
    "errors balance": (0.9, 0.7),
    "too trusting": (0.9, 0.4),
    "too strict": (0.5, 0.9),
    "hardly informed": (0.6, 0.5),
}
labeled = claims_of_graphs(datasets.load("factcheck-bench").graphs, "Factcheck-Bench").records
supported = np.array([claim.label is ClaimLabel.SUPPORTED for claim in labeled])
drawn = []
for name, (known, unknown) in MODELS.items():
    for at in range(DRAWN):
        draws = np.random.default_rng(SEED + at).random(len(labeled))
        correct = draws < np.where(supported, known, 1 - unknown)
        claims = as_claims(
            [
                replace(claim, direct_asking=ModelJudgment.TRUE if yes else ModelJudgment.FALSE)
                for claim, yes in zip(labeled, correct, strict=True)
            ]
        )
        row = in_sample_balance(claims, ASKED, n_positions=1).rows()[-1]
        odds = row["factuality"] * row["false_positives"]
        odds /= (1 - row["factuality"]) * row["false_negatives"]
        ahead = out_of_sample(claims, ASKED, n_positions=1, n_splits=SPLITS, seed=SEED).rows()[-1]
        drawn.append(
            {
                "model": name,
                "sigma": row["sigma"],
                "factuality": row["factuality"],
                "in_sample": row["sigma"] - row["factuality"],
                "gap": ahead["difference"],
                "rejected": row["clustered"] <= 0.05,
                "identity_error": abs(odds / (1 + odds) - row["sigma"]),
                **{key: value for key, value in ahead.items() if key.startswith("rmse")},
            }
        )
samples = pd.DataFrame(drawn)
prediction = samples.groupby("model", sort=False).mean().reset_index()
prediction.set_index("model").round(3)

# %% [markdown]
# ## Real judgments
#
# A sentence counts as judged correct if at least half of its 20 votes say so, a claim if the
# confidence is at least 0.9. The biographies have no judgments, so only their labels are shown, by
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
        for row in balance_rows(records, 5, IntervalSettings("delta"))
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
shares = table["factuality"]
fifths = pd.DataFrame(
    {
        "position": table.positions,
        "factuality": shares.estimate,
        "factuality_lower": shares.lower,
        "factuality_upper": shares.upper,
    }
)
WANTED = ["position", "self_known", "self_unknown", "sigma", "factuality", "reading"]
by_position.set_index("subject")[WANTED].round(3)

# %%
RMSE = ["rmse_sigma", "rmse_factuality", "rmse_rogan_gladen", "sigma_minus_factuality"]
ahead.set_index("subject")[RMSE].round(3)

# %%
fifths.round(3)

# %% [markdown]
# ## The figure

# %%
with paper_style():
    figure = ShownFigure(figsize=(7.0, 2.8), layout="constrained")
    first, second = figure.subplots(1, 2)

    first.plot((0, 1), (0, 1), color="0.6", linewidth=0.8, linestyle=(0, (1, 1)))
    first.plot((0, 1), (1 - UNKNOWN, KNOWN), color=COLORS[1], linewidth=1.3)
    crossing, observed = geometry["sigma"], geometry["judged_correct"]
    first.plot(crossing, crossing, "o", color="black", zorder=3)
    first.vlines(crossing, 0, crossing, color="black", linewidth=0.7, linestyle=DASHES[1])
    arrow = {"arrowstyle": "-|>", "color": COLORS[0], "shrinkA": 0, "shrinkB": 0, "linewidth": 1}
    first.annotate("", (FACTUALITY, observed), (0, observed), arrowprops=arrow)
    first.annotate("", (FACTUALITY, 0), (FACTUALITY, observed), arrowprops=arrow)
    first.text(crossing + 0.02, 0.04, "σ", fontsize=9)
    first.text(FACTUALITY + 0.02, 0.04, "Rogan–Gladen", fontsize=7.5, color=COLORS[0])
    first.text(0.02, observed + 0.02, "$q$ observed", fontsize=7.5, color=COLORS[0])
    first.text(0.71, 0.63, "$q(F)$", fontsize=8.5, color=COLORS[1], va="top")
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
        of_model = samples[samples.model == row.model]
        jitter = at + generator.uniform(-0.25, 0.25, len(of_model))
        second.plot(of_model.gap, jitter, ".", color=COLORS[0], markersize=3, alpha=0.5, mec="none")
        second.plot(row.gap, at, "d", mfc="white", mec="black", markersize=5, zorder=3)
    second.axvline(0, color="black", linewidth=0.6)
    second.set_yticks(range(len(prediction)), prediction.model)
    second.tick_params(axis="y", length=0)
    second.set_ylim(len(prediction) - 0.5, -0.5)
    second.set(
        xlabel="σ of one half minus factuality of the other", title="(b) Samples, and their mean"
    )
figure

# %% [markdown]
# ## What is found

# %%
off = samples.identity_error.max()
print(f"The identity holds in all {len(samples)} samples, to {off:.0e}.")
for row in prediction.itertuples():
    print(
        f"{row.model}: mean σ {row.sigma:.3f}, factuality {row.factuality:.3f}, gap in sample "
        f"{row.in_sample:+.3f}, out of sample {row.gap:+.3f}; σ = F rejected in {row.rejected:.0%} "
        f"of samples; RMSE of σ {row.rmse_sigma:.3f}, of the factuality of the half "
        f"{row.rmse_factuality:.3f}, of Rogan-Gladen {row.rmse_rogan_gladen:.3f}."
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
        f"σ = F rejected in {(rows.reading[:-1] == 'rejected').sum()} of 5 fifths. RMSE of σ "
        f"minus that of the labeled half's factuality {error['sigma_minus_factuality']:+.3f} "
        f"[{error['sigma_minus_factuality_lower']:.3f}, "
        f"{error['sigma_minus_factuality_upper']:.3f}]."
    )

# %% [markdown]
# σ is a statement about errors, not a prediction of factuality. It equals the factuality of its own
# sample only if there are as many unsupported claims judged correct as supported ones judged
# incorrect: at the same factuality it is far too high for a model that trusts itself too much, and
# far too low for a strict one. Out of sample the gap is the same. Splitting tests the same
# hypothesis honestly, and shows what an in-sample test cannot: even if errors balance, σ predicts
# other responses about as well as the plain factuality of the labeled half, without which SK and
# SU cannot be computed at all. Rogan-Gladen, which also sees the other half's judgments, is of
# little use for a model that hardly knows anything ($SK + SU - 1 = 0.1$).
#
# Real judgments say the same. The votes are far too strict: σ = F is rejected in every fifth, and
# σ of one half predicts the other worse than its plain factuality does. Real factuality does move,
# as the biographies show from their first fifth to their last. `python
# notebooks/questions/sigma_on_labels.py` covers other thresholds and GPT-4's own confidence.

# %%
write_results(
    NOTEBOOK,
    Artifacts(
        tables={
            "worked": Table(
                worked,
                (Column("quantity", "Quantity"), Column("value", "Value", digits=4)),
                "A model with SK = 0.9 and SU = 0.8, where 30% of the claims are supported.",
            ),
            "prediction": Table(
                prediction,
                (
                    Column("model", "Model"),
                    Column("sigma", "σ", r"$\sigma$", digits=3),
                    Column("factuality", "F", "$F$", digits=3),
                    Column("in_sample", "σ − F in sample", r"$\sigma - F$ in sample", digits=3),
                    Column("gap", "out of sample", digits=3),
                    Column("rejected", "σ = F rejected", r"$\sigma = F$ rejected", digits=2),
                    Column("rmse_sigma", "RMSE σ", r"RMSE $\sigma$", digits=3),
                    Column("rmse_factuality", "RMSE F", "RMSE $F$", digits=3),
                    Column(
                        "rmse_rogan_gladen", "RMSE Rogan–Gladen", "RMSE Rogan--Gladen", digits=3
                    ),
                ),
                "Sigma against factuality in sample, and as a prediction of other responses.",
                note=(
                    f"Means over {DRAWN} samples; judgments are drawn, not a model's. Out of "
                    "sample: sigma of one half of the responses minus the factuality of the other. "
                    "Rejected: by McNemar's test clustered by response, at 5%. RMSE: of the "
                    "prediction of the other half's factuality."
                ),
            ),
            "real": Table(
                by_position,
                (
                    Column("subject", "Judgments"),
                    Column("position", "Position"),
                    interval_column("self_known", "SK", 3),
                    interval_column("self_unknown", "SU", 3),
                    interval_column("sigma", "σ", 3),
                    interval_column("factuality", "F", 3),
                    Column("reading", "σ = F", r"$\sigma = F$"),
                ),
                "Sigma against human labels, by position.",
                note="Linearized 95% intervals over responses; by position corrected by Holm.",
            ),
            "real-prediction": Table(
                ahead,
                (
                    Column("subject", "Judgments"),
                    interval_column("rmse_sigma", "RMSE σ", 3),
                    interval_column("rmse_factuality", "RMSE F", 3),
                    interval_column("rmse_rogan_gladen", "RMSE Rogan–Gladen", 3),
                    interval_column("sigma_minus_factuality", "σ minus F", 3),
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
                note="Mean over sentences, with linearized 95% intervals over responses.",
            ),
        },
        figures={"figure": PaperFigure(figure, samples, "Sigma and what it predicts")},
    ),
)
