"""Self-Known, Self-Unknown and sigma of judged claims, with what the paper concludes from them.

Source: the Self-Known paper, "Investigating Factuality in Long-Form Text Generation: The Roles of
Self-Known and Self-Unknown".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from calibration.intervals import IntervalMethod
from calibration.self_knowledge import (
    Association,
    Balance,
    ClaimRecord,
    IntervalSettings,
    OutOfSample,
    Setting,
    association,
    compare_conditions,
    in_sample_balance,
    out_of_sample,
)
from calibration.self_knowledge import (
    self_knowledge as self_knowledge_table,
)
from experiments.analyses.papers.self_judgement import ModelTables, model_tables, paper_figure
from experiments.analyses.positions import TITLES
from experiments.assess.batch import BatchOptions, responses_under_way
from experiments.assess.evaluation import (
    CACHE,
    CONCURRENCY,
    as_responses,
    metered_model,
)
from experiments.assess.retrievers_by_name import as_documents
from experiments.findings.artefacts import PaperFigure
from experiments.findings.findings import Findings
from experiments.findings.table import Column, Table, data_frame, text_columns
from experiments.findings.text import counted, number, p_value
from experiments.methods.inputs import name_of, parted_options, table_of
from experiments.methods.self_judged_claims import AskedClaims, Asking, ask_claims, calls_table
from experiments.study.inputs import is_dataset
from experiments.study.judged_claims import (
    ClaimColumns,
    JudgedTable,
    judged_claims,
    judged_graphs,
)
from factormodels import datasets
from factormodels.errors import InputError, options_as_arguments
from factormodels.extraction.language_model.accounting import Consumption, Ledger
from factormodels.extraction.prompts.replaced import read_prompts

if TYPE_CHECKING:
    from experiments.analyses.papers.self_judgement import FigureName
    from experiments.assess.inputs import Texts
    from experiments.assess.retrievers_by_name import Documents
    from experiments.methods.inputs import Data
    from factormodels.extraction.language_model import LanguageModel
    from factormodels.extraction.language_model.litellm_model import LitellmSettings

COMMAND = "self-knowledge"
OVERALL = "overall"
SIGNIFICANT = 0.05
AUTOMATIC = "automatic"

_ENOUGH_TO_REDRAW = 60
"""Responses from which on percentiles of the bootstrap cover as well as linearised intervals."""

_HALF = 0.5
"""Threshold of a confidence where none is given."""

_FEWEST_RESPONSES = 4
"""Two halves of two responses each are the least that can be split."""

_QUANTITIES = (
    *("factuality", "judged_correct", "self_known", "self_unknown", "sigma"),
    *("rogan_gladen", "emq"),
)
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
    "empty": "no claim",
    "no_supported": "no supported claim",
    "no_unsupported": "no unsupported claim",
    "perfect": "SK = SU = 1: any σ solves equation 3",
    "uninformative": "SK + SU = 1: judgements do not depend on truth",
    "always_known": "SK = 1: σ is 1 whatever F is",
    "always_unknown": "SU = 1: σ is 0 whatever F is",
}

Progress = Callable[[str], None]
"""Called with what is done next."""


@dataclass(frozen=True)
class SelfKnowledgeSettings:
    """How self-knowledge is measured.

    Attributes:
        threshold: confidence, or share of votes, from which a claim counts as judged correct; None:
            0.5 of a confidence, and the majority of votes.
        sweep: thresholds that are tabulated beside it.
        bins: bins of relative position.
        neither: what "none of the above" counts as: ``incorrect`` or ``exclude``.
        interval: intervals over responses: ``bootstrap``, ``delta``, or ``automatic``: delta under
            60 responses, where it covers better.
        n_bootstrap: replicates of the bootstrap.
        n_splits: splits in halves of the prediction out of sample.
        seed: of the bootstrap and of the splits.
    """

    threshold: float | None = None
    sweep: tuple[float, ...] = ()
    bins: int = 5
    neither: str = "incorrect"
    interval: str = AUTOMATIC
    n_bootstrap: int = 1000
    n_splits: int = 200
    seed: int = 0

    @property
    def intervals(self) -> IntervalSettings:
        """How intervals are made."""
        return IntervalSettings(self.interval, self.n_bootstrap, self.seed)

    def for_responses(self, count: int) -> SelfKnowledgeSettings:
        """The same with the intervals that so many responses have."""
        if self.interval != AUTOMATIC:
            return self
        few = count < _ENOUGH_TO_REDRAW
        return replace(self, interval=IntervalMethod.DELTA if few else IntervalMethod.BOOTSTRAP)


@dataclass(frozen=True)
class _Group:
    """The claims of one model under one condition, and what was computed of them."""

    model: str
    condition: str
    records: Sequence[ClaimRecord]
    tables: ModelTables
    balances: Mapping[Setting, Balance]
    predictions: Mapping[Setting, OutOfSample]

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.model, self.condition)))


def measure_self_knowledge(
    table: JudgedTable,
    source: str,
    settings: SelfKnowledgeSettings,
    *,
    asked: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Findings:
    """What judged claims say: the tables, the tests and the figures of `self-knowledge`.

    Args:
        table: the claims.
        source: what they are called.
        settings: how they are measured.
        asked: what else was asked, for the record.
        progress: called with what is done next.

    Raises:
        InputError: for settings that are out of range or do not fit the claims.
    """
    tell = progress or (lambda _: None)
    threshold, remarks = settings.threshold, table.remarks
    if threshold is None and table.kind == "confidence":
        threshold = _HALF
        parting = _parting(table)
        if parting:
            settings = replace(settings, sweep=settings.sweep or parting)
            remarks = (
                "The threshold of one half does not part these claims, of which nothing is told "
                "so; others that do are tabulated: choose one with --threshold.",
                *remarks,
            )
    if table.kind == "judgement" and (threshold is not None or settings.sweep):
        raise InputError(
            f"{source}: it holds judgements, which have no threshold; name a column of confidences "
            "with --confidence, or leave --threshold and --sweep out"
        )
    for value in (*(() if threshold is None else (threshold,)), *settings.sweep):
        if not 0 <= value <= 1:
            raise InputError(f"a threshold is {value:g}; give a share from 0 to 1")
    bins = settings.bins if table.has_positions else 1
    sizes = [
        len({record.response for record in table.records(group, threshold)})
        for group in table.groups
    ]
    settings = settings.for_responses(min(sizes, default=0))
    groups = []
    for model, condition in table.groups:
        records = table.records((model, condition), threshold)
        tell(", ".join(filter(None, (model, condition))) or "claims")
        groups.append(_group(model, condition, records, bins, settings))
    said = _setting_names(table, threshold)
    tables = {"overall": _overall(groups, said, table, settings.interval)}
    if table.has_positions:
        tables["positions"] = _by_position(groups, said, table)
    tables["test"] = _tests(groups, said)
    predicted = _predictions(groups, said)
    if predicted is not None:
        tables["prediction"] = predicted
    tell("association")
    related = _associations(groups, table, bins, settings)
    if related:
        tables["association"] = _association_table(related, said)
    compared, unpaired = _comparisons(groups, table, bins, settings, tell)
    if compared is not None:
        tables["comparison"] = compared
    if settings.sweep:
        tell("thresholds")
        tables["sweep"] = _sweep(table, settings)
    sentences = [
        *(_verdict(group, setting, said) for group in groups for setting in group.balances),
        *_range_remarks(groups, said),
        *(_association_sentence(row, said[setting]) for setting, row in related.items()),
        *unpaired,
        *remarks,
    ]
    plain = {key: value for key, value in asdict(settings).items() if key != "threshold"}
    return Findings(
        command=COMMAND,
        source=source,
        sentences=tuple(sentences),
        tables=tables,
        settings={"threshold": threshold, **plain, **(asked or {})},
        draw=lambda: _figures(groups, said, table),
    )


def self_knowledge(
    data: Data | Texts,
    *,
    ask: str | LitellmSettings | LanguageModel | None = None,
    extract: bool = False,
    documents: Documents | None = None,
    cache: str | os.PathLike[str] = CACHE,
    replay: bool = False,
    **options: Any,
) -> Findings:
    """Measure Self-Known, Self-Unknown and sigma, as `factormodels self-knowledge` does.

    from experiments import self_knowledge
    self_knowledge("claims.csv", confidence="p", threshold=0.9)
    self_knowledge(Path("responses.jsonl"), ask="openai/NAME")

    Args:
        data: a file, a data frame, or records; one row per claim, or responses that hold claims.
            If a model is asked: its responses with labelled claims, as `evaluate` takes them.
        ask: the model to ask for its judgements, as litellm spells it, or as `evaluate` takes it.
        extract: whether to split responses without claims into claims, and to label these by
            `documents`.
        documents: what extracted claims are labelled by, as `evaluate` takes it.
        cache: file of answers, none of which is repeated.
        replay: whether every answer is taken from there.
        options: fields of `experiments.study.judged_claims.ClaimColumns` and of
            `SelfKnowledgeSettings`, by name.

    Raises:
        InputError: if the data cannot be read, or an option is unknown or does not fit them.
    """
    with options_as_arguments():
        if ask is None:
            if extract or documents is not None:
                raise InputError("extract and documents are for a model that is asked; give ask")
            return find_self_knowledge(cast("Data", data), options)
        settings = settings_of_asked(options)
        ledger, kept = Ledger(), Path(cache)
        given = Path(data) if isinstance(data, str) else data
        asking = Asking(
            extract=extract, documents=as_documents(documents), cache=kept, replay=replay
        )
        if options.get("setting"):
            asking = replace(asking, settings=(str(options["setting"]),))
        asked = ask_claims(
            as_responses(given),
            Consumption(metered_model(ask, kept, ledger, replay)),
            read_prompts(None),
            asking,
            BatchOptions(concurrency=responses_under_way(CONCURRENCY)),
        )
        return find_in_answers(asked, name_of(cast("Data", given)), settings, ledger)


def settings_of_asked(options: Mapping[str, Any]) -> SelfKnowledgeSettings:
    """How the claims that a model is asked about are measured.

    Args:
        options: fields of `SelfKnowledgeSettings` and `ClaimColumns`, by name.

    Raises:
        InputError: for a column, as there is none of what is yet to be asked.
    """
    columns, settings = parted_options(options, ClaimColumns, SelfKnowledgeSettings)
    for name, value in asdict(columns).items():
        if value and name != "setting":
            option = "--" + name.replace("_", "-").replace("model", "model-column")
            raise InputError(
                f"{option}: the model is asked for its judgements, and the columns of responses "
                "are known; leave it out"
            )
    if settings.threshold is not None or settings.sweep:
        raise InputError("--threshold, --sweep: judgements have no threshold; leave them out")
    return cast("SelfKnowledgeSettings", settings)


def find_in_answers(
    asked: AskedClaims,
    source: str,
    settings: SelfKnowledgeSettings,
    ledger: Ledger,
    progress: Progress | None = None,
) -> Findings:
    """What a model said of its claims when it was asked, with what that took.

    Args:
        asked: what it said.
        source: what the responses are called.
        settings: how it is measured.
        ledger: what was asked.
        progress: called with what is done next.
    """
    found = measure_self_knowledge(
        judged_claims(table_of(asked.rows), ClaimColumns()), source, settings, progress=progress
    )
    return replace(
        found,
        sentences=(*found.sentences, *asked.remarks),
        tables={**found.tables, "calls": calls_table(ledger)},
    )


def find_self_knowledge(
    data: Data, options: Mapping[str, Any], progress: Progress | None = None
) -> Findings:
    """`self_knowledge`, whose errors name options of the command line.

    Raises:
        InputError: if the data cannot be read, or an option is unknown or does not fit them.
    """
    columns, settings = parted_options(options, ClaimColumns, SelfKnowledgeSettings)
    embedded = isinstance(data, str | os.PathLike) and is_dataset(Path(data))
    return measure_self_knowledge(
        judged_graphs(datasets.load(str(data)).graphs, str(data))
        if embedded
        else judged_claims(table_of(data), columns),
        name_of(data),
        settings,
        asked={key: value for key, value in asdict(columns).items() if value},
        progress=progress,
    )


def _parting(table: JudgedTable) -> tuple[float, ...]:
    """Thresholds that part the claims, at most nine, where one half has all on one side."""
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
) -> _Group:
    tables = model_tables(records, bins, settings.intervals, neither=settings.neither)
    asked = tuple(tables.knowledge)
    enough = len({record.response for record in records}) >= _FEWEST_RESPONSES
    return _Group(
        model,
        condition,
        records,
        tables,
        {
            setting: in_sample_balance(records, setting, n_positions=bins, neither=settings.neither)
            for setting in asked
        },
        {
            setting: out_of_sample(
                records,
                setting,
                n_positions=bins,
                neither=settings.neither,
                n_splits=settings.n_splits,
                seed=settings.seed,
            )
            for setting in asked
            if enough
        },
    )


def _setting_names(table: JudgedTable, threshold: float | None) -> dict[Setting, str]:
    """What each setting is called on tables and figures: the paper's, or how answers were taken."""
    how = {"judgement": "", "votes": "majority of votes", "confidence": ""}[table.kind]
    if threshold is not None:
        what = "share of votes" if table.kind == "votes" else "confidence"
        how = f"{what} at least {threshold:g}"
    names = {
        setting: ", ".join(filter(None, (name, how))) for setting, name in table.settings.items()
    }
    return {setting: name or "setting not told" for setting, name in names.items()}


