"""Estimate of an assessment before it is run: calls, tokens and cost by stage.

For each stage of a plan, `make_plan` names the source of its estimate. For a row of the table of
stages it is `of_model`, which uses the `calls` of the row. For searches, relations and relations
between claims it is a function beside the code that asks. A dry run adds up the estimates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

from experiments.asking.searchers import RETRIEVERS
from experiments.evaluators.calls.costs import CLAIMS_PER_SENTENCE
from factormodels.claims import Atom, Context
from factormodels.errors import InputError
from factormodels.extraction.asking import table
from factormodels.extraction.asking.assessor import Assessor
from factormodels.extraction.asking.stage import CLAIM_CHARACTERS, Extent, ModelStage
from factormodels.extraction.embeddings import LitellmEmbedder, n_embedding_calls
from factormodels.extraction.language_model.model_parameters import reasoning_tokens
from factormodels.extraction.language_model.prices import Prices, model_prices
from factormodels.extraction.pipeline import retrieval_stage, stage_by_response
from factormodels.extraction.probe.asking import STAGE, probe_calls
from factormodels.extraction.probe.table import probe_named
from factormodels.extraction.prompts import PromptTemplate
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.relation_models.base import TextPair
from factormodels.extraction.relation_models.prompted import PromptedRelationModel, stage_of_method
from factormodels.extraction.relation_models.windows import OVERLAP
from factormodels.extraction.retrieval.chunks import searched_text
from factormodels.extraction.retrieval.dense import DenseRetriever
from factormodels.extraction.retrieval.own import OwnDocuments
from factormodels.extraction.sentences import sentences_of
from factormodels.extraction.stages.claim_relations import n_claim_pairs
from factormodels.extraction.stages.duplicates import merge_duplicate_atoms
from factormodels.extraction.stages.relations import (
    EXTRACTED_VARIANTS,
    n_relation_pairs,
    relation_pairs,
)
from factormodels.extraction.stages.retrieval import n_searches
from factormodels.extraction.stages.samples import samples_to_ask
from factormodels.fact_graph import FactGraph
from factormodels.samples import samples_alone, without_samples
from factormodels.synthetic import fr1_forest, fr2, fr3
from factormodels.variants import between_claims, merge_duplicate_contexts

if TYPE_CHECKING:
    from experiments.evaluators.setup import AssessmentPlan
    from inference.exact.prediction import Prediction

CHARACTERS_PER_TOKEN = 4.0
"""Characters per token, a rule of thumb for English; tokenizers differ by about a quarter."""

SAFE_CHARACTERS = 300
"""Approximate characters of a search snippet in SAFE's prompts."""

RELATED_SHARE = 0.1
"""Assumed share of related pairs among pairs other than a claim with its retrieved passages.
"""

_MOST_VARIABLES = 1_000
"""Largest response whose elimination is planned; beyond this size, a dry run would take seconds.
"""


