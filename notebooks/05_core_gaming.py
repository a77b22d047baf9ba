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
# # 5. Core: gaming a score and guarding it
#
# **Question.** How much does a response gain by padding itself with true sentences, and which part
# of Core takes the gain away?
#
# **Argument.** Factual precision is the share of claims that are supported. Appending true
# sentences raises it without adding information: one can repeat a true claim over and over, or say
# what is true of nearly everything ("Marie Curie is a person"). Core scores a subset of the claims.
# Against repetition, it leaves out claims that others entail. Against emptiness, it gives each
# claim a weight: the less it follows from a bleached sentence about the same kind of subject, the
# more it weighs. An integer program finds the heaviest subset without conflicts.
#
# Such a guard is only as good as its judge of entailment. So we compare four: no guard; Core with
# *uniform* weights, which lacks the second half; Core whose judge compares *words*; and Core whose
# judge *knows* the paraphrases, as a perfect one would (so does the one with uniform weights). Each
# is tried with both kinds of padding on fourteen responses, as they are and with half of their true
# claims made false. A guarded score should not rise with padding, and no corrupted response should
# score above its clean version.
#
# The responses are the embedded demonstration corpus with its labels, and after it real
# biographies; the padding comes from templates of this project. A language model that writes to
# pass may find other ways: `gaming` takes any padding.

# %%
from pathlib import Path

import numpy as np
import pandas as pd

from calibration.claims.counts import f1_at_k_prime
from calibration.figures.shown_figure import ShownFigure
from calibration.figures.style import COLORS, DASHES, paper_style
from experiments.evaluators.core_choices import CoreChoices
from experiments.evaluators.gaming import (
    GAMMA,
    NO_GUARD,
    VERSIONS,
    Guard,
    by_inference,
    by_kind,
    by_labels,
    curves,
    gains,
    gaming,
)
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.notebook import fast, write_results
from experiments.findings.table import Column, Table, interval_column
from factormodels import datasets
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.selection import CachedRelations

NOTEBOOK = "05_core_gaming"
SEED = 0
APPENDED = 20
LENGTHS = (APPENDED,) if fast() else (2, 5, 10, 15, APPENDED, 30)
CORRUPTIONS = 1 if fast() else 5

graphs = datasets.load("demonstration").graphs
# Guards and draws of false claims share most pairs: each is judged once.
WORDS = CachedRelations(LexicalRelations())
KNOWN = "Core, paraphrases known"
GUARDS = {
    "Core, uniform weights": Guard(CoreChoices(WORDS, "uniform"), templates_known=True),
    "Core, words compared": Guard(CoreChoices(WORDS)),
    KNOWN: Guard(CoreChoices(WORDS), templates_known=True),
}
LABELS = "human labels"
PADDINGS = ("repetitive", "uninformative")

# %% [markdown]
# ## One row per score
#
# Every response, as it is, corrupted or left out, is padded in each way and scored by its labels
# and by FR1, under each guard. Half of the true claims of a corrupted response are made false,
# except for the one that is repeated.

# %%
scores = gaming(
    graphs,
    GUARDS,
    assessors={LABELS: by_labels, "FR1": by_inference("FR1")},
    counts=LENGTHS,
    versions=VERSIONS,
    seed=SEED,
)
scores.sample(5, random_state=SEED).round(3)

# %% [markdown]
# ## What twenty sentences gain
#
# For each guard and padding, the precision of each padded response minus that of the response as it
# was, scored by its labels. The interval is Student's, over the fourteen responses.