def _of(group: _Group, setting: str) -> str:
    return ": ".join(filter(None, (group.name, setting)))


def _cells(group: _Group, setting: Setting, table: JudgedTable) -> Iterable[tuple[str, Any, Any]]:
    """Yield (quantity, estimates, statuses) of a group in a setting."""
    known = group.tables.knowledge[setting]
    yield from ((name, known[name], known.statuses[name]) for name in _QUANTITIES)
    if setting is Setting.NONE_OF_THE_ABOVE and group.tables.flips is not None:
        flips = group.tables.flips
        yield from ((name, flips[name], flips.statuses[name]) for name in _FLIPS)
    if table.has_sentences:
        name = "unsupported_number"
        yield name, group.tables.labels[name], group.tables.labels.statuses[name]


def _overall(
    groups: Sequence[_Group], said: Mapping[Setting, str], table: JudgedTable, method: str
) -> Table:
    rows = []
    for group in groups:
        for setting in group.tables.knowledge:
            for name, estimates, statuses in _cells(group, setting, table):
                value = float(estimates.estimate[-1])
                rows.append(
                    {
                        "of": _of(group, said[setting]),
                        "quantity": name,
                        "title": _TITLES[name],
                        "estimate": value,
                        "lower": float(estimates.lower[-1]),
                        "upper": float(estimates.upper[-1]),
                        "responses": int(estimates.n_responses[-1]),
                        "remark": _remark(name, value, str(statuses[-1])),
                    }
                )
    columns = (
        Column("title", "quantity"),
        Column("estimate", "estimate", digits=3, lower="lower", upper="upper"),
        Column("responses", "responses", digits=0),
        Column("remark", ""),
    )
    return Table(
        data_frame(rows),
        columns,
        "Self-Known and Self-Unknown, overall.",
        group="of",
        note=f"In brackets: 95% intervals over responses ({method}).",
    )


