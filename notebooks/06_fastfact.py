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
# # 6. FaStfact: counting claims, and which need no search
#
# **Question.** What does F1@K′ repair in F1@K, and at which confidence can a claim go without a
# search?
#
# **Argument.** F1@K (SAFE) is the harmonic mean of precision and $\min(S/K, 1)$: however many
# supported claims a response has, more of them never hurt. FaStfact takes the number K′ of claims
# that *people* find in the response and the recall $2/(1 + e^{\gamma|S-K'|})$, which falls on both
# sides of K′, so that neither leaving claims out nor multiplying them should pay.
#
# FaStfact also asks the model that extracts claims for a label, and searches only for those whose
# label is unsure or whose probability is at most a threshold θ. That saves calls and searches at
# the cost of errors; θ sets both. `choose_threshold` finds the lowest θ at which the share of wrong
# labels among skipped claims is below a target, with 95% confidence, from claims whose truth is
# known, whether or not the confidences are calibrated.
#
# Claims and labels are those of Factcheck-Bench, 631 in 92 responses. No language model is asked:
# confidences are *simulated*, $P(c \le x) = x^4$, right with probability $c$ (calibrated) or $c^2$
# (overconfident), and a search is assumed to find the truth. So the costs are formulas, and the
# errors show what thresholds do, not what any model does.

# %%
import numpy as np
import pandas as pd

from calibration.claims.counts import (
    ClaimCounts,
    count_alignment,
    f1_at_k_prime,
    gamma_like_f1_at_k,
)
from calibration.figures.shown_figure import ShownFigure
from calibration.figures.style import COLORS, DASHES, MARKERS, paper_style
from calibration.scores.measures import choose_k, f1_of_counts
from experiments.analyses.judged_claims import counts_of, judged_graphs
from experiments.columns.placed_claims import claims_of_graphs
from experiments.evaluators.calls.costs import METHODS, Load
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.notebook import fast, write_results
from experiments.findings.table import Column, Table
from factormodels import datasets
from factormodels.extraction.preverification import choose_threshold

NOTEBOOK = "06_fastfact"
SEED = 20_261_121
DRAWN = 10 if fast() else 500  # pre-verifications of the benchmark
SAMPLES = 80 if fast() else 1000  # from which a threshold is chosen
GAMMA = 0.1
STRIDE, SHOWN = 10, 0.95  # sentences per call, and the θ that is printed
SHARPNESS = 4

responses = [
    graph for graph in judged_graphs(datasets.load("factcheck-bench").graphs) if graph.claims
]
human = counts_of(responses)
k = float(choose_k("median", human.verifiable.astype(int))[0])
print(f"{len(responses)} responses, {human.verifiable.sum():.0f} claims, K = {k:g} (median)")

# %% [markdown]
# ## Verbosity
#
# First every claim of a response, true or false, is counted $c$ times, as by an extraction that
# leaves out or splits and repeats. Then $n$ more true claims are appended, as by a response that
# pads itself. K′ stays what people counted, as does K. γ is 0.1, or that at which the mean F1@K′ is
# the mean F1@K.

# %%
matched = gamma_like_f1_at_k(human.supported, human.unsupported, human.verifiable, k)
SCORES = {
    "F1@K": lambda s, n: f1_of_counts(s, s + n, k),
    "F1@K′": lambda s, n: f1_at_k_prime(s, n, human.verifiable, GAMMA),
    "F1@K′, γ matched": lambda s, n: f1_at_k_prime(s, n, human.verifiable, matched),
    "precision": lambda s, n: s / (s + n),
}
ways = {
    "counted c times": [
        (c, human.supported * c, human.unsupported * c) for c in np.linspace(0.25, 4, 76)
    ],
    "true claims appended": [(n, human.supported + n, human.unsupported) for n in range(0, 41)],
}
verbosity = pd.DataFrame(
    [
        {"way": way, "amount": float(amount), "score": name, "mean": float(score(s, n).mean())}
        for way, steps in ways.items()
        for amount, s, n in steps
        for name, score in SCORES.items()
    ]
)
best_of_each = []
for (way, name), curve in verbosity.groupby(["way", "score"], sort=False):
    honest = curve[curve.amount == (1.0 if way == "counted c times" else 0.0)]
    best = curve.loc[curve["mean"].idxmax()]
    best_of_each.append(
        {
            "way": way,
            "score": name,
            "honest": honest["mean"].item(),
            "best": best["mean"],
            "at": best.amount,
            "gain": best["mean"] - honest["mean"].item(),
            "last": curve["mean"].iloc[-1],
        }
    )
