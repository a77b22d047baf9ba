"""Relevance of claims to the question of a response, as in SAFE."""

from __future__ import annotations

from collections.abc import Sequence

from factormodels.extraction.asking.loop import ask_all
from factormodels.extraction.asking.stage import ModelStage, Question
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.fact_graph import FactGraph


def relevances(
    model: LanguageModel, graph: FactGraph, texts: Sequence[str], stage: ModelStage[str]
) -> list[bool | None]:
    """Return whether each claim is relevant to the question of a response, in order; None if
    unknown.

    Args:
        model: the language model.
        graph: the response with its question.
        texts: the claims.
        stage: the stage under which the calls are counted, `RELEVANCE` or `FACT_RELEVANCE`.
    """
    asked = {"question": graph.query, "response": graph.response}
    answers = ask_all(model, [Question(stage, {**asked, "claim": text}) for text in texts])
    return [None if isinstance(answer, Failure) else answer == "relevant" for answer in answers]
