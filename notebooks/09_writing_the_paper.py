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
# # 9. Writing the paper: from a study to a page
#
# **Question.** FactReasoner trusts every passage with a prior of 0.99. Does it matter, and how does
# an answer become tables, stars, a figure and a page that anybody can make again?
#
# **Argument.** How far the posterior of a claim moves from 0.5 depends on how far its passages are
# believed. With a prior $\pi$ of a passage that entails the claim with probability $p$, the paper's
# encoding gives
#
# $$\frac{P(a)}{P(\lnot a)} = \frac{p}{\pi (1 - p) + (1 - \pi)\,p},$$
#
# which tends to 1 as $\pi$ falls: a smaller prior pulls the posterior toward 0.5 and, for a single
# passage, never across it. So the accuracy should hardly change, and a proper score should get
# worse if the evidence deserves the trust. In the conditional encoding a false passage leaves the
# claim at its prior, and a smaller $\pi$ pulls less.
#
# The study is the file `09_study.yaml`, and what follows runs it as `factormodels run
# 09_study.yaml` does. Everything it writes carries its name and the hash of its settings, so a
# number in the paper can be traced back to the run.

# %%
import json
from pathlib import Path

import numpy as np
from IPython.display import Image

from calibration.figures.shown_figure import ShownFigure
from calibration.figures.style import COLORS, MARKERS, paper_style
from experiments.findings.artifacts import Artifacts, Origin, PaperFigure
from experiments.findings.notebook import fast, results_folder, write_results
from experiments.findings.paper import Paper, PaperSection, page_image, write_paper
from experiments.findings.table import Column, Table
from experiments.study.config import config_hash
from experiments.study.reading import read_raw, validated
from experiments.study.report.tables import cells_table, significance_table
from experiments.study.runner import design, run_study

NOTEBOOK = "09_writing_the_paper"
SEED = 0

# %% [markdown]
# ## The study
#
# In the fast mode the tests draw fewer permutations.

# %%
STUDY = "09_study.yaml"
print(Path(STUDY).read_text(encoding="utf-8"))
overrides = [f"seed={SEED}", f"significance.resamples={2_000 if fast() else 10_000}"]
loaded = validated(read_raw(STUDY, overrides))
study = loaded.study
folder = results_folder(NOTEBOOK)
results, _ = run_study(design(loaded), folder, workers=1, overwrite=True)
origin = Origin(study.study, config_hash(study))
manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
print(f"{len(results.files)} files; the hash of what was asked is {manifest['config_sha256']}.")

# %% [markdown]
# ## The tables
#
# `table.tex` and `significance.tex` are what a paper takes in. A number is in bold if it is the
# best of its column and differs significantly from every other row; stars mark p-values after
# Holm's correction over all tests of the study. Every interval and test resamples responses,
# because claims of one response are not independent.

# %%
table = cells_table(results.summary.cells, study.description, study.measures)
tests = significance_table(results.tests, study)
print((folder / "table.tex").read_text(encoding="utf-8"))
results.tests[["first", "second", "elsewhere", "measure", "difference", "corrected", "stars"]]

# %% [markdown]
# ## The figure
#
# The scores and their intervals look alike, because responses differ from each other far more than
# settings differ on any one response. The tests are paired, so they detect the differences.

# %%
cells = results.summary.cells
brier = results.tests[results.tests.measure == "brier"].reset_index(drop=True)
brier["comparison"] = [
    f"{row.first} − {row.second}, {row.elsewhere.split()[1]}" for row in brier.itertuples()
]
brier["relative"] = brier.difference / brier.value_second