def _remark(name: str, value: float, status: str) -> str:
    if status != "ok":
        return _STATUS.get(status, status)
    if name == "rogan_gladen" and not 0 <= value <= 1:
        return "out of its range [0, 1]"
    return ""


def _by_position(
    groups: Sequence[_Group], said: Mapping[Setting, str], table: JudgedTable
) -> Table:
    positions = next(iter(groups[0].tables.knowledge.values())).positions[:-1]
    rows = []
    for group in groups:
        for setting in group.tables.knowledge:
            for name, estimates, _ in _cells(group, setting, table):
                row: dict[str, Any] = {
                    "of": _of(group, said[setting]),
                    "quantity": name,
                    "title": _TITLES[name],
                }
                for cell, position in enumerate(positions):
                    row[position] = float(estimates.estimate[cell])
                    row[f"{position}_lower"] = float(estimates.lower[cell])
                    row[f"{position}_upper"] = float(estimates.upper[cell])
                rows.append(row)
    columns = (
        Column("title", "quantity"),
        *(
            Column(name, name, digits=2, lower=f"{name}_lower", upper=f"{name}_upper")
            for name in positions
        ),
    )
    return Table(
        data_frame(rows),
        columns,
        "The same by relative position in the response.",
        group="of",
        note=(
            "Position i/n of sentence i of n. Rogan-Gladen and EMQ take the law of judgements from "
            "all positions, and from each what was judged there."
        ),
    )


