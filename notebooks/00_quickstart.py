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
# # 0. Quickstart
#
# **Question.** What can I do in the first minute with my own text, my own table of probabilities,
# my own factor graph, or a question about many responses?
#
# **Argument.** Each of the four needs one call. Everything here runs offline in a few seconds, and
# each cell says what to replace with your own data. Every call returns a data frame, or something
# that is displayed as one.

# %%
import numpy as np
import pandas as pd

from calibration import reliability_bins, reliability_diagram
from experiments import assess, posteriors, run, score
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.notebook import results_folder, write_results
from experiments.findings.table import Column, Table, interval_column
from factormodels.factor_graph import FactorGraph
from inference import infer

NOTEBOOK = "00_quickstart"
SEED = 0

# %% [markdown]
# ## A text
#
# `assess` splits a text into claims, looks for passages in your documents, decides which of them
# support or deny which claim, and computes how probable every claim is. Without a language model,
# claims are sentences and relations compare words, a baseline that is often wrong;
# `model="openai/NAME"` asks a model instead. If no passage says anything about a claim, it keeps
# its prior, 0.5.

# %%
TEXT = "The Eiffel Tower opened in Paris in 1889. Visitors climbed it on foot in the first week."
DOCUMENTS = {"Eiffel Tower": "The Eiffel Tower was opened in Paris on 31 March 1889."}
judged = assess(text=TEXT, documents=DOCUMENTS, query="Tell me about the Eiffel Tower.")
judged["claims"][["text", "p", "supporting", "contradicting"]]

# %% [markdown]
# ## A table of probabilities
#
# You can score any table with a probability, a label and the response that each claim comes from.
# Here it is made from an embedded dataset: the posteriors and human labels of 134 claims.
# Intervals resample whole responses, because claims of one response are not independent.

# %%
claims = posteriors("demonstration", encoding="implication")
scored = score(claims[["p", "label", "response"]], seed=SEED)
scored

# %%
bins = reliability_bins(
    claims["p"],
    claims["label"],
    n_bins=5,
    strategy="quantile",
    responses=claims["response"],
    n_bootstrap=200,
    seed=SEED,
)
figure = reliability_diagram({"exact posteriors": bins})
figure

# %% [markdown]
# ## A factor graph
#
# The algorithms do not need claims. A factor is the positions of its variables, and a table with
# one axis for each; `infer` answers with marginals and log Z. The grass is wet: did it rain?

# %%
wet = np.array([[[1.0, 0.0], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]])
graph = FactorGraph.from_factors(
    [2, 2, 2],
    [([0], [0.8, 0.2]), ([0, 1], [[0.6, 0.4], [0.99, 0.01]]), ([0, 1, 2], wet)],
    names=["rain", "sprinkler", "wet"],
)
posterior = infer(graph.with_evidence({"wet": 1}), "exact")
print(f"P(rain | wet) = {posterior.marginals['rain'][1]:.3f}, log Z = {posterior.log_z:.3f}")
infer(graph.with_evidence({"wet": 1}), "lbp").to_frame()

# %% [markdown]
# ## A study
#
# A question about many responses is a study: datasets × variants × encodings × backends. Write the
# same dict as a YAML file, and `factormodels run` takes it. A study writes rows, tables and a
# manifest to a folder, and can be continued after an interrupt.

# %%
study = run(
    {
        "study": "quickstart",
        "datasets": ["demonstration"],
        "variants": ["FR1", "FR3"],
        "encodings": ["implication"],
        "backends": ["exact", "lbp"],
        "outputs": ["latex"],
    },
    out=results_folder(NOTEBOOK) / "study",
    overwrite=True,
)
summary = study["summary"]
summary[["variant", "backend", "brier", "brier_lower", "brier_upper", "max_difference"]]

# %% [markdown]
# **Results.** The numbers of the cells above in one place; the fast mode gives the same.

# %%
best = summary.loc[summary.brier.idxmin()]
print(f"{len(judged['claims'])} claims in the text: {judged['claims'].p.round(2).tolist()}.")
print(f"{len(claims)} claims in the table; the bins hold {bins.count.tolist()}.")
print(f"Lowest Brier score of the study: {best.brier:.3f} ({best.variant}, {best.backend}).")
print(f"Belief propagation is at most {summary.max_difference.max():.2f} from exact.")

# %%
write_results(
    NOTEBOOK,
    Artifacts(
        tables={
            "study": Table(
                summary,
                (
                    Column("variant", "variant"),
                    Column("backend", "backend"),
                    interval_column("brier", "Brier", 3),
                ),
                "Two variants and two algorithms on the demonstration.",
                note="In brackets: 95% intervals over responses.",
            ),
        },
        figures={
            "figure": PaperFigure(
                figure,
                pd.DataFrame({"mean_predicted": bins.mean_predicted, "observed": bins.observed}),
                "Reliability of the posteriors of the demonstration",
            ),
        },
    ),
)

# %% [markdown]
# **Where to go next** with your own
#
# - text: notebook 8, `docs/how-to/extraction.md`
# - table of probabilities: notebook 3, `docs/reference/scoring.md`
# - factor graph: notebooks 2 and 7, `docs/how-to/factor-graphs.md`; `factormodels explore` opens a
#   page where you can change a graph
# - study: notebook 9, `docs/reference/studies.md`
