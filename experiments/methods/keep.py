"""Conformal filtering: which claims of new answers to keep, with a guarantee from labeled ones."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from experiments.columns.claims import read_claims
from experiments.columns.frame import ClaimFrame
from experiments.columns.options import ProbabilityColumns, TaughtSettings
from experiments.columns.sources import name_of, table_of
from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as, data_frame
from experiments.findings.text import number, p_value, some_of
from experiments.progress import tell
from experiments.settings import USUAL, Option, front_door
from experiments.settings.limits import DrawnSettings
from factormodels.errors import InputError
from factormodels.io.source.files import write_text
from factormodels.metadata.learned_from import LEARNED_FROM, LearnedFrom
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd

    from calibration.filtering import ConformalFilter, HeldOut
    from experiments.columns.sources import Data

_SUFFIXES = (".txt", ".md", ".html", ".json", ".jsonl")
_SUSPECT = 0.05
"""P values below it say that new responses are unlike the labeled ones."""


class KeepSettings(
    DrawnSettings,
    ProbabilityColumns,
    TaughtSettings,
):
    """What is promised of what is kept."""

    precision: Annotated[float, Field(gt=0, le=1), USUAL] = 0.9
    """Least share of true claims among those that are kept of a response."""

    confidence: Annotated[float, Field(gt=0, lt=1), USUAL] = 0.9
    """Probability that a new response has that precision."""

    guarantee: Annotated[Literal["probability", "mean"], USUAL] = "probability"
    """Promise the precision of a response with --confidence, or in the mean over responses."""

    answers: Annotated[Path | None, Option("FILE", writes=True, usual=True)] = None
    """Write the answers with what is kept to this file: .txt, .md, .html, .json or .jsonl."""

    dropped: Annotated[Literal["strike", "remove"], USUAL] = "strike"
    """What becomes of dropped claims in --answers: struck through, or removed."""

    splits: Annotated[int, Field(ge=1)] = 200
    """Random halves of the labeled responses on which the promise is tried."""


@front_door
def keep(labeled: Data, new: Data, settings: KeepSettings) -> Findings:
    """Keep the claims of new answers that are sure enough, with a guarantee.

    The threshold on probabilities is conformal (Mohri and Hashimoto 2024): learned on labeled
    responses, it promises that with --confidence the claims that are kept of a new response have at
    least --precision, whatever the probabilities are worth; poor ones only cost claims. New
    responses must be exchangeable with the labeled ones: of the same kind, by the same model,
    judged alike. What can be seen of that without labels is tested, and the promise is tried on
    random halves of the labeled responses.

    Examples::

        keep("labeled.csv", "new.csv")
        keep("labeled.jsonl", "new.jsonl", answers="kept.html")
        keep("labeled.csv", "new.csv", precision=0.8, guarantee="mean", answers="kept.txt",
            dropped="remove")

    Args:
        labeled: Responses with probabilities and labels, as `factormodels score` takes them.
        new: New responses with probabilities from the same source.
        settings: how; in Python the fields may be named instead.

    Raises:
        InputError: if the data cannot be read, or an option does not fit them.
    """
    from calibration.filtering import conformal_filter, exchangeability, held_out

    if settings.answers is not None and settings.answers.suffix not in _SUFFIXES:
        raise InputError(
            f"--answers {settings.answers}: name a file that ends in {', '.join(_SUFFIXES)}"
        )
    if settings.guarantee == "mean" and settings.precision == 1:
        raise InputError(
            "--precision 1 cannot be promised in the mean; give one below 1, or "
            "--guarantee probability"
        )
    learned_from = _with_one_probability(labeled, settings, labeled=True)
    learned_from = learned_from.without_taught(learned_from.has_label, settings)
    known = learned_from.frame
    groups = known.loc[learned_from.has_label, "response"].unique()
    if len(groups) < 2:
        whose = "".join(f", {name!r}" for name in groups)
        raise InputError(
            f"{learned_from.table.source}: labels that count are of "
            f"{counted(len(groups), 'response')}{whose}; label two or more: the threshold is "
            "learned on some, and the promise is tried on others"
        )
    of_new = _with_one_probability(new, settings, labeled=False)
    fresh, remarks = of_new.frame, [*learned_from.remarks, *of_new.remarks]
    seen = fresh.loc[fresh["taught"], "response"].unique().tolist()
    if seen:
        remarks.append(
            f"Labels of {counted(len(seen), 'new response')} ({some_of(seen)}) taught their "
            "probabilities: the guarantee does not hold for what is kept of them."
        )
    promised: dict[str, Any] = {
        "precision": settings.precision,
        "confidence": settings.confidence,
        "guarantee": settings.guarantee,
    }
    parts = (
        known["p"].to_numpy(),
        known["label"].to_numpy(dtype=object),
        known["response"].to_numpy(),
    )
    conformal = conformal_filter(*parts, **promised)
    tell("tries the promise on halves")
    tried = held_out(*parts, n_splits=settings.splits, seed=settings.seed, **promised)
    claims = _claims(fresh.assign(kept=conformal.keep(fresh["p"].to_numpy())))
    by_response = claims.groupby("response", sort=False)
    if settings.answers is not None:
        write_text(settings.answers, _written(by_response, settings))
    alike = exchangeability(
        *(known["p"].to_numpy(), known["response"].to_numpy()),
        *(fresh["p"].to_numpy(), fresh["response"].to_numpy()),
    )
    sentences = [
        _promise(conformal, settings),
        f"{int(claims['kept'].sum()):,} of {counted(len(claims), 'claim')} are kept, of "
        f"{counted(len(by_response), 'response')}"
        + ("." if settings.answers is None else f"; the answers are in {settings.answers}."),
        _tried(tried, settings),
        _alike(alike),
    ]
    return Findings(
        source=f"{name_of(new)} by {name_of(labeled)}",
        sentences=tuple(dict.fromkeys([*sentences, *remarks])),
        tables={
            "claims": Table(
                claims.drop(columns="answer"),
                columns_as('response | claim | p:3 | kept_text ""'),
                "Claims.",
            ),
            "responses": Table(
                by_response.agg(claims=("kept", "size"), kept=("kept", "sum")).reset_index(),
                columns_as("response | claims:0 | kept:0"),
                "Responses.",
            ),
        },
    )


def _with_one_probability(data: Data, settings: KeepSettings, *, labeled: bool) -> ClaimFrame:
    """Claims with one probability each; answers of several models are several responses."""
    if not labeled and settings.label is not None:
        data = table_of(data)
        if settings.label not in data.columns:
            # Only the labeled responses need labels.
            settings = settings.model_copy(update={"label": None})
    claims = read_claims(data, settings, labeled=labeled, texts=True)
    if len(claims.columns) > 1:
        raise InputError(
            f"{claims.table.source}: there are several probabilities, "
            f"{', '.join(claims.columns)}; choose one with --p"
        )
    owners = zip(claims.frame["by"], claims.frame["response"], strict=True)
    named = [", ".join((*by, str(response))) for by, response in owners]
    return replace(claims, frame=claims.frame.assign(response=named))


def _claims(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per claim with its text, and with the whole text of its response where it is known."""
    order = frame.groupby("response", sort=False).cumcount() + 1
    columns = ("response", "claim", "p", "kept", "taught", "text", "answer")
    columns_of = frame.reindex(columns=columns, fill_value="")
    return data_frame(
        [
            {
                "response": str(response),
                "claim": str(claim or number),
                "text": str(text or claim or ""),
                "p": float(p),
                "kept": bool(kept),
                "kept_text": "kept" if kept else "dropped",
                "answer": str(answer or ""),
                **({f"p_{LEARNED_FROM}": str(LearnedFrom.THIS_RESPONSE)} if taught else {}),
            }
            for response, claim, p, kept, taught, text, answer, number in zip(
                *(columns_of[name] for name in columns), order, strict=True
            )
        ]
    )