def _tests(groups: Sequence[_Group], said: Mapping[Setting, str]) -> Table:
    rows = [
        {"of": _of(group, said[setting]), **row, "reading": _reading(row)}
        for group in groups
        for setting, balance in group.balances.items()
        for row in (balance.rows()[-1:] if len(balance.positions) <= 2 else balance.rows())
    ]
    columns = (
        Column("position", "position"),
        Column("sigma", "σ", digits=3),
        Column("factuality", "F", digits=3),
        Column("false_positives", "FP", digits=0),
        Column("false_negatives", "FN", digits=0),
        Column("by_response", "p exact", show=p_value, right=True),
        Column("clustered", "p clustered", show=p_value, right=True),
        Column("corrected", "p used", show=p_value, right=True),
        Column("reading", "σ = F"),
    )
    return Table(
        data_frame(rows),
        columns,
        "Test of σ = F on the same claims: whether FP, unsupported claims judged correct, and FN, "
        "supported claims judged incorrect, are equally frequent.",
        group="of",
        note=(
            "Exact: all signs of the responses, where at most 30 differ; clustered: McNemar's test "
            "with the variance over responses (Obuchowski). Used: the exact one where there is "
            "one, by position corrected by Holm."
        ),
    )


def _reading(row: Mapping[str, Any]) -> str:
    p = row["corrected"]
    if row["status"] not in ("ok", "uninformative", "always_known", "always_unknown"):
        return _STATUS.get(str(row["status"]), "")
    if p != p:
        return "not tested"
    return "rejected" if p < SIGNIFICANT else "not rejected"


