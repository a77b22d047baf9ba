"""The stage in which a language model answers the question of a response again."""

from __future__ import annotations

from dataclasses import dataclass

from factormodels.extraction.asking import table
from factormodels.extraction.asking.loop import ask_each
from factormodels.extraction.asking.stage import Question
from factormodels.extraction.language_model import LanguageModel
from factormodels.fact_graph import FactGraph

NO_QUESTION = "the response has no question to ask again"


def samples_to_ask(graph: FactGraph, wanted: int) -> int:
    """Return the number of sampled answers that a response lacks; 0 if it has no question."""
    return max(0, wanted - len(graph.sample_ids)) if graph.query.strip() else 0


@dataclass(frozen=True, slots=True)
class SampledAnswers:
    """Requested sampled answers.

    Attributes:
        texts: the answers.
        calls: number of requested answers.
        failures: (number of the answer, reason) of missing answers.
    """

    texts: tuple[str, ...]
    calls: int
    failures: tuple[tuple[str, str], ...]


def ask_samples(graph: FactGraph, model: LanguageModel, wanted: int) -> SampledAnswers:
    """Request the sampled answers that a response lacks.

    Each is the model's answer to the question alone, at temperature 1 with a separate seed.

    Args:
        graph: a response.
        model: the language model.
        wanted: number of sampled answers, including existing ones.
    """
    lacking = range(len(graph.sample_ids), wanted)
    if not graph.query.strip():
        return SampledAnswers((), 0, tuple((str(number + 1), NO_QUESTION) for number in lacking))
    questions = {
        str(number + 1): Question(table.SAMPLED_ANSWER, {"question": graph.query}, sample=number)
        for number in lacking
    }
    texts, failures = ask_each(model, questions)
    return SampledAnswers(tuple(texts.values()), len(questions), failures)
