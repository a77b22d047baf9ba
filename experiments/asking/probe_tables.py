"""Sentences and tables on the results of a probe."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from experiments.asking.probing import CorrectionEvidence, ProbeResult
from experiments.asking.relation_correction import BATCH, PROBE
from experiments.findings.table import Table, columns_as, data_frame, named
from factormodels.extraction.asking.table import PRE_VERIFICATION, PRE_VERIFICATION_IN_RESPONSE
from factormodels.extraction.probe.table import RELATIONS
from factormodels.nouns import counted, is_or_are


def probe_sentences(results: Sequence[ProbeResult]) -> Iterator[str]:
    """Yield sentences on each probe: whether its answers are evidence, and advice."""
    for result in results:
        yield _found(result)
        yield from _remarks(result)


def probe_cautions(results: Sequence[ProbeResult]) -> Iterator[str]:
    """Yield a sentence on each probe whose answers are not evidence."""
    yield from (_found(result) for result in results if not result.usable)


def _found(result: ProbeResult) -> str:
    about, n = result.probe.about, result.answered
    label, count = result.commonest
    if not n:
        reason = next((answer.missing for answer in result.probed.answers if answer.missing), "")
        return (
            f"Probe: {result.model} answers none of {len(result.labels)} questions about {about} "
            f"({reason}): its {about} are no evidence."
        )
    called = ""
    if count == n > 1:
        called = f", all called {label}"
    elif 2 * count > n and not result.usable:
        called = f", {count} called {label}"
    scores = result.scores if result.corrected is None else result.corrected
    loss = "" if scores is None else f"; log loss {scores.log_loss:.2f}"
    corrected = "" if result.corrected is None else ", corrected"
    raw = f" ({result.given_correct} as given)" if result.given_correct != result.correct else ""
    sentence = f"Probe: {result.model} finds {result.correct} of {n} {about}{raw}{called}{loss}"
    sentence += corrected
    if result.usable:
        return f"{sentence}."
    return f"{sentence}: its {about} are no evidence."


def _remarks(result: ProbeResult) -> Iterator[str]:
    unread = len(result.labels) - result.answered
    if unread and result.answered:
        reason = next(answer.missing for answer in result.probed.answers if answer.missing)
        yield f"{counted(unread, 'answer')} of the probe could not be used, the first: {reason}."
    obeyed, orders = result.ordered
    if obeyed:
        passages = f"{obeyed} of {counted(orders, 'passage')}"
        yield f"It obeys {passages} that {_tell(orders)} it what to answer."
    correction = result.correction
    if correction is not None and result.scores is not None:
        evidence = next((each for each in result.evidence if each.name == correction.name), None)
        if evidence is not None:
            yield (
                f"Label bias of its relations: corrected ({correction.name}), which changes the "
                f"log loss of the probe from {_before(evidence):.2f} to "
                f"{evidence.scores.log_loss:.2f} (difference {_interval(evidence)}); "
                "--relation-correction none turns the correction off."
            )
    facts = result.facts
    if facts is not None and facts.answers:
        if not facts.given:
            yield "Its answers have no log-probabilities."
        elif facts.spelled < facts.given:
            lost = facts.given - facts.spelled
            yield (
                f"The tokens of {counted(lost, 'answer')} of {facts.given} do not spell it, and "
                f"{is_or_are(lost)} not used."
            )
        if facts.repeated > facts.same:
            changed = facts.repeated - facts.same
            yield f"Of {facts.repeated} repeated questions, it answers {changed} differently."
    if not result.usable:
        yield _mend(result)


def _tell(number: int) -> str:
    return "tells" if number == 1 else "tell"


def _before(evidence: CorrectionEvidence) -> float:
    return evidence.scores.log_loss - evidence.difference.value


def _interval(evidence: CorrectionEvidence) -> str:
    return f"[{evidence.difference.lower:.2f}, {evidence.difference.upper:.2f}]"


def _mend(result: ProbeResult) -> str:
    """Advice if a model's answers are not evidence."""
    used = "" if result.correction is None else result.correction.name
    for each in result.evidence:
        if each.name in (PROBE, BATCH) and each.name != used and result.would_be_usable(each):
            right = round(each.scores.accuracy * each.scores.n)
            return (
                f"With --relation-correction {each.name}, {right} of {each.scores.n} answers are "
                "right."
            )
    if result.probe.stage in (PRE_VERIFICATION, PRE_VERIFICATION_IN_RESPONSE):
        return "Name another model with --model, or let no claim skip the search: --theta 1."
    if result.probe.name == RELATIONS:
        return (
            "Name another model with --model, or a classifier on this disk with --relations "
            "nli:FOLDER."
        )
    return "Name another model with --model."


