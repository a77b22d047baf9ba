"""What an assessment would ask for, before anything is sent: calls, tokens and cost by stage."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

from experiments.asking.searchers import RETRIEVERS
from experiments.evaluators.costs import CLAIMS_PER_SENTENCE
from experiments.evaluators.setup import AssessmentPlan, stride_of
from factormodels.claims import Atom, Context
from factormodels.errors import InputError
from factormodels.extraction.embeddings import TEXTS_AT_ONCE, LitellmEmbedder
from factormodels.extraction.language_model.model_parameters import reasoning_tokens
from factormodels.extraction.language_model.prices import Prices, model_prices
from factormodels.extraction.pipeline import retrieval_stage
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.relation_models.base import TextPair
from factormodels.extraction.relation_models.prompted import PromptedRelationModel, relation_prompt
from factormodels.extraction.relation_models.windows import OVERLAP
from factormodels.extraction.retrieval.chunks import searched_text
from factormodels.extraction.retrieval.dense import DenseRetriever
from factormodels.extraction.safe import NAME as SAFE
from factormodels.extraction.safe import PROMPTS as SAFE_PROMPTS
from factormodels.extraction.safe import STAGES as SAFE_STAGES
from factormodels.extraction.safe import STEPS, VERDICT
from factormodels.extraction.sentences import sentences_of
from factormodels.extraction.stages.assessors import get_assessor
from factormodels.extraction.stages.claim_relations import PROMPT as CLAIM_PROMPT
from factormodels.extraction.stages.claim_relations import STAGE as CLAIM_STAGE
from factormodels.extraction.stages.claim_relations import n_claim_pairs
from factormodels.extraction.stages.duplicates import merge_duplicate_atoms
from factormodels.extraction.stages.relations import EXTRACTED_VARIANTS, relation_pairs
from factormodels.fact_graph import FactGraph
from factormodels.synthetic import fr1_forest, fr2, fr3
from factormodels.variants import between_claims, merge_duplicate_contexts

if TYPE_CHECKING:
    from inference.exact.prediction import Prediction

CHARACTERS_PER_TOKEN = 4.0
"""A rule of thumb for English; tokenisers differ by a quarter or so."""

ATOM_CHARACTERS = 41
"""Of a claim, on the average of those behind `CLAIMS_PER_SENTENCE`."""

SAFE_CHARACTERS = 300
"""Characters of a snippet that SAFE is shown, about."""

RELATED_SHARE = 0.1
"""Share of the pairs of a claim or passage with a passage that are taken to be related, beside
those of a claim with what was retrieved for it."""

_MOST_VARIABLES = 1_000
"""Of a response whose elimination is planned: of more, a dry run would take seconds."""

ANSWER_TOKENS = {
    "atomizer": 30,
    "reviser": 30,
    "queries": 15,
    "summariser": 60,
    "relation": 3,
    "relation_verbalised": 20,
    "claim_relation": 20,
}
"""Tokens of an answer, by stage or by prompt; of the atomizer, for each claim."""


@dataclass(frozen=True)
class StageEstimate:
    """What a stage would ask for.

    Attributes:
        stage: its name.
        calls: number of calls or searches; at most so many where `exact` is false.
        exact: whether the number is known.
        prompt_tokens: tokens of all questions, about.
        completion_tokens: tokens of all answers, about.
        cost: price in US dollars; None where it is not known.
        chosen: whether the stage is part of the plan, and not shown for comparison only.
        thoughts: tokens that a model which reasons may spend before its answers, at most: they are
            answered, and not among `completion_tokens`.
        thoughts_cost: their price; None where it is not known.
        inference: of relations, what exact inference in the largest response would cost; None where
            that is not known.
    """

    stage: str
    calls: int
    exact: bool
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    chosen: bool = True
    thoughts: int = 0
    thoughts_cost: float | None = None
    inference: ExpectedInference | None = None


@dataclass(frozen=True)
class ExpectedInference:
    """What exact inference would cost, with a share `RELATED_SHARE` of the pairs related.

    Attributes:
        atoms: claims of the response.
        contexts: its passages.
        prediction: the cost, with the induced width.
        widest: the induced width if all pairs were related.
    """

    atoms: int
    contexts: int
    prediction: Prediction
    widest: int


def expected_inference(variant: str, atoms: int, contexts: int) -> ExpectedInference | None:
    """What exact inference would cost for a response of so many atoms and contexts.

    Its structure is drawn at random with a fixed seed. None for a response without claims or
    passages, or of more than a thousand of both.
    """
    if not 0 < atoms <= atoms + contexts <= _MOST_VARIABLES or not contexts:
        return None
    # Loaded where it is needed: with its kernels, which take longer than all else here.
    from inference.exact.backend import Exact

    each, more = divmod(contexts, atoms)
    retrieved = [each + (number < more) for number in range(atoms)]
    if variant == "FR1":
        graph, widest = fr1_forest(atoms, retrieved, seed=0), 1
    elif variant == "FR2":
        graph = fr2(atoms, retrieved, RELATED_SHARE, seed=0)
        widest = min(atoms, contexts)
    else:
        graph = fr3(atoms, retrieved, RELATED_SHARE, RELATED_SHARE, seed=0)
        widest = atoms + contexts - 1
    return ExpectedInference(atoms, contexts, Exact().predict(graph), widest)


@dataclass(frozen=True)
class _Size:
    """How large the graph of a response is, or is taken to be."""

    sentences: int
    atoms: int
    contexts: int
    retrieved: int
    passage_characters: float
    atom_characters: float
    response_characters: int
    exact_atoms: bool
    exact_contexts: bool
    graph: FactGraph


def estimate(graphs: Sequence[FactGraph], plan: AssessmentPlan) -> list[StageEstimate]:
    """What the stages would ask for, in their order; nothing is sent.

    The relation stage is given for FR1, O(kn) calls, FR2, O(nm), and FR3, O(nm + m^2), whichever
    is chosen; a passage that is read in windows counts a call for each. Answers that are in the
    cache are not taken off.

    Raises:
        InputError: if a response cannot be read as the plan wants it.
    """
    wanted = plan.settings
    sizes = [_size(graph, plan) for graph in graphs]
    known = all(size.exact_atoms for size in sizes)
    rows: list[StageEstimate] = []
    atoms = sum(size.atoms for size in sizes)
    if plan.atoms == "model":
        stride = stride_of(plan.settings.stride, "--stride")
        # A stride of None takes the whole response at once.
        calls = [ceil(s.sentences / (stride or max(1, s.sentences))) for s in sizes]
        questions = sum(
            # Each call repeats the whole response besides its own chunk; the chunks together make
            # it once more.
            c * (_empty("atomizer", plan) + s.response_characters) + s.response_characters
            for c, s in zip(calls, sizes, strict=True)
        )
        rows.append(
            _row("atomizer", sum(calls), True, questions, atoms * ANSWER_TOKENS["atomizer"], plan)
        )
    if plan.revise:
        questions = sum(s.atoms * (_empty("reviser", plan) + s.response_characters) for s in sizes)
        rows.append(_per_atom("reviser", atoms, known, questions, plan))
    if wanted.queries:
        questions = atoms * (_empty("search_query", plan) + ATOM_CHARACTERS)
        rows.append(_per_atom("queries", atoms, known, questions, plan))
    if plan.retriever != "given":
        asked = atoms + wanted.question_contexts * sum(bool(g.query.strip()) for g in graphs)
        local = RETRIEVERS[plan.retriever].reads_documents
        price = 0.0 if local else wanted.price_search or 0.0
        searches = f"searches ({plan.retriever})"
        rows.append(StageEstimate(searches, asked, known, cost=price * asked))
        if isinstance(plan.searcher, DenseRetriever):
            rows += _embeddings(plan.searcher, sizes)
    # The number of pairs is known only if both claims and passages are.
    exact = known and all(size.exact_contexts for size in sizes)
    if wanted.summarise:
        empty = _empty("summary", plan)
        read = sum(size.contexts for size in sizes)
        characters = sum(
            size.contexts * (empty + size.passage_characters + size.atom_characters)
            for size in sizes
        )
        answers = read * ANSWER_TOKENS["summariser"]
        rows.append(_row("summariser", read, exact, characters, answers, plan))
        exact = False  # how many passages turn out to be irrelevant is not known
    rows += [_relations(name, sizes, exact, plan) for name in EXTRACTED_VARIANTS]
    for name in wanted.assessors:
        rows += _safe(sizes, known, plan) if name == SAFE else [_verdicts(name, sizes, exact, plan)]
    if wanted.coherence:
        rows.append(_claim_relations(sizes, known, plan))
    return [_with_thoughts(row, plan) for row in rows]


def relation_calls(variant: str, atoms: int, contexts: int, retrieved: int) -> int:
    """The number of pairs that a variant asks about.

    Args:
        variant: FR1, FR2 or FR3.
        atoms: n.
        contexts: m, equal ones counted once.
        retrieved: pairs of an atom and a context retrieved for it, kn where all k are found.
    """
    if variant == "FR1":
        return retrieved
    return atoms * contexts + (contexts * (contexts - 1) if variant == "FR3" else 0)


def _size(graph: FactGraph, plan: AssessmentPlan) -> _Size:
    """The size of a response's graph: counted where it is known, assumed where it is not."""
    wanted = plan.settings
    sentences = sentences_of(graph) if plan.atoms != "given" else ()
    if plan.atoms == "sentences":
        claims = tuple(Atom(f"a{i}", text) for i, text in enumerate(sentences, 1))
        graph = FactGraph(graph.id, claims, query=graph.query, topic=graph.topic)
    graph = merge_duplicate_contexts(merge_duplicate_atoms(graph))
    given = graph.atoms
    exact_atoms = plan.atoms != "model"
    n = len(given) if exact_atoms else round(CLAIMS_PER_SENTENCE * len(sentences))
    contexts: tuple[Context, ...] | None = None
    if plan.retriever == "given":
        contexts = graph.contexts
    elif plan.retriever == "local" and exact_atoms and plan.searcher and not wanted.queries:
        # Searching documents on this disk costs nothing, and then the numbers are known.
        bare = FactGraph(graph.id, given, query=graph.query, topic=graph.topic)
        search = retrieval_stage(plan.searcher, for_question=wanted.question_contexts)
        searched = search(bare)
        contexts = searched.contexts
    if contexts is None:
        # What is on this disk is all that can be found; the web has no end.
        there = {passage.text for passage in getattr(plan.searcher, "passages", ())}
        retrieved = n * min(plan.top_k, len(there) or plan.top_k)
        found = retrieved + plan.top_k * bool(wanted.question_contexts and graph.query.strip())
        m = min(found, len(there) or found)
        length: float = RETRIEVERS[plan.retriever].passage_characters
        if there:
            length = sum(map(len, there)) / len(there)
    else:
        m, retrieved = len(contexts), sum(len(c.retrieved_for) for c in contexts)
        length = sum(len(c.content) + len(c.title) for c in contexts) / max(1, m)
    return _Size(
        len(sentences),
        n,
        m,
        retrieved,
        length,
        sum(len(a.text) for a in given) / len(given) if given and exact_atoms else ATOM_CHARACTERS,
        len(graph.response) + len(graph.query),
        exact_atoms,
        contexts is not None,
        FactGraph(graph.id, given, contexts or (), tuple(between_claims(graph)), query=graph.query),
    )