peaks = pd.DataFrame(best_of_each)
print(f"matched γ = {matched:.4f}")
peaks.round(3)

# %% [markdown]
# ## What a threshold does
#
# For each θ the share of claims that is still verified, the share of wrong labels among the
# skipped, in closed form, and what becomes of the benchmark's scores: the mean over responses of
# |ΔF1@K′|, and the difference of the means, in which errors cancel and which is what FaStfact's
# tables print. Calls and searches are per response.

# %%
labeled = claims_of_graphs(datasets.load("factcheck-bench").graphs, "Factcheck-Bench").records
names = {response.id: position for position, response in enumerate(responses)}
owner = np.array([names[record.response] for record in labeled])
supported = np.array([record.label == "S" for record in labeled])
sentences = {record.response: record.sentences for record in labeled}
POWERS = {"calibrated": 1, "overconfident": 2}
THETAS = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)

generator = np.random.default_rng(SEED)
rows = []
for model, power in POWERS.items():
    changes = np.zeros((len(THETAS), 3))
    for _ in range(DRAWN):
        confidence = generator.random(len(labeled)) ** (1 / SHARPNESS)
        right = generator.random(len(labeled)) < confidence**power
        for at, theta in enumerate(THETAS):
            answered = np.where((confidence > theta) & ~right, ~supported, supported)
            counts = ClaimCounts(
                np.bincount(owner, answered, len(responses)),
                np.bincount(owner, ~answered, len(responses)),
            )
            change = count_alignment(counts, human, GAMMA)
            changes[at] += change.f1, change.f1_of_means, (answered != supported).mean()
    for theta, (f1, of_means, wrong) in zip(THETAS, changes / DRAWN, strict=True):
        verified = theta**SHARPNESS
        costs = [
            METHODS["FaStfact"](
                Load(sentences[response.id], len(response.claims), unsure=verified, stride=STRIDE)
            )
            for response in responses
        ]
        skipped = 1 - verified
        above = 1 - theta ** (SHARPNESS + power)
        rows.append(
            {
                "model": model,
                "theta": theta,
                "verified": verified,
                "error": 1 - SHARPNESS / (SHARPNESS + power) * above / skipped
                if skipped
                else np.nan,
                "wrong": wrong,
                "f1": f1,
                "f1_of_means": of_means,
                "calls": np.mean([cost.calls for cost in costs]),
                "searches": np.mean([cost.searches for cost in costs]),
            }
        )
thresholds = pd.DataFrame(rows)
thresholds.round(3)

# %%
methods = pd.DataFrame(
    [
        {
            "method": name,
            "calls": np.mean([cost.calls for cost in each]),
            "searches": np.mean([cost.searches for cost in each]),
        }
        for name in ("FactScore", "SAFE", "VeriScore")
        for each in [[METHODS[name](Load(sentences[r.id], len(r.claims))) for r in responses]]
    ]
)
methods.round(1)

# %% [markdown]
# ## Choosing the threshold
#
# From 1000 labeled claims, for an error of at most 0.1. In the second case they are twenty claims
# of each of fifty responses, of which four fifths err together; the share of wrong labels at each
# confidence is the same. A choice *holds* if the true error above the threshold is within the
# target, or nothing is skipped.

