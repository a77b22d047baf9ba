"""Self-Known, Self-Unknown and sigma of judged claims, with tests of the paper's claims.

Every quantity by setting and position, and overall, is a row of the long table `quantities`; the
printed tables are views of it.

Source: the Self-Known paper, "Investigating Factuality in Long-Form Text Generation: The Roles of
Self-Known and Self-Unknown".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import Field

from calibration.figures.panels import (
    name_lines,
    name_places,
    nth_look,
    reach,
    small_multiples,
)
from calibration.figures.positions import Panel, knowledge_panels, label_panels, position_figure
from calibration.intervals import IntervalMethod
from calibration.self_knowledge import (
    ClaimRecord,
    IntervalSettings,
    PositionTable,
    Setting,
    compare_conditions,
    flip_rates,
    in_sample_balance,
    label_positions,
    out_of_sample,
    position_trends,
)
from calibration.self_knowledge import (
    self_knowledge as self_knowledge_table,
)
from calibration.self_knowledge.paper_claims import MARGIN, paper_claims
from calibration.tabular import Frame
from experiments.asking.ledger_table import ledger_table
from experiments.asking.session import asking, warn_of_no_model
from experiments.columns.cells import truth
from experiments.columns.frame import long_frame
from experiments.columns.judged_claims import read_judged_claims
from experiments.columns.judged_table import JudgedTable
from experiments.columns.options import ClaimColumns
from experiments.columns.responses import load_responses
from experiments.columns.sources import name_of
from experiments.evaluators.probe_first import first_probe, planned_probe, with_probe
from experiments.findings.artifacts import PaperFigure
from experiments.findings.figures.positions import TITLES, position_table
from experiments.findings.findings import CLAIMS, Findings
from experiments.findings.table import (
    Column,
    Table,
    columns_as,
    data_frame,
    interval_column,
    named,
    text_columns,
)
from experiments.findings.text import number, p_equals, p_value
from experiments.methods.self_judged_claims import (
    AskSettings,
    ask_claims,
    check_askable,
    planned_calls,
    probed_stages,
)
from experiments.progress import tell
from experiments.settings import USUAL, Numbers, Option, front_door
from experiments.settings.limits import DrawnSettings, Replicates
from factormodels.errors import InputError
from factormodels.extraction.asking.table import SELF_SETTINGS
from factormodels.nouns import counted, counted_range

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from experiments.columns.responses import ResponsesIn
    from experiments.columns.sources import Data

    ClaimData = Data | ResponsesIn

OVERALL = "overall"
SIGNIFICANT = 0.05
AUTOMATIC = "automatic"
OUT_OF_RANGE = "out_of_range"
KINDS = "kinds of claims"

_ENOUGH_TO_REDRAW = 60
"""Number of responses from which bootstrap percentiles cover as well as linearized intervals."""

_HALF = 0.5
"""Default threshold of a confidence."""

_FEWEST_RESPONSES = 4
"""Smallest number of responses that can be split: two halves of two responses."""

_QUANTITIES = (
    *("factuality", "judged_correct", "self_known", "self_unknown", "sigma"),
    "rogan_gladen",
)
_BALANCE = {
    "false_positives": "unsupported claims judged correct",
    "false_negatives": "supported claims judged incorrect",
    "p_value": "p of σ = F",
}
_FLIPS = {
    "supported_flip_rate": "flips, supported claims",
    "unsupported_flip_rate": "flips, unsupported claims",
}
_TITLES = {
    **TITLES,
    **_FLIPS,
    "factuality": "factuality F",
    "sigma": "σ",
    "unsupported_number": "unsupported claims per sentence",
}
_STATUS = {
    "ok": "",
    "empty": "no claim",
    "no_supported": "no supported claim",
    "no_unsupported": "no unsupported claim",
    "perfect": "SK = SU = 1: any σ solves equation 3",
    "uninformative": "SK + SU = 1: judgments do not depend on truth",
    "always_known": "SK = 1: σ is 1 whatever F is",
    "always_unknown": "SU = 1: σ is 0 whatever F is",
    OUT_OF_RANGE: "out of its range [0, 1]",
}
_TREND_STATUS = {
    "ok": "",
    "few": "too few responses",
    "constant": "claims do not differ",
    "separated": "a position separates the claims",
}

_PLACES = (
    "Position i/n of sentence i of n. Rogan-Gladen uses SK and SU over all positions, and the "
    "judged share at each position."
)


class SelfKnowledgeSettings(DrawnSettings, ClaimColumns, AskSettings):
    """Measurement.

    Options of `self-knowledge`.
    """

    threshold: Annotated[float | None, Field(ge=0, le=1), USUAL] = None
    """Confidence or share of votes from which a claim counts as judged correct; by default 0.5, or
    a majority of votes."""

    sweep: Annotated[Numbers, Option("T,T,...")] = ()
    """Other thresholds to tabulate, such as 0.5,0.7,0.9."""

    neither: Literal["incorrect", "exclude"] = "incorrect"
    """Treatment of 'none of the above' answers."""

    interval: Literal["automatic", "bootstrap", "delta"] = "automatic"
    """Method for intervals over responses; automatic uses delta for fewer than 60 responses, where
    its coverage is better."""

    bins: Annotated[int, Field(ge=1, le=20), USUAL] = 5
    """Number of bins of relative position."""

    paper_claims: bool = False
    """Also test each claim of the paper that the data can test: show its section, a statistic with
    an interval over responses, and a verdict."""

    n_bootstrap: Annotated[Replicates, Option(command_line=False)] = 1000

    n_splits: Annotated[int, Field(ge=1), Option(command_line=False)] = 200
    """Number of random halves for out-of-sample prediction."""

    @property
    def intervals(self) -> IntervalSettings:
        """Settings of intervals."""
        return IntervalSettings(self.interval, self.n_bootstrap, self.seed)

    def for_responses(self, count: int) -> SelfKnowledgeSettings:
        """Settings with the interval method for a number of responses."""
        if self.interval != AUTOMATIC:
            return self
        few = count < _ENOUGH_TO_REDRAW
        method = IntervalMethod.DELTA if few else IntervalMethod.BOOTSTRAP
        return self.model_copy(update={"interval": str(method)})


@dataclass(frozen=True)
class _Group:
    """Claims and results of one model under one condition.

    Attributes:
        model: the model.
        condition: the condition.
        records: the claims.
        labels: shares of kinds of claims by position.
        knowledge: self-knowledge by position, for each setting in which the model was asked.
        flips: flips between the second and the third setting, if the model was asked in both.
        balances: the tests of σ = F.
        predictions: out-of-sample predictions, if there are enough responses.
        trends: trends by position, if claims have positions.
    """

    model: str
    condition: str
    records: Sequence[ClaimRecord]
    labels: PositionTable
    knowledge: Mapping[Setting, PositionTable]
    flips: PositionTable | None
    balances: Mapping[Setting, Frame]
    predictions: Mapping[Setting, Frame]
    trends: Mapping[Setting, Frame]

    @property
    def name(self) -> str:
        return _joined(self.model, self.condition)


@front_door
def self_knowledge(data: ClaimData, settings: SelfKnowledgeSettings) -> Findings:
    """Measure a model's knowledge of its own claims: SK, SU and sigma by position.

    Shows factuality, SK, SU, flips, the share judged correct, sigma and the Rogan-Gladen estimate,
    overall and by fifth of the response, with intervals over responses. Also tests whether sigma
    equals the factuality, predicts the factuality of other responses, and compares models and
    conditions in pairs. Columns with an obvious name are recognized and reported. For labeled
    responses without a model's judgments, shows the share and number of supported, unsupported and
    irrelevant claims by position.

    Examples::

        self_knowledge("claims.csv")
        self_knowledge("claims.jsonl", confidence="p", true="Y", threshold=0.9,
            sweep="0.5,0.7,0.9")
        self_knowledge("sampled.jsonl", votes="answers", in_order=True,
            out="results/self-knowledge").report("self-knowledge.html")
        self_knowledge("responses.jsonl", model="openai/NAME", out="results/self-knowledge")
        self_knowledge("annotated.jsonl", bins=4)

    Args:
        data: Claims with a label and the model's judgment of each: CSV, TSV, Parquet, JSON Lines or
            JSON; or labeled responses: FActScore's or Factcheck-Bench's JSON Lines, fact graphs, an
            embedded dataset. With --model the model's responses with labeled claims. In Python also
            a data frame, records, fact graphs, or findings.
        settings: options; in Python, pass the fields as keywords instead.

    Raises:
        InputError: if the data cannot be read, or an option is unknown or does not fit them.
    """
    if settings.model is not None:
        return _asked(cast("ResponsesIn", data), settings)
    if settings.extract or settings.documents is not None or settings.retriever is not None:
        raise InputError(
            "--extract, --documents and --retriever need a model to ask; name it with --model"
        )
    warn_of_no_model(settings)
    table = cast("Data", data)
    return _measured(read_judged_claims(table, settings), name_of(table), settings)


def _asked(data: ResponsesIn, settings: SelfKnowledgeSettings) -> Findings:
    """Ask the model about its responses, and measure its answers."""
    for name in ClaimColumns.model_fields:
        if getattr(settings, name) and name != "setting":
            option = f"--{name.replace('_', '-')}"
            raise InputError(
                f"{option}: --model asks for judgments of responses, whose columns are known; "
                "leave it out"
            )
    if settings.threshold is not None or settings.sweep:
        raise InputError(
            "--threshold, --sweep: judgments of --model have no threshold; leave them out"
        )
    source, loaded = name_of(cast("Data", data)), load_responses(data, settings.documents_of)
    graphs = loaded.graphs
    with asking(settings) as session:
        wanted = (settings.setting,) if settings.setting else tuple(SELF_SETTINGS)
        check_askable(graphs, settings, wanted)
        names = probed_stages(graphs, settings, wanted)
        if settings.dry_run:
            planned_stages = planned_probe(names) | planned_calls(graphs, wanted)
            calls = data_frame([*planned_stages.items()], ["stage", "calls"])
            planned = Table(calls, columns_as("stage | calls:0"), "Calls that would be made.")
            remark = ("Calls to extract and label the claims of other responses are not counted.",)
            sentences = (*loaded.remarks, *(remark if settings.extract else ()))
            return Findings(source, sentences, {"calls": planned})
        probed = first_probe([(name, session.model) for name in names])
        rows, remarks, incomplete = ask_claims(graphs, settings, wanted, session)
    findings = _measured(read_judged_claims(rows, ClaimColumns()), source, settings)
    answers = data_frame(rows)
    answer_table = Table(answers, text_columns(*map(str, answers.columns)), "The model's answers.")
    asked = replace(
        findings,
        sentences=(*loaded.remarks, *findings.sentences, *remarks),
        # Running the command on these claims without a model gives the same findings.
        tables={
            **findings.tables,
            "cost": ledger_table(session.ledger, len(graphs)),
            "answers": answer_table,
        },
        unshown=(*findings.unshown, "answers"),
        incomplete=incomplete,
    )
    return with_probe(asked, probed)


def _measured(table: JudgedTable, source: str, settings: SelfKnowledgeSettings) -> Findings:
    """Findings on claims: tables, tests and figures."""
    threshold, remarks = settings.threshold, table.remarks
    if threshold is None and table.kind == "confidence":
        threshold = _HALF
        parting = _parting(table)
        if parting:
            settings = settings.model_copy(update={"sweep": settings.sweep or parting})
            remarks = (
                "The threshold 0.5 puts all claims on one side and is uninformative; other "
                "thresholds are tabulated. Choose one with --threshold.",
                *remarks,
            )
    if table.kind == "judgment" and (threshold is not None or settings.sweep):
        raise InputError(
            f"{source}: the data have judgments, which need no threshold; name a column of "
            "confidences with --confidence, or leave --threshold and --sweep out"
        )
    for value in settings.sweep:
        if not 0 <= value <= 1:
            raise InputError(f"the threshold {value:g} is out of range; give a share from 0 to 1")
    bins = settings.bins if table.has_positions else 1
    sizes = [
        len({record.response for record in table.records(group, threshold)})
        for group in table.groups
    ]
    settings = settings.for_responses(min(sizes, default=0))
    groups = []
    for model, condition in table.groups:
        records = table.records((model, condition), threshold)
        tell(_joined(model, condition) or "claims")
        groups.append(_group(model, condition, records, bins, settings, table.has_positions))
    titles = _setting_names(table, threshold)
    frame = data_frame([*_quantities(groups, titles, table), *_swept(table, settings)])
    judged = bool(table.settings)
    of = _sizes(groups)
    tables = _views(frame, judged, table.has_positions, settings.interval, of)
    sentences: list[str] = []
    if judged:
        tables["test"] = _tests(groups, titles, of)
        if table.has_positions:
            tables["trends"] = _trends(groups, titles, of)
        predicted = _predictions(groups, titles, of)
        if predicted is not None:
            tables["prediction"] = predicted
        compared, unpaired = _comparisons(groups, table, bins, settings)
        if compared is not None:
            tables["comparison"] = compared
        sentences = [
            *(_verdict(group, setting, titles) for group in groups for setting in group.balances),
            *_range_remarks(groups, titles),
            *unpaired,
        ]
    if settings.paper_claims:
        claims = _paper_claims(groups, table, bins, settings, titles)
        tables, sentences = {"paper_claims": claims, **tables}, [*sentences, *_reasons(claims)]
    return Findings(
        source=source,
        sentences=(*sentences, *remarks),
        tables=tables,
        settings={"threshold": threshold},
        draw=lambda: _figures(groups, titles, table),
        unshown=("quantities",),
        frames={CLAIMS: lambda: _claims(table)},
    )


def _claims(table: JudgedTable) -> pd.DataFrame:
    """The long frame: a row per claim and setting; p, the model's confidence or share of votes."""
    return long_frame(
        {
            "response": claim.response,
            "claim": claim.claim,
            "text": claim.text,
            "p": claim.score(setting),
            "label": str(claim.label) if (label := truth(claim.label)) is None else label,
            **{"model": model, "condition": condition, "setting": title},
        }
        for (model, condition), claims in table.groups.items()
        for claim in claims
        for setting, title in table.settings.items()
    )


