"""Settings of the relation model: its choice, its calls, and the correction of its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from experiments.asking.relation_correction import AUTOMATIC, CorrectionName
from experiments.asking.relation_models import Relations
from experiments.settings import USUAL, Option, Settings
from experiments.settings.limits import Openness
from factormodels.extraction.asking.table import RELATION, RELATION_PROMPTS
from factormodels.extraction.language_model.log_probabilities import OPENNESS
from factormodels.extraction.relation_models.prompted import Method

if TYPE_CHECKING:
    RelationPromptName = str
else:
    # From the table, so that new prompts there become choices here.
    RelationPromptName = Literal[RELATION_PROMPTS]

RelationPrompt = Annotated[
    RelationPromptName,
    Field(
        description="Prompt for the relation of a passage to a claim; see `factormodels list "
        "prompts`."
    ),
    Option("NAME"),
]
"""Prompt for a relation, with its description."""

ProbabilityMethod = Annotated[
    Method,
    Field(
        description="How to get probabilities from the language model: automatic "
        "(log-probabilities if it gives them, otherwise its stated confidence), logprobs, "
        "verbalized, or samples."
    ),
    Option("NAME"),
]
"""Source of a relation's probability, with its description."""

EntailmentJudge = Annotated[
    str | None,
    Field(
        description="Judge of entailment: lexical, model (given by --model), recorded:FILE or "
        "nli:FOLDER. By default the language model if there is one, otherwise lexical."
    ),
    Option("NAME", usual=True),
]
"""Relation model that judges entailment, with its description."""


class RelationMethodSettings(Settings):
    """Relations and judgment.

    Options that decide how a language model gives relations.
    """

    method: ProbabilityMethod = "automatic"

    window: Annotated[int | None, Field(ge=1), Option("TOKENS")] = None
    """Context length of the language model in tokens; longer passages are read in overlapping
    parts."""

    openness: Openness = OPENNESS

    relation_prompt: RelationPrompt = RELATION.prompt


class RelationSettings(RelationMethodSettings):
    """Relations and judgment.

    Options of `RelationMethodSettings`, with the relation model and its correction.
    """

    relations: Annotated[Relations, USUAL] = None
    """Relation model: lexical, model, recorded:FILE, nli:FOLDER, minicheck:FOLDER or
    alignscore:FOLDER."""

    relation_correction: CorrectionName = AUTOMATIC
    """Correct the label bias of relations: none, probe (divide by content-free answers), batch (by
    the run's mean answer), or a file from fit --relations. automatic: probe if it decreases the
    probe's log loss significantly."""