def _predictions(groups: Sequence[_Group], said: Mapping[Setting, str]) -> Table | None:
    rows = [
        {"of": _of(group, said[setting]), **row}
        for group in groups
        for setting, found in group.predictions.items()
        for row in (found.rows()[-1:] if len(found.positions) <= 2 else found.rows())
    ]
    if not rows:
        return None
    columns = (
        Column("position", "position"),
        Column("difference", "σ here - F there", digits=3, lower="lower", upper="upper"),
        Column("p_value", "p", show=p_value, right=True),
        *(
            Column(f"rmse_{name}", f"error of {title}", digits=3)
            for name, title in (
                ("sigma", "σ"),
                ("factuality", "F here"),
                ("rogan_gladen", "Rogan-Gladen"),
                ("emq", "EMQ"),
            )
        ),
    )
    return Table(
        data_frame(rows),
        columns,
        "Prediction of the factuality of one half of the responses from the other.",
        group="of",
        note=(
            "Errors are root mean squares over splits. σ and F here use the labels of one half "
            "alone; Rogan-Gladen and EMQ also the judgements, without labels, of the other. The "
            "error of Rogan-Gladen has no bound where SK + SU comes near 1."
        ),
    )


def _associations(
    groups: Sequence[_Group], table: JudgedTable, bins: int, settings: SelfKnowledgeSettings
) -> dict[Setting, Association]:
    found = {}
    for setting in table.settings:
        with_it = {
            group.name: group.records for group in groups if setting in group.tables.knowledge
        }
        if not with_it:
            continue
        one = association(
            with_it,
            setting,
            n_positions=bins,
            neither=settings.neither,
            intervals=settings.intervals,
        )
        if one.over:
            found[setting] = one
    return found


def _association_table(found: Mapping[Setting, Association], said: Mapping[Setting, str]) -> Table:
    titles = {
        "self_known": "Self-Known and factuality",
        "self_unknown": "Self-Unknown and unsupported claims",
    }
    rows = [
        {"of": said[setting], **row, "pair": titles[row["first"]]}
        for setting, one in found.items()
        for row in one.rows()
    ]
    columns = (
        *text_columns("over", "pair"),
        Column("correlation", "correlation", digits=2, lower="lower", upper="upper"),
        Column("rank_correlation", "of ranks", digits=2),
        Column("n_cells", "cells", digits=0),
    )
    return Table(
        data_frame(rows),
        columns,
        "Whether Self-Known goes with the factuality, and Self-Unknown with the share of "
        "unsupported claims, as the paper reads from its figure 4.",
        group="of",
        note="Pearson's correlation over cells, with percentile intervals over responses.",
    )


