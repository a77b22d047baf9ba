"""Conformal filtering: which claims of new answers to keep, with a guarantee from labeled ones."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from calibration.filtering import (
    Calibrator,
    ConformalStatus,
    Guarantee,
    HeldOut,
    Promise,
    fit_calibrator,
    read_calibrator,
)
from experiments.columns.options import TaughtSettings
from experiments.columns.sources import name_of
from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as, data_frame
from experiments.findings.text import ABSENT, number, p_equals, some_of
from experiments.methods.kept_answers import (
    SUFFIXES,
    WITHOUT_TEXTS,
    without_texts,
    written_answers,
)
from experiments.methods.scored_claims import (
    ScoreColumns,
    ScoredTable,
    group_name,
    read_scores,
    with_scores,
)
from experiments.progress import tell
from experiments.settings import USUAL, Option, front_door, option_of
from experiments.settings.limits import DrawnSettings
from factormodels.errors import InputError
from factormodels.io.source.files import write_text
from factormodels.metadata.learned_from import LEARNED_FROM, LearnedFrom
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd

    from experiments.columns.sources import Data

_SUSPECT = 0.05
"""Joint level of the tests that new and labeled responses have the same distribution."""

_IN_FILE = (
    *("precision", "confidence", "guarantee", "choosing", "splits", "seed", "by", "depends"),
    *("label", "true", "irrelevant_label", "save"),
)
"""Settings of the calibration; saved thresholds contain them."""


class KeepSettings(DrawnSettings, ScoreColumns, TaughtSettings):
    """Guarantee.

    Options of `keep`.
    """

    precision: Annotated[float, Field(gt=0, le=1), USUAL] = 0.9
    """Smallest share of true claims among the kept claims of a response."""

    confidence: Annotated[float, Field(gt=0, lt=1), USUAL] = 0.9
    """Probability that a new response reaches the precision."""

    guarantee: Annotated[Literal["probability", "mean", "coherent"], USUAL] = "probability"
    """Guarantee the precision of each response with probability --confidence; or its mean over
    responses (1 if none is kept); or (coherent, with --depends) that with probability --confidence
    the kept set contains no false claim.
    """

    save: Annotated[Path | None, Option("FILE", writes=True, usual=True)] = None
    """Write the calibrated thresholds to this JSON file."""

    use: Annotated[Path | None, Option("FILE", usual=True)] = None
    """Apply thresholds written by --save to unlabeled data."""

    answers: Annotated[Path | None, Option("FILE", writes=True, usual=True)] = None
    """Write the answers with their kept claims to this file: .txt, .md, .html, .json or .jsonl."""

    dropped: Annotated[Literal["strike", "remove"], USUAL] = "strike"
    """Treatment of dropped claims in --answers: struck through, or removed."""

    choosing: Annotated[float, Field(gt=0, lt=1), Option("SHARE")] = 0.5
    """Share of the labeled responses for choosing between several scores; the others calibrate the
    threshold."""

    splits: Annotated[int, Field(ge=1)] = 200
    """Number of random halves of the labeled responses for testing the guarantee."""

    @property
    def promise(self) -> Promise:
        """The guarantee.

        Raises:
            InputError: for settings that do not fit each other.
        """
        if self.guarantee == "mean" and self.precision == 1:
            raise InputError(
                "--precision 1 cannot be guaranteed in the mean; give a precision below 1, or "
                "--guarantee probability"
            )
        if self.guarantee == "coherent":
            if self.depends is None:
                raise InputError(
                    "--guarantee coherent needs the claims that a claim depends on; give "
                    "--depends COLUMN, or --guarantee probability --precision 1"
                )
            if "precision" in self.model_fields_set and self.precision != 1:
                raise InputError(
                    f"--precision {self.precision:g}: a coherent set contains no false claim; "
                    "leave --precision out"
                )
            return Promise.of(1.0, self.confidence, self.guarantee)
        return Promise.of(self.precision, self.confidence, self.guarantee)


@front_door
def keep(
    labeled: Data | None = None, new: Data | None = None, *, settings: KeepSettings
) -> Findings:
    """Keep the claims of new answers that are probable enough, with a guarantee.

    The threshold on probabilities is conformal (Mohri and Hashimoto 2024): it is calibrated on
    labeled responses and guarantees that with probability --confidence the kept claims of a new
    response have at least --precision, or none is kept. The guarantee holds for any probabilities;
    with poor ones fewer claims are kept. New responses must be exchangeable with the labeled ones:
    of the same kind, from the same model, judged in the same way. Differences visible without
    labels are tested, and the guarantee is tested on random halves of the labeled responses.

    With --guarantee mean, the mean precision of new responses is at least --precision. A response
    without kept claims counts as 1, and the mean is over the draw of the labeled responses too. The
    guarantee does not bound the share of false claims among the kept claims of all responses
    together.

    With --by each group has its own threshold, and the guarantee holds in each group. With several
    scores, some of the labeled responses choose one score, or a logistic regression on all, and the
    others calibrate the threshold. With --depends a claim is kept only with the claims that it
    depends on, and --guarantee coherent guarantees a kept set without false claims (Rubin-Toles et
    al. 2025).

    Examples::

        keep("labeled.csv", "new.csv")
        keep("labeled.jsonl", "new.jsonl", answers="kept.html")
        keep("labeled.csv", "new.csv", precision=0.8, guarantee="mean", answers="kept.txt",
            dropped="remove")
        keep("labeled.csv", "new.csv", by="domain", p=["gpt", "votes"])
        keep("steps.csv", "new.csv", depends="premises", guarantee="coherent")
        keep("labeled.csv", save="thresholds.json")
        keep("new.csv", use="thresholds.json")

    Args:
        labeled: Responses with probabilities and labels, as `factormodels score` takes them; with
            --use the new responses.
        new: New responses with probabilities from the same source.
        settings: options; in Python, pass the fields as keywords instead.

    Raises:
        InputError: if the data cannot be read, or an option does not fit them.
    """
    if settings.answers is not None and settings.answers.suffix not in SUFFIXES:
        raise InputError(
            f"--answers {settings.answers}: name a file that ends in {', '.join(SUFFIXES)}"
        )
    if settings.use is not None:
        return _used(settings, labeled, new)
    if labeled is None:
        raise InputError("there are no labeled responses; give LABELED, or --use FILE and NEW")
    if new is None and settings.save is None:
        raise InputError(
            "there are no new responses; give NEW, or --save FILE to keep claims of them later"
        )
    if new is None and settings.answers is not None:
        raise InputError("--answers writes new responses, and none are given; give NEW")
    known, calibrator = _calibrated(labeled, settings)
    sentences = [_promised(calibrator)]
    tables: dict[str, Table] = {}
    remarks = list(known.remarks)
    if new is not None:
        fresh = with_scores(read_scores(new, settings, labeled=False), settings)
        shared = set(known.remarks) & set(fresh.remarks)
        remarks = _of_table("Labeled responses", known.remarks, shared)
        of_new = tuple(_of_table("New responses", fresh.remarks, shared))
        applied, tables, more = _applied(calibrator, replace(fresh, remarks=of_new), settings)
        sentences += applied
        remarks += more
    sentences += [_tried(calibrator), *_chosen(calibrator)]
    if settings.save is not None:
        calibrator.save(settings.save)
        sentences.append(f"The thresholds are in {settings.save}.")
    sentences += [*_too_few(calibrator), *remarks]
    if new is None:
        tables["groups"] = _groups_table(calibrator)
    tables |= _scores_table(calibrator)
    source = name_of(labeled) if new is None else f"{name_of(new)} by {name_of(labeled)}"
    return Findings(source, tuple(dict.fromkeys(filter(None, sentences))), tables)


def _of_table(which: str, remarks: Sequence[str], shared: Collection[str]) -> list[str]:
    """Remarks on reading one of two tables, with its name unless they hold for both."""
    return [each if each in shared else f"{which}: {each}" for each in remarks]


def _calibrated(data: Data, settings: KeepSettings) -> tuple[ScoredTable, Calibrator]:
    """The labeled claims, and thresholds calibrated on them.

    Raises:
        InputError: if fewer than two responses have labels, or an option does not fit.
    """
    promise = settings.promise
    claims = read_scores(data, settings, labeled=True)
    claims = claims.without_taught(claims.has_label, settings)
    known = with_scores(claims, settings)
    y = known.labels
    responses = known.frame.loc[~np.isnan(y), "response"].unique()
    if len(responses) < 2:
        whose = "".join(f", {name!r}" for name in responses)
        raise InputError(
            f"{known.source}: labels that count are of "
            f"{counted(len(responses), 'response')}{whose}; label two or more: some calibrate "
            "the threshold, and others test the guarantee"
        )
    tell("calibrates thresholds, and tests the guarantee on halves")
    calibrator = fit_calibrator(
        known.claims,
        y,
        known.names,
        promise,
        by=settings.by,
        depends=settings.depends,
        choosing=settings.choosing,
        n_splits=settings.splits,
        seed=settings.seed,
    )
    return known, calibrator


def _used(settings: KeepSettings, *given: Data | None) -> Findings:
    """Findings on new responses, with thresholds from a file."""
    data = [each for each in given if each is not None]
    if len(data) != 1:
        raise InputError(
            f"--use takes one table, the new responses, and {len(data)} are given; leave out the "
            f"labeled responses, which {settings.use} was calibrated on"
        )
    for name in _IN_FILE:
        if name in settings.model_fields_set:
            raise InputError(
                f"--{option_of(KeepSettings, name).name} is fixed by the calibration in "
                f"{settings.use}; leave it out, or calibrate again without --use"
            )
    path = Path(str(settings.use))
    calibrator = read_calibrator(path)
    columns = settings.model_copy(update={"by": calibrator.by, "depends": calibrator.depends})
    names = calibrator.combination.names
    fresh = with_scores(read_scores(data[0], columns, labeled=False, names=names), columns)
    if len(fresh.names) != len(names):
        raise InputError(
            f"{fresh.source}: {path} combines {len(names)} scores, {', '.join(names)}, and here "
            f"{'is' if len(fresh.names) == 1 else 'are'} {', '.join(fresh.names)}; give the same "
            "number with --p, in this order"
        )
    # A score may have another name here.
    fresh = replace(fresh, claims=replace(fresh.claims, names=names))
    sentences, tables, remarks = _applied(calibrator, fresh, settings)
    if calibrator.edited:
        remarks.append(f"{path} has no digest, so its numbers cannot be verified.")
    sentences = [_promised(calibrator), *sentences, _tried(calibrator), *_too_few(calibrator)]
    return Findings(
        f"{name_of(data[0])} by {path.name}",
        tuple(dict.fromkeys(filter(None, [*sentences, *fresh.remarks, *remarks]))),
        tables,
    )


def _applied(
    calibrator: Calibrator, fresh: ScoredTable, settings: KeepSettings
) -> tuple[list[str], dict[str, Table], list[str]]:
    """Sentences and tables on the kept claims of new responses, and remarks."""
    combination = calibrator.combination
    scores = combination.scores(fresh.claims.columns(combination.names))
    kept = calibrator.keep(fresh.claims)
    claims = _claims(fresh, scores, kept, _unsupported(calibrator, fresh, scores, kept))
    by_response = claims.groupby("response", sort=False)
    if settings.answers is not None:
        strike = settings.dropped == "strike"
        write_text(
            settings.answers, written_answers(claims, settings.answers.suffix, strike=strike)
        )
    empty = int((by_response["kept"].sum() == 0).sum())
    sentences = [
        f"{int(kept.sum()):,} of {counted(len(claims), 'claim')} of "
        f"{counted(len(by_response), 'response')} are kept; {counted(empty, 'response')} "
        f"{'becomes' if empty == 1 else 'become'} empty"
        + ("." if settings.answers is None else f"; the answers are in {settings.answers}."),
        _alike(calibrator, fresh),
    ]
    remarks = [*fresh.remarks, *_unknown_groups(calibrator, fresh)]
    if settings.answers is not None and without_texts(claims):
        remarks.append(f"{settings.answers}: {WITHOUT_TEXTS}")
    taught = fresh.frame.loc[fresh.frame["taught"], "response"].unique().tolist()
    if taught:
        remarks.append(
            f"Labels of {counted(len(taught), 'new response')} ({some_of(taught)}) trained their "
            "probabilities: the guarantee does not hold for their kept claims."
        )
    score = "score" if calibrator.n_choosing else "p"
    shown = f'response | claim | p:3 {score} | kept_text ""'
    tables = {
        "claims": Table(
            claims.drop(columns="answer"),
            columns_as(f"group | {shown}" if calibrator.by else shown),
            f"{counted(int(kept.sum()), 'kept claim')} of {len(claims):,}.",
        ),
        "responses": Table(
            by_response.agg(claims=("kept", "size"), kept=("kept", "sum")).reset_index(),
            columns_as("response | claims:0 | kept:0"),
            f"Kept claims of {counted(len(by_response), 'response')}.",
        ),
    }
    if calibrator.by:
        tables["groups"] = _groups_table(calibrator, claims)
    return sentences, tables, remarks


def _unsupported(
    calibrator: Calibrator, fresh: ScoredTable, scores: Any, kept: Any
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Mask of the claims that are dropped because a claim that they depend on is dropped."""
    thresholds = np.array(
        [
            calibrator.groups[group].filter.threshold if group in calibrator.groups else np.inf
            for group in fresh.claims.groups
        ]
    )
    return np.asarray((scores > thresholds) & ~kept)