# %%
kinds = by_kind(scores, APPENDED)
means = kinds[kinds.assessor == LABELS].set_index(["guard", "kind"])
gained = gains(scores, APPENDED)
gained = gained[gained.assessor == LABELS].set_index(["guard", "kind"])
points = curves(scores[scores.assessor == LABELS])
raised = points[(points.version == "clean") & (points.appended == APPENDED)]
raised = raised.set_index(["guard", "padding"]).raised
rows = []
for guard in (NO_GUARD, *GUARDS):
    for padding in PADDINGS:
        kind = f"{padding}, appended"
        before, after = means.loc[(guard, "normal")], means.loc[(guard, kind)]
        # Every guard has the gain without a guard beside its own.
        gain = gained.loc[(KNOWN if guard == NO_GUARD else guard, kind)]
        name = "plain" if guard == NO_GUARD else "core"
        rise = gain[name]
        rows.append(
            {
                "guard": guard,
                "padding": padding,
                "claims": before.counted,
                "claims_padded": after.counted,
                "clean": before.precision,
                "padded": after.precision,
                "rise": rise,
                # Where no response moved there is no spread to make an interval of.
                "lower": rise if np.isnan(gain[f"{name}_lower"]) else gain[f"{name}_lower"],
                "upper": rise if np.isnan(gain[f"{name}_upper"]) else gain[f"{name}_upper"],
                "raised": raised[guard, padding],
            }
        )
rises = pd.DataFrame(rows)
rises.round(3)

# %% [markdown]
# ## Corrupted responses
#
# `passes` is the share of responses that, corrupted and padded, score above their own clean version
# under the same guard.

# %%
draws = [points]
for draw in range(1, CORRUPTIONS):
    again = gaming(
        graphs,
        GUARDS,
        counts=LENGTHS,
        versions=("corrupted", "swapped"),
        seed=SEED + len(graphs) * draw,
    )
    draws.append(curves(again))
lines = pd.concat(draws)
lines["passes"] = lines.raised / lines.responses
lines = lines.groupby(["guard", "version", "padding", "appended"], sort=False, as_index=False)[
    ["precision", "passes"]
].mean()
lines[lines.appended.isin([0, APPENDED])].round(3)

# %% [markdown]
# ## Other ways to see it
#
# The score of an assessor that is not the labels (FR1, from the recorded relations), and F1@K′ with
# K′ the number of claims of the normal response, which punishes length without any selection. A
# response that is padding alone is what the paper's table 4 shows.

# %%
table = kinds[kinds.guard.isin((NO_GUARD, KNOWN))].copy()
table["core"] = np.where(table.guard == NO_GUARD, "without", "with")
table.round(3)

# %% [markdown]
# The price of selection is what it takes from responses that nobody padded:

# %%
normal = scores[(scores.appended == 0) & (scores.version == "clean") & (scores.assessor == LABELS)]
normal = normal.drop_duplicates(["response", "guard"])
normal = normal.groupby("guard")[["counted", "supported"]].sum()
price = pd.DataFrame(
    [
        {"label": label, "claims": groups[NO_GUARD], "selected": groups[KNOWN]}
        for label, groups in (
            ("true", normal.supported),
            ("false", normal.counted - normal.supported),
        )
    ]
)
price["left_out"] = 1 - price.selected / price.claims
price.round(3)

# %% [markdown]
# A response that says one true thing in other words, as often as K′ asks for, under F1@K′ alone:

# %%
lengths = [len(graph.atoms) for graph in graphs]
repeated = f1_at_k_prime(lengths, np.zeros(len(graphs)), lengths, GAMMA).mean()
repeated.round(3)

# %% [markdown]
# ## Real biographies
#
# The same on 153 biographies of ChatGPT whose claims people labeled, with a third kind of padding:
# true claims of *other* biographies. Their texts are not included, so the numbers are those that
# `notebooks/questions/core_on_biographies.py` computed from the owners' file.

# %%
KEPT = Path("../docs/results/core-on-biographies")
real = pd.read_csv(KEPT / "gains.csv")
real = real[(real.judge == "words alone") & real.kind.str.endswith("appended")]
sentences = pd.read_csv(KEPT / "kept.csv", dtype={"sentence": str})
real[["kind", "plain", "core", "core_lower", "core_upper"]].round(3)

# %% [markdown]
# ## The figure