# -------------------------------------------------------------------------------------- answers


def pieces(claims: pd.DataFrame) -> list[tuple[str, bool]]:
    """An answer in pieces, each with whether it is kept; joined, they are the answer.

    Where every dropped claim stands in the answer word for word, and no kept one in the same
    place, it is the answer, dropped wherever it says what is dropped; else, its claims in order,
    since a claim that was made independent of its surroundings has no place there.

    Args:
        claims: those of one response: claim, text, kept and answer, its whole text.
    """
    answer = claims["answer"].iloc[0]
    dropped = np.zeros(len(answer), dtype=np.bool_)
    kept = dropped.copy()
    in_place = True
    for text, keeps in zip(claims["text"], claims["kept"], strict=True):
        places = list(re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", answer)) if text else []
        in_place &= bool(places or keeps)
        for match in places:
            (kept if keeps else dropped)[slice(*match.span())] = True
    if not in_place or (kept & dropped).any():
        texts = claims["text"].where(claims["text"] != "", claims["claim"])
        marked = list(zip(texts, claims["kept"].tolist(), strict=True))
        spaces = [(" ", True)] * len(marked)
        return [piece for pair in zip(marked, spaces, strict=True) for piece in pair][:-1]
    return [
        ("".join(letter for letter, _ in letters), not gone)
        for gone, letters in groupby(zip(answer, dropped.tolist(), strict=True), key=itemgetter(1))
    ]


def _joined(parts: Sequence[tuple[str, bool]], shown: str, *, strike: bool) -> str:
    """The pieces as one text; where some are left out, so is one of two spaces beside them."""
    text = ""
    for piece, kept in parts:
        if kept or strike:
            shown_piece = piece if kept else shown.format(piece)
            text += (
                shown_piece.lstrip(" ")
                if not strike and (not text or text[-1].isspace())
                else shown_piece
            )
    return text.strip()


def _written(by_response: Any, settings: KeepSettings) -> str:
    """All answers as the file that is named wants them."""
    suffix = settings.answers.suffix if settings.answers else ".txt"
    shown = "<del>{}</del>" if suffix == ".html" else "~~{}~~"
    spelled = escape if suffix == ".html" else str
    texts = {
        response: _joined(
            [(spelled(text), kept) for text, kept in pieces(claims)],
            shown,
            strike=settings.dropped == "strike",
        )
        for response, claims in by_response
    }
    if suffix in (".json", ".jsonl"):
        columns = ["claim", "text", "p", "kept"]
        records = [
            {
                "response": response,
                "answer": texts[response],
                "claims": claims[columns].rename(columns={"claim": "id"}).to_dict("records"),
            }
            for response, claims in by_response
        ]
        if suffix == ".jsonl":
            return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in records)
        return f"{json.dumps(records, ensure_ascii=False, indent=1)}\n"
    if suffix == ".html":
        body = "\n".join(
            f'<h2>{escape(response)}</h2>\n<p style="white-space: pre-line">{text}</p>'
            for response, text in texts.items()
        )
        head = '<head><meta charset="utf-8"><title>What is kept</title></head>'
        return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n<body>\n{body}\n</body>\n</html>\n'
    return "\n\n".join(f"{response}\n{text}" for response, text in texts.items()) + "\n"