def _claims(fresh: ScoredTable, scores: Any, kept: Any, unsupported: Any) -> pd.DataFrame:
    """A row per claim with its text and, if known, the whole text of its response."""
    frame = fresh.frame
    order = frame.groupby("response", sort=False).cumcount() + 1
    columns = ("response", "claim", "taught", "text", "answer", "label")
    columns_of = frame.reindex(columns=columns, fill_value="")
    rows = zip(
        columns_of.itertuples(index=False),
        scores.tolist(),
        kept.tolist(),
        unsupported.tolist(),
        fresh.claims.groups,
        order,
        strict=True,
    )
    return data_frame(
        [
            {
                "response": str(response),
                "claim": str(claim or number),
                "text": str(text or claim or ""),
                "p": p,
                "label": label,
                "kept": is_kept,
                "kept_text": "kept" if is_kept else "unsupported" if alone else "dropped",
                "answer": str(answer or ""),
                **({"group": group_name(group)} if group else {}),
                **({f"p_{LEARNED_FROM}": str(LearnedFrom.THIS_RESPONSE)} if taught else {}),
            }
            for (response, claim, taught, text, answer, label), *judged in rows
            for p, is_kept, alone, group, number in [judged]
        ]
    )


# --------------------------------------------------------------------------------------- tables