# %%
LOOKS = dict(zip((NO_GUARD, *GUARDS), (COLORS[1], COLORS[4], COLORS[5], COLORS[0]), strict=True))
KINDS = {"repetitive": ("o", DASHES[0]), "uninformative": ("s", DASHES[2])}
with paper_style():
    figure = ShownFigure(figsize=(6.9, 2.6), layout="constrained")
    *panels, right = figure.subplots(1, 5, width_ratios=(1, 1, 1, 1, 1.9))
    for axes, guard, letter in zip(panels, LOOKS, "abcd", strict=True):
        clean = lines[
            (lines.guard == NO_GUARD) & (lines.version == "clean") & (lines.appended == 0)
        ]
        axes.axhline(clean.precision.iloc[0], color="0.45", linewidth=0.7, linestyle=DASHES[1])
        for padding, marker, dash in (
            ("repetitive", "o", DASHES[0]),
            ("uninformative", "s", DASHES[2]),
        ):
            line = lines[
                (lines.padding == padding) & (lines.guard == guard) & (lines.version == "corrupted")
            ].sort_values("appended")
            filled = padding == "repetitive"
            axes.plot(
                line.appended,
                line.precision,
                color=LOOKS[guard],
                linestyle=dash,
                marker=marker,
                markersize=3.5 if filled else 5.0,
                mfc=LOOKS[guard] if filled else "white",
                zorder=3 if filled else 2,
            )
        axes.set(ylim=(0, 1), title=f"({letter}) {guard.replace(', ', chr(10))}")
        axes.title.set_fontsize(7.5)
        axes.set_xticks([0, *LENGTHS] if fast() else [0, 10, 20, 30])
        axes.tick_params(labelleft=axes is panels[0])
    panels[0].set_ylabel("Factual precision, corrupted responses")
    panels[0].text(0, clean.precision.iloc[0] + 0.015, "clean", fontsize=6.5, color="0.35")
    figure.supxlabel("Sentences appended", fontsize=8.0, x=0.33)

    for shift, padding in ((-0.13, "repetitive"), (0.13, "uninformative")):
        of_padding = rises[rises.padding == padding].reset_index()
        heights = np.arange(len(of_padding)) + shift
        right.hlines(
            heights,
            of_padding.lower,
            of_padding.upper,
            color=[LOOKS[guard] for guard in of_padding.guard],
            linewidth=1.1,
        )
        for at, row in zip(heights, of_padding.itertuples(), strict=True):
            filled = padding == "repetitive"
            right.plot(
                row.rise,
                at,
                "o" if filled else "s",
                markersize=4.5,
                mec=LOOKS[row.guard],
                mfc=LOOKS[row.guard] if filled else "white",
            )
    right.plot([], [], "o", color="0.3", markersize=4.5, label="repetitive")
    right.plot([], [], "s", mec="0.3", mfc="white", markersize=4.5, label="uninformative")
    right.axvline(0, color="black", linewidth=0.6)
    right.set_yticks(range(len(LOOKS)), [name.replace(", ", ",\n") for name in LOOKS])
    right.tick_params(axis="y", length=0)
    right.set_ylim(len(LOOKS) - 0.5, -0.5)
    right.set(xlabel=f"Rise of precision by {APPENDED} sentences", title="(e) Clean responses, 95%")
    right.legend(loc="lower right", fontsize=6.5)
figure

# %% [markdown]
# ## What is found

# %%
for row in rises.itertuples():
    print(
        f"{row.guard}, {row.padding}: {row.clean:.3f} -> {row.padded:.3f}, rise {row.rise:+.3f} "
        f"[{row.lower:+.3f}, {row.upper:+.3f}], {row.raised} of {len(graphs)} responses rise."
    )
last = lines[(lines.version == "corrupted") & (lines.appended == APPENDED)]
for row in last.itertuples():
    print(
        f"Corrupted, {APPENDED} {row.padding}, {row.guard}: {row.precision:.3f}; "
        f"{row.passes:.0%} pass their clean version."
    )
labeled = table[table.assessor == LABELS].set_index(["core", "kind"])
print(
    f"F1@K' without Core: {labeled.f1['without', 'normal']:.3f} normal, "
    f"{labeled.f1['without', 'repetitive, appended']:.3f} padded, "
    f"{repeated:.3f} for K' paraphrases of one claim."
)
for row in price.itertuples():
    print(f"Price: of {row.claims} {row.label} claims that nobody padded {row.left_out:.0%} go.")
