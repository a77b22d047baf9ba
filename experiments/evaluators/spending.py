"""Relations on a budget: of the pairs of a response, those that are worth most are asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibration.unasked import AnswerLaw, Answers, play, replay, stated_risk
from calibration.unasked.fields import EFFECTS
from calibration.unasked.law import MOVING
from calibration.unasked.order import tell, values
from calibration.validation import Floats
from experiments.evaluators.estimate import StageEstimate, estimate
from experiments.evaluators.gate import TOO_UNLIKE, Alike, Gate
from experiments.evaluators.purse import Purse
from experiments.evaluators.threads import LocalRelations
from experiments.evaluators.unasked import COLUMNS, Askable, answer_of, askable
from experiments.findings.artefacts import PaperFigure
from experiments.findings.table import Table, columns_as, data_frame
from factormodels.aligned_claims import differ_decisively
from factormodels.errors import InputError
from factormodels.extraction.pipeline import Stage, relation_stage
from factormodels.extraction.relation_models.base import (
    Judgement,
    Missing,
    NotAsked,
    RelationModel,
    TextPair,
)
from factormodels.extraction.stages.relations import METADATA_KEY, relation_of, relation_pairs
from factormodels.fact_graph import FactGraph
from factormodels.io.files import read_text
from factormodels.io.learned_files import LARGEST, Fields, LearnedFormat, read_learned
from factormodels.learned_from import ResponseIdentity
from factormodels.nouns import counted
from factormodels.variants import merge_duplicate_contexts

if TYPE_CHECKING:
    from experiments.evaluators.response import AssessedResponse
    from experiments.evaluators.setup import AssessmentPlan

AT_ONCE = 8
"""Pairs of a response that are asked side by side; their claims are different ones."""

NEAR_DUPLICATE = 0.9
"""Two passages are one where they share so many of their words, of all that either has."""

NEAR_MEANING = 0.95
"""Two passages are one where the cosine of their embeddings is at least this, if there are any."""

_NOT_ASKED = NotAsked("not asked: others were worth more")
_SHARES = (0.0, 0.1, 0.2, 0.3, 0.42, 0.6, 0.8, 1.0)

_LAW = Path(__file__).with_name("answer_law.json")

ANSWER_LAW = LearnedFormat(
    "factormodels answer law",
    1,
    "law of answers",
    "write one with experiments.analyses.ours.shared.derive_answer_law",
    "derive it anew",
)
"""The file of the law by which relations are asked for."""


@dataclass(frozen=True)
class Limits:
    """How much is asked.

    Attributes:
        calls: pairs of each response by its id; None for all. With a purse they are an estimate.
        stop: ends where no claim's verdict is more likely to change than this.
        purse: US dollars for all responses, where an amount was given.
    """

    calls: Mapping[str, int] | None
    stop: float | None
    purse: Purse | None = None


def limits(
    graphs: Sequence[FactGraph],
    spend: str | None,
    stop: float | None,
    price: float | None,
    calls_a_pair: float,
) -> Limits:
    """The limits of each response: the budget is shared out by their claims, or by their length.

    Args:
        graphs: the responses.
        spend: a number of calls, or `US$` and an amount; None for no limit.
        stop: see `Limits`.
        price: of one call in US dollars; None where it is not known.
        calls_a_pair: calls that a pair takes.

    Raises:
        InputError: for a budget that is neither, or an amount where no price is known.
    """
    if spend is None:
        return Limits(None, stop)
    amount = re.fullmatch(r"US\$\s*(\d+(?:\.\d+)?)", spend.strip())
    if amount:
        if not price:
            raise InputError(
                f"--spend {spend!r}: the price of a call is not known; give --price-in and "
                "--price-out, or a number of calls"
            )
        # Decimals that a float does not hold must not cost a call.
        calls = int(float(amount[1]) / price + 1e-9)
    elif spend.strip().isdecimal():
        calls = int(spend)
    else:
        raise InputError(
            f"--spend {spend!r} is no budget; give a number of calls, such as 200, or an amount, "
            "such as 'US$ 2'"
        )
    sizes = np.array([len(graph.atoms) or len(graph.response) for graph in graphs], dtype=float)
    # Each has the whole calls of its share; what is left goes to the largest remainders.
    shares = int(calls / calls_a_pair) * sizes / max(1.0, sizes.sum())
    whole = np.floor(shares).astype(np.int64)
    more = np.argsort(whole - shares, kind="stable")[: round(float(shares.sum() - whole.sum()))]
    whole[more] += 1
    names = [graph.id for graph in graphs]
    of_each = dict(zip(names, whole.tolist(), strict=True))
    if not amount or not price:
        return Limits(of_each, stop)
    dollars = float(amount[1]) * sizes / max(1.0, sizes.sum())
    purse = Purse(float(amount[1]), dict(zip(names, dollars.tolist(), strict=True)), price)
    return Limits(of_each, stop, purse)


def on_budget(graphs: Sequence[FactGraph], plan: AssessmentPlan) -> AssessmentPlan:
    """The plan with relations asked in order of value, within `--spend` and `--stop`.

    Raises:
        InputError: as `limits`.
    """
    settings = plan.settings
    free = plan.relations != "model"
    allowed, _ = _planned(graphs, plan, estimate(graphs, plan))
    stage = spending_stage(
        LocalRelations(plan.judge) if free else plan.judge,
        plan.widest,
        float(plan.facts["least"]),
        settings.encoding,
        allowed,
        plan.relation_facts,
        plan.gate,
        plan.taught,
    )
    stages = list(plan.stages)
    stages[plan.relation_place] = stage
    return replace(plan, stages=tuple(stages), purse=allowed.purse)


def _planned(
    graphs: Sequence[FactGraph], plan: AssessmentPlan, rows: Sequence[StageEstimate]
) -> tuple[Limits, float]:
    """The limits of each response, in pairs, and the calls that a pair takes.

    Raises:
        InputError: as `limits`.
    """
    row = next(row for row in rows if row.stage == f"relations {plan.widest}")
    price = None if row.cost is None else row.cost / max(1, row.calls)
    # Windows and samples make several calls of a pair; they are in the estimate.
    free = plan.relations != "model"
    pairs = sum(len(relation_pairs(merge_duplicate_contexts(one), plan.widest)) for one in graphs)
    calls_a_pair = max(1.0, row.calls / pairs) if row.exact and pairs and not free else 1.0
    settings = plan.settings
    return limits(graphs, settings.spend, settings.stop, price, calls_a_pair), calls_a_pair


def within_budget(
    graphs: Sequence[FactGraph], plan: AssessmentPlan, rows: Sequence[StageEstimate]
) -> list[StageEstimate]:
    """Estimates with no more relations than `--spend` allows and `--gate` lets through.

    Raises:
        InputError: as `limits`.
    """
    allowed, calls_a_pair = _planned(graphs, plan, rows)
    most = [sum(allowed.calls.values())] if allowed.calls is not None else []
    if plan.gate is not None and plan.retriever == plan.atoms == "given":
        most.append(sum(_let_through(plan.gate, graph, plan.widest) for graph in graphs))
    if not most:
        return list(rows)
    calls = round(min(most) * calls_a_pair)
    return [
        _cut(row, calls) if row.stage == f"relations {plan.widest}" and row.calls > calls else row
        for row in rows
    ]


def _let_through(gate: Gate, graph: FactGraph, variant: str) -> int:
    merged = near_duplicates_merged(graph, alike=gate.of_passages)
    return int(gate.open_to(merged, relation_pairs(merged, variant)).sum())


def _cut(row: StageEstimate, calls: int) -> StageEstimate:
    share = calls / row.calls
    return replace(
        row,
        calls=calls,
        prompt_tokens=round(row.prompt_tokens * share),
        completion_tokens=round(row.completion_tokens * share),
        cost=None if row.cost is None else row.cost * share,
        thoughts=round(row.thoughts * share),
        thoughts_cost=None if row.thoughts_cost is None else row.thoughts_cost * share,
    )


def risk_sentences(
    graphs: Sequence[FactGraph], responses: Sequence[AssessedResponse]
) -> Iterator[str]:
    """What was not asked, and how many verdicts would change if it were."""
    told = [graph.metadata.get(METADATA_KEY, {}) for graph in graphs]
    risks = [risk for one in told for risk in one.get("risk", {}).values()]
    if not risks:
        return
    unasked = sum(one.unasked for one in responses)
    asked = sum(one.asked for one in responses)
    unlike = sum(
        reason == TOO_UNLIKE.reason for one in told for *_, reason in one.get("unasked", ())
    )
    yield (
        f"{asked:,} of {counted(asked + unasked, 'pair')} asked, in order of what they are worth. "
        f"If all were, {sum(risks):.1f} of {counted(len(risks), 'verdict')} would be expected to "
        f"change; the most doubtful with {max(risks):.1%}. A verdict is whether the probability is "
        "more than one half: a claim that is at one half and stays there is no change. The law "
        "behind that is of "
        "Factcheck-Bench and biographies: of another relation model it is a guess."
    )
    if unlike:
        yield (
            f"Of the pairs that were not asked --gate kept out {unlike:,}, whose texts are too "
            "little alike. The law does not know how alike texts are: it takes these for pairs "
            "like any others."
        )


def frontier_table(graphs: Sequence[FactGraph], plan: AssessmentPlan) -> dict[str, Table]:
    """Calls against stated risk, as the law expects before any answer; nothing is sent.

    Of responses whose claims and passages are known; answers are drawn from the law.
    """
    law, rows = default_law(), []
    known = [graph for graph in map(near_duplicates_merged, graphs) if graph.contexts]
    if plan.retriever != "given" or plan.atoms != "given" or not known:
        return {}
    asked = [askable(graph, plan.widest) for graph in known]
    drawn = [drawn_answers(law, each, number) for number, each in enumerate(asked)]
    pairs = [each.pairs for each in asked]
    order = play([law] * len(known), pairs, drawn)
    # What each response is asked at a time: of all the most valuable, or what its budget allows.
    counts = [round(share * order.pair.size) for share in _SHARES]
    asked_of = [
        [order.pair[:count][order.response[:count] == number] for number in range(len(known))]
        for count in counts
    ]
    allowed = _planned(graphs, plan, estimate(graphs, plan))[0].calls
    note = ""
    if allowed is not None:
        own = [order.pair[order.response == number] for number in range(len(known))]
        within = [each[: allowed[graph.id]] for each, graph in zip(own, known, strict=True)]
        spent = sum(len(each) for each in within)
        if 0 < spent < order.pair.size:
            asked_of.append(within)
            note = (
                f"{counted(spent, 'call')}: the budget, shared out among responses as --spend "
                "does; in the other rows the most valuable of all responses are asked first."
            )
    for own in sorted(asked_of, key=lambda each: sum(map(len, each))):
        risks = []
        for each, told, first in zip(pairs, drawn, own, strict=True):
            state, odds = replay(law, each, told, first)
            risks.append(stated_risk(law, each, state, odds, told.weight))
        every, count = np.concatenate(risks), sum(map(len, own))
        rows.append({"calls": count, "share": count / max(1, order.pair.size),
                     "risk": float(every.mean()), "largest": float(every.max())})  # fmt: skip
    columns = (
        *columns_as("calls:0 | share:2 share of all"),
        *columns_as("risk:3 mean risk | largest:3 largest risk"),
    )
    title = "Calls for relations against the risk that a verdict changes, as the law expects."
    return {"frontier": Table(data_frame(rows), columns, title, note=note)}


def frontier_figures(tables: Mapping[str, Table]) -> Mapping[str, PaperFigure]:
    """The table of `frontier_table` drawn: calls against stated risk."""
    if "frontier" not in tables:
        return {}
    from calibration.figures.panels import nth_look, panels

    frame = tables["frontier"].frame
    with panels(1, 1, (3.4, 2.4)) as (figure, ((place,),)):
        for look, (name, label) in enumerate((("risk", "mean"), ("largest", "most doubtful"))):
            place.plot(frame["calls"], frame[name], label=label, **nth_look(look))
        place.set(xlabel="calls", ylabel="risk that a verdict changes", ylim=(0, None))
        place.legend(fontsize=6, title="claim", title_fontsize=6)
    return {"stated-risk": PaperFigure(figure, frame, "calls against stated risk")}


def drawn_answers(law: AnswerLaw, asked: Askable, seed: int) -> Answers:
    """Answers to all pairs of a response, drawn from the law before anything is asked."""
    pairs, state = asked.pairs, law.start(asked.pairs)
    normal = state.draw(1, seed)[0]
    none = np.zeros(pairs.size)
    support, contradiction = law.chances(pairs, state, none)
    from scipy.special import ndtr

    weight = law.drawn_weights(support, contradiction, ndtr(normal))
    return Answers(state.mean + normal * np.sqrt(state.variance + state.noise), weight)


def spending_stage(
    model: RelationModel,
    variant: str,
    least: float,
    encoding: str,
    allowed: Limits,
    facts: Mapping[str, Any],
    gate: Gate | None = None,
    taught: Sequence[ResponseIdentity] = (),
) -> Stage:
    """Stage that asks for the relations of a variant in order of value, within limits.

    Near-duplicate passages are merged before. Pairs that a gate keeps out are never asked.
    `metadata["relations"]` also holds `unasked`, the pairs that were not asked, and `risk`, by id
    of claim how likely its verdict is to change if all pairs were.
    """

    def stage(graph: FactGraph) -> FactGraph:
        merged = near_duplicates_merged(graph, alike=None if gate is None else gate.of_passages)
        every = allowed.calls is None or allowed.purse is not None
        calls = None if every else (allowed.calls or {}).get(graph.id, 0)
        chosen = _Chosen(
            model, merged, variant, least, encoding, calls, allowed.stop, gate, allowed.purse
        )
        found = relation_stage(chosen, variant, least, facts, taught=taught)(merged)
        told = {**found.metadata[METADATA_KEY], "risk": chosen.risk}
        return replace(found, metadata={**found.metadata, METADATA_KEY: told})

    return stage


@dataclass
class _Chosen:
    """A relation model that asks another for the pairs of one response that are worth it."""

    model: RelationModel
    graph: FactGraph
    variant: str
    least: float
    encoding: str
    calls: int | None
    stop: float | None
    gate: Gate | None = None
    purse: Purse | None = None
    risk: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.model.name

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        """Answers to the pairs that were asked; `NotAsked` for the others."""
        law, asked = default_law(), askable(self.graph, self.variant)
        let = [True] * len(pairs) if self.gate is None else self.gate.open_to(self.graph, pairs)
        kept_out = {pair for pair, own in zip(pairs, let, strict=True) if not own}
        place = {name: number for number, name in enumerate(asked.names)}
        numbered = {place.get((pair.source, pair.target)): pair for pair in pairs}
        # Pairs of two passages, of FR3, hardly move a claim: they come last, in order.
        between = [p for p in pairs if (p.source, p.target) not in place and p not in kept_out]
        numbered.pop(None, None)
        size = asked.pairs.size
        state, odds = law.start(asked.pairs), asked.pairs.prior.copy()
        told = Answers(np.zeros(size), np.zeros(size))
        answers: dict[TextPair, Judgement | Missing] = {}
        # A pair with an empty text cannot be asked, and nothing will change by it.
        state.asked[[number for number in range(size) if number not in numbered]] = True
        # What the gate keeps out is not asked either, but could have changed something.
        closed = np.array([numbered.get(number) in kept_out for number in range(size)], np.bool_)
        left = len(pairs) if self.calls is None else self.calls
        while left > 0 and not (state.asked | closed).all():
            if self.stop is not None:
                risk = stated_risk(law, asked.pairs, state, odds, told.weight)
                if not risk.size or risk.max() <= self.stop:
                    break
            worth = values(law, asked.pairs, state, odds, told.weight)
            batch = _next(asked, worth, state.asked | closed, min(left, AT_ONCE))
            given = list(self._answers([numbered[number] for number in batch]))
            # Fewer than were asked for, where no more fit into the purse.
            for number, answer in zip(batch, given, strict=False):
                answers[numbered[number]] = answer
                self._learn(law, asked, state, odds, told, number, answer)
            left = left - len(batch) if len(given) == len(batch) else 0
        last = between[:left] if self.stop is None else []
        answers.update(zip(last, self._answers(last), strict=False))
        risks = stated_risk(law, asked.pairs, state, odds, told.weight)
        self.risk = dict(zip(self.graph.atom_ids, risks.tolist(), strict=True))
        return [answers.get(pair, TOO_UNLIKE if pair in kept_out else _NOT_ASKED) for pair in pairs]

    def _answers(self, pairs: Sequence[TextPair]) -> Iterator[Judgement | Missing]:
        """Answers to the pairs in turn, until no more fit into the purse.

        It parts a batch and does not choose it, so that a larger one asks for the same pairs first.
        """
        if self.purse is None:
            yield from self.model.judge(pairs) if pairs else ()
            return
        while pairs:
            with self.purse.batch(self.graph.id, len(pairs)) as count:
                given = self.model.judge(pairs[:count]) if count else []
            if not given:
                return
            yield from given
            pairs = pairs[count:]

    def _learn(
        self,
        law: AnswerLaw,
        asked: Askable,
        state: Any,
        odds: Any,
        told: Answers,
        number: int,
        answer: Judgement | Missing,
    ) -> None:
        if isinstance(answer, Missing):
            # It was asked in vain: nothing is learned, and it is not asked again.
            state.asked[number] = True
            return
        source, target = asked.names[number]
        relation = relation_of(TextPair("", "", source, target), answer, self.least)
        context = next(one.prior for one in self.graph.contexts if one.id == source)
        atom = self.graph.atoms[int(asked.pairs.claim[number])].prior
        told.score[number], told.weight[number] = answer_of(relation, context, atom, self.encoding)
        tell(law, asked.pairs, state, odds, number, told)


def _next(asked: Askable, worth: Floats, closed: NDArray[np.bool_], most: int) -> list[int]:
    """The pairs that are worth most of those that are not closed, of each claim at most one."""
    order = np.argsort(-worth, kind="stable")
    order = order[~closed[order]]
    _, first = np.unique(asked.pairs.claim[order], return_index=True)
    chosen: list[int] = order[np.sort(first)][:most].tolist()
    return chosen


@cache
def default_law() -> AnswerLaw:
    """What was learned of answers on Factcheck-Bench and embedded biographies, by `learn_law`.

    `python -m experiments.analyses.ours.shared.derive_answer_law` writes it.
    """
    return read_learned(read_text(_LAW), _LAW, ANSWER_LAW, answer_law_from)[0]


def answer_law_from(law: Fields) -> AnswerLaw:
    """Return the law of a file, checked."""
    law.only(*(field.name for field in fields(AnswerLaw)))
    n_columns = len(COLUMNS)
    n_strengths = len(law.rows("strengths", 2, None, LARGEST)[0])
    return AnswerLaw(
        np.array(law.numbers("mean", n_columns)),
        np.array(law.numbers("variances", len(EFFECTS) + 1, 0.0)),
        np.array(law.numbers("support", MOVING + n_columns)),
        np.array(law.numbers("contradiction", MOVING + n_columns)),
        np.array(law.rows("strengths", 2, n_strengths, LARGEST)),
        np.array(law.numbers("shares", 2, 0.0, 1.0)),
        np.array(law.numbers("risk", 2)),
    )


def near_duplicates_merged(
    graph: FactGraph, threshold: float | None = None, alike: Alike | None = None
) -> FactGraph:
    """The graph with passages merged into the first that is nearly the same.

    Passages that differ in a number or in a negation stay apart, however alike they are: evidence
    for and against a claim may have all other words in common.

    Args:
        graph: claims and passages.
        threshold: likeness from which two passages are one; `NEAR_DUPLICATE` of words and
            `NEAR_MEANING` of embeddings if None.
        alike: how alike two passages are, by embeddings; if None, shared words, of all words of
            both.
    """
    graph = merge_duplicate_contexts(graph)
    contexts = list(graph.contexts)
    texts = [one.content for one in contexts]
    pairs = [(k, n) for n in range(len(texts)) for k in range(n) if texts[k] and texts[n]]
    if alike is None:
        words = [frozenset(re.findall(r"\w+", text.casefold())) for text in texts]
        likeness = [_alike(words[k], words[n]) for k, n in pairs]
        least = NEAR_DUPLICATE if threshold is None else threshold
    else:
        likeness = alike([TextPair(texts[k], texts[n]) for k, n in pairs]).tolist()
        least = NEAR_MEANING if threshold is None else threshold
    same: dict[int, int] = {}
    for (k, n), own in zip(pairs, likeness, strict=True):
        if own >= least and k not in same and n not in same:
            if differ_decisively(texts[k], texts[n]):
                continue
            same[n] = k
            # What has the same key is merged.
            key = contexts[k].key or f"near:{contexts[k].id}"
            contexts[k] = replace(contexts[k], key=key)
            contexts[n] = replace(contexts[n], key=key)
    return merge_duplicate_contexts(replace(graph, contexts=tuple(contexts))) if same else graph


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))