def _groups_table(calibrator: Calibrator, claims: pd.DataFrame | None = None) -> Table:
    """A row for each group: its threshold, its trial, and the kept claims of new responses."""
    names = {group: group_name(group) for group in calibrator.groups}
    rows: list[dict[str, Any]] = []
    for group, calibrated in calibrator.groups.items():
        chosen, trial = calibrated.filter, calibrated.trial
        rows.append(
            {
                "group": names[group] or "all",
                "labeled": chosen.n_responses,
                "needed": chosen.promise.fewest_responses,
                "threshold": chosen.threshold,
                "promised": np.nan if trial is None else _promised_share(trial, chosen.guarantee),
                "promised_nonempty": (
                    np.nan if trial is None else _promised_nonempty(trial, chosen.guarantee)
                ),
                "kept_halves": np.nan if trial is None else trial.kept,
            }
        )
    columns = (
        "group | labeled:0 | needed:0 | threshold:3 | "
        f"promised:3 {_PROMISED[calibrator.promise.guarantee]} on halves | "
        "promised_nonempty:3 without empty ones | kept_halves:3 kept on halves"
    )
    frame = data_frame(rows)
    if claims is not None:
        frame = frame.merge(_kept_by_group(claims), on="group", how="outer", sort=False)
        columns += " | responses:0 | empty:0 | claims:0 | kept:0"
    return Table(
        frame,
        columns_as(columns),
        "Groups of responses: numbers of labeled, needed and new responses.",
    )