# ------------------------------------------------------------------------------------- findings


def _promise(conformal: ConformalFilter, settings: KeepSettings) -> str:
    least = f"{100 * settings.precision:g}%"
    of = f"calibrated on {counted(conformal.n_responses, 'labeled response')}"
    if conformal.status == "keeps_none":
        return f"Nothing can be kept with this promise, {of}: label more, or promise less."
    where = (
        "All claims are kept"
        if conformal.status == "keeps_all"
        else f"Claims above {number(conformal.threshold)} are kept"
    )
    if settings.guarantee == "mean":
        return f"{where}, {of}: in the mean, at least {least} of those kept are true."
    return (
        f"{where}, {of}: with probability {settings.confidence:g}, at least {least} of those kept "
        "of a new response are true."
    )


def _tried(tried: HeldOut, settings: KeepSettings) -> str:
    if settings.guarantee == "mean":
        what = f"the mean precision was {number(tried.precision)}"
    else:
        what = f"{100 * tried.reached:.1f}% of responses had the precision"
    return (
        f"On {tried.n_splits} random halves of the labeled responses {what}, and "
        f"{100 * tried.kept:.0f}% of claims were kept."
    )


def _alike(alike: Mapping[str, float]) -> str:
    name = min(alike, key=alike.__getitem__)
    if alike[name] < _SUSPECT:
        return (
            f"The new responses are unlike the labeled ones in their {name} (p = "
            f"{p_value(alike[name])}, Kolmogorov and Smirnov, of three tests): the guarantee does "
            "not hold for them. Label some of them."
        )
    return (
        "The guarantee is for responses exchangeable with the labeled ones. Nothing that can be "
        f"seen without labels speaks against it ({name}: p = {p_value(alike[name])}), which does "
        "not prove it."
    )
