"""Learning a correction of relations from pairs with human labels, and its scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from calibration.label_bias import (
    VectorScaling,
    compare_corrections,
    cross_fit_scaling,
    fit_vector_scaling,
    label_scores,
    smoothed_mean,
    without_bias,
)
from experiments.asking.ledger_table import cost_tables, planned_findings
from experiments.asking.relation_correction import (
    BATCH,
    NONE,
    Lesson,
    RelationCorrection,
    as_stated,
    write_correction,
)
from experiments.asking.relation_models import relation_model
from experiments.asking.session import Session, asking
from experiments.columns.labeled_relations import (
    LabeledRelations,
    judged_responses,
    read_labeled_relations,
)
from experiments.evaluators.recorded_relations import LEARNED, relation_score_row
from experiments.evaluators.relation_quality import in_sample, labeled_pairs
from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as, data_frame, named
from experiments.findings.text import in_sample_remark, interval, number
from experiments.settings.inputs import is_present_table, is_table
from factormodels.claims import JUDGED_KINDS
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import Missing
from factormodels.extraction.stages.relations import ask
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.factcheck_bench import passage_key
from factormodels.metadata.learned_from import identity_of
from factormodels.nouns import counted, is_or_are

if TYPE_CHECKING:
    from calibration.validation import Floats
    from experiments.columns.sources import Data
    from experiments.methods.fit import FitSettings
    from experiments.settings.inputs import Responses

GIVEN = "given"
"""Value of --relations for a table that contains probabilities."""


def fitted_relations(responses: Responses | Data, settings: FitSettings) -> Findings:
    """Learn a correction of relations from labeled pairs, and score it on held-out responses.

    Args:
        responses: with --relations given, a table of pairs; otherwise responses with human
            relations.
        settings: options.

    Raises:
        InputError: if they cannot be read, or no labeled pair has an answer.
        MissingDependencyError: if a relation model needs a library that is not installed.
    """
    source = str(responses) if isinstance(responses, str | Path) else "the responses"
    with asking(settings) as session:
        if settings.relations != GIVEN:
            pairs = _answered_pairs(responses, settings, session)
        elif isinstance(responses, str | Path) or is_table(responses):
            pairs = read_labeled_relations(cast("Data", responses))
        else:
            raise InputError(
                "--relations given needs a table of pairs, and these are responses; give a table "
                "or data frame"
            )
    if settings.dry_run:
        return planned_findings(source, session.ledger)
    if not len(pairs.y):
        raise InputError(
            f"{source}: none of {counted(pairs.missing + pairs.shared, 'labeled pair')} has "
            "probabilities of all three relations; use --method logprobs or samples, if the "
            "model supports it"
        )
    n_responses = len(set(pairs.responses))
    if settings.folds == 1 or settings.folds > n_responses:
        some = {1: "", 2: "2, or "}.get(n_responses, f"2 to {n_responses}, or ")
        raise InputError(
            f"{source}: --folds {settings.folds} does not fit {counted(n_responses, 'response')} "
            f"with labeled pairs; give {some}0 for none"
        )
    scaling = fit_vector_scaling(pairs.p, pairs.y)
    corrected = {
        NONE: pairs.p,
        BATCH: without_bias(pairs.p, smoothed_mean(pairs.p)),
    }
    if settings.folds:
        crossed = cross_fit_scaling(
            pairs.p, pairs.y, pairs.responses, n_folds=settings.folds, seed=settings.seed
        )
        corrected[LEARNED] = crossed.p
    rows = [_row(name, p, pairs, settings.seed) for name, p in corrected.items()]
    of = f"{counted(len(pairs.y), 'labeled pair')} of {counted(n_responses, 'response')}"
    tables = {
        "corrections": _corrections_table(rows, settings.folds, of),
        "relations": _relations_table(pairs, corrected, scaling, of),
        "confusion": _confusion_table(pairs, corrected, of),
        **cost_tables(session.ledger, n_responses),
    }
    sentences = [*_sentences(rows, pairs, settings), *pairs.remarks]
    if settings.save is not None:
        before, after = (
            next((row["log_loss"] for row in rows if row["correction"] == name), math.inf)
            for name in (NONE, LEARNED)
        )
        lesson = Lesson(
            pairs.relations, len(pairs.y), _finite(before), _finite(after), pairs.taught
        )
        write_correction(
            RelationCorrection(settings.save.name, scaling=scaling, lesson=lesson), settings.save
        )
        sentences.append(
            f"The correction is in {settings.save}: --relation-correction {settings.save} applies "
            "it."
        )
    return Findings(source, tuple(sentences), tables, incomplete=bool(pairs.missing))


def _answered_pairs(
    responses: Responses | Data, settings: FitSettings, session: Session
) -> LabeledRelations:
    """The labeled pairs of responses with the answers of a relation model."""
    try:
        graphs = judged_responses(cast("Responses", responses))
    except InputError as error:
        if not is_present_table(responses):
            raise
        raise InputError(
            f"{error}. To read a table of labeled pairs with their probabilities, give "
            f"--relations {GIVEN}"
        ) from None
    labeled = labeled_pairs(graphs)
    judge, _ = relation_model(
        settings.relations or GIVEN,
        session.model,
        method=settings.method,
        window=settings.window,
        openness=settings.openness,
        prompt=settings.relation_prompt,
    )
    answers = ask(judge, [each.pair for each in labeled])
    kept = [
        (each, shares)
        for each, answer in zip(labeled, answers, strict=True)
        if (shares := as_stated(answer)) is not None
    ]
    missing = sum(isinstance(answer, Missing) for answer in answers)
    taught = {each.response for each, _ in kept}
    return LabeledRelations(
        np.array([shares for _, shares in kept]).reshape(-1, len(JUDGED_KINDS)),
        np.array([JUDGED_KINDS.index(each.kind) for each, _ in kept], dtype=np.int64),
        tuple(each.response for each, _ in kept),
        tuple(identity_of(graph) for graph in graphs if graph.id in taught),
        judge.name,
        remarks=tuple(_in_sample(judge.name, graphs)),
        missing=missing,
        shared=len(answers) - missing - len(kept),
    )


def _in_sample(relations: str, graphs: Sequence[FactGraph]) -> Iterator[str]:
    """Remark if the lexical model was fitted to the passages."""
    if relations != "lexical":
        return
    # Its passages were labeled even if their claims are not.
    keys = (each.key or passage_key(each.text) for graph in graphs for each in graph.contexts)
    if known := in_sample(frozenset(filter(None, keys))):
        yield f"The result is {in_sample_remark(known)}."


def _row(name: str, p: Floats, pairs: LabeledRelations, seed: int) -> dict[str, Any]:
    """Scores of probabilities, with intervals over responses."""
    scores = relation_score_row(p, pairs.y, pairs.responses, seed)
    row: dict[str, Any] = {"correction": name, **scores}
    difference = (math.nan,) * 3
    if name != NONE and len(set(pairs.responses)) > 1:
        compared = compare_corrections(p, pairs.p, pairs.y, pairs.responses, seed=seed)
        difference = (compared.value, *compared.interval)
    return row | named("difference", difference)


def _sentences(
    rows: list[dict[str, Any]], pairs: LabeledRelations, settings: FitSettings
) -> Iterator[str]:
    """Sentences on the effect of the correction, and on the pairs left out of learning."""
    counts = np.bincount(pairs.y, minlength=len(JUDGED_KINDS)).tolist()
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in zip(JUDGED_KINDS, counts, strict=True))
    yield (
        f"{counted(len(pairs.y), 'labeled pair')} of "
        f"{counted(len(set(pairs.responses)), 'response')}: {kinds}."
    )
    *others, last = rows
    if last["correction"] == LEARNED:
        losses = ", ".join(
            f"{number(row['log_loss'])} {'as given' if row['correction'] == NONE else 'with batch'}"
            for row in others
        )
        compared = "There is no evidence that the learned scaling is better than none"
        if last["difference_upper"] < 0:
            compared = "The learned scaling is better than none"
        elif last["difference_lower"] > 0:
            compared = "The learned scaling is worse than none"
        yield (
            f"Log loss on held-out responses: {number(last['log_loss'])} with the learned "
            f"scaling, {losses}. {compared}: {number(last['difference'])} "
            f"{interval(last['difference_lower'], last['difference_upper'])}, paired over "
            "responses."
        )
    else:
        yield "Without --folds the effect of the scaling on other responses is unknown."
    absent = [str(kind) for kind, count in zip(JUDGED_KINDS, counts, strict=True) if not count]
    if absent:
        yield (
            f"No pair is labeled {' or '.join(absent)}: only the penalty determines the scaling "
            "there."
        )
    if pairs.missing:
        yield (
            f"{counted(pairs.missing, 'labeled pair')} {is_or_are(pairs.missing)} without an "
            "answer and left out."
        )
    if pairs.shared:
        yield (
            f"{counted(pairs.shared, 'answer')} {'gives' if pairs.shared == 1 else 'give'} the "
            "probability of a single relation, which cannot be corrected: left out."
        )
    if settings.relations == GIVEN:
        yield (
            "The table does not name the model: apply the correction only to the same model "
            "with the same prompt."
        )


def _corrections_table(rows: list[dict[str, Any]], folds: int, of: str) -> Table:
    held_out = (
        f" Learned: each pair is corrected by the scaling of the other {folds - 1} of {folds} "
        "folds of responses."
        if folds
        else ""
    )
    return Table(
        data_frame(rows),
        columns_as(
            "correction | accuracy:3± | log_loss:3± log loss | ece:3± ECE | brier:3± Brier | "
            "difference:3± log loss minus none"
        ),
        f"Effect of corrections on the relations of {of}.",
        note="In brackets: 95% intervals over responses. ECE: of the most probable relation's "
        f"probability. Brier: of all three relations, from 0 to 2.{held_out}",
    )


def _relations_table(
    pairs: LabeledRelations, corrected: dict[str, Floats], scaling: VectorScaling, of: str
) -> Table:
    rows = [
        {
            "relation": str(kind),
            "share": float((pairs.y == column).mean()),
            **{f"p_{name}": float(p[:, column].mean()) for name, p in corrected.items()},
            "weight": scaling.weights[column],
            "constant": scaling.constants[column],
        }
        for column, kind in enumerate(JUDGED_KINDS)
    ]
    means = " | ".join(f"p_{name}:3 P {name}" for name in corrected)
    return Table(
        data_frame(rows),
        columns_as(f"relation | share:3 labeled | {means} | weight:3 | constant:3"),
        f"Observed frequency of each relation, and its mean probability, in {of}.",
        note="P: mean probability. Weight and constant of ln P: of the scaling learned from all "
        "pairs; 1 and 0 change nothing.",
    )


def _confusion_table(pairs: LabeledRelations, corrected: dict[str, Floats], of: str) -> Table:
    kinds = tuple(map(str, JUDGED_KINDS))
    rows = [
        {"correction": name, "human": human, **dict(zip(kinds, counts, strict=True))}
        for name, p in corrected.items()
        for human, counts in zip(kinds, label_scores(p, pairs.y).confusion.tolist(), strict=True)
    ]
    return Table(
        data_frame(rows),
        columns_as(
            "correction | human human relation | " + " | ".join(f"{kind}:0" for kind in kinds)
        ),
        f"Human relations by row, most probable relations by column: {of}.",
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