# %%
TARGET, N_CLAIMS, N_RESPONSES, TOGETHER = 0.1, 1000, 50, 0.8
of = np.repeat(np.arange(N_RESPONSES), N_CLAIMS // N_RESPONSES)
rows = []
for model, power in POWERS.items():
    for claims in ("independent", "20 of a response"):
        chosen, errors = [], []
        for _ in range(SAMPLES):
            confidence = generator.random(N_CLAIMS) ** (1 / SHARPNESS)
            luck = generator.random(N_CLAIMS)
            if claims != "independent":
                shared = generator.random(N_RESPONSES)[of]
                luck = np.where(generator.random(N_CLAIMS) < TOGETHER, shared, luck)
            threshold = choose_threshold(
                confidence.tolist(), (luck < confidence**power).tolist(), TARGET
            )
            above = 1 - threshold.value ** (SHARPNESS + power)
            skipped = 1 - threshold.value**SHARPNESS
            chosen.append(threshold.value)
            errors.append(
                1 - SHARPNESS / (SHARPNESS + power) * above / skipped if threshold.skipped else 0.0
            )
        rows.append(
            {
                "model": model,
                "claims": claims,
                "threshold": np.median(chosen),
                "skipped": np.mean(1 - np.array(chosen) ** SHARPNESS),
                "error": np.mean(errors),
                "worst": np.max(errors),
                "holds": np.mean(np.array(errors) <= TARGET),
            }
        )
choices = pd.DataFrame(rows)
choices.round(3)

# %% [markdown]
# ## The figure

# %%
LOOKS = {
    "F1@K": (COLORS[1], DASHES[1]),
    "F1@K′": (COLORS[0], "-"),
    "F1@K′, γ matched": (COLORS[0], DASHES[2]),
}
with paper_style():
    figure = ShownFigure(figsize=(7.0, 5.0), layout="constrained")
    (first, second), (third, fourth) = figure.subplots(2, 2)
    for axes, way in ((first, "counted c times"), (second, "true claims appended")):
        of_way = verbosity[verbosity.way == way]
        for name, (color, dash) in LOOKS.items():
            line = of_way[of_way.score == name]
            axes.plot(line.amount, line["mean"], color=color, linestyle=dash, label=name)
        axes.set(ylim=(0, 1), ylabel="Mean score")
    for row in peaks[peaks.score.str.startswith("F1@K′")].itertuples():
        axes = first if row.way == "counted c times" else second
        axes.plot(row.at, row.best, "o", color=COLORS[0], markersize=4, mfc="white", zorder=3)
    first.axvline(1, color="0.7", linewidth=0.6, zorder=0)
    first.set(xlabel="Times that every claim is counted", title="(a) Verbose extraction")
    first.set_xlim(0.25, 4)
    second.set(xlabel="True claims appended", title="(b) Padded response", xlim=(-0.5, 40))
    second.legend(loc="center right", bbox_to_anchor=(1.0, 0.7), fontsize=6.5)

    shown = {"calibrated": (COLORS[2], MARKERS[0]), "overconfident": (COLORS[3], MARKERS[1])}
    across = np.linspace(0, 0.999, 400)
    third.plot(across, 1 - across**SHARPNESS, color="0.3", linestyle=DASHES[1], label="skipped")
    for model, (color, _) in shown.items():
        power = POWERS[model]
        rate = SHARPNESS / (SHARPNESS + power)
        rate = 1 - rate * (1 - across ** (SHARPNESS + power)) / (1 - across**SHARPNESS)
        dash = DASHES[0] if model == "calibrated" else DASHES[2]
        third.plot(across, rate, color=color, linestyle=dash, label=f"wrong of these, {model}")
        choice = choices[(choices.model == model) & (choices.claims == "independent")].iloc[0]
        third.plot(choice.threshold, choice.error, "D", color=color, mfc="white", markersize=5)
    third.axhline(TARGET, color="0.7", linewidth=0.6, zorder=0)
    third.set(
        xlabel="Threshold θ",
        ylabel="Share",
        title="(c) What a threshold skips",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    third.legend(loc="center left", bbox_to_anchor=(0.0, 0.6), fontsize=6.5)

    for model, (color, marker) in shown.items():
        of_model = thresholds[thresholds.model == model]
        fourth.plot(
            of_model.calls, of_model.f1, color=color, marker=marker, markersize=3.5, label=model
        )
    of_model = thresholds[thresholds.model == "overconfident"]
    for row in of_model[of_model.theta.isin([0.5, 0.7, 0.8, 0.9, 0.95, 1.0])].itertuples():
        fourth.annotate(
            f"{row.theta:g}", (row.calls, row.f1), (3, 3), textcoords="offset points", fontsize=6.5
        )
    verified = methods.set_index("method").calls
    fourth.axvline(verified["VeriScore"], color="0.6", linewidth=0.7, linestyle=DASHES[1])
    fourth.text(
        verified["VeriScore"] + 0.15,
        of_model.f1.max(),
        f"VeriScore\n(SAFE: {verified['SAFE']:.1f})",
        fontsize=6.5,
        va="top",
        color="0.35",
    )
    fourth.set(
        xlabel="Calls of the model per response",
        ylabel="Mean |ΔF1@K′| of a response",
        title="(d) Error against cost, by θ",
        xlim=(0, 12.5),
        ylim=(-0.005, None),
    )
    fourth.legend(loc="upper center", fontsize=6.5)
figure

# %% [markdown]
# ## What is found

# %%
print(f"A response has {human.unsupported.mean():.1f} unsupported claims on average.")
for row in peaks.itertuples():
    print(
        f"{row.score}, {row.way}: {row.honest:.3f} as it is, at most {row.best:.3f} at "
        f"{row.at:.3g}, in the end {row.last:.3f}."
    )
for row in thresholds[thresholds.theta == SHOWN].itertuples():
    print(
        f"θ = {row.theta:g}, {row.model}: {row.verified:.0%} verified, {row.error:.1%} of the "
        f"skipped wrong; |ΔF1@K'| {row.f1:.4f} per response, {row.f1_of_means:.4f} of the means; "
        f"{row.calls:.1f} calls and {row.searches:.1f} searches."
    )
for row in methods.itertuples():
    print(f"{row.method}: {row.calls:.1f} calls, {row.searches:.1f} searches.")
for row in choices.itertuples():
    print(
        f"Chosen, {row.model}, {row.claims}: θ {row.threshold:.2f}, {row.skipped:.0%} skipped, "
        f"error {row.error:.3f} (worst {row.worst:.3f}); holds in {row.holds:.1%}."
    )

# %% [markdown]
# F1@K rewards talking: it rises with every copy of a claim, up to K supported ones, and with every
# true claim appended. F1@K′ is highest, on average, if claims are counted as people count them, and
# falls to nothing for a heavily padded response. But it compares S with K′, and people's K′
# includes false claims, so it still pays to append about as many true claims as the response has
# unsupported ones. How much it pays, like the score itself, depends on γ, which the paper does not
# print. If γ is chosen so that the mean equals that of F1@K, a response with a dozen claims too
# many scores next to nothing.
#
# Pre-verification trades calls for errors, at first at a good rate: at θ = 0.95 a sixth of the
# calls is saved, and the scores of responses hardly move. For an overconfident model the same θ
# means twice the error, so one should choose the error and not θ: thresholds chosen from labeled
# claims meet the target for both models, at the price of skipping far fewer claims of the
# overconfident one. That holds if claims are independent. If the claims of a response err together,
# the same number of them is worth less, and with the calibrated model the target is missed more
# often than the promised one time in twenty. The difference of mean scores, which FaStfact's tables
# print, is smaller throughout, because errors in both directions cancel in it: a mean can stay the
# same while responses change places.

# %%
write_results(
    NOTEBOOK,
    Artifacts(
        tables={
            "verbosity": Table(
                peaks,
                (
                    Column("score", "Score"),
                    Column("honest", "As it is", digits=3),
                    Column("best", "Best", digits=3),
                    Column("at", "at", digits=2),
                    Column("gain", "Gain", digits=3),
                    Column("last", "In the end", digits=3),
                ),
                "Scores of Factcheck-Bench as claims are multiplied (up to 4 times) or true ones "
                "appended (up to 40).",
                group="way",
                note=f"K is {k:g}, gamma {GAMMA:g}; matched: {matched:.4f}.",
            ),
            "thresholds": Table(
                thresholds,
                (
                    Column("theta", "θ", r"$\theta$", digits=2),
                    Column("verified", "Verified", digits=3),
                    Column("error", "Wrong of skipped", digits=3),
                    Column("f1", "Mean |ΔF1@K′|", r"Mean $|\Delta$F1@$K'|$", digits=4),
                    Column("f1_of_means", "of means", digits=4),
                    Column("calls", "Calls", digits=1),
                    Column("searches", "Searches", digits=1),
                ),
                "What a threshold of pre-verification costs, per response of Factcheck-Bench.",
                group="model",
                note="Confidences are simulated, and a search is taken to find the truth.",
            ),
            "methods": Table(
                methods,
                (
                    Column("method", "Method"),
                    Column("calls", "Calls", digits=1),
                    Column("searches", "Searches", digits=1),
                ),
                "Calls and searches per response of methods that verify every claim.",
            ),
            "choices": Table(
                choices,
                (
                    Column("claims", "Claims"),
                    Column("threshold", "Median θ", r"Median $\theta$", digits=3),
                    Column("skipped", "Skipped", digits=3),
                    Column("error", "Mean error", digits=3),
                    Column("worst", "Worst", digits=3),
                    Column("holds", "Holds", digits=3),
                ),
                f"Thresholds chosen from {N_CLAIMS} claims for an error of at most {TARGET:g}.",
                group="model",
                note=f"{SAMPLES} samples each; of 20 claims four fifths err together.",
            ),
        },
        figures={"figure": PaperFigure(figure, verbosity, "Verbosity and pre-verification")},
    ),
)