def _paper_claims(
    groups: Sequence[_Group],
    table: JudgedTable,
    bins: int,
    settings: SelfKnowledgeSettings,
    titles: Mapping[Setting, str],
) -> Table:
    """Every claim of the paper with its test, for each model and condition."""
    rows = []
    for group in groups:
        # The paper's setting (section 3), or else the last one that was asked.
        setting = next((each for each in reversed([*Setting]) if each in group.knowledge), None)
        tell(f"tests the paper's claims: {group.name or 'claims'}")
        tested = paper_claims(
            group.records,
            setting or Setting.NONE_OF_THE_ABOVE,
            n_positions=bins,
            neither=settings.neither,
            has_positions=table.has_positions,
            n_splits=settings.n_splits,
            intervals=settings.intervals,
        )
        of = group.name if setting is None else _of(group, titles[setting])
        for each in tested:
            rows.append(
                {
                    **{"of": of, "statement": each.statement, "section": each.section},
                    "test": each.test,
                    **named("statistic", (each.estimate, each.lower, each.upper)),
                    **{"n": each.n_responses, "verdict": str(each.verdict), "why": each.why},
                }
            )
    frame = data_frame(rows)
    return Table(
        frame,
        columns_as("statement claim | section | test | statistic:3± | verdict"),
        "The paper's claims on these data.",
        group="of" if frame["of"].nunique() > 1 else "",
        note="In brackets: pointwise 95% intervals over responses. Slopes: per relative "
        "position, from 0 to 1; correlations: over positions. q: share judged correct; here "
        f"and there: halves of the responses. Near: within {MARGIN:g}; such a claim holds if "
        "the interval is inside this margin, and is rejected if it is outside.",
    )


