"""What several answers of a language model are worth as probabilities of relations, by labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from calibration.folds import response_folds
from calibration.intervals import IntervalSettings
from experiments.asking.failed_calls import calls_in_ledger, with_failed_calls
from experiments.asking.ledger_table import cost_tables
from experiments.asking.relation_models import known_window
from experiments.asking.session import asking
from experiments.asking.settings import AskingSettings
from experiments.evaluators.relation_quality import distribution, labelled_pairs
from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as, data_frame
from experiments.methods.fit import score_rows
from experiments.progress import tell
from experiments.settings import USUAL, Option, front_door
from experiments.settings.inputs import graphs_of
from experiments.settings.limits import DrawnSettings, Folds, Openness
from factormodels.datasets import sampled_answers
from factormodels.errors import InputError
from factormodels.extraction.concurrency import each, run_until_done
from factormodels.extraction.language_model import LanguageModel, gives_log_probabilities
from factormodels.extraction.language_model.log_probabilities import OPENNESS
from factormodels.extraction.relation_models.base import Judgement, TextPair
from factormodels.extraction.relation_models.consensus import (
    KINDS,
    SAMPLES,
    TEMPERATURES,
    ConsensusLaw,
    SampledAnswer,
    relation_probabilities,
)
from factormodels.extraction.relation_models.prompted import WINDOW, PromptedRelationModel
from factormodels.extraction.relation_models.recorded_answers import (
    RecordedAnswers,
    read_recorded_answers,
)
from factormodels.extraction.stages.relations import relation_pairs
from factormodels.learned_from import identity_of
from factormodels.nouns import counted, is_or_are

if TYPE_CHECKING:
    from calibration.recalibration.relation_law import RelationLaw
    from calibration.validation import Floats, Integers
    from experiments.settings.inputs import Responses
    from factormodels.fact_graph import FactGraph

LEARNED, VOTES_AS_THEY_ARE = "consensus, learned", "consensus"
_SCORES = ("brier", "corp_brier_miscalibration", "log_loss", "auroc")
_SUREST = 1e-6


class ConsensusSettings(DrawnSettings, AskingSettings):
    """What is asked, and what is learned from it."""

    labels: Annotated[Literal["relations", "claims"] | None, USUAL] = None
    """What is known: the relations of the responses, or which claims are true. By default relations
    where passages have any to claims."""

    complete: bool = False
    """A pair of passage and claim without a relation is known to be neutral."""

    temperatures: Annotated[tuple[float, ...], Option("T")] = TEMPERATURES
    """Temperature that answers are sampled at, in turn; repeatable."""

    samples: Annotated[int, Field(ge=2), USUAL] = SAMPLES
    """Answers per pair."""

    recorded: Annotated[Path | None, Option("FILE", usual=True)] = None
    """Take the answers from this file (JSON Lines, a line for each pair) and ask nobody;
    temperatures and samples are then those of the file. Without a model the demonstration has
    answers, which are imitated."""

    likeness: Annotated[str, Option("NAME")] = "order"
    """How alike two answers are: order (longest common subsequence of words), words (that both
    have), letters (runs of them), meaning:FOLDER (cosine between embeddings of a local model), or
    none: all alike, so that every answer has one vote."""

    openness: Openness = OPENNESS

    penalty: Annotated[float, Field(ge=0), Option("X")] = 1.0
    """Weight of half the squared distance of the law from the votes as they are."""

    folds: Folds = 5
    """Folds of responses in which it is learned and scored."""

    save: Annotated[Path | None, Option("FILE", writes=True, usual=True)] = None
    """Write the law to this file (JSON), for --method consensus:FILE."""

    @property
    def votes(self) -> ConsensusLaw:
        """The law without data."""
        return ConsensusLaw(self.temperatures, self.samples, self.likeness)


@dataclass(frozen=True, eq=False)
class KnownPairs:
    """Pairs of a passage and a claim, with what is known of them or of their claims.

    Attributes:
        pairs: the n pairs.
        responses: (n,) number of each pair's response.
        kinds: (n,) the known relations; None where claims are known.
        claims: (n,) number of each pair's claim.
        truth: (m,) whether claims are true; empty where relations are known.
        log_odds: (m,) of the claims' priors.
        trust: (n,) priors of the passages.
        claim_responses: (m,) number of each claim's response.
        response_ids: (n,) id of each pair's response.
    """

    pairs: tuple[TextPair, ...]
    responses: Integers
    kinds: Integers | None
    claims: Integers
    truth: Floats
    log_odds: Floats
    trust: Floats
    claim_responses: Integers
    response_ids: tuple[str, ...]

    def of(self, kept: Any) -> KnownPairs:
        """Those of the pairs that a mask keeps, with their claims."""
        claims, numbers = np.unique(self.claims[kept], return_inverse=True)
        known = self.kinds is None
        return KnownPairs(
            tuple(pair for pair, own in zip(self.pairs, kept, strict=True) if own),
            self.responses[kept],
            None if self.kinds is None else self.kinds[kept],
            numbers,
            self.truth[claims] if known else self.truth,
            self.log_odds[claims] if known else self.log_odds,
            self.trust[kept],
            self.claim_responses[claims] if known else self.claim_responses,
            tuple(name for name, own in zip(self.response_ids, kept, strict=True) if own),
        )

    def fit(self, columns: Floats, penalty: float) -> RelationLaw:
        """The law that fits what is known."""
        # It loads libraries that the help does without.
        from calibration.recalibration.relation_law import fit_claims, fit_relations

        if self.kinds is not None:
            return fit_relations(columns, self.kinds, penalty=penalty)
        known = self.claims, self.truth, self.log_odds, self.trust
        return fit_claims(columns, *known, penalty=penalty)

    def forecasts(self, p: Floats) -> dict[str, tuple[Floats, Floats, Integers]]:
        """By what is forecast: probabilities, what is true, and responses.

        Args:
            p: (n, 3) probabilities of the relations.
        """
        if self.kinds is not None:
            return {
                str(kind): (p[:, place], (self.kinds == place).astype(float), self.responses)
                for place, kind in enumerate(KINDS[:2])
            }
        pull = np.clip(self.trust * (p[:, 0] - p[:, 1]), _SUREST - 1.0, 1.0 - _SUREST)
        odds = self.log_odds + np.bincount(self.claims, 2 * np.arctanh(pull), len(self.truth))
        true: Floats = 0.5 * (1.0 + np.tanh(0.5 * odds))
        return {"claim": (true, self.truth, self.claim_responses)}


@front_door
def consensus(responses: Responses, settings: ConsensusSettings) -> Findings:
    """Learn what several answers are worth as probabilities of relations, and compare the ways.

    Asks a language model about each pair of a passage and a claim several times, at several
    temperatures, and once for its log-probabilities and its stated confidence. Shows how each way
    scores against what is known: the shares of votes, plain and weighed by how alike answers are,
    the mean likeness itself, log-probabilities, confidence, and the law that is learned, judged on
    responses that it has not seen. --save writes it, for --method consensus:FILE. Answers
    that were recorded need no model; the demonstration comes with some.

    Examples::

        factormodels consensus demonstration --complete
        factormodels consensus labelled.csv --model openai/NAME --save law.json
        factormodels consensus labelled.csv --recorded answers.jsonl
        factormodels consensus graphs.jsonl --labels claims --model openai/NAME
        factormodels consensus demonstration --complete \\
            --model openai/NAME --dry-run

    Args:
        responses: Responses with texts, and with labelled claims or known relations of passages to
            claims, or the name of an embedded dataset.
        settings: how; in Python the fields may be named instead, and a language model given itself.

    Raises:
        InputError: if they cannot be read, have no texts or labels, or an option does not fit.
        MissingDependencyError: if litellm is not installed.
    """
    graphs = graphs_of(responses)
    source = str(responses) if isinstance(responses, str | Path) else "the responses"
    known, votes = known_pairs(graphs, settings, source), settings.votes
    recorded = _recorded(source, settings)
    with asking(settings) as session:
        if recorded is not None:
            name, held = recorded
            votes = ConsensusLaw(held.temperatures, held.samples, settings.likeness)
            known, answers, others = _looked_up(known, held, name)
        else:
            model = session.needed_model("consensus asks")
            ways = ["verbalised", *(["logprobs"] if gives_log_probabilities(model) else [])]
            if settings.dry_run:
                calls = len(known.pairs) * (settings.samples + len(ways))
                pairs = counted(len(known.pairs), "pair")
                told = f"{pairs}: {counted(calls, 'call')} of {model.name}, at most."
                return Findings(source, (told, "Nothing was sent."))
            tell(
                f"{counted(len(known.pairs), 'pair')}, each asked {settings.samples + len(ways)} "
                "times"
            )
            answers, others = asked_of(
                known.pairs, votes, ways, model, session.calls, settings.openness
            )
            name = model.name
    kept = np.array([bool(own) for own in answers])
    for judged in others.values():
        kept &= np.array([isinstance(one, Judgement) for one in judged])
    if not kept.any():
        raise InputError(f"{source}: {name} answered none of the {counted(len(kept), 'pair')}")
    known = known.of(kept)
    sampled = [own for own, there in zip(answers, kept, strict=True) if there]
    columns = np.stack([votes.columns(own) for own in sampled])
    law, learned = learned_in_folds(known, columns, settings)
    forecasts = {LEARNED: learned} | _free_ways(sampled, columns, votes)
    for way, judged in others.items():
        chosen = [one for one, there in zip(judged, kept, strict=True) if there]
        forecasts[way] = np.array([distribution(one) for one in chosen])
    rows = _rows(known, forecasts, settings)
    what = "relations" if known.kinds is not None else "claims"
    n = len(known.pairs) if known.kinds is not None else len(known.truth)
    n_responses = len(np.unique(known.responses))
    learned_from = f"{n} labelled {what} of {counted(n_responses, 'response')}, {name}"
    saved = replace(
        votes,
        weights=tuple(law.coefficients[2:].tolist()),
        intercepts=(float(law.coefficients[0]), float(law.coefficients[1])),
        learned_from=learned_from,
        taught=tuple(identity_of(each) for each in graphs if each.id in set(known.response_ids)),
    )
    sentences = [_sentence(rows, what), f"Learned from {learned_from}."]
    if not law.converged:
        sentences.append("The search did not converge; give a larger --penalty.")
    if not kept.all():
        without = counted(int((~kept).sum()), "pair")
        sentences.append(f"{without} without an answer of every kind: left out.")
    if recorded is not None:
        sentences.append(_of_recorded(settings))
    if settings.save is not None:
        saved.save(settings.save)
        sentences.append(f"The law is in {settings.save}.")
    tables = {"scores": _scores_table(rows), "law": _law_table(saved)}
    tables |= cost_tables(session.ledger)
    return with_failed_calls(
        Findings(
            source=source,
            sentences=tuple(sentences),
            tables=tables,
            incomplete=not bool(kept.all()),
        ),
        calls_in_ledger(session.ledger),
    )


def _recorded(source: str, settings: ConsensusSettings) -> tuple[str, RecordedAnswers] | None:
    """Answers that nobody need be asked for, with where they are from; None if there are none.

    Raises:
        InputError: if a model is named too, or the file cannot be used.
    """
    if settings.recorded is None:
        held = sampled_answers(source) if settings.model is None else None
        return None if held is None else ("imitated answers", held)
    if settings.model is not None:
        raise InputError("--recorded says what was answered; leave --model out, or ask anew")
    return f"answers of {settings.recorded}", read_recorded_answers(settings.recorded)


def _looked_up(
    known: KnownPairs, held: RecordedAnswers, name: str
) -> tuple[KnownPairs, list[list[SampledAnswer]], dict[str, list[Any]]]:
    """Those of the pairs that have recorded answers, with these and what the other ways gave.

    Raises:
        InputError: if none has.
    """
    found = [
        held.of(response, pair)
        for response, pair in zip(known.response_ids, known.pairs, strict=True)
    ]
    there = [one for one in found if one is not None]
    if not there:
        raise InputError(
            f"{name}: none is of a pair whose relation or claim is known; give the texts of its "
            "pairs, or their response, source and target, as the responses have them"
        )
    ways = held.ways(there)
    judged: dict[str, list[Any]] = {way: [one.judged[way] for one in there] for way in ways}
    chosen = known.of(np.array([one is not None for one in found]))
    return chosen, [list(one.answers) for one in there], judged


def _of_recorded(settings: ConsensusSettings) -> str:
    """What a reader must know of answers that nobody was asked for."""
    if settings.recorded is not None:
        return f"Nobody was asked: the answers are those of {settings.recorded}."
    return (
        "Nobody was asked: these answers were written for the demonstration by a script, after a "
        "law of ours, and say nothing of any model. Ask yours with --model, or give what it said "
        "with --recorded."
    )


def known_pairs(
    graphs: Sequence[FactGraph], settings: ConsensusSettings, source: str
) -> KnownPairs:
    """The pairs that can be asked, and what is known of them.

    Raises:
        InputError: if nothing is known, or there are no texts.
    """
    nothing = np.empty(0)
    if settings.labels != "claims":
        try:
            found = labelled_pairs(graphs, complete=settings.complete)
        except InputError:
            if settings.labels == "relations":
                raise
        else:
            responses = np.unique([item.response for item in found], return_inverse=True)[1]
            kinds = np.array([KINDS.index(item.kind) for item in found])
            numbers = np.arange(len(found))
            pairs = tuple(item.pair for item in found)
            whole = np.ones(len(found))
            return KnownPairs(
                *(pairs, responses, kinds, numbers, nothing, nothing, whole, numbers[:0]),
                tuple(item.response for item in found),
            )
    asked: list[tuple[TextPair, int, int, float]] = []
    claims: list[tuple[bool, float, int]] = []
    for place, graph in enumerate(graphs):
        labelled = {atom.id: atom for atom in graph.atoms if atom.label is not None and atom.text}
        passages = {context.id: context for context in graph.contexts}
        numbered: dict[str, int] = {}
        for pair in relation_pairs(graph, "FR1"):
            if pair.target not in labelled or not pair.premise:
                continue
            atom = labelled[pair.target]
            if pair.target not in numbered:
                numbered[pair.target] = len(claims)
                prior = np.clip(atom.prior, _SUREST, 1 - _SUREST)
                claims.append((bool(atom.label), float(np.log(prior / (1 - prior))), place))
            asked.append((pair, place, numbered[pair.target], passages[pair.source].prior))
    if not asked:
        raise InputError(
            f"{source}: neither a relation of a passage to a claim is known nor the label of a "
            "claim that has passages, with their texts; give labelled responses"
        )
    return KnownPairs(
        tuple(pair for pair, *_ in asked),
        np.array([place for _, place, *_ in asked]),
        None,
        np.array([claim for *_, claim, _ in asked]),
        np.array([float(label) for label, *_ in claims]),
        np.array([odds for _, odds, _ in claims]),
        np.array([prior for *_, prior in asked]),
        np.array([place for *_, place in claims]),
        tuple(graphs[place].id for _, place, *_ in asked),
    )


def asked_of(
    pairs: Sequence[TextPair],
    votes: ConsensusLaw,
    ways: Sequence[Any],
    model: LanguageModel,
    at_once: int,
    openness: float = OPENNESS,
) -> tuple[list[list[SampledAnswer]], dict[str, list[Any]]]:
    """Answers of each pair, and judgements by the other ways; longer pairs are left unanswered."""
    window = known_window(model.name) or WINDOW
    sampling = PromptedRelationModel(model, "consensus", law=votes, window=window)

    async def sampled(pair: TextPair) -> list[SampledAnswer]:
        # What windows of a passage say is one judgement each, and no sample.
        return (await sampling.sampled(pair))[0] if sampling.windows(pair) == 1 else []

    answers = run_until_done(each(partial(sampled), pairs, at_once))
    others = {}
    for way in ways:
        tell(f"asks for {way}")
        asked = PromptedRelationModel(
            model, way, None, window=window, concurrency=at_once, openness=openness
        )
        others[way] = asked.judge(pairs)
    return answers, others


def _folds(responses: Any, settings: ConsensusSettings) -> Integers:
    """Fold of each item by its response.

    Raises:
        InputError: for fewer responses than folds.
    """
    n_responses = len(np.unique(responses))
    if n_responses < settings.folds:
        raise InputError(
            f"--folds {settings.folds}: there {is_or_are(n_responses)} "
            f"{counted(n_responses, 'response')}, which no fold splits; give fewer folds"
        )
    return response_folds(responses, settings.folds, settings.seed)


def learned_in_folds(
    known: KnownPairs, columns: Floats, settings: ConsensusSettings
) -> tuple[RelationLaw, Floats]:
    """The law of all, and the probabilities of each pair by that of the other folds."""
    fold = _folds(known.responses, settings)
    p = np.empty((len(columns), len(KINDS)))
    for one in range(settings.folds):
        own = fold == one
        law = known.of(~own).fit(columns[~own], settings.penalty)
        p[own] = relation_probabilities(columns[own], law.coefficients)
    return known.fit(columns, settings.penalty), p


def _free_ways(
    sampled: Sequence[Sequence[SampledAnswer]], columns: Floats, votes: ConsensusLaw
) -> dict[str, Floats]:
    """Probabilities that take no further question."""
    plain = replace(votes, likeness="none", weights=())
    return {
        VOTES_AS_THEY_ARE: np.exp(columns[:, :, 0]),
        "plain votes": np.array([plain.distribution(own) for own in sampled]),
        "mean likeness": np.array([_likeness(own, votes) for own in sampled]),
    }


def _likeness(answers: Sequence[SampledAnswer], votes: ConsensusLaw) -> list[float]:
    """The best answer's mean likeness as its relation's probability, the others share the rest."""
    means = votes.mean_likenesses([one.text for one in answers])
    best = int(means.argmax())
    p = float(np.clip(means[best], _SUREST, 1.0 - _SUREST))
    return [p if kind is answers[best].kind else (1.0 - p) / 2 for kind in KINDS]


def _rows(
    known: KnownPairs, forecasts: Mapping[str, Floats], settings: ConsensusSettings
) -> list[dict[str, Any]]:
    """A row of scores for each thing that is forecast and each way."""
    by_way = {way: known.forecasts(p) for way, p in forecasts.items()}
    intervals = IntervalSettings(n_bootstrap=500, seed=settings.seed)
    rows = []
    for of in next(iter(by_way.values())):
        _, truth, owners = by_way[LEARNED][of]
        if len(np.unique(truth)) < 2:
            continue
        fold = _folds(owners, settings)
        p = {way: found[of][0] for way, found in by_way.items()}
        rows += [
            {"of": of, **row}
            for row in score_rows(p, truth, owners, fold, intervals, scores=_SCORES)
        ]
    if not rows:
        raise InputError("all labels are the same, so that nothing can be learned; give others")
    return rows


def _sentence(rows: Sequence[Mapping[str, Any]], what: str) -> str:
    """Which way is calibrated best, and how far the law that was learned is from it."""
    first = rows[0]["of"]
    own = [row for row in rows if row["of"] == first]
    best = min(own, key=lambda row: row["corp_brier_miscalibration"])
    told = (
        f"Calibrated best on {what} ({first}): {best['model']}, miscalibration "
        f"{best['corp_brier_miscalibration']:.4f} "
        f"[{best['corp_brier_miscalibration_lower']:.4f}, "
        f"{best['corp_brier_miscalibration_upper']:.4f}]"
    )
    rival = min(own[1:], key=lambda row: row["brier"])
    return (
        f"{told}. Brier score of what is learned less that of the best other way "
        f"({rival['model']}): {rival['less']:+.4f} "
        f"[{rival['less_lower']:+.4f}, {rival['less_upper']:+.4f}], paired over responses."
    )


def _scores_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        data_frame([dict(row) for row in rows]),
        columns_as(
            "model | brier:4± Brier | corp_brier_miscalibration:4± MCB | "
            "log_loss:3± log loss | auroc:3± AUROC | less:4± learned less it, Brier"
        ),
        "Probabilities of relations, by where they come from.",
        note="In brackets: 95 % over responses. What is learned is judged on responses that it has "
        "not seen. MCB: miscalibration, a part of the Brier score; chance raises it, most where a "
        "way has many different probabilities, and its interval, which corrects for that, may lie "
        "below it. AUROC within folds.",
        group="of",
    )


def _law_table(law: ConsensusLaw) -> Table:
    rows = [
        {"coefficient": "entailment against neutral", "value": law.intercepts[0]},
        {"coefficient": "contradiction against neutral", "value": law.intercepts[1]},
        {"coefficient": "log share of weighed votes", "value": law.weights[0]},
        *(
            {"coefficient": f"log share of votes at {temperature:g}", "value": weight}
            for temperature, weight in zip(law.temperatures, law.weights[1:], strict=True)
        ),
    ]
    return Table(
        data_frame(rows),
        columns_as("coefficient | value:3"),
        "What was learned; without data 1 of the weighed votes, and 0 else.",
    )
