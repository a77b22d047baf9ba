"""Which responses decline to answer, as a language model says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.stages.asking import Question, ask_all
from factormodels.fact_graph import FactGraph

STAGE = "refusals"
PROMPT = "refusal"

_TOKENS = 32


def judge_refusals(graphs: Sequence[FactGraph], model: LanguageModel) -> list[bool | Failure]:
    """Whether each response declines, in order, one call for each.

    The rule that needs no model is `calibration.self_knowledge.declining_clauses`.

    Args:
        graphs: the responses, with their texts and what was asked.
        model: the language model.
    """
    questions = [
        Question(
            {"question": graph.query or graph.topic, "response": graph.response}, _read, _TOKENS
        )
        for graph in graphs
    ]
    return ask_all(model, PROMPT, STAGE, questions)


def _read(value: Any) -> bool | None:
    found = value.get("declines") if isinstance(value, dict) else None
    return found if isinstance(found, bool) else None
