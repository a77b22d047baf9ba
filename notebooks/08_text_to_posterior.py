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
# # 8. From text to posterior, with a model of your own
#
# **Question.** Given nothing but the text of a response and a pile of documents, how probable is
# each claim, which passage makes it so, and what does a language model charge for that?
#
# **Argument.** FactReasoner goes from text to posterior in five steps: the response is taken apart
# into claims (*atomise*), each is reworded so that it can be understood alone (*revise*), passages
# are found for it (*retrieve*), the model is asked how passages bear on claims and on each other
# (*relate*), and inference weighs all of it at once. Three variants differ in the pairs they ask
# about, with $n$ claims, $k$ passages for each and $m$ distinct ones: FR1 about each claim and its
# own passages, $kn$; FR2 about each claim and every passage, $nm$; FR3 also about every two
# passages in both orders, $m(m-1)$ more. The relations of FR3 hold those of the other two.
#
# **The answers here are scripted.** No language model was asked: a script of ours answered one
# response of the embedded demonstration, with the claims and relations that were written for it,
# through the same adapter as any provider's model. Its answers are kept in `data/08_answers.sqlite`
# and replayed, so that no key and no network is needed. What follows shows the procedure and says
# nothing about any model.
#
# **Your own model** goes in the next cell: `OWN_MODEL = "openai/NAME"`, or any other name that
# litellm knows; the key comes from the environment (`OPENAI_API_KEY` for that provider), `API_BASE`
# names a compatible server of your own. Its answers are kept in `OWN_ANSWERS`, and none is paid for
# twice. `factormodels assess` does the same from the command line.

# %%
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from calibration.figures.shown_figure import ShownFigure
from calibration.figures.style import COLORS, paper_style
from experiments.asking.session import language_model
from experiments.evaluators.calls.costs import METHODS, Load
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.figures.graph_figure import draw_fact_graph
from experiments.findings.notebook import write_results
from experiments.findings.table import Column, Table
from factormodels import RelationKind, datasets
from factormodels.extraction.language_model.accounting import Consumption, Ledger
from factormodels.extraction.language_model.litellm_model import LitellmSettings
from factormodels.extraction.pipeline import (
    atomizer_stage,
    relation_stage,
    retrieval_stage,
    reviser_stage,
    run_stages,
)
from factormodels.extraction.relation_models.prompted import PromptedRelationModel
from factormodels.extraction.retrieval.bm25 import build_collection
from factormodels.extraction.retrieval.documents import documents_of_graphs
from factormodels.extraction.sentences import split_sentences
from factormodels.variants import variant
from inference import infer
from inference.tasks import without_variables

NOTEBOOK = "08_text_to_posterior"
SEED = 0

OWN_MODEL, API_BASE = None, None
OWN_ANSWERS = Path("own_answers.sqlite")

ledger = Ledger()
if OWN_MODEL is None:
    settings, answers = LitellmSettings("hosted_vllm/scripted"), Path("data/08_answers.sqlite")
else:
    settings, answers = LitellmSettings(OWN_MODEL, api_base=API_BASE), OWN_ANSWERS
model = Consumption(language_model(settings, answers, ledger, replay=OWN_MODEL is None))

# %% [markdown]
# ## The text and the documents
#
# The documents are all passages of the demonstration, on fourteen topics, some of them wrong on
# purpose. A folder of your own is read by `read_documents("folder")`, in place of
# `documents_of_graphs`.

# %%
corpus = datasets.load("demonstration").graphs
written = next(graph for graph in corpus if graph.id == "demo-01-marie-curie")
PASSAGES = 2
documents = build_collection(documents_of_graphs(corpus), top_k=PASSAGES)
response = replace(written, atoms=(), contexts=(), relations=(), metadata={})
print(f"Asked: {response.query}\n\n{response.response}\n")
print(f"{len(documents.passages)} passages can be searched.")

# %% [markdown]
# ## Four stages
#
# Each is a function from a graph to a graph with more in it. A call that fails is missing, is
# counted and shown, and is never taken for an answer.

# %%
atomised = run_stages(response, [atomizer_stage(model, 1)])
revised = run_stages(atomised, [reviser_stage(model)])
retrieved = run_stages(revised, [retrieval_stage(documents)])
relations = PromptedRelationModel(model, method="logprobs", seed=SEED)
graph = run_stages(retrieved, [relation_stage(relations, "FR3")])
taken = model.take()
failures = {
    stage: len(graph.metadata[stage].get("failures", graph.metadata[stage].get("missing", ())))
    for stage in ("atoms", "revision", "retrieval", "relations")
}
print(f"Missing or failed: {failures}")
pd.DataFrame(
    {
        "claim": atomised.atom_ids,
        "atomised": [atom.text for atom in atomised.atoms],
        "revised": [
            "" if before == after else after.text
            for before, after in zip(atomised.atoms, revised.atoms, strict=True)
        ],
    }
)