@dataclass(frozen=True)
class StageEstimate:
    """Estimate of a stage's requests.

    Attributes:
        stage: name of the stage.
        calls: number of calls or searches; an upper bound if `exact` is false.
        exact: True if the number is known.
        prompt_tokens: approximate number of tokens of all questions.
        completion_tokens: approximate number of tokens of all answers.
        cost: price in US dollars; None if unknown.
        chosen: True if the stage is part of the plan, False if it is shown for comparison.
        thoughts: upper bound on reasoning tokens before the answers; billed as completion tokens,
            but not included in `completion_tokens`.
        thoughts_cost: price of the thoughts; None if unknown.
        inference: for relation stages, the cost of exact inference in the largest response; None if
            unknown.
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
    """Expected cost of exact inference if a share `RELATED_SHARE` of the pairs is related.

    Attributes:
        atoms: claims of the response.
        contexts: its passages.
        prediction: the cost, with the induced width.
        widest: induced width if all pairs were related.
    """

    atoms: int
    contexts: int
    prediction: Prediction
    widest: int


def expected_inference(variant: str, atoms: int, contexts: int) -> ExpectedInference | None:
    """Cost of exact inference for given numbers of atoms and contexts.

    The structure is random with a fixed seed. None for a response without claims or passages, or
    with more than a thousand of both together.
    """
    if not 0 < atoms <= atoms + contexts <= _MOST_VARIABLES or not contexts:
        return None
    # Imported here because its kernels take longer to load than the rest of this module.
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
class Size:
    """Size of a response's graph, known or assumed.

    Attributes:
        extent: the numbers.
        exact_atoms: True if the claims are known.
        exact_contexts: True if the passages are known.
        graph: the claims and passages that are known.
        asks_question: True if its question is searched too.
    """

    extent: Extent
    exact_atoms: bool
    exact_contexts: bool
    graph: FactGraph
    asks_question: bool


Stated = Callable[[Sequence[Size], "AssessmentPlan"], list[StageEstimate]]
"""Function from the sizes of the responses and the plan to the estimates of a stage."""


def estimate(graphs: Sequence[FactGraph], plan: AssessmentPlan) -> list[StageEstimate]:
    """Estimate the requests of the stages, in order, without sending any.

    A passage that is read in windows counts one call per window. Cached answers are not subtracted.

    Raises:
        InputError: if a response does not fit the plan.
    """
    sizes = [_size(graph, plan) for graph in graphs]
    rows = [row for stated in plan.calls for row in stated(sizes, plan)]
    return [_with_thoughts(row, plan) for row in rows]


def of_model(stage: ModelStage[Any], needs: str = "claims") -> Stated:
    """Return the estimate of a stage that asks the language model.

    Args:
        stage: its row of the table of stages.
        needs: quantity that determines the number of its calls: ``response``, ``claims``,
            ``contexts`` as retrieved, or the remaining ``passages``.
    """

    def stated(sizes: Sequence[Size], plan: AssessmentPlan) -> list[StageEstimate]:
        return [_row(stage, [size.extent for size in sizes], _known(needs, sizes, plan), plan)]

    return stated


def searches(sizes: Sequence[Size], plan: AssessmentPlan) -> list[StageEstimate]:
    """Estimate the searches, and the embeddings if a provider makes them."""
    wanted = plan.settings
    asked = sum(n_searches(size.extent, size.asks_question) for size in sizes)
    price = 0.0 if RETRIEVERS[plan.retriever].reads_documents else wanted.price_search or 0.0
    stage = f"searches ({plan.retriever})"
    rows = [StageEstimate(stage, asked, _known("claims", sizes, plan), cost=price * asked)]
    searcher = plan.searcher
    whole = searcher.together() if isinstance(searcher, OwnDocuments) else searcher
    if isinstance(whole, DenseRetriever):
        rows += _embeddings(whole, [size.extent for size in sizes])
    return rows


def relations(sizes: Sequence[Size], plan: AssessmentPlan) -> list[StageEstimate]:
    """Estimate the relation stage for every variant, whichever is chosen."""
    # The number of relations that settle a claim is unknown.
    exact = _known("passages", sizes, plan) and not plan.settings.few_calls
    return [_relations(name, sizes, exact, plan) for name in EXTRACTED_VARIANTS]


def of_assessor(assessor: Assessor) -> Stated:
    """Return the estimate of an assessor: every claim takes all its steps, at most."""
    # Its own searches need no passages.
    needs = "claims" if assessor.searches else "passages"
    stages = [*(of_model(step.stage) for step in assessor.steps), of_model(assessor.verdict, needs)]
    return lambda sizes, plan: [row for stated in stages for row in stated(sizes, plan)]


def of_pairs(name: str, most: Callable[[int], int]) -> Stated:
    """Return the estimate of a stage that asks the language model about pairs of claims.

    Args:
        name: name of the row.
        most: largest number of pairs, of the number of claims.
    """

    def stated(sizes: Sequence[Size], plan: AssessmentPlan) -> list[StageEstimate]:
        extents = [
            replace(
                size.extent,
                pairs=most(size.extent.atoms),
                passage_characters=size.extent.atom_characters,
            )
            for size in sizes
        ]
        return [replace(_row(_relation_stage(plan), extents, False, plan), stage=name)]

    return stated


def claim_relations(sizes: Sequence[Size], plan: AssessmentPlan) -> list[StageEstimate]:
    """Estimate --coherence: a question about each pair of claims, with the response.

    Recorded relations between claims, and the lexical model without a language model, need no
    calls.
    """
    exact = _known("claims", sizes, plan)
    has_relations = any(between_claims(size.graph) for size in sizes)
    extents = [
        replace(size.extent, pairs=n_claim_pairs(size.extent.atoms, plan.settings.claim_window))
        for size in sizes
    ]
    if has_relations or plan.model is None:
        asked = 0 if has_relations else sum(extent.pairs for extent in extents)
        return [StageEstimate(table.CLAIM_RELATION.name, asked, exact, cost=0.0)]
    return [_row(table.CLAIM_RELATION, extents, exact, plan)]


def _known(needs: str, sizes: Sequence[Size], plan: AssessmentPlan) -> bool:
    """True if what a stage needs is counted and not assumed."""
    claims = all(size.exact_atoms for size in sizes)
    contexts = claims and all(size.exact_contexts for size in sizes)
    return {
        "response": True,
        "claims": claims,
        "contexts": contexts,
        # The number of passages that a summary finds irrelevant is unknown.
        "passages": contexts and not plan.settings.summarize,
    }[needs]


def probe_estimates(names: Sequence[str], plan: AssessmentPlan) -> list[StageEstimate]:
    """Estimate the calls of the probe as a single row; empty if nothing is probed.

    Args:
        names: names of probes of stages that ask the language model.
        plan: plan with the model and its prices.
    """
    number = questions = answers = 0
    for probe in map(probe_named, names):
        stage = _relation_stage(plan) if probe.stage is None else probe.stage
        repeated = getattr(plan.judge, "answers_per_pair", 1) if probe.stage is None else 1
        template = prompts_of(plan.model)[stage.prompt]
        texts = [
            sum(len(text) for slot, text in question.fields.items() if slot in template.slots)
            for question in probe.asked
        ]
        calls = repeated * probe_calls(probe.name, _relation_stage(plan))
        characters = calls * (_empty(template) + sum(texts) / len(texts))
        number += calls
        questions += ceil(characters / CHARACTERS_PER_TOKEN)
        answers += calls * stage.usual_tokens
    if not number:
        return []
    prices = _prices(plan)
    cost = None if prices is None else questions * prices.question + answers * prices.answer
    return [_with_thoughts(StageEstimate(STAGE, number, False, questions, answers, cost), plan)]


def _size(graph: FactGraph, plan: AssessmentPlan) -> Size:
    """Size of a response's graph, counted if known and assumed otherwise."""
    wanted = plan.settings
    for_question = bool(wanted.question_contexts and graph.query.strip())
    sentences = sentences_of(graph) if plan.atoms != "given" else ()
    if plan.atoms == "sentences":
        claims = tuple(Atom(f"a{i}", text) for i, text in enumerate(sentences, 1))
        graph = FactGraph(graph.id, claims, query=graph.query, topic=graph.topic)
    graph = merge_duplicate_contexts(merge_duplicate_atoms(graph))
    atoms = graph.atoms
    exact_atoms = plan.atoms != "model"
    n = len(atoms) if exact_atoms else round(CLAIMS_PER_SENTENCE * len(sentences))
    contexts: tuple[Context, ...] | None = None
    if plan.retriever == "given":
        contexts = without_samples(graph).contexts
    elif plan.retriever == "local" and exact_atoms and plan.searcher and not wanted.queries:
        # Searching documents on this disk is free, so search them for exact numbers.
        bare = FactGraph(graph.id, atoms, query=graph.query, topic=graph.topic)
        retrieval = partial(retrieval_stage, for_question=wanted.question_contexts)
        search = stage_by_response(retrieval, plan.searcher)
        searched = search(bare)
        contexts = searched.contexts
    if contexts is None:
        # A local search is bounded by the files on disk; the web is not.
        searcher = plan.searcher
        inner = searcher.of(graph).inner if isinstance(searcher, OwnDocuments) else searcher
        there = {passage.text for passage in getattr(inner, "passages", ())}
        retrieved = n * min(plan.top_k, len(there) or plan.top_k)
        passages = retrieved + plan.top_k * for_question
        m = min(passages, len(there) or passages)
        length: float = RETRIEVERS[plan.retriever].passage_characters
        if there:
            length = sum(map(len, there)) / len(there)
    else:
        m, retrieved = len(contexts), sum(len(c.retrieved_for) for c in contexts)
        length = sum(len(c.content) + len(c.title) for c in contexts) / max(1, m)
    samples = samples_alone(graph).contexts
    unasked = samples_to_ask(graph, wanted.samples or 0)
    all_samples = len(samples) + unasked
    if all_samples:
        sampled = sum(len(c.content) for c in samples) + unasked * len(graph.response)
        length = (m * length + sampled) / (m + all_samples)
        m, retrieved = m + all_samples, retrieved + n * all_samples
    if contexts is not None:
        joined = tuple(replace(each, retrieved_for=graph.atom_ids) for each in samples)
        contexts = None if unasked else (*contexts, *joined)
    extent = Extent(
        sentences=len(sentences),
        atoms=n,
        contexts=m,
        retrieved=retrieved,
        stride=plan.stride if plan.atoms == "model" else None,
        passage_characters=length,
        atom_characters=sum(len(a.text) for a in atoms) / len(atoms)
        if atoms and exact_atoms
        else CLAIM_CHARACTERS,
        response_characters=len(graph.response) + len(graph.query),
        found_characters=SAFE_CHARACTERS * plan.top_k,
        question_characters=len(graph.query),
        samples=all_samples,
        unasked_samples=unasked,
    )
    bare = FactGraph(
        graph.id, atoms, contexts or (), tuple(between_claims(graph)), query=graph.query
    )
    return Size(extent, exact_atoms, contexts is not None, bare, for_question)