def _relations(
    variant: str, sizes: Sequence[_Size], exact: bool, plan: AssessmentPlan
) -> StageEstimate:
    pairs = [relation_calls(variant, s.atoms, s.contexts, s.retrieved) for s in sizes]
    chosen = variant == plan.widest
    # How soon a relation settles a claim is not known.
    exact = exact and not plan.settings.few_calls
    stage = f"relations {variant}"
    atoms, contexts = max(((s.atoms, s.contexts) for s in sizes), key=math.prod, default=(0, 0))
    inference = expected_inference(variant, atoms, contexts)
    if plan.relations != "model":
        free = StageEstimate(stage, sum(pairs), exact, cost=0.0, chosen=chosen)
        return replace(free, inference=inference)
    repeated = getattr(plan.judge, "answers_per_pair", 1)
    windows = [_windows(variant, size, plan) for size in sizes]
    # Samples and log-probabilities ask with the same prompt.
    prompt = relation_prompt(plan.method)
    questions = sum(
        # Of windows each repeats the prompt and the claim, and a part of the one before it.
        count * wide * (_empty(prompt, plan) + size.atom_characters)
        + count * size.passage_characters * (1 + OVERLAP * (wide > 1))
        for count, size, wide in zip(pairs, sizes, windows, strict=True)
    )
    calls = repeated * round(sum(map(operator.mul, pairs, windows)))
    answers = calls * ANSWER_TOKENS[prompt]
    row = _row(stage, calls, exact, questions * repeated, answers, plan, chosen)
    return replace(row, inference=inference)


