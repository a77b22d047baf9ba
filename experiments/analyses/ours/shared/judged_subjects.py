"""Whose judgements of their own claims are held against labels: the user's files, embedded ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic.dataclasses import dataclass

from calibration.self_knowledge import ClaimRecord, Setting
from experiments.analyses.context import AnalysisContext
from experiments.analyses.user_data import hash_of, user_data
from experiments.columns.judged_claims import JudgedTable, judged_claims, judged_graphs
from experiments.columns.options import ClaimColumns
from experiments.settings.limits import Probability
from experiments.study.config import STRICT, DatasetChoice
from factormodels import datasets
from factormodels.io.tables.data_table import read_table
from factormodels.variants import variant
from inference.batch import claim_posteriors

ASKED = Setting.DIRECT_ASKING
"""What a claim's confidence or votes count as; the data do not say how the model was asked."""


@dataclass(frozen=True, config=STRICT)
class EmbeddedJudge:
    """Labelled claims that come with the package, and who judges them.

    Attributes:
        dataset: an embedded dataset.
        judge: ``votes`` of a model on its own sentences, or the ``posteriors`` of FR1, which are a
            checker's and no model's own.
        threshold: share of votes, or posterior, from which a claim counts as judged correct.
    """

    dataset: str
    judge: Literal["votes", "posteriors"] = "votes"
    threshold: Probability = 0.5


@dataclasses.dataclass(frozen=True, eq=False)
class JudgedSubject:
    """The judged claims of a model.

    Attributes:
        table: the claims.
        group: which of them.
        setting: how the model was asked.
        threshold: from which confidence they count as judged correct; None: they are judgements.
    """

    table: JudgedTable
    group: tuple[str, str]
    setting: Setting
    threshold: float | None

    def records(self, threshold: float | None = None) -> list[ClaimRecord]:
        """The claims, judged at a threshold, as if all were asked in one setting."""
        chosen = self.threshold if threshold is None else threshold
        return [
            ClaimRecord(
                *(record.response, record.sentence, record.sentences, record.claim, record.label),
                record.judgement(self.setting),
            )
            for record in self.table.records(self.group, chosen)
        ]


Named = Iterator[tuple[str, JudgedSubject]]


def users_subjects(thresholds: Mapping[str, float], context: AnalysisContext) -> Named:
    """Yield whose claims the user's file names; confidences have thresholds by its names."""
    for model, source in user_data().places("self-judged").items():
        name = model or "self-judged"
        table = (
            judged_claims(read_table(source), ClaimColumns())
            if isinstance(source, Path)
            else judged_graphs(datasets.load(source).graphs, source)
        )
        only = None if table.kind == "judgement" else thresholds.get(name, 0.5)
        for group in table.groups:
            for setting, how in table.settings.items():
                parts = (name, *group, how if len(table.settings) > 1 else "")
                yield ", ".join(filter(None, parts)), JudgedSubject(table, group, setting, only)
        context.data[f"self-judged: {name}"] = {
            "sha256": hash_of(source),
            "responses": sum(
                len({claim.response for claim in each}) for each in table.groups.values()
            ),
            "atoms": sum(map(len, table.groups.values())),
        }


def embedded_subjects(judges: Mapping[str, EmbeddedJudge], context: AnalysisContext) -> Named:
    """Yield whose claims come with the package."""
    for name, chosen in judges.items():
        (data,) = context.load((DatasetChoice(name=chosen.dataset),))
        sure: list[float] | None = None
        if chosen.judge == "posteriors":
            sure = claim_posteriors(
                [variant(g, "FR1") for g in data.graphs], "implication"
            ).tolist()
        table = judged_graphs(data.graphs, chosen.dataset, sure)
        yield name, JudgedSubject(table, ("", ""), ASKED, chosen.threshold)