_PROMISED = {
    Guarantee.PROBABILITY: "reached",
    Guarantee.MEAN: "mean precision",
    Guarantee.COHERENT: "no false claim",
}
"""Column title of the guaranteed quantity."""


def _promised_share(trial: HeldOut, guarantee: Guarantee) -> float:
    return trial.precision if guarantee is Guarantee.MEAN else trial.reached


def _promised_nonempty(trial: HeldOut, guarantee: Guarantee) -> float:
    return trial.precision_nonempty if guarantee is Guarantee.MEAN else trial.reached_nonempty


def _kept_by_group(claims: pd.DataFrame) -> pd.DataFrame:
    kept = claims.groupby(["group", "response"], sort=False)["kept"].agg(["sum", "size"])
    kept["empty"] = kept["sum"] == 0
    by_group = kept.groupby("group", sort=False).agg(
        responses=("size", "size"),
        empty=("empty", "sum"),
        claims=("size", "sum"),
        kept=("sum", "sum"),
    )
    return by_group.reset_index()


def _scores_table(calibrator: Calibrator) -> dict[str, Table]:
    """Candidate scores, the best first; empty if there was no choice."""
    if not calibrator.candidates:
        return {}
    rows = [
        {"score": each.combination.title, "kept": each.kept, "auroc": each.auroc}
        for each in calibrator.candidates
    ]
    columns = columns_as("score | kept:3 claims kept | auroc:3 AUROC")
    return {
        "scores": Table(
            data_frame(rows), columns, "Candidate scores on the responses for choosing."
        )
    }


