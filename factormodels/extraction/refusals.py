"""Detection of responses that decline to answer, by a language model."""

from __future__ import annotations

from collections.abc import Sequence

from factormodels.extraction.asking import table
from factormodels.extraction.asking.loop import ask_all
from factormodels.extraction.asking.stage import Question
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.fact_graph import FactGraph


def judge_refusals(graphs: Sequence[FactGraph], model: LanguageModel) -> list[bool | Failure]:
    """Return whether each response declines to answer, in order, with one call each.

    `calibration.self_knowledge.declining_clauses` is the rule that needs no model.

    Args:
        graphs: the responses, with their texts and questions.
        model: the language model.
    """
    questions = [
        Question(
            table.REFUSAL,
            {"question": graph.query or graph.topic, "response": graph.response},
        )
        for graph in graphs
    ]
    return ask_all(model, questions)