with paper_style():
    figure = ShownFigure(figsize=(6.9, 2.5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.15))
    for position, (encoding, of_encoding) in enumerate(cells.groupby("encoding", sort=False)):
        at = np.arange(len(of_encoding)) + 0.12 * (2 * position - 1)
        errors = [
            of_encoding.brier - of_encoding.brier_lower,
            of_encoding.brier_upper - of_encoding.brier,
        ]
        left.errorbar(
            at,
            of_encoding.brier,
            yerr=errors,
            fmt=MARKERS[position],
            color=COLORS[position],
            label=encoding,
        )
        left.set_xticks(range(len(of_encoding)), of_encoding.prior)
    left.set(xlabel="Prior of contexts", ylabel="Brier score", xlim=(-0.5, 2.5))
    left.legend(loc="upper left")
    left.set_title("(a) Scores")
    rows = np.arange(len(brier))
    right.errorbar(
        brier.difference,
        rows,
        xerr=[brier.difference - brier.lower, brier.upper - brier.difference],
        fmt="o",
        color="black",
    )
    for row, difference in enumerate(brier.itertuples()):
        right.annotate(
            difference.stars or "n.s.",
            (difference.upper, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
    right.axvline(0, color="0.5", linewidth=0.6)
    right.set_yticks(rows, brier.comparison)
    right.set_xlim(right=1.2 * brier.upper.max())
    right.set_ylim(len(brier) - 0.5, -0.5)
    right.set_xlabel("Difference of the Brier score (positive: the first is worse)")
    right.set_title("(b) Paired differences")
figure

# %% [markdown]
# ## What is found

# %%
scores = cells.set_index(["encoding", "prior"])
half = brier[(brier["first"] == "0.7") & brier.elsewhere.str.contains("implication")].iloc[0]
encodings = brier[brier["first"] == "conditional"].set_index("elsewhere")
default = next(row for name, row in encodings.iterrows() if "0.99" in name)
accuracy = results.tests[results.tests.measure == "accuracy"]
abstract = (
    f"FactReasoner gives every passage a prior of 0.99. On {int(half.n_claims)} labeled claims "
    f"of {int(half.n_responses)} responses of Factcheck-Bench, a prior of 0.7 raises the "
    f"Brier score by {half.difference:.3f} ({half.relative:.0%}; 95% interval {half.lower:.3f} to "
    f"{half.upper:.3f}, p = {half.corrected:.4f} after correction). "
    f"{(accuracy.corrected < 0.05).sum()} of {len(accuracy)} differences of accuracy are "
    f"significant: smaller priors make posteriors less sure and leave them on the same side. "
    f"The encodings differ by {abs(default.difference):.4f} at 0.99. Relations are human stances, "
    "so this says nothing of relations that a model predicts."
)
print(abstract)
largest = accuracy.difference.abs().max() * half.n_claims
print(f"At most {largest:.0f} claims change sides between two rows that are compared.")

# %% [markdown]
# The trust is earned here: less of it makes the Brier score worse, significantly at 0.9 and by more
# at 0.7, because the stances that people gave are mostly right. That does not prove that 0.99 is
# best; learned priors address that question (notebook 3). And a star says that there is a
# difference, not that it matters: at 0.99 the conditional encoding is the best of its column, in
# bold, by a difference in the fourth decimal. The interval shows how large the difference is.
#
# ## The page
#
# The last cell writes this notebook's table and figure beside the study's, and then the page:
# `paper.pdf`, set without LaTeX, and `paper.tex`, which takes in `table.tex`, `significance.tex`
# and `figure.pdf` and is where the writing begins.

# %%
write_results(
    NOTEBOOK,
    Artifacts(
        tables={
            "differences": Table(
                brier,
                (
                    Column("comparison", "Comparison"),
                    Column(
                        "difference",
                        "Difference",
                        digits=4,
                        lower="lower",
                        upper="upper",
                        stars="stars",
                    ),
                    Column("relative", "relative", show="{:+.1%}".format, right=True),
                ),
                "Differences of the Brier score, paired by response.",
                note=tests.note,
            ),
        },
        figures={"figure": PaperFigure(figure, brier, "Scores and paired differences")},
    ),
)
paper = Paper(
    title="Does the prior of a passage matter?",
    authors=("A. Researcher", "B. Colleague"),
    abstract=abstract,
    sections=(
        PaperSection(
            tables={"table": table, "significance": tests},
            figures={
                "figure": "Brier scores by the prior of contexts, with 95% intervals over "
                "responses (a); differences paired by response, with stars as in the second table "
                "(b)."
            },
        ),
    ),
)
write_paper(paper, folder, origin)
Image(page_image(paper, folder, origin), width=600)