def _association_sentence(found: Association, setting: str) -> str:
    """What the widest choice of cells says, in words."""
    row = found.rows()
    widest = row[-1]["over"] if row[-1]["over"] != "models" else row[-3]["over"]
    texts = []
    for each in row:
        if each["over"] != widest:
            continue
        what = (
            "Self-Known with factuality"
            if each["first"] == "self_known"
            else ("Self-Unknown with the share of unsupported claims")
        )
        if each["correlation"] != each["correlation"]:
            texts.append(f"{what} cannot be told")
            continue
        sure = each["lower"] > 0 or each["upper"] < 0
        texts.append(
            f"{what} {each['correlation']:+.2f} [{each['lower']:.2f}, {each['upper']:.2f}]"
            f"{'' if sure else ', which may be none'}"
        )
    return f"Correlations over {widest} ({setting}): {'; '.join(texts)}."


def _comparisons(
    groups: Sequence[_Group],
    table: JudgedTable,
    bins: int,
    settings: SelfKnowledgeSettings,
    tell: Progress,
) -> tuple[Table | None, list[str]]:
    """Paired comparisons of conditions of a model and of models under a condition."""
    pairs = [
        (one, other)
        for place, one in enumerate(groups)
        for other in groups[place + 1 :]
        if (one.model == other.model) != (one.condition == other.condition)
    ]
    rows: list[dict[str, Any]] = []
    remarks: list[str] = []
    for one, other in pairs:
        both = {record.response for record in one.records} & {
            record.response for record in other.records
        }
        if not both:
            remarks.append(
                f"{one.name} and {other.name} have no response in common and are not compared; "
                "give the answers to one prompt the same response id."
            )
            continue
        tell(f"{other.name} against {one.name}")
        for setting in table.settings:
            if not all(setting in group.tables.knowledge for group in (one, other)):
                continue
            compared = compare_conditions(
                one.records,
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
                    "of": f"{other.name} less {one.name} ({table.settings[setting] or 'all'})",
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
    columns = (
        Column("title", "quantity"),
        Column("position", "position"),
        Column("first", "first", digits=3),
        Column("second", "second", digits=3),
        Column("difference", "difference", digits=3, lower="lower", upper="upper"),
        Column("corrected", "p", show=p_value, right=True),
        Column("n_responses", "responses", digits=0),
    )
    frame = data_frame(rows)
    shown = Table(
        frame,
        columns,
        "Comparisons paired over the responses that both have.",
        group="of",
        note="P-values corrected by Holm: overall over quantities, else over quantities and bins.",
    )
    return shown, remarks


def _sweep(table: JudgedTable, settings: SelfKnowledgeSettings) -> Table:
    rows = []
    for group in table.groups:
        name = ", ".join(filter(None, group))
        for threshold in sorted(set(settings.sweep)):
            records = table.records(group, threshold)
            for setting in table.settings:
                if all(record.judgement(setting) is None for record in records):
                    continue
                found = self_knowledge_table(
                    records,
                    setting,
                    n_positions=1,
                    neither=settings.neither,
                    intervals=settings.intervals,
                )
                test = in_sample_balance(
                    records, setting, n_positions=1, neither=settings.neither
                ).rows()[-1]
                row: dict[str, Any] = {
                    "of": ": ".join(filter(None, (name, table.settings[setting]))),
                    "threshold": threshold,
                }
                for quantity in _QUANTITIES[:6]:
                    estimates = found[quantity]
                    row[quantity] = float(estimates.estimate[-1])
                    row[f"{quantity}_lower"] = float(estimates.lower[-1])
                    row[f"{quantity}_upper"] = float(estimates.upper[-1])
                rows.append({**row, "p_value": test["p_value"]})
    shown = ("judged_correct", "self_known", "self_unknown", "sigma", "factuality")
    columns = (
        Column("threshold", "threshold", digits=2),
        *(
            Column(name, _TITLES[name], digits=3, lower=f"{name}_lower", upper=f"{name}_upper")
            for name in shown
        ),
        Column("p_value", "p of σ = F", show=p_value, right=True),
    )
    caption = "The same at other thresholds; the p-values are not corrected for their number."
    several = len({row["of"] for row in rows}) > 1
    return Table(data_frame(rows), columns, caption, group="of" if several else "")


def _verdict(group: _Group, setting: Setting, said: Mapping[Setting, str]) -> str:
    """What was tested of a group, and what came of it, in words."""
    balance = group.balances[setting]
    rows = balance.rows()
    last = rows[-1]
    known = group.tables.knowledge[setting]
    shares = ", ".join(
        f"{title} {number(float(known[name].estimate[-1]))}"
        for name, title in (("self_known", "SK"), ("self_unknown", "SU"), ("sigma", "σ"))
    )
    text = (
        f"{_of(group, said[setting])}: {shares}, factuality F {number(last['factuality'])} on "
        f"{counted(last['n_claims'], 'claim')} of {counted(last['n_responses'], 'response')}. "
    )
    if last["sigma"] != last["sigma"]:
        return f"{text}σ is not defined ({_STATUS.get(last['status'], last['status'])})."
    exact = last["by_response"] == last["by_response"]
    how = "exact test over responses" if exact else "McNemar's test clustered by response"
    if last["p_value"] == last["p_value"]:
        outcome = "is rejected" if last["p_value"] < SIGNIFICANT else "is not rejected"
        text += f"σ = F {outcome} ({how}, p {_relation(last['p_value'])})"
    else:
        text += "σ = F cannot be tested on one response"
    places = rows[:-1] if len(rows) > 2 else []
    done = [row for row in places if row["corrected"] == row["corrected"]]
    if done:
        rejected = [row["position"] for row in done if row["corrected"] < SIGNIFICANT]
        where = f" ({', '.join(rejected)})" if rejected else ""
        text += f"; by position it is rejected in {len(rejected)} of {len(done)} bins{where}"
    text += ". This asks whether the two kinds of error balance, and not whether σ predicts."
    found = group.predictions.get(setting)
    if found is not None:
        row = found.rows()[-1]
        text += (
            f" Out of sample σ of one half of the responses misses the factuality of the other by "
            f"{row['difference']:+.3f} on average [{row['lower']:.3f}, {row['upper']:.3f}]; its "
            f"error is {number(row['rmse_sigma'])}, that of the factuality of the first half "
            f"{number(row['rmse_factuality'])}."
        )
    return text


def _relation(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _range_remarks(groups: Sequence[_Group], said: Mapping[Setting, str]) -> list[str]:
    remarks = []
    for group in groups:
        for setting, known in group.tables.knowledge.items():
            values = known["rogan_gladen"].estimate
            out = [
                f"{position} ({value:.2f})"
                for position, value in zip(known.positions, values.tolist(), strict=True)
                if value == value and not 0 <= value <= 1
            ]
            if out:
                remarks.append(
                    f"{_of(group, said[setting])}: Rogan-Gladen is out of its range [0, 1] at "
                    f"{', '.join(out)}: the law of judgements there is not that of all positions."
                )
    return remarks


def _figures(
    groups: Sequence[_Group], said: Mapping[Setting, str], table: JudgedTable
) -> dict[str, PaperFigure]:
    """The figures of the paper that the claims allow, each with its setting named."""
    found = {group.name: group.tables for group in groups}
    figures: dict[str, PaperFigure] = {}

    def add(name: FigureName, setting: Setting, of: Mapping[str, ModelTables], what: str) -> None:
        asked = {model: tables for model, tables in of.items() if setting in tables.knowledge}
        if asked:
            stem, title = f"figure-{name}", f"{what}, in the form of Self-Known's figure {name}"
            if name not in ("2", "5"):
                title = f"{title} ({said[setting]})"
                stem = f"{stem}-{setting.value}" if len(table.settings) > 1 else stem
            figures[stem.replace("_", "-")] = paper_figure(
                name, asked, setting, f"{title}.", lambda each: said[each]
            )

    first = next(iter(table.settings))
    add("2", first, dict([next(iter(found.items()))]), "Self-knowledge by setting")
    for setting in table.settings:
        add("3", setting, found, "Factuality and σ by position")
        add("4", setting, found, "Self-knowledge by model")
        if len(found) > 1:
            add("6b", setting, found, "Self-Known and Self-Unknown by model")
    if table.has_sentences:
        add("5", first, found, "Unsupported claims per sentence")
    return figures