# %% [markdown]
# ## The posteriors
#
# A relation's probability is that of the first token of the answer, normalized over the three
# labels. The human labels are matched by the text of the claim and only shown, not used.

# %%
labels = {atom.text: atom.label for atom in written.atoms}
graph = replace(
    graph, atoms=tuple(replace(atom, label=labels.get(atom.text)) for atom in graph.atoms)
)
VARIANTS = ("FR1", "FR2", "FR3")
seen = {name: variant(graph, name) for name in VARIANTS}
posteriors = {
    name: infer(view.to_factor_graph("implication"), "exact").marginals.of_state(1, graph.atom_ids)
    for name, view in seen.items()
}
claims = pd.DataFrame(
    {
        "claim": graph.atom_ids,
        "text": [atom.text for atom in graph.atoms],
        "label": [{True: "true", False: "false"}.get(atom.label, "") for atom in graph.atoms],
        **posteriors,
    }
)
claims.round(3)

# %% [markdown]
# ## What each passage contributes
#
# This is the posterior of FR3 with a passage minus the posterior without it, computed exactly in
# one elimination. Differences of log-odds are shown, because near 0 and 1 differences of
# probabilities vanish.


# %%
def log_odds(p):
    return np.log(p) - np.log1p(-p)


effects = without_variables(
    seen["FR3"].to_factor_graph("implication"), graph.context_ids, graph.atom_ids
)
shape = (len(graph.contexts), len(graph.atoms))
kinds = {(r.source, r.target): r for r in seen["FR3"].relations}
contributions = pd.DataFrame(
    {
        "context": np.repeat(graph.context_ids, shape[1]),
        "title": np.repeat([context.title for context in graph.contexts], shape[1]),
        "claim": np.tile(graph.atom_ids, shape[0]),
        "posterior": effects.present,
        "without": effects.without,
        "contribution": effects.contribution,
        "log_odds": log_odds(effects.present) - log_odds(effects.without),
    }
)
related = [kinds.get(pair) for pair in zip(contributions.context, contributions.claim, strict=True)]
contributions["relation"] = [str(r.kind) if r else "none" for r in related]
contributions["probability"] = [r.probability if r else np.nan for r in related]
direct = contributions[contributions.relation.isin(["entailment", "contradiction"])]
direct.round(3)

# %% [markdown]
# ## What it took
#
# The ledger says what this run paid: nothing, if every answer comes from the cache. What the
# answers cost when they were given is kept with them. The script counts a token for every four
# characters. The prices are assumptions; replace them by those of your provider.

# %%
DOLLARS_PER_MILLION = (0.15, 0.60)

costs = pd.DataFrame(
    [
        {
            "stage": stage,
            "answers": taken[stage]["answers"],
            "calls_now": paid.calls,
            "prompt_tokens": taken[stage]["prompt_tokens"],
            "completion_tokens": taken[stage]["completion_tokens"],
        }
        for stage, paid in ledger.stages.items()
    ]
)
costs.loc[len(costs)] = ["all", *costs.drop(columns="stage").sum()]
costs["dollars"] = (
    costs.prompt_tokens * DOLLARS_PER_MILLION[0] + costs.completion_tokens * DOLLARS_PER_MILLION[1]
) / 1e6
load = Load(
    sentences=len(split_sentences(response.response)),
    claims=len(graph.atoms),
    per_claim=PASSAGES,
    contexts=len(graph.contexts),
)
expected = {name: int(METHODS[name](load).calls) for name in VARIANTS}
costs.round(4)

# %% [markdown]
# ## The figures
#
# The graph of FR3 as it was extracted, and the numbers of this notebook.

# %%
drawing = draw_fact_graph(
    seen["FR3"], dict(zip(graph.atom_ids, posteriors["FR3"], strict=True)), title=response.query
)
strengths = pd.DataFrame(
    [
        (r.source, r.target, str(r.kind), r.probability)
        for r in seen["FR3"].relations
        if r.kind is not RelationKind.NEUTRAL
    ],
    columns=["source", "target", "relation", "probability"],
)
drawing