def _relations(
    variant: str, sizes: Sequence[Size], exact: bool, plan: AssessmentPlan
) -> StageEstimate:
    extents = [replace(size.extent, pairs=n_relation_pairs(variant, size.extent)) for size in sizes]
    stage = f"relations {variant}"
    chosen = variant == plan.widest
    atoms, contexts = max(((s.atoms, s.contexts) for s in extents), key=math.prod, default=(0, 0))
    inference = expected_inference(variant, atoms, contexts)
    if plan.relations != "model":
        asked = sum(extent.pairs for extent in extents)
        return StageEstimate(stage, asked, exact, cost=0.0, chosen=chosen, inference=inference)
    for index, size in enumerate(sizes):
        wide = _windows(variant, size, plan)
        extents[index] = replace(extents[index], windows=wide, overlap=OVERLAP if wide > 1 else 0.0)
    repeated = getattr(plan.judge, "answers_per_pair", 1)
    row = _row(_relation_stage(plan), extents, exact, plan, repeated)
    return replace(row, stage=stage, chosen=chosen, inference=inference)


def _relation_stage(plan: AssessmentPlan) -> ModelStage[Any]:
    """The stage that asks for relations, with the prompt of the relation model."""
    return stage_of_method(plan.method, getattr(plan.judge, "prompt", table.RELATION.prompt))