def _windows(variant: str, size: _Size, plan: AssessmentPlan) -> float:
    """Windows that a pair is read in, on the average of a response."""
    judge = plan.judge
    if not isinstance(judge, PromptedRelationModel):
        return 1.0
    if not (size.exact_atoms and size.exact_contexts):
        text = "word " * ceil(size.passage_characters / 5)
        return float(judge.windows(TextPair(text, "word " * ceil(size.atom_characters / 5))))
    pairs = relation_pairs(size.graph, variant)
    if not pairs:
        return 1.0
    # Mostly all fit, and then no pair has to be looked at by itself.
    premise, hypothesis, title = (
        max((getattr(pair, part) for pair in pairs), key=len)
        for part in ("premise", "hypothesis", "title")
    )
    longest = TextPair(premise, hypothesis, title=title, question=size.graph.query)
    if judge.windows(longest) == 1:
        return 1.0
    return sum(map(judge.windows, pairs)) / len(pairs)


def _embeddings(searcher: DenseRetriever, sizes: Sequence[_Size]) -> list[StageEstimate]:
    """Embeddings of passages and searches by a provider; nothing where they are made here."""
    embedder = searcher.store.embedder
    if not isinstance(embedder, LitellmEmbedder):
        return []
    texts = [searched_text(passage) for passage in searcher.passages]
    calls = ceil(len(texts) / TEXTS_AT_ONCE) + sum(ceil(s.atoms / TEXTS_AT_ONCE) for s in sizes)
    characters = sum(map(len, texts)) + sum(size.atoms * size.atom_characters for size in sizes)
    tokens = ceil(characters / CHARACTERS_PER_TOKEN)
    cost = None if embedder.price is None else tokens * embedder.price
    return [StageEstimate("embeddings", calls, False, tokens, cost=cost)]