def probe_tables(results: Sequence[ProbeResult]) -> dict[str, Table]:
    """Tables of probes: `probe` with a row per probe, and tables with details.

    `probe_kinds` has correct answers by kind of question, `probe_confusion` answers by correct
    answer, `probe_corrections` the effect of each correction, `probe_log_probabilities` properties
    of the log-probabilities, and `probe_answers` every answer.
    """
    if not results:
        return {}
    tables = {
        "probe": _summary(results),
        "probe_kinds": _kinds(results),
        "probe_confusion": _confusion(results),
        "probe_corrections": _corrections(results),
        "probe_log_probabilities": _log_probabilities(results),
        "probe_answers": _answers(results),
    }
    return {name: table for name, table in tables.items() if len(table.frame)}


def _summary(results: Sequence[ProbeResult]) -> Table:
    rows = []
    for result in results:
        label, count = result.commonest
        obeyed, orders = result.ordered
        rows.append(
            {
                "probe": result.probe.name,
                "questions": len(result.labels),
                "answered": result.answered,
                "correct": result.correct,
                "accuracy": result.correct / result.answered if result.answered else math.nan,
                "constant": result.probe.chance,
                "log_loss": math.nan if result.scores is None else result.scores.log_loss,
                "brier": math.nan if result.scores is None else result.scores.brier,
                "correction": "" if result.correction is None else result.correction.name,
                "corrected_log_loss": (
                    math.nan if result.corrected is None else result.corrected.log_loss
                ),
                "corrected_brier": math.nan if result.corrected is None else result.corrected.brier,
                "commonest": label,
                "commonest_count": count,
                "obeyed": obeyed if orders else None,
                "orders": orders if orders else None,
                "evidence": result.usable,
            }
        )
    frame = data_frame(rows, list(rows[0]))
    corrected = frame["corrected_log_loss"].notna().any()
    return Table(
        frame,
        columns_as(
            "probe | answered:0 | correct:0 | accuracy:2 | constant:2 constant answer | "
            "log_loss:2 log loss | brier:2 Brier"
            + (" | corrected_log_loss:2 corrected log loss" if corrected else "")
            + " | commonest most common answer | commonest_count:0 times | evidence",
            evidence=lambda usable: "yes" if usable else "no",
        ),
        "The model's answers to questions with known answers.",
        note="Constant answer: accuracy of the best constant answer. Answers are evidence if "
        "their accuracy exceeds it by a one-sided 95% bound.",
    )


def _kinds(results: Sequence[ProbeResult]) -> Table:
    rows = []
    for result in results:
        asked: Counter[str] = Counter()
        right: Counter[str] = Counter()
        for question, label in zip(result.probe.questions, result.labels, strict=True):
            asked[question.kind] += bool(label)
            right[question.kind] += label == question.label
        rows += [
            {"probe": result.probe.name, "kind": kind, "answered": n, "correct": right[kind]}
            for kind, n in asked.items()
        ]
    frame = data_frame(rows, ["probe", "kind", "answered", "correct"])
    return Table(
        frame, columns_as("probe | kind | answered:0 | correct:0"), "Answers by kind of question."
    )