def _reasons(table: Table) -> Iterator[str]:
    """Yield sentences on claims of the paper that no data or not these data can test."""
    frame = table.frame[table.frame["why"] != ""]
    for (verdict, why), claims in frame.groupby(["verdict", "why"], sort=False):
        distinct = claims["statement"].unique()
        listed = "; ".join(distinct) if len(distinct) == 1 else counted(len(distinct), "claim")
        yield f"{str(verdict).capitalize()}, since {why}: {listed}."


def _parting(table: JudgedTable) -> tuple[float, ...]:
    """Up to nine thresholds that separate the claims, if 0.5 puts all of them on one side."""
    scores = sorted(
        score
        for claims in table.groups.values()
        for claim in claims
        for score in claim.confidence.values()
    )
    if scores[0] < _HALF <= scores[-1]:
        return ()
    levels = sorted(set(scores))[1:]
    return tuple(levels[:: -(-len(levels) // 9)]) if levels else ()


def _group(
    model: str,
    condition: str,
    records: Sequence[ClaimRecord],
    bins: int,
    settings: SelfKnowledgeSettings,
    has_positions: bool,
) -> _Group:
    asked = [
        setting
        for setting in Setting
        if any(record.judgment(setting) is not None for record in records)
    ]
    how: dict[str, Any] = {"n_positions": bins, "neither": settings.neither}
    made = {**how, "intervals": settings.intervals}
    split = {**how, "n_splits": settings.n_splits, "seed": settings.seed}
    enough = len({record.response for record in records}) >= _FEWEST_RESPONSES
    both = {Setting.QUESTION_ANSWERING, Setting.NONE_OF_THE_ABOVE} <= set(asked)
    return _Group(
        *(model, condition, records),
        label_positions(records, n_positions=bins, intervals=settings.intervals),
        {setting: self_knowledge_table(records, setting, **made) for setting in asked},
        flip_rates(records, **made) if both else None,
        {setting: in_sample_balance(records, setting, **how) for setting in asked},
        {setting: out_of_sample(records, setting, **split) for setting in asked if enough},
        {
            setting: position_trends(records, setting, neither=settings.neither)
            for setting in asked
            if has_positions
        },
    )


def _setting_names(table: JudgedTable, threshold: float | None) -> dict[Setting, str]:
    """Name of each setting in tables and figures: the paper's name, or the form of the answers."""
    how = {"judgment": "", "votes": "majority of votes", "confidence": ""}[table.kind]
    if threshold is not None:
        what = "share of votes" if table.kind == "votes" else "confidence"
        how = f"{what} at least {threshold:g}"
    names = {setting: _joined(name, how) for setting, name in table.settings.items()}
    return {setting: name or "setting not stated" for setting, name in names.items()}


def _of(group: _Group, setting: str) -> str:
    return ": ".join(filter(None, (group.name, setting)))


def _quantities(
    groups: Sequence[_Group], titles: Mapping[Setting, str], table: JudgedTable
) -> Iterator[dict[str, Any]]:
    """Yield every quantity of every group by setting and position, the rows of the long table."""
    for group in groups:
        for row in _of_each_setting(group, titles, table):
            yield _keyed(row, group.model, group.condition)


def _of_each_setting(
    group: _Group, titles: Mapping[Setting, str], table: JudgedTable
) -> Iterator[dict[str, Any]]:
    """Yield the quantities of one group."""
    for setting, known in group.knowledge.items():
        of = _of(group, titles[setting])
        yield from _rows(of, setting.value, known, _QUANTITIES)
        yield from _balance_rows(of, setting.value, group.balances[setting])
        if setting is Setting.NONE_OF_THE_ABOVE and group.flips is not None:
            yield from _rows(of, setting.value, group.flips, _FLIPS)
        if table.has_sentences:
            yield from _rows(of, setting.value, group.labels, ("unsupported_number",))
    if table.has_sentences:
        labels = group.labels
        yield from _rows(_of(group, KINDS), "", labels, tuple(labels.quantities))


def _keyed(row: Mapping[str, Any], model: str, condition: str) -> dict[str, Any]:
    """Row with the columns of its group inserted after the names."""
    return {"of": row["of"], "model": model, "condition": condition, **row}


def _swept(table: JudgedTable, settings: SelfKnowledgeSettings) -> Iterator[dict[str, Any]]:
    """Yield overall quantities at other thresholds, with the p-value of σ = F."""
    for group in table.groups:
        name = _joined(*group)
        for threshold in sorted(set(settings.sweep)):
            tell(f"threshold {threshold:g}")
            records = table.records(group, threshold)
            for setting, title in table.settings.items():
                if all(record.judgment(setting) is None for record in records):
                    continue
                asked: dict[str, Any] = {"n_positions": 1, "neither": settings.neither}
                known = self_knowledge_table(
                    records, setting, intervals=settings.intervals, **asked
                )
                of = ": ".join(filter(None, (name, title)))
                at = {"threshold": threshold}
                balance = in_sample_balance(records, setting, **asked)
                for row in (
                    *_rows(of, setting.value, known, _QUANTITIES),
                    *_balance_rows(of, setting.value, balance),
                ):
                    if row["position"] == OVERALL:
                        yield _keyed(row | at, *group)


def _balance_rows(of: str, setting: str, balance: Frame) -> Iterator[dict[str, Any]]:
    """Yield the errors of each kind and the p-value of σ = F, by position and overall."""
    for quantity, title in _BALANCE.items():
        for row in balance.rows():
            yield {
                **{"of": of, "setting": setting, "quantity": quantity, "title": title},
                **{"position": row["position"], "estimate": row[quantity], "lower": math.nan},
                **{"upper": math.nan, "status": str(row["status"]), "n": row["n_responses"]},
                "threshold": math.nan,
            }


def _rows(
    of: str, setting: str, table: PositionTable, wanted: Sequence[str] | Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    by_quantity = {(row["quantity"], row["position"]): row for row in table.rows()}
    for quantity in wanted:
        for position in table.positions:
            row = by_quantity[quantity, position]
            status, value = row["status"], row["estimate"]
            if quantity == "rogan_gladen" and status == "ok" and not 0 <= value <= 1:
                status = OUT_OF_RANGE
            yield {
                **{"of": of, "setting": setting, "quantity": quantity, "title": _TITLES[quantity]},
                **{"position": position, "estimate": value, "lower": row["lower"]},
                **{"upper": row["upper"], "status": status, "n": row["n_responses"]},
                "threshold": math.nan,
            }


def _sizes(groups: Sequence[_Group]) -> str:
    """Numbers of claims and responses of each model and condition, in words."""
    claims = [len(group.records) for group in groups]
    responses = [len({record.response for record in group.records}) for group in groups]
    return f"{counted_range(claims, 'claim')} of {counted_range(responses, 'response')}"


def _views(
    frame: pd.DataFrame, judged: bool, has_positions: bool, method: str, of: str
) -> dict[str, Table]:
    """The long table and its printed views: overall, by position, and by threshold.

    Args:
        frame: the long table.
        judged: whether the model judged the claims.
        has_positions: whether claims have positions in their response.
        method: how intervals are computed.
        of: numbers of claims and responses, in words.
    """
    swept = frame["threshold"].notna()
    kinds = frame["setting"] == ""
    shown = frame[~swept & ~kinds & ~frame["quantity"].isin(_BALANCE) if judged else kinds]
    columns = columns_as(
        'title quantity | estimate:3[] | n:0 responses | status ""',
        status=lambda status: _STATUS.get(status, status),
    )
    note = f"In brackets: 95% intervals over responses ({method})."
    what = "Self-Known and Self-Unknown" if judged else "Kinds"
    is_overall = shown["position"] == OVERALL
    whole = shown[is_overall].reset_index(drop=True)
    long = (*columns[:1], *columns_as("position"), *columns[1:])
    tables = {"overall": Table(whole, columns, f"{what} of {of}.", group="of", note=note)}
    if has_positions:
        tables["positions"] = Table(
            _wide(shown[~is_overall], ("of", "quantity", "title"), "position"),
            (
                *columns[:1],
                *(interval_column(name, name, 2) for name in shown["position"].unique()[:-1]),
            ),
            f"Quantities of {of}, by relative position in the response.",
            group="of",
            note=_PLACES if judged else "Means over sentences; sentence i of n is at i/n.",
        )
    if swept.any():
        by_threshold = _wide(frame[swept], ("of", "threshold"), "quantity")
        names = ("judged_correct", "self_known", "self_unknown", "sigma", "factuality")
        tables["sweep"] = Table(
            by_threshold,
            (
                Column("threshold", "threshold", digits=2),
                *(interval_column(name, _TITLES[name], 3) for name in names),
                Column("p_value", "p of σ = F", show=p_value, right=True),
            ),
            f"Quantities of {of} at other thresholds; p-values are not corrected for their number.",
            group="of" if by_threshold["of"].nunique() > 1 else "",
        )
    tables["quantities"] = Table(
        frame, long, f"Every quantity of {of}, by position.", group="of", note=note
    )
    return tables


def _wide(frame: pd.DataFrame, index: Sequence[str], across: str) -> pd.DataFrame:
    """Pivot: a row per combination of `index`, with estimate and interval for each value of
    `across`."""
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in frame.to_dict("records"):
        line = lines.setdefault(
            tuple(row[name] for name in index), {name: row[name] for name in index}
        )
        line |= named(row[across], (row["estimate"], row["lower"], row["upper"]))
    return data_frame(list(lines.values()))


def _by_position(
    group_frames: Sequence[tuple[_Group, Mapping[Setting, Frame]]], titles: Mapping[Setting, str]
) -> list[dict[str, Any]]:
    """Rows of frames by position and overall; with a single bin, overall only."""
    return [
        {"of": _of(group, titles[setting]), **row}
        for group, frames in group_frames
        for setting, frame in frames.items()
        for row in (frame.rows()[-1:] if len(frame) <= 2 else frame.rows())
    ]


def _tests(groups: Sequence[_Group], titles: Mapping[Setting, str], of: str) -> Table:
    balance_rows = _by_position([(group, group.balances) for group in groups], titles)
    rows = [{**row, "reading": _reading(row)} for row in balance_rows]
    columns = columns_as(
        "position | sigma:3 σ | factuality:3 F | false_positives:0 FP | "
        "false_negatives:0 FN | by_response> p exact | clustered> p clustered | "
        "corrected> p used | reading σ = F",
        by_response=p_value,
        clustered=p_value,
        corrected=p_value,
    )
    return Table(
        data_frame(rows),
        columns,
        f"Test of σ = F on the same {of}: whether FP, unsupported claims judged correct, and FN, "
        "supported claims judged incorrect, are equally frequent.",
        group="of",
        note=(
            "Exact: all signs of the responses, where at most 30 differ; clustered: McNemar's "
            "test with the variance over responses (Obuchowski). Used: the exact one if "
            "available; by position, Holm-corrected."
        ),
    )


def _reading(row: Mapping[str, Any]) -> str:
    p = row["corrected"]
    if row["status"] not in ("ok", "uninformative", "always_known", "always_unknown"):
        return _STATUS.get(str(row["status"]), "")
    if p != p:
        return "not tested"
    return "rejected" if p < SIGNIFICANT else "not rejected"


def _trends(groups: Sequence[_Group], titles: Mapping[Setting, str], of: str) -> Table:
    rows = [
        {"of": _of(group, titles[setting]), "title": _TITLES[row["quantity"]], **row}
        for group in groups
        for setting, frame in group.trends.items()
        for row in frame.rows()
    ]
    columns = columns_as(
        "title quantity | slope:2[] | p_value> p | corrected> p corrected | "
        'n_claims:0 claims | n_responses:0 responses | status ""',
        p_value=p_value,
        corrected=p_value,
        status=lambda status: _TREND_STATUS[str(status)],
    )
    return Table(
        data_frame(rows),
        columns,
        f"Trends of {of} over the response.",
        group="of",
        note=(
            "Slope: the log odds at the end of a response minus those at its start, by logistic "
            "regression on relative position with errors clustered by response; in brackets, 95% "
            "intervals. Corrected: by Holm over the quantities."
        ),
    )


def _predictions(groups: Sequence[_Group], titles: Mapping[Setting, str], of: str) -> Table | None:
    rows = _by_position([(group, group.predictions) for group in groups], titles)
    if not rows:
        return None
    columns = columns_as(
        "position | difference:3[] σ here - F there | p_value> p | rmse_sigma:3 error of σ | "
        "rmse_factuality:3 error of F here | rmse_rogan_gladen:3 error of Rogan-Gladen",
        p_value=p_value,
    )
    return Table(
        data_frame(rows),
        columns,
        f"Prediction of the factuality of one half of {of} from the other half.",
        group="of",
        note=(
            "Errors are root mean squares over splits. σ and F here use only the labels of one "
            "half; Rogan-Gladen also uses the judgments of the other half, without labels. Its "
            "error is unbounded as SK + SU approaches 1."
        ),
    )


def _comparisons(
    groups: Sequence[_Group],
    table: JudgedTable,
    bins: int,
    settings: SelfKnowledgeSettings,
) -> tuple[Table | None, list[str]]:
    """Paired comparisons of conditions of a model and of models under a condition."""
    pairs = [
        (first, other)
        for index, first in enumerate(groups)
        for other in groups[index + 1 :]
        if (first.model == other.model) != (first.condition == other.condition)
    ]
    rows: list[dict[str, Any]] = []
    remarks: list[str] = []
    for first, other in pairs:
        both = {record.response for record in first.records} & {
            record.response for record in other.records
        }
        if not both:
            remarks.append(
                f"{first.name} and {other.name} have no response in common and are not compared; "
                "use the same response id for answers to the same prompt."
            )
            continue
        tell(f"{other.name} against {first.name}")
        for setting in table.settings:
            if not all(setting in group.knowledge for group in (first, other)):
                continue
            compared = compare_conditions(
                first.records,
                other.records,
                setting,
                unpaired="drop",
                n_positions=bins,
                neither=settings.neither,
                intervals=settings.intervals,
            )
            wanted = {"judged_factuality", *_QUANTITIES[1:]}
            if table.has_sentences:
                wanted.add("unsupported_number")
            rows += [
                {
                    "of": f"{other.name} minus {first.name} ({table.settings[setting] or 'all'})",
                    **row,
                    "title": _TITLES[row["quantity"].removeprefix("judged_")]
                    if row["quantity"] == "judged_factuality"
                    else _TITLES[row["quantity"]],
                }
                for row in compared.rows()
                if row["quantity"] in wanted and (bins > 1 or row["position"] == OVERALL)
            ]
    if not rows:
        return None, remarks
    columns = columns_as(
        "title quantity | position | first:3 | second:3 | difference:3[] | "
        "corrected> p | n_responses:0 responses",
        corrected=p_value,
    )
    frame = data_frame(rows)
    shown = Table(
        frame,
        columns,
        "Comparisons paired over common responses.",
        group="of",
        note=(
            "P-values are Holm-corrected: overall over quantities, otherwise over quantities "
            "and bins."
        ),
    )
    return shown, remarks


def _verdict(group: _Group, setting: Setting, titles: Mapping[Setting, str]) -> str:
    """Sentence on the test of a group."""
    balance = group.balances[setting]
    rows = balance.rows()
    last = rows[-1]
    known = group.knowledge[setting]
    shares = ", ".join(
        f"{title} {number(float(known[name].estimate[-1]))}"
        for name, title in (("self_known", "SK"), ("self_unknown", "SU"), ("sigma", "σ"))
    )
    text = (
        f"{_of(group, titles[setting])}: {shares}, factuality F {number(last['factuality'])} on "
        f"{counted(last['n_claims'], 'claim')} of {counted(last['n_responses'], 'response')}. "
    )
    if last["sigma"] != last["sigma"]:
        return f"{text}σ is not defined ({_STATUS.get(last['status'], last['status'])})."
    exact = last["by_response"] == last["by_response"]
    how = "exact test over responses" if exact else "McNemar's test clustered by response"
    if last["p_value"] == last["p_value"]:
        outcome = "is rejected" if last["p_value"] < SIGNIFICANT else "is not rejected"
        text += f"σ = F {outcome} ({how}, {p_equals(last['p_value'])})"
    else:
        text += "σ = F cannot be tested on one response"
    places = rows[:-1] if len(rows) > 2 else []
    done = [row for row in places if row["corrected"] == row["corrected"]]
    if done:
        rejected = [row["position"] for row in done if row["corrected"] < SIGNIFICANT]
        where = f" ({', '.join(rejected)})" if rejected else ""
        text += f"; by position it is rejected in {len(rejected)} of {len(done)} bins{where}"
    text += ". The test asks whether the two kinds of error balance, not whether σ predicts."
    predicted = group.predictions.get(setting)
    if predicted is not None:
        row = predicted.rows()[-1]
        text += (
            " Out of sample, σ of one half of the responses differs from the factuality of the "
            f"other by {row['difference']:+.3f} on average [{row['lower']:.3f}, "
            f"{row['upper']:.3f}]; its error is {number(row['rmse_sigma'])}; the error of the "
            f"first half's factuality is {number(row['rmse_factuality'])}."
        )
    return text


def _range_remarks(groups: Sequence[_Group], titles: Mapping[Setting, str]) -> list[str]:
    remarks = []
    for group in groups:
        for setting, known in group.knowledge.items():
            values = known["rogan_gladen"].estimate
            out = [
                f"{position} ({value:.2f})"
                for position, value in zip(known.positions, values.tolist(), strict=True)
                if value == value and not 0 <= value <= 1
            ]
            if out:
                remarks.append(
                    f"{_of(group, titles[setting])}: Rogan-Gladen is out of its range [0, 1] at "
                    f"{', '.join(out)}: SK and SU there differ from the values over all "
                    "positions."
                )
    return remarks


def _figures(
    groups: Sequence[_Group], titles: Mapping[Setting, str], table: JudgedTable
) -> dict[str, PaperFigure]:
    """The figures of the paper that these claims allow, each with the name of its setting."""
    figures: dict[str, PaperFigure] = {}

    def add(
        stem: str,
        number: str,
        what: str,
        panels: Sequence[Panel],
        shown: Mapping[str, PositionTable],
        setting: Setting | None = None,
        title: str = "",
    ) -> None:
        caption = f"{what}, in the form of Self-Known's figure {number}"
        if setting is not None:
            stem = f"{stem}-{setting.value}" if len(table.settings) > 1 else stem
            caption = f"{caption} ({titles[setting]})"
        figure = position_figure(panels, title=title or None)
        data = position_table(shown, "").frame
        figures[stem.replace("_", "-")] = PaperFigure(figure, data, f"{caption}.")

    if table.has_sentences:
        positions = groups[0].labels
        panels: Sequence[Panel] = label_panels(positions)
        what = "Kinds of claims by position"
        add("kinds-of-claims", "1", what, panels, {"": positions}, title=groups[0].name)
    first = next((group for group in groups if group.knowledge), None)
    if first is None:
        return figures
    shown = {setting.value: knowledge for setting, knowledge in first.knowledge.items()}
    panels = [
        panel
        for setting, knowledge in first.knowledge.items()
        for panel in knowledge_panels(knowledge, titles[setting])
    ]
    if first.flips is not None:
        rates = {name: name.partition("_")[0] for name in _FLIPS}
        panels = [*panels, Panel(first.flips, rates, "Share of claims that flip", (2, 1))]
        shown["flips"] = first.flips
    what = "Self-knowledge by setting"
    add("self-knowledge-by-setting", "2", what, panels, shown, title=first.name)
    for setting, how in titles.items():
        asked = [group for group in groups if setting in group.knowledge]
        by_model = {group.name: group.knowledge[setting] for group in asked}
        name, positions = next(iter(by_model.items()))
        compared = {"factuality": "human", "sigma": "σ"}
        whose = _joined(name, how)
        panels = [Panel(positions, compared, "Factuality", (2, 6), title=whose)]
        what = "Factuality and σ by position"
        add("factuality-and-sigma", "3", what, panels, {"": positions}, setting)
        panels = [
            panel
            for name, knowledge in by_model.items()
            for panel in knowledge_panels(knowledge, _joined(name, how))
        ]
        what = "Self-knowledge by model"
        add("self-knowledge-by-model", "4", what, panels, by_model, setting)
        if len(groups) > 1:
            both = {"self_known": "Self-Known", "self_unknown": "Self-Unknown"}
            panels = [
                Panel(knowledge, both, "Share of claims", (0, 1), title=_joined(name, how))
                for name, knowledge in by_model.items()
            ]
            what = "Self-Known and Self-Unknown by model"
            add("known-and-unknown-by-model", "6b", what, panels, by_model, setting)
    if table.has_sentences:
        kinds = {group.name: group.labels for group in groups if group.knowledge}
        caption = "Unsupported claims per sentence, in the form of Self-Known's figure 5."
        data = position_table(kinds, "").frame
        figures["unsupported-per-sentence"] = PaperFigure(_numbers(kinds), data, caption)
    return figures


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _numbers(by_model: Mapping[str, PositionTable]) -> Figure:
    """The number of unsupported claims per sentence by position, a line per model."""
    positions = next(iter(by_model.values())).positions[:-1]
    with small_multiples(list(by_model), (2.3, 2.0)) as (figure, places):
        for axes, names in places:
            lines = {}
            for at, name in enumerate(names):
                numbers = by_model[name]["unsupported_number"]
                middle = numbers.estimate[:-1]
                across = [position + 0.05 * at for position in range(len(positions))]
                arms = reach(middle, numbers.lower[:-1], numbers.upper[:-1])
                drawn = axes.errorbar(across, middle, yerr=arms, elinewidth=0.8, **nth_look(at))
                lines[name] = drawn.lines[0]
            name_places(figure, axes, list(positions), min(len(places), 3))
            name_lines(axes, lines)
        places[0][0].set_ylim(bottom=0)
        figure.supxlabel("Relative position of the sentence", fontsize=8.0)
        figure.supylabel("Unsupported claims per sentence", fontsize=8.0)
        return figure