# %%
with paper_style():
    figure = ShownFigure(figsize=(6.9, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.25))
    rows = np.arange(len(claims))
    for position, (name, marker) in enumerate(zip(VARIANTS, "os^", strict=True)):
        left.plot(
            claims[name],
            rows + 0.22 * (position - 1),
            marker,
            color=COLORS[position],
            label=name,
        )
    for row, label in enumerate(claims.label):
        if label == "false":
            left.axhspan(row - 0.5, row + 0.5, color="0.92", zorder=0, linewidth=0)
    left.axvline(0.5, color="0.4", linewidth=0.6, linestyle=":")
    left.set(xlim=(-0.03, 1.03), ylim=(len(claims) - 0.5, -0.5), xlabel="Posterior of being true")
    left.set_yticks(rows, claims.claim)
    left.legend(loc="upper left")
    left.set_title("(a) Posteriors; false claims in gray")

    matrix = contributions.log_odds.to_numpy().reshape(shape)
    largest = np.abs(matrix).max()
    image = right.imshow(matrix, cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto")
    # Without color the numbers tell for from against.
    for (row, column), value in np.ndenumerate(matrix):
        if abs(value) >= 0.05:
            right.text(
                column, row, f"{value:.1f}".replace("-", "−"), ha="center", va="center",
                fontsize=6.0, color="white" if abs(value) > 0.6 * largest else "black",
            )  # fmt: skip
    right.set_xticks(range(shape[1]), graph.atom_ids)
    right.set_yticks(range(shape[0]), [f"{c.title} ({c.id})" for c in graph.contexts])
    right.tick_params(length=0)
    right.tick_params(axis="y", labelsize=6.0)
    right.spines[:].set_visible(False)
    right.set_title("(b) Contribution of each passage (FR3)")
    figure.colorbar(image, ax=right, shrink=0.8, label="log-odds (nats)")
figure

# %% [markdown]
# ## What is found

# %%
total = costs.iloc[-1]
print(
    f"{len(graph.atoms)} claims, {len(graph.contexts)} distinct passages: {total.answers} answers, "
    f"{total.calls_now} of them asked for now; the formulas expect {expected}."
)
for name in VARIANTS:
    wrong = claims[(claims[name] > 0.5) != (claims.label == "true")]
    print(f"{name} is on the wrong side of 0.5 for: {', '.join(wrong.claim) or 'no claim'}.")
shift = (claims.FR2 - claims.FR1).abs()
row = claims.loc[shift.idxmax()]
print(f"FR2 moves {row.claim} most, from {row.FR1:.2f} to {row.FR2:.2f}: {row.text}")
for claim in ("a6", "a8"):
    for row in direct[direct.claim == claim].itertuples():
        print(
            f"{claim}: {row.title} ({row.relation}, {row.probability:.2f}) {row.log_odds:+.2f} nats"
        )
indirect = contributions[~contributions.relation.isin(["entailment", "contradiction"])]
strongest = indirect.loc[indirect.log_odds.abs().idxmax()]
print(
    f"Without a relation of its own to the claim, {strongest.title} moves {strongest.claim} by "
    f"{strongest.log_odds:+.2f} nats."
)

# %% [markdown]
# Where a passage that was found for one claim speaks against another, FR1 does not ask: the false
# claim of a second prize in physics (a6) meets a quiz that affirms it and an encyclopaedia that
# denies it, and stays undecided at 0.35; FR2 also asks the letters from Stockholm, which were found
# for polonium, and settles it. Evidence that was not found settles nothing: for the death in Paris
# (a8), which is Pierre's and not Marie's, the search brings the chronicle about "Professor Curie"
# and not the passage about the sanatorium, and every variant believes the claim. Inference is right
# about the evidence it has; finding the right evidence is the retriever's job. FR3 asks twice as
# much as FR2 and here changes one claim: an essay contradicts the encyclopaedia on Irène's prize
# (a9), which costs the true claim a tenth.

# %%
write_results(
    NOTEBOOK,
    Artifacts(
        tables={
            "claims": Table(
                claims,
                (
                    Column("claim", "Claim"),
                    Column("text", "Text"),
                    Column("label", "Label"),
                    *(Column(name, name, digits=3) for name in VARIANTS),
                ),
                "Posteriors of the claims of one response, from scripted answers.",
            ),
            "contributions": Table(
                direct,
                (
                    Column("title", "Passage"),
                    Column("relation", "Relation"),
                    Column("probability", "Probability", digits=2),
                    Column("contribution", "Contribution", digits=4),
                    Column("log_odds", "in log-odds", digits=2),
                ),
                "What each passage contributes to the posterior of a claim (FR3).",
                group="claim",
            ),
            "costs": Table(
                costs,
                (
                    Column("stage", "Stage"),
                    Column("answers", "Answers", right=True),
                    Column("calls_now", "asked for now", right=True),
                    Column("prompt_tokens", "Tokens in", right=True),
                    Column("completion_tokens", "Tokens out", right=True),
                    Column("dollars", "US$", r"US\$", digits=4),
                ),
                "Answers of the language model by stage, with tokens as the script states them, "
                f"priced at {DOLLARS_PER_MILLION[0]} and {DOLLARS_PER_MILLION[1]:.2f} dollars per "
                "million.",
            ),
        },
        figures={
            "figure": PaperFigure(figure, contributions, "Posteriors and contributions"),
            "graph": PaperFigure(
                drawing,
                strengths,
                "The fact graph of one response",
            ),
        },
    ),
)