def _confusion(results: Sequence[ProbeResult]) -> Table:
    rows = [
        {"probe": result.probe.name, "right": right, "answer": answer, "number": number}
        for result in results
        for right, answers in result.confusion.items()
        for answer, number in answers.items()
        if number
    ]
    frame = data_frame(rows, ["probe", "right", "answer", "number"])
    header = "probe | right right answer | answer | number:0"
    return Table(frame, columns_as(header), "Answers by correct answer.")


def _corrections(results: Sequence[ProbeResult]) -> Table:
    rows = [
        {
            "probe": result.probe.name,
            "correction": each.name,
            "n": each.scores.n,
            "accuracy": each.scores.accuracy,
            "log_loss": each.scores.log_loss,
            "brier": each.scores.brier,
            **named("difference", (each.difference.value, *each.difference.interval)),
            "used": result.correction is not None and result.correction.name == each.name,
        }
        for result in results
        for each in result.evidence
    ]
    names = ["probe", "correction", "n", "accuracy", "log_loss", "brier"]
    names += ["difference", "difference_lower", "difference_upper", "used"]
    return Table(
        data_frame(rows, names),
        columns_as(
            "correction | n:0 | accuracy:2 | log_loss:2 log loss | brier:2 Brier | "
            "difference:2± difference | used",
            used=lambda used: "yes" if used else "no",
        ),
        "Effect of a correction of label bias on the relations of the probe.",
        note="Difference: log loss minus log loss without a correction, with its paired 95% "
        "interval. Batch: each pair is corrected by the mean answer to the others.",
    )


def _log_probabilities(results: Sequence[ProbeResult]) -> Table:
    rows: list[dict[str, Any]] = []
    for result in results:
        if (facts := result.facts) is None or not facts.answers:
            continue
        unusable = Counter(answer.unusable for answer in result.probed.answers if answer.unusable)
        rows.append(
            {
                "probe": result.probe.name,
                "answers": facts.answers,
                "given": facts.given,
                "spelled": facts.spelled,
                "usable": sum(
                    answer.distribution is not None and not answer.shared
                    for answer in result.probed.answers
                ),
                "least_listed": facts.least_listed,
                "most_listed": facts.most_listed,
                "largest_sum": facts.largest_sum,
                "above_one": facts.above_one,
                "spellings": ", ".join(
                    f"{label} {number}"
                    for label, number in zip(result.probe.labels, facts.spellings, strict=True)
                ),
                "repeated": facts.repeated,
                "same": facts.same,
                "largest_change": facts.largest_change,
                "unusable": "; ".join(f"{reason} ({n})" for reason, n in unusable.most_common()),
            }
        )
    names = ["probe", "answers", "given", "spelled", "usable", "least_listed", "most_listed"]
    names += ["largest_sum", "above_one", "spellings", "repeated", "same", "largest_change"]
    names += ["unusable"]
    return Table(
        data_frame(rows, names),
        columns_as(
            "probe | answers:0 | given:0 | spelled:0 | usable:0 | least_listed:0 least listed | "
            "most_listed:0 most listed | largest_sum:4 largest sum | spellings tokens of a label | "
            "same:0 same again | repeated:0 of | largest_change:4 largest change | unusable"
        ),
        "Log-probabilities of the answers.",
        note="Listed: alternative tokens at a position, whose probabilities sum to 1 at most. "
        "Same again: the same question asked twice; change: of the probability of the first "
        "token.",
    )


def _answers(results: Sequence[ProbeResult]) -> Table:
    rows = [
        {
            "probe": result.probe.name,
            "question": question.id,
            "kind": question.kind,
            "right": question.label,
            "answer": answer.label,
            "used_as": label,
            "p_right": (
                math.nan
                if answer.distribution is None
                else answer.distribution[result.probe.labels.index(question.label)]
            ),
            "missing": answer.missing,
        }
        for result in results
        for question, answer, label in zip(
            result.probe.questions, result.probed.answers, result.labels, strict=True
        )
    ]
    names = ["probe", "question", "kind", "right", "answer", "used_as", "p_right", "missing"]
    header = "question | kind | right right answer | answer | used_as used as | p_right:3 p"
    return Table(data_frame(rows, names), columns_as(header), "Every answer.")
