"""A judge used on responses without labels: posteriors, after a look at whether it may be."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from calibration.learned_potentials import SENTENCE, Judge, Shift, ShiftStatus, judged, read_judge
from calibration.learned_potentials.shift import FEW, FEWEST
from experiments.findings.artefacts import PaperFigure
from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as, data_frame
from experiments.findings.text import interval, number
from experiments.methods.fit import ColumnSettings
from experiments.settings import SET, front_door
from experiments.settings.inputs import graphs_of
from factormodels.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from calibration.learned_potentials import ClaimTable
    from calibration.validation import Floats
    from experiments.settings.inputs import Responses
    from factormodels.fact_graph import FactGraph

_WHY = {
    ShiftStatus.OTHER_EVIDENCE: "no share of true claims makes the evidence here likely",
    ShiftStatus.TOO_FEW: f"fewer than {FEWEST} responses do not tell how responses vary",
    ShiftStatus.UNDETERMINED: "the evidence suits shares up to the end of the range",
    ShiftStatus.CONTRADICTED: "the evidence and the judge's own posteriors point in different "
    "directions",
    ShiftStatus.SAME_SHARE: "the share of true claims here may be that of the claims learned from",
}
"""Why the prior that was learned stays."""


class ApplySettings(ColumnSettings, together={SET: "*"}):
    """How the judge is used."""

    adapt: bool = False
    """Move the posteriors to the share of true claims that the evidence here determines, where it
    is a mixture of what was learned and that share is another; else the learned prior stays."""

    other_evidence: bool = False
    """Use the judge although another relation model or retriever made the evidence here."""

    n_bootstrap: Annotated[int, Field(ge=1)] = 1000
    """Replicates of the check of shift."""

    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the replicates."""


@front_door
def apply(judge: Path, responses: Responses, settings: ApplySettings) -> Findings:
    """Judge the claims of responses by a judge that `factormodels fit --save` wrote.

    First checks whether the evidence here is distributed, given truth, as that learned from: the
    distance between its distribution and the best mixture of that of true and of false claims. Then
    gives a posterior for every claim; the learned prior stays unless --adapt asks for more. Labels
    play no part. --out B.jsonl writes the responses with their posteriors, which
    `factormodels score` reads.

    Examples::

        factormodels apply judge.json new.jsonl --out new.judged.jsonl
        factormodels score new.judged.jsonl
        factormodels apply judge.json new.jsonl --set adapt --report new.html

    Args:
        judge: The file of the judge.
        responses: Responses, or the name of an embedded dataset.
        settings: how; in Python the fields may be named instead.

    Raises:
        InputError: if a file cannot be read, or columns or evidence do not fit the judge.
        MissingDependencyError: if PyTorch is not installed.
    """
    known = judge if isinstance(judge, Judge) else read_judge(judge)
    graphs = graphs_of(responses)
    strange = known.other_evidence(graphs)
    if strange and not settings.other_evidence:
        raise InputError(f"{strange}; make both in the same way, or give --other-evidence")
    table = known.table(graphs, settings.own())
    shift = known.shift(table, n_bootstrap=settings.n_bootstrap, seed=settings.seed)
    p = before = known.probabilities(table)
    sentences = [_checked(shift)]
    share = f"{number(shift.share)} {interval(shift.share_lower, shift.share_upper)}"
    if settings.adapt and shift.determined:
        p = known.probabilities(table, shift.share)
        sentences.append(
            f"The posteriors were moved to a share of {share}; their mean was "
            f"{number(float(before.mean()))}."
        )
    elif settings.adapt:
        sentences.append(f"The learned prior stays: {_WHY[shift.status]}.")
    elif shift.determined:
        sentences.append(
            f"The evidence is that of a share of true claims of {share}; --adapt moves the "
            "posteriors to it."
        )
    sentences.append(
        f"The mean posterior of {len(p):,} claims is {number(float(p.mean()))}; "
        f"{number(shift.old_share)} of the claims learned from are true."
    )
    sentences += _unjoined(known, graphs, table)
    if strange:
        sentences.append(f"Note: {strange}.")
    elif unknown := known.unrecorded(graphs):
        sentences.append(f"{unknown}.")
    return Findings(
        source=str(responses) if isinstance(responses, str | Path) else "the responses",
        sentences=tuple(sentences),
        tables={"shift": _shift_table(shift), "responses": _responses_table(table, p)},
        settings={"judge": str(judge)},
        draw=lambda: _figures(known, table, shift),
        graphs=judged(graphs, p),
    )