# ------------------------------------------------------------------------------------- sentences


def _promised(calibrator: Calibrator) -> str:
    """Sentence on the guarantee and its threshold or thresholds."""
    promise = calibrator.promise
    filters = [each.filter for each in calibrator.groups.values()]
    of = f"calibrated on {counted(sum(f.n_responses for f in filters), 'labeled response')}"
    if all(each.status is ConformalStatus.KEEPS_NONE for each in filters):
        return (
            f"Nothing can be kept with this guarantee, {of}: label more, or weaken the "
            f"guarantee; it needs {counted(promise.fewest_responses, 'response')}"
            + (" of a group." if calibrator.by else ".")
        )
    if calibrator.by:
        where = "Claims above the threshold of their group are kept"
        of += f" of {counted(len(filters), 'group')}"
        in_each = "in each group, "
    else:
        in_each = ""
        where = (
            "All claims are kept"
            if filters[0].status is ConformalStatus.KEEPS_ALL
            else f"Claims above {number(filters[0].threshold)} are kept"
        )
    if calibrator.depends is not None:
        where += ", if all claims that they depend on are"
    least = f"at least {100 * promise.precision:g}%"
    if promise.guarantee is Guarantee.MEAN:
        return (
            f"{where}, {of}: {in_each}the mean precision of new responses is {least}, where a "
            "response without kept claims counts as 100% and the mean is over the draw of the "
            "labeled responses too. This does not bound the share of false claims among the kept "
            "claims of all responses together."
        )
    sure = f"{where}, {of}: {in_each}with probability {promise.confidence:g}, "
    if promise.guarantee is Guarantee.COHERENT:
        return (
            f"{sure}all kept claims of a new response are true, and each is kept with all claims "
            "that it depends on."
        )
    return f"{sure}{least} of the kept claims of a new response are true, or none is kept."