for row in real.itertuples():
    print(
        f"Real biographies, {row.kind}: gain {row.plain:.3f} without Core, {row.core:.3f} "
        f"[{row.core_lower:.3f}, {row.core_upper:.3f}] with it (words)."
    )
whole = sentences.set_index("sentence").loc["all"]
print(
    f"Of their {whole.claims:,.0f} claims {whole.kept:.0%} are kept; the share of true ones "
    f"changes by {whole.change:+.3f} [{whole.change_lower:+.3f}, {whole.change_upper:+.3f}]."
)

# %% [markdown]
# Twenty true sentences lift every response, whatever they say, and lift most corrupted ones above
# their clean versions: unguarded precision can be bought. Each half of Core stops one way of buying
# it. Leaving out entailed claims is enough against repetition, with any weights. Against sentences
# that say nothing, uniform weights leave a third of the rise or more, until the sentences run out;
# weights by informativeness are needed. With a judge that knows the paraphrases, the guarded score
# does not move at all. With one that compares words, about a twentieth of the unguarded rise gets
# through at twenty sentences, and more beyond that for sentences that say nothing; this is the
# judge's error, not Core's. The case is an easy one, because padding from templates keeps the words
# of what it repeats.
#
# It has a price: selection leaves out claims of honest responses too, true ones more often than
# false ones here, so that clean precision falls a little. F1@K′ punishes padding without selecting,
# but needs somebody to count the claims, and exactly that number of paraphrases of one claim scores
# a perfect 1. Precision after Core has the opposite blind spot: it is 1 for a response that only
# repeats one true claim, as long as that claim is kept, and does not say how much is missing.
#
# Real biographies confirm both halves, at the same price, and show a third way of buying precision,
# for which Core was not made: true claims about somebody else are neither redundant nor empty. All
# of them are kept, and since fewer of the response's own claims remain, they count for more than
# without Core.

# %%
write_results(
    NOTEBOOK,
    Artifacts(
        tables={
            "gains": Table(
                rises,
                (
                    Column("padding", "Padding"),
                    Column("claims", "Claims", digits=1),
                    Column("claims_padded", "padded", digits=1),
                    Column("clean", "Precision", digits=3),
                    Column("padded", "padded", digits=3),
                    Column("rise", "Rise", digits=3, lower="lower", upper="upper"),
                    Column("raised", "Responses that rise", digits=0),
                ),
                f"Factual precision of {len(graphs)} responses before and after {APPENDED} true "
                "sentences are appended.",
                group="guard",
                note="95% intervals over responses, Student's t; points where no response moves.",
            ),
            "corrupted": Table(
                last,
                (
                    Column("guard", "Guard"),
                    Column("precision", "Precision", digits=3),
                    Column("passes", "Pass the clean version", digits=2),
                ),
                f"Responses half of whose true claims are turned false, with {APPENDED} true "
                "sentences appended.",
                group="padding",
            ),
            "kinds": Table(
                table,
                (
                    Column("kind", "Response"),
                    Column("core", "Core"),
                    Column("counted", "Claims", digits=1),
                    Column("precision", "Precision", digits=3),
                    Column("f1", "F1@K′", "F1@$K'$", digits=3),
                ),
                "Normal and padded responses with and without Core, paraphrases known.",
                group="assessor",
            ),
            "price": Table(
                price,
                (
                    Column("label", "Label"),
                    Column("claims", "Claims", digits=0),
                    Column("selected", "Selected", digits=0),
                    Column("left_out", "Left out", digits=2),
                ),
                "What Core with paraphrases known leaves out of responses that nobody padded.",
            ),
            "real": Table(
                real,
                (
                    Column("kind", "Padding"),
                    interval_column("plain", "Gain without Core", 3),
                    interval_column("core", "with Core", 3),
                    interval_column("kept_off", "kept off", 3),
                ),
                "What padding gains in precision on 153 labeled biographies.",
                note="95% intervals over biographies, paired.",
            ),
        },
        figures={"figure": PaperFigure(figure, lines, "Padding a response, and guards")},
    ),
)