def _with_thoughts(row: StageEstimate, plan: AssessmentPlan) -> StageEstimate:
    """The row of a stage that a language model answers, with what it may think before."""
    if plan.model is None or not row.completion_tokens:
        return row
    try:
        room = reasoning_tokens(plan.model.name)
    except InputError:
        return row  # no model of a provider
    prices = _prices(plan)
    cost = None if prices is None else row.calls * room * prices.answer
    return replace(row, thoughts=row.calls * room, thoughts_cost=cost)


def _prices(plan: AssessmentPlan) -> Prices | None:
    return plan.settings.prices or (None if plan.model is None else model_prices(plan.model.name))


def _verdicts(
    name: str, sizes: Sequence[_Size], exact: bool, plan: AssessmentPlan
) -> StageEstimate:
    assessor = get_assessor(name)
    calls = sum(size.atoms for size in sizes)
    questions = sum(
        size.atoms * (_empty(assessor.prompt, plan) + size.atom_characters)
        + assessor.reads_evidence * size.retrieved * size.passage_characters
        for size in sizes
    )
    return _row(name, calls, exact, questions, calls * assessor.max_tokens, plan)


def _claim_relations(sizes: Sequence[_Size], exact: bool, plan: AssessmentPlan) -> StageEstimate:
    """What --coherence asks: a question about each pair of claims, shown the response.

    Relations between claims that the responses have are taken as they are, and without a language
    model the lexical model judges: both ask nobody.
    """
    given = any(between_claims(size.graph) for size in sizes)
    pairs = [n_claim_pairs(size.atoms, plan.settings.claim_window) for size in sizes]
    if given or plan.model is None:
        return StageEstimate(CLAIM_STAGE, 0 if given else sum(pairs), exact, cost=0.0)
    questions = sum(
        count * (_empty(CLAIM_PROMPT, plan) + size.response_characters + 2 * size.atom_characters)
        for count, size in zip(pairs, sizes, strict=True)
    )
    answers = sum(pairs) * ANSWER_TOKENS[CLAIM_PROMPT]
    return _row(CLAIM_STAGE, sum(pairs), exact, questions, answers, plan)


def _safe(sizes: Sequence[_Size], exact: bool, plan: AssessmentPlan) -> list[StageEstimate]:
    """The stages of SAFE, if every claim is relevant and takes all its searches."""
    shown = SAFE_CHARACTERS * plan.top_k
    # A revision and a relevance are shown the response, a search what earlier ones found.
    each = (
        *((1, "response_characters", 0.0, 40), (1, "response_characters", 0.0, 10)),
        *((STEPS, "", shown * (STEPS - 1) / 2, 15), (1, "", shown * STEPS, VERDICT.max_tokens)),
    )
    rows = []
    for stage, prompt, (calls, whole, found, answer) in zip(
        (*SAFE_STAGES, SAFE), SAFE_PROMPTS, each, strict=True
    ):
        questions = sum(
            size.atoms * calls * (
                _empty(prompt, plan) + size.atom_characters + found
                + (getattr(size, whole) if whole else 0)
            )
            for size in sizes
        )  # fmt: skip
        number = calls * sum(size.atoms for size in sizes)
        rows.append(_row(stage, number, exact and calls == 1, questions, number * answer, plan))
    return rows


def _per_atom(
    stage: str, atoms: int, exact: bool, characters: float, plan: AssessmentPlan
) -> StageEstimate:
    return _row(stage, atoms, exact, characters, atoms * ANSWER_TOKENS[stage], plan)


def _row(
    stage: str,
    calls: int,
    exact: bool,
    characters: float,
    answers: int,
    plan: AssessmentPlan,
    chosen: bool = True,
) -> StageEstimate:
    questions = ceil(characters / CHARACTERS_PER_TOKEN)
    prices = _prices(plan)
    cost = None if prices is None else questions * prices.question + answers * prices.answer
    return StageEstimate(stage, calls, exact, questions, answers, cost, chosen)


def _empty(prompt: str, plan: AssessmentPlan) -> int:
    """The characters of a prompt without what it is filled with."""
    template = prompts_of(plan.model)[prompt]
    messages = template.render(**dict.fromkeys(template.slots, ""))
    return sum(len(message.content) for message in messages)