def _tried(calibrator: Calibrator) -> str:
    """Sentence on the test of the guarantee on random halves; empty if responses are too few."""
    trial: HeldOut | None = calibrator.trial
    if trial is None:
        return ""
    promise = calibrator.promise
    some = 0 < trial.empty < 1
    if promise.guarantee is Guarantee.MEAN:
        what = f"the mean precision was {number(trial.precision)}"
        what += f" ({number(trial.precision_nonempty)} without empty ones)" * some
    elif promise.precision < 1:
        what = f"{_with_nonempty(trial.reached, trial.reached_nonempty, some)} had the precision"
    else:
        what = ""
    faultless = _with_nonempty(trial.faultless, trial.faultless_nonempty, some)
    parts = [part for part in (what, f"{faultless} held no false claim") if part]
    return (
        f"On {trial.n_splits} random halves of the labeled responses {', '.join(parts)}, "
        f"{100 * trial.empty:.0f}% became empty, and {100 * trial.kept:.0f}% of claims were kept."
    )


def _with_nonempty(share: float, nonempty: float, some: bool) -> str:
    """Format a share of responses, and the share without empty responses if some are empty."""
    without = f" ({_percent(nonempty)} without empty ones)" if some else ""
    return f"{_percent(share)} of responses{without}"


def _percent(share: float) -> str:
    return ABSENT if math.isnan(share) else f"{100 * share:.1f}%"


def _chosen(calibrator: Calibrator) -> list[str]:
    """Sentence on the chosen score and the other candidates."""
    if not calibrator.candidates:
        return []
    best, *others = calibrator.candidates
    rest = ", ".join(f"{each.combination.title} {100 * each.kept:.0f}%" for each in others)
    how = best.combination.title
    if best.combination.weights:
        weights = zip(best.combination.names, best.combination.weights, strict=True)
        parts = ", ".join(f"{name} {weight:.2f}" for name, weight in weights)
        how = f"a logistic regression of all (weights of log odds: {parts})"
    return [
        f"The score is {how}, chosen on "
        f"{counted(calibrator.n_choosing, 'other labeled response')}, where it keeps "
        f"{100 * best.kept:.0f}% of claims ({rest})."
    ]


def _too_few(calibrator: Calibrator) -> list[str]:
    """Sentences on groups with too few labeled responses for the guarantee."""
    if not calibrator.by:
        return []
    needed = calibrator.promise.fewest_responses
    return [
        f"Group {group_name(group)!r} has {counted(each.filter.n_responses, 'labeled response')} "
        f"for calibration and needs {needed}: none of its claims is kept."
        for group, each in calibrator.groups.items()
        if each.filter.status is ConformalStatus.KEEPS_NONE
    ]


def _unknown_groups(calibrator: Calibrator, fresh: ScoredTable) -> list[str]:
    """Sentences on groups of new responses without a labeled response."""
    needed = calibrator.promise.fewest_responses
    return [
        f"Group {group_name(group)!r} has no labeled response for calibration and needs "
        f"{needed}: none of its claims is kept."
        for group in dict.fromkeys(fresh.claims.groups)
        if group not in calibrator.groups
    ]


def _alike(calibrator: Calibrator, fresh: ScoredTable) -> str:
    """Sentence on the tests that compare new and labeled responses; empty without a test."""
    alike = calibrator.exchangeability(fresh.claims)
    if not alike:
        return ""
    group, name = min(alike, key=alike.__getitem__)
    least = alike[group, name]
    where = f" of group {group_name(group)!r}" if group else ""
    how = f"{p_equals(least)}, Kolmogorov-Smirnov, corrected over {counted(len(alike), 'test')}"
    if least < _SUSPECT:
        return (
            f"The new responses{where} differ from the labeled ones in their {name} ({how}, "
            f"level {_SUSPECT:g}): the guarantee may not hold for them. Label some of them."
        )
    return (
        "The guarantee assumes responses exchangeable with the labeled ones. No test without "
        f"labels contradicts this ({name}{where}: {how}), which is no proof."
    )