def _windows(variant: str, size: Size, plan: AssessmentPlan) -> float:
    """Mean number of windows per pair of a response."""
    judge = plan.judge
    if not isinstance(judge, PromptedRelationModel):
        return 1.0
    if not (size.exact_atoms and size.exact_contexts):
        text = "word " * ceil(size.extent.passage_characters / 5)
        claim = "word " * ceil(size.extent.atom_characters / 5)
        return float(judge.windows(TextPair(text, claim)))
    pairs = relation_pairs(size.graph, variant)
    if not pairs:
        return 1.0
    # Usually all passages fit, and no pair has to be examined.
    premise, hypothesis, title = (
        max((getattr(pair, part) for pair in pairs), key=len)
        for part in ("premise", "hypothesis", "title")
    )
    longest = TextPair(premise, hypothesis, title=title, question=size.graph.query)
    if judge.windows(longest) == 1:
        return 1.0
    return sum(map(judge.windows, pairs)) / len(pairs)


def _embeddings(searcher: DenseRetriever, extents: Sequence[Extent]) -> list[StageEstimate]:
    """Embeddings of passages and searches by a provider; empty if they are computed locally."""
    embedder = searcher.store.embedder
    if not isinstance(embedder, LitellmEmbedder):
        return []
    texts = [searched_text(passage) for passage in searcher.passages]
    calls = n_embedding_calls(len(texts)) + sum(n_embedding_calls(s.atoms) for s in extents)
    characters = sum(map(len, texts)) + sum(s.atoms * s.atom_characters for s in extents)
    tokens = ceil(characters / CHARACTERS_PER_TOKEN)
    cost = None if embedder.price is None else tokens * embedder.price
    return [StageEstimate("embeddings", calls, False, tokens, cost=cost)]


def _with_thoughts(row: StageEstimate, plan: AssessmentPlan) -> StageEstimate:
    """Row of a stage answered by a language model, including its reasoning tokens."""
    if plan.model is None or not row.completion_tokens:
        return row
    try:
        room = reasoning_tokens(plan.model.name)
    except InputError:
        return row  # not a provider's model
    prices = _prices(plan)
    cost = None if prices is None else row.calls * room * prices.answer
    return replace(row, thoughts=row.calls * room, thoughts_cost=cost)


def _prices(plan: AssessmentPlan) -> Prices | None:
    return plan.settings.prices or (None if plan.model is None else model_prices(plan.model.name))


def _row(
    stage: ModelStage[Any],
    extents: Sequence[Extent],
    exact: bool,
    plan: AssessmentPlan,
    repeated: int = 1,
) -> StageEstimate:
    """Estimate of a stage's requests for all responses, from its row of the table.

    Args:
        stage: the row.
        extents: sizes of the responses.
        exact: True if the sizes that the stage depends on are known.
        plan: plan with the model and its prices.
        repeated: number of times that each question is asked.
    """
    template = prompts_of(plan.model)[stage.prompt]
    calls = [stage.calls(extent, template.slots) for extent in extents]
    empty = _empty(template)
    characters = repeated * sum(
        call.number * (empty + call.filled) + call.besides for call in calls
    )
    questions = ceil(characters / CHARACTERS_PER_TOKEN)
    number = repeated * round(sum(call.number for call in calls))
    listed = [call.listed for call in calls if call.listed is not None]
    answers = (sum(listed) if listed else number) * stage.usual_tokens
    prices = _prices(plan)
    cost = None if prices is None else questions * prices.question + answers * prices.answer
    exact = exact and not any(call.at_most for call in calls)
    return StageEstimate(stage.name, number, exact, questions, answers, cost)


def _empty(template: PromptTemplate) -> int:
    """Characters of a prompt without its slots' contents."""
    messages = template.render(**dict.fromkeys(template.slots, ""))
    return sum(len(message.content) for message in messages)