def _unjoined(judge: Judge, graphs: Sequence[FactGraph], table: ClaimTable) -> list[str]:
    """What claims lack that the judge reads: a sentence, relations."""
    told, n = [], len(table.labels)
    alone = sum(atom.sentence is None for graph in graphs for atom in graph.atoms)
    if SENTENCE in judge.field.causes and alone:
        who = f"{alone:,} of {n:,} claims do not say of which sentence they are"
        if alone == n:
            who = "No claim here says of which sentence it is"
        told.append(
            f"{who}: each counts as a sentence of its own, and posteriors are other than with "
            "sentences."
        )
    if "passages" in table.names:
        silent = int((table.values[:, table.names.index("passages")] == 0).sum())
        if silent:
            told.append(
                f"{silent:,} of {n:,} claims have no relation with a passage that was retrieved "
                "for them: little but what they share with others speaks for their posteriors."
            )
    return told


def _checked(shift: Shift) -> str:
    """What the check of shift says."""
    if np.isnan(shift.distance):
        return (
            "Whether the evidence is distributed as that learned from cannot be told: "
            f"{_WHY[shift.status]}."
        )
    told = (
        "At the quantiles compared, the largest distance between the distribution of the evidence "
        f"here and the best mixture of what was learned is {number(shift.distance)} "
        f"{interval(shift.lower, shift.upper)}, p = {number(shift.p_value)}: "
    )
    if shift.status is ShiftStatus.OTHER_EVIDENCE:
        told += (
            "the learned law of evidence does not reproduce it, and posteriors may be wrong; make "
            "the evidence as that learned from was made, or label claims of some responses here "
            "and learn from them."
        )
    else:
        told += "nothing says that the learned law of evidence does not hold here."
    if shift.status is not ShiftStatus.OTHER_EVIDENCE and shift.n_responses < FEW:
        told += (
            f" With {shift.n_responses} responses the test has little power: it would miss most "
            "changes."
        )
    return told


def _responses_table(table: ClaimTable, p: Floats) -> Table:
    claims = data_frame({"response": [response for response, _ in table.ids], "p": p})
    by_response = claims.groupby("response", sort=False)["p"]
    return Table(
        by_response.agg(n_claims="size", mean="mean").reset_index(),
        columns_as("response | n_claims:0 claims | mean:3 expected share true"),
        "Posteriors by response.",
    )


def _shift_table(shift: Shift) -> Table:
    return Table(
        data_frame([{**asdict(shift), "status": shift.status.value.replace("_", " ")}]),
        columns_as(
            "distance:3[] | p_value:3 p | share:3± weight of true claims | "
            "old_share:3 share learned from | n_responses:0 responses | status evidence"
        ),
        "Whether the learned law of evidence holds here.",
        note="Distance: largest difference of two distribution functions, 0 to 1. The weight is "
        "the share of true claims only where the law holds. With few responses, say 8, the test "
        "has little power.",
    )


def _curves(judge: Judge, table: ClaimTable, shift: Shift) -> pd.DataFrame:
    """Distribution functions of log odds: here, of true and of false claims, and of the mixture."""
    law = judge.law.values[:, 0]
    here = judge.field.log_odds(table)
    grid = np.unique(np.quantile(np.concatenate([law, here]), np.linspace(0, 1, 101)))

    def reached(values: Floats) -> Floats:
        return np.searchsorted(np.sort(values), grid, side="right") / max(len(values), 1)

    true, false = (reached(law[judge.labels == label]) for label in (1, 0))
    weight = 0.5 if np.isnan(shift.share) else shift.share
    return data_frame(
        {
            "log_odds": grid,
            "here": reached(here),
            "true": true,
            "false": false,
            "mixture": weight * true + (1 - weight) * false,
        }
    )


def _figures(judge: Judge, table: ClaimTable, shift: Shift) -> dict[str, PaperFigure]:
    from calibration.figures.panels import COLUMN, nth_colour, panels

    frame = _curves(judge, table, shift)
    with panels(1, 1, (COLUMN, 2.4)) as (figure, ((place,),)):
        place.plot(frame["log_odds"], frame["here"], color="0.1", label="here")
        place.plot(frame["log_odds"], frame["mixture"], color=nth_colour(0), label="best mixture")
        for name, dash in (("true", "--"), ("false", ":")):
            place.plot(
                frame["log_odds"], frame[name], dash, color="0.6", label=f"{name}, learned from"
            )
        place.set_xlabel("log odds by a claim's own columns")
        place.set_ylabel("share of claims below")
        place.legend()
    title = "Evidence here and the best mixture of what was learned"
    return {"evidence": PaperFigure(figure, frame, title)}
