"""Scores of probabilities against labels, with tests, figures and recalibration."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from calibration.estimate import Estimate
from calibration.intervals import IntervalSettings, Scale, mean_interval
from calibration.scores.measures import choose_k, entropy_warnings, f1_at_k
from calibration.scores.registry import REGISTRY, USUAL_SCORES, scores_named
from experiments.columns.claims import read_claims
from experiments.columns.options import ProbabilityColumns, TaughtSettings
from experiments.columns.sources import name_of
from experiments.columns.verdicts import (
    labels_of,
    mark_column,
    marks_by_model,
    posteriors_by_model,
)
from experiments.evaluators.convention_measures import (
    measure_names,
    scored_under,
    scores_under,
)
from experiments.findings.artifacts import PaperFigure
from experiments.findings.figures.reliability import reliability_figure
from experiments.findings.findings import Findings
from experiments.findings.table import (
    Column,
    Table,
    columns_as,
    data_frame,
    interval_column,
    named,
    with_note,
)
from experiments.findings.text import interval, number, p_value
from experiments.progress import tell
from experiments.settings import USUAL, Files, Names, Option, front_door
from experiments.settings.conventions import MeasureConventionSettings, note_of
from experiments.settings.inputs import graphs_of
from experiments.settings.limits import DrawnSettings, ErrorBins, Folds, Language, Replicates
from factormodels.aligned_claims import Alignment, with_verdicts_of
from factormodels.conventions import DEFAULT, Conventions
from factormodels.errors import InputError
from factormodels.extraction.language_model.accounting import total
from factormodels.fact_graph import FactGraph
from factormodels.io import read_many
from factormodels.io.source.opening import exists
from factormodels.io.tables.data_table import DataTable
from factormodels.metadata.recorded_verdicts import SECONDS_KEY, recorded_verdicts
from factormodels.metadata.stage_keys import CONSUMPTION_KEY
from factormodels.nouns import counted, counted_range, is_or_are

if TYPE_CHECKING:
    import pandas as pd

    from calibration.scoring import ScoreTable
    from experiments.columns.sources import Data
    from experiments.methods.explained_tools import ToolConventions


_COMPARED: Mapping[str, str] = MappingProxyType({"brier": "Brier", "auroc": "AUROC", "ece": "ECE"})
_COSTS = columns_as(
    "answers:1 calls | prompt_tokens:0 tokens in | completion_tokens:0 tokens out | cost:4 US$ | "
    "seconds:1"
)
_NOTHING = (math.nan, math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class Beside:
    """Claims that every tool judged, with the tools' posteriors.

    Attributes:
        table: a row per claim: response, claim, label and P(true) by each.
        models: the columns of P(true).
        alignments: alignment of each tool's claims.
        costs: mean cost of a response by model, for files that report costs.
        sentences: remarks.
        conventions: known conventions of the tools, by model.
        related: responses with their relations, by id.
    """

    table: DataTable
    models: tuple[str, ...]
    alignments: tuple[Alignment, ...]
    costs: Mapping[str, Mapping[str, float]]
    sentences: tuple[str, ...]
    conventions: Mapping[str, ToolConventions]
    related: Mapping[str, FactGraph]


def beside(data: Any, files: Sequence[Path], source: str, language: str | None = None) -> Beside:
    """Align responses with labels and the outputs of other tools for the same responses.

    Claims that some tool did not judge are left out, so that all tools are scored on the same
    claims.

    Args:
        data: responses: a file, the name of an embedded dataset, findings, or fact graphs.
        files: the outputs of the tools; the JSON files of a folder form a single output.
        source: name of the responses.
        language: code of the language of all claims; None detects it.

    Raises:
        InputError: if a file cannot be read or has no verdicts, or if no claim is judged by all
            tools.
    """
    # Imported here: these load the code that asks models, which other tables do not need.
    from experiments.methods.explained_tools import (
        as_verdicts,
        related_responses,
        tool_conventions,
    )

    for file in files:
        if not exists(file):
            raise InputError(f"--with {file}: there is no such file or folder; check the path")
    given: Any = data.graphs if isinstance(data, Findings) else data
    graphs: tuple[FactGraph, ...] = (
        graphs_of(given) if isinstance(given, str | os.PathLike) else tuple(given)
    )
    if not all(isinstance(graph, FactGraph) for graph in graphs):
        raise InputError("--with needs responses with claims and labels, not a table of numbers")
    alignments: list[Alignment] = []
    known_cost = _cost(graphs)
    costs: dict[str, Mapping[str, float]] = {}
    written = [_written(file) for file in files]
    outputs = [
        (file, [as_verdicts(each, str(file)) for each in others])
        for file, others in zip(files, written, strict=True)
    ]
    given_models = dict.fromkeys(
        name for graph in graphs for name in posteriors_by_model(graph, source)
    )
    conventions = tool_conventions(graphs)
    related = related_responses(graphs, written)
    for (file, others), stated, called in zip(
        outputs, map(tool_conventions, written), _names(given_models, outputs, data), strict=True
    ):
        aligned = with_verdicts_of(graphs, others, str(file), language, called)
        conventions |= {called[name]: each for name, each in stated.items() if name in called}
        alignments += aligned
        graphs = aligned[-1].graphs
        costs |= dict.fromkeys((each.name for each in aligned), _cost(others))
    by_response = {graph.id: posteriors_by_model(graph, source) for graph in graphs}
    judges = [name for by_model in by_response.values() for name in by_model]
    # Labels and posteriors of the responses come first: the others are compared with them.
    models = tuple(dict.fromkeys([*(name for name in given_models if name in judges), *judges]))
    rows: list[dict[str, Any]] = []
    marked: dict[str, None] = {}
    n_labeled = 0
    for graph in graphs:
        marks = marks_by_model(graph)
        marked |= dict.fromkeys(marks)
        labels = labels_of(graph)
        for atom in graph.atoms:
            n_labeled += atom.label is not None
            p = {name: by_response[graph.id].get(name, {}).get(atom.id) for name in models}
            if None not in p.values():
                ids = {"response": graph.id, "claim": atom.id, "label": labels[atom.id]}
                columns_of_marks = {mark_column(name): str(mark) for name, mark in marks.items()}
                rows.append({**ids, **p, **columns_of_marks})
    kept = sum(isinstance(row["label"], bool) for row in rows)
    if not kept or not models:
        tools = models or [each.name for each in alignments]
        if not n_labeled:
            raise InputError(
                f"{source}: no claim has a label; --with compares tools on labeled claims, so add "
                "a label to the claims"
            )
        raise InputError(
            f"{source}: no labeled claim is judged by all of {', '.join(tools)}; give a single "
            "--with at a time to see how many claims each tool shares"
        )
    scored = f"all {len(models)}" if len(models) > 1 else models[0]
    sentences = [
        f"The scores are over the {counted(kept, 'labeled claim')} of {n_labeled:,} that {scored} "
        "judged.",
        *(_aligned_sentence(each) for each in alignments),
    ]
    marks_of_models = [mark_column(name) for name in models if name in marked]
    columns = ("response", "claim", "label", *models, *marks_of_models)
    table = DataTable(source, "table", columns, tuple(rows), (None,) * len(rows))
    known = {name: costs.get(name, known_cost) for name in models}
    taken = {name: cost for name, cost in known.items() if cost}
    return Beside(
        *(table, models, tuple(alignments), taken, tuple(sentences)), conventions, related
    )


def _written(path: Path) -> list[FactGraph]:
    """Read a tool's output from a file, or from a folder with a JSON file for each response.

    In a folder that `assess` wrote, only one of the JSON files has responses.
    """
    assessed = path / "graphs.jsonl"
    if assessed.is_file():
        return read_many(assessed)
    if not path.is_dir():
        return read_many(path)
    files = sorted(each for each in path.rglob("*") if each.suffix in (".json", ".jsonl"))
    if not files:
        raise InputError(f"{path}: the folder contains no JSON file; name the tool's output")
    return [graph for file in files for graph in read_many(file)]


def _names(
    taken: Iterable[str], outputs: Sequence[tuple[Path, Sequence[FactGraph]]], data: Any
) -> list[dict[str, str]]:
    """Unique names of the assessors of each output, by their original names.

    If an assessor has several outputs, its name includes the file: "factscore (monday)".

    Args:
        taken: names of assessors in the responses themselves.
        outputs: files of tools with their contents.
        data: the responses; the name of their file is reserved too.
    """
    assessors = [
        list(dict.fromkeys(name for graph in written for name in recorded_verdicts(graph)))
        for _, written in outputs
    ]
    counts = Counter([*taken, *(name for names in assessors for name in names)])
    beside = [Path(data)] if isinstance(data, str | os.PathLike) else []
    files = shortest_names([*beside, *(file for file, _ in outputs)])[len(beside) :]
    return [
        {name: f"{name} ({file})" if counts[name] > 1 else name for name in names}
        for names, file in zip(assessors, files, strict=True)
    ]


def shortest_names(files: Sequence[Path]) -> list[str]:
    """Names of files: the first of stem, name, folders and path that distinguishes all files."""
    choices = [
        [
            *(file.stem, file.name),
            *(folder.name for folder in file.parents if folder.name),
            *("/".join(file.parts[-n:]) for n in range(2, len(file.parts) + 1)),
        ]
        for file in files
    ]
    counts = Counter(name for names in choices for name in set(names))
    return [next((name for name in names if counts[name] == 1), names[-1]) for names in choices]


def _cost(graphs: Sequence[FactGraph]) -> dict[str, float]:
    """Mean cost of responses that report it; empty if none does."""
    taken = [total(graph.metadata.get(CONSUMPTION_KEY, {}).values()) for graph in graphs]
    asked = [each for each in taken if each["answers"]]
    # An answer with an unknown price would count as free.
    priced = [each for each in asked if not each["unpriced"]]
    row = {
        key: _mean_of([each[key] for each in asked])
        for key in ("answers", "prompt_tokens", "completion_tokens")
    }
    row["cost"] = _mean_of([each["cost"] for each in priced])
    row["seconds"] = _mean_of(
        [seconds for each in graphs if (seconds := each.metadata.get(SECONDS_KEY))]
    )
    return {key: value for key, value in row.items() if not math.isnan(value)}


def _mean_of(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _aligned_sentence(each: Alignment) -> str:
    order = " Its responses are matched only by order." if each.by_order else ""
    how = "by their ids, because texts are missing" if each.by_id else "by their words"
    equality = (
        f" Of these {each.n_claims:,}, {each.n_compared_for_equality:,} were compared only for "
        "equality, because the negations of their language are unknown; name a known language "
        "with --language."
        if each.n_compared_for_equality
        else ""
    )
    return (
        f"{each.name} judges {counted(each.n_others, 'claim')}; {each.n_aligned:,} of "
        f"{counted(each.n_claims, 'claim')} here {is_or_are(each.n_aligned)} among them, "
        f"{how}, in {counted(each.n_responses, 'response')}.{equality}{order}"
    )


def tools_table(others: Beside, scored: ScoreTable, conventions: Conventions = DEFAULT) -> Table:
    """Table with a row per tool: scores on the same claims, and mean cost of a response.

    Each measure has its difference from the reference, paired by response. Only claims that all
    tools judged count for K.

    Args:
        others: claims that every tool judged.
        scored: scores of these claims.
        conventions: conventions of the measures.
    """
    reference = scored.reference
    left_out = conventions.irrelevant_claims == "left-out"
    kept = [row for row in others.table.rows if isinstance(row["label"], bool) or not left_out]
    claims = data_frame(kept).groupby("response", sort=False)
    k = choose_k(conventions.k, claims.size().to_numpy())
    values_by_model = {
        model: {
            "precision": [float((p > 0.5).mean()) for _, p in claims[model]],
            "f1_at_k": [
                f1_at_k(p.to_numpy(dtype=float), of_response)
                for (_, p), of_response in zip(claims[model], k, strict=True)
            ],
        }
        for model in others.models
    }
    by_model = {each.name: each for each in scored.models}
    shown = {name: title for name, title in _COMPARED.items() if name in by_model[reference].scores}
    rows = []
    for model in others.models:
        line: dict[str, Any] = {"model": model, "n_responses": len(claims)}
        scores, apart = by_model[model].scores, by_model[model].differences
        for name in shown:
            line |= named(name, _ends(scores.get(name)))
            line |= named(f"{name}_difference", _ends(apart.get(name)))
        for name, values in values_by_model[model].items():
            line |= named(name, mean_interval(values))
            differs = np.subtract(values, values_by_model[reference][name])
            ends = _NOTHING if model == reference else mean_interval(differs, scale=Scale.NUMBER)
            line |= named(f"{name}_difference", ends)
        rows.append(line | dict(others.costs.get(model, {})))
    frame = data_frame(rows)
    columns = [*columns_as("model")]
    for name, title in (*shown.items(), ("precision", "Pr"), ("f1_at_k", "F1@K")):
        columns.append(interval_column(name, title, 3))
        if len(others.models) > 1:
            columns.append(interval_column(f"{name}_difference", f"{title} minus {reference}", 3))
    columns += [column for column in _COSTS if column.name in frame]
    known_k = f" (K = {k[0]:g})" if np.ptp(k) == 0 else ""
    several = len(others.models) > 1
    without = " A difference without an interval is the same in every response." * several
    return Table(
        frame,
        tuple(columns),
        f"Each tool on the same claims: {', '.join([*shown.values(), 'Pr'])} and F1@K, the last "
        f"two as means over responses{known_k}, and mean cost of a response.{without}",
        note=f"Differences from {reference} are paired by response, with 95% intervals. Costs come "
        "from the files: calls, tokens and prices in factormodels' assessments, seconds in "
        "FactReasoner's outputs.",
    )


def _ends(estimate: Estimate | None) -> tuple[float, float, float]:
    return _NOTHING if estimate is None else (estimate.value, estimate.lower, estimate.upper)


def aligned_table(alignments: Sequence[Alignment]) -> Table:
    """Table of the alignment of each tool's claims."""
    rows = [
        {
            "tool": each.name,
            "file": each.source,
            "others": each.n_others,
            "claims": each.n_claims,
            "aligned": each.n_aligned,
            "responses": each.n_responses,
            "equality": each.n_compared_for_equality,
        }
        for each in alignments
    ]
    return Table(
        data_frame(rows),
        columns_as(
            "tool | file | others:0 its claims | claims:0 claims here | aligned:0 | responses:0 | "
            "equality:0 for equality alone"
        ),
        "Claims of other tools that match claims here.",
        note="Aligned one to one by words; claims that differ in a number, a negation or a word "
        "such as 'before' do not match. If the negations of a language are unknown, claims are "
        "compared only for equality.",
    )


class ScoreSettings(
    MeasureConventionSettings,
    DrawnSettings,
    TaughtSettings,
    ProbabilityColumns,
):
    """Scores.

    Options of `score`.
    """

    usual_output: ClassVar = frozenset({"rename", "venue"})

    beside: Annotated[Files, Option("FILE", "with", usual=True)] = ()
    """Output for the same responses from another tool or from assess: FactReasoner, FActScore,
    VeriScore, SAFE, LM-Polygraph, MiniCheck, assess; a file, or a folder of JSON files; repeatable.
    The data are then responses with claims and labels.
    """

    language: Language = None

    scores: Annotated[Names, USUAL] = ()
    """Scores to compute, test and show, such as brier,auroc; the usual ones by default."""

    bins: ErrorBins = 10
    """Bins of the calibration errors: of equal width for ece, mce and ace, of equal mass for
    ece_equal_mass and ece_debiased."""

    reference: Annotated[str | None, Option("NAME", usual=True)] = None
    """Model to test the others against; the first by default."""

    recalibrate: Annotated[Names, USUAL] = ()
    """Also recalibrate out of fold: platt, temperature, beta, isotonic, histogram, venn-abers, best
    (chosen within the folds)."""

    folds: Folds = 5
    """Number of folds of responses for --recalibrate."""

    resamples: Annotated[int, Field(ge=1)] = 2000
    """Number of permutations per test."""

    n_bootstrap: Replicates = 1000

    intervals: bool = False
    """Show the intervals in the table of scores too."""

    @property
    def interval_settings(self) -> IntervalSettings:
        """Settings of intervals."""
        return IntervalSettings(n_bootstrap=self.n_bootstrap, seed=self.seed)


@dataclass(frozen=True, eq=False)
class _Block:
    """Models that are scored on the same data.

    Attributes:
        name: name of the data; empty if there is only one dataset.
        frame: columns p, label, response, model and, if there are ids, claim.
        scored: their scores and tests.
    """

    name: str
    frame: pd.DataFrame
    scored: ScoreTable

    def of(self, model: str) -> pd.DataFrame:
        """Rows of a model."""
        return self.frame[self.frame["model"] == model]


@front_door
def score(data: Data, settings: ScoreSettings) -> Findings:
    """Score probabilities in any table against labels; no graph is needed.

    Shows a row per model, with intervals: the Brier score with its CORP decomposition, log loss,
    AUROC, calibration error, slope and intercept, accuracy and the area under the risk-coverage
    curve (AURC). Also shows paired tests between models on all scores, with corrected p-values, and
    draws reliability and risk-coverage diagrams. Columns with obvious names are recognized and
    reported.

    Examples::

        score("claims.csv", scores="brier,auroc,ece")
        score("claims.csv", p="confidence", label="truth", group="answer",
            recalibrate="platt,isotonic,best")
        score("results/compare/rows.parquet", by=["dataset", "backend_label"]).save("scores")
        score("labeled.jsonl", beside=["factscore.json", "safe.json"])

    Args:
        data: Probabilities and labels: CSV, TSV, Excel, Parquet, JSON Lines or JSON; one row per
            claim, or per claim and model. Or responses with verdicts: outputs of FactReasoner or of
            `factormodels assess`. Or a log of Inspect, promptfoo or lm-evaluation-harness. In
            Python also a data frame, records, or findings with claims.
        settings: options; in Python, pass the fields as keywords instead.

    Raises:
        InputError: if the data cannot be read, or an option does not fit them.
    """
    recalibrations = tuple(name.replace("_", "-") for name in settings.recalibrate)
    if recalibrations:
        _check_recalibrations(recalibrations)
    if settings.scores:
        scores_named(settings.scores, "--scores")
    if settings.language is not None and not settings.beside:
        raise InputError("--language applies only to --with; leave it out")
    conventions = settings.declared()
    files, language = settings.beside, settings.language
    others = beside(data, files, name_of(data), language) if files else None
    asked = settings
    if others is not None and not settings.p:
        asked = settings.model_copy(update={"p": others.models})
    claims = read_claims(data if others is None else others.table, asked, judges=True)
    claims = claims.without_taught(claims.has_label, settings)
    irrelevant = claims.frame["irrelevant"].astype(bool)
    lacking = {
        "irrelevant": bool(irrelevant.any()),
        "unlabeled": bool((claims.frame["label"].isna() & ~irrelevant).any()),
    }
    # Ignore warnings about a score that this command does not show.
    with entropy_warnings():
        claims = claims.under(conventions)
        parts, of_parts = claims.labeled_parts()
        remarks = [*claims.remarks, *of_parts]
        blocks = [_block(name, part, settings) for name, part in parts.items()]
    tables = {
        "scores": _scores(blocks, intervals=settings.intervals),
        "intervals": _intervals(blocks),
    }
    tested = _tests(blocks)
    if tested is not None:
        tables["tests"] = tested
    if recalibrations:
        with entropy_warnings():
            tables["recalibrated"] = _recalibrated(blocks, recalibrations, settings, remarks)
    sentences = [
        *(*_verdicts(blocks), *_agreement(blocks)),
        *(*_undefined(blocks), *_remarks_by_block(blocks), *remarks),
    ]
    if others is not None:
        from experiments.methods.explained_tools import explained_tools

        # Requested scores come first, followed by details.
        compared = tools_table(others, blocks[0].scored, conventions)
        explained, causes = explained_tools(
            others.table.rows, others.models, others.conventions, others.related
        )
        of_claims = {"aligned": aligned_table(others.alignments)}
        tables = {"tools": compared, **explained, **tables, **of_claims}
        sentences += [*causes, *others.sentences]
    shown = scores_under(settings.scores or USUAL_SCORES, conventions)
    measures = dict.fromkeys(("scores", "intervals", "tests", "recalibrated"), shown)
    measures["tools"] = (*_COMPARED, "precision", "f1_at_k")
    for name, of_table in measures.items():
        if name in tables:
            note = note_of(conventions, measure_names(of_table, **lacking))
            tables[name] = with_note(tables[name], note)
    return Findings(
        source=name_of(data),
        sentences=tuple(dict.fromkeys(sentences)),
        tables=tables,
        unshown=("explained_claims",),
        draw=lambda: _figures(blocks),
        tidy=lambda: _tidy(blocks),
    )


def _block(name: str, frame: pd.DataFrame, settings: ScoreSettings) -> _Block:
    from calibration.scoring import score as scores_of

    tell(f"scores {name}".strip())
    models = list(dict.fromkeys(frame["model"]))
    reference = settings.reference
    if reference is not None and reference not in models:
        raise InputError(
            f"--reference {reference}: this model is unknown; use one of "
            f"{', '.join(map(repr, models))}"
        )
    conventions = settings.declared()
    scored = scores_of(
        *("p", "label", "response"),
        data=frame,
        model="model",
        claim="claim" if "claim" in frame else None,
        scores=scores_under(settings.scores or USUAL_SCORES, conventions),
        reference=reference,
        n_resamples=settings.resamples,
        k=conventions.k,
        intervals=settings.interval_settings,
        n_bins=settings.bins,
        unlabeled=conventions.unlabeled,
    )
    return _Block(name, frame, scored_under(scored, conventions))


def _wide_rows(scored: ScoreTable) -> list[dict[str, Any]]:
    """A row per model with every score and its interval in SCORE_lower and SCORE_upper.

    SCORE_coverage is the simulated coverage of the interval if it differs from the level,
    SCORE_stars has the stars of the tests, and SCORE_text the formatted score with its stars.
    """
    return [
        {
            "model": model.name,
            "n_claims": model.n_claims,
            "n_unlabeled": model.n_unlabeled,
            "n_responses": model.n_responses,
            "n_extreme": model.n_extreme,
        }
        | {
            key: value
            for name, estimate in model.scores.items()
            for key, value in (
                *named(name, (estimate.value, *estimate.interval)).items(),
                (f"{name}_coverage", estimate.coverage),
                (f"{name}_status", str(estimate.status)),
            )
        }
        | {
            key: value
            for name, estimate in model.scores.items()
            for key, value in (
                (f"{name}_text", _text(estimate, scored.stars(model.name, name))),
                (f"{name}_stars", scored.stars(model.name, name)),
            )
        }
        for model in scored.models
    ]


_OF_A_MODEL = ("model", "n_claims", "n_responses")
"""Columns of a wide row besides the scores."""


def _beside(rows: Sequence[Mapping[str, Any]], scores: Iterable[str], kept: str) -> tuple[str, ...]:
    """Columns of wide rows that are neither scores nor names of the row."""
    numbers = {*_OF_A_MODEL, kept, *scores}
    return tuple(name for name in rows[0] if name not in numbers)


def _tidy(blocks: Sequence[_Block]) -> pd.DataFrame:
    """A row per data, model and score, with its interval."""
    return data_frame(
        [
            {
                "data": block.name,
                "model": model.name,
                "score": name,
                "value": estimate.value,
                "lower": estimate.lower,
                "upper": estimate.upper,
                "standard_error": estimate.standard_error,
                "n_claims": model.n_claims,
                "n_responses": estimate.n,
                "reason": estimate.reason or estimate.no_interval,
            }
            for block in blocks
            for model in block.scored.models
            for name, estimate in model.scores.items()
        ]
    )


def _score_columns(blocks: Sequence[_Block], *, intervals: bool) -> list[Column]:
    chosen = blocks[0].scored.models[0].scores
    heads = {name: REGISTRY[name].column or REGISTRY[name].title for name in chosen}
    return [
        Column(
            *(name, head),
            digits=3,
            lower=f"{name}_lower" if intervals else "",
            upper=f"{name}_upper" if intervals else "",
            stars=f"{name}_stars",
            note=_CORP_NOTE if name.startswith("corp_brier_") else "",
        )
        for name, head in heads.items()
    ]


_CORP_NOTE = "Brier = MCB − DSC + UNC: miscalibration, discrimination, uncertainty (CORP)."


def _text(estimate: Estimate, stars: str) -> str:
    if math.isinf(estimate.value):
        return "∞ (p is 0 or 1)"
    if math.isnan(estimate.value):
        return f"-- ({estimate.reason or estimate.status})"
    return f"{number(estimate.value)}{stars}"


def _scores(blocks: Sequence[_Block], *, intervals: bool) -> Table:
    rows = [{"data": block.name, **row} for block in blocks for row in _wide_rows(block.scored)]
    # In the file, scores come first, followed by their details.
    first = ("data", *_OF_A_MODEL, *blocks[0].scored.models[0].scores)
    rows = [{name: row[name] for name in dict.fromkeys((*first, *row))} for row in rows]
    columns = (
        *columns_as("model | n_claims:0 claims"),
        *_score_columns(blocks, intervals=intervals),
    )
    notes = [_brackets(blocks)] if intervals else []
    notes += [block.scored.stars_note for block in blocks if block.scored.tested]
    return Table(
        data_frame(rows),
        columns,
        f"Scores of {_sizes(blocks)}.",
        group="data" if len(blocks) > 1 else "",
        note=" ".join(dict.fromkeys(notes)),
        beside=_beside(rows, blocks[0].scored.scores, "data" if len(blocks) > 1 else ""),
    )


def _sizes(blocks: Sequence[_Block]) -> str:
    """Numbers of claims and responses behind a row of scores, in words."""
    models = [model for block in blocks for model in block.scored.models]
    claims = counted_range([model.n_claims for model in models], "claim")
    return f"{claims} of {counted_range([model.n_responses for model in models], 'response')}"


def _brackets(blocks: Sequence[_Block]) -> str:
    """Note on the intervals of a table."""
    return f"In brackets: {100 * blocks[0].scored.level:g}% intervals over responses."


_COVERS = (
    " Covers: coverage in simulations with the same number of responses, if it differs "
    "from the level."
)


def _intervals(blocks: Sequence[_Block]) -> Table:
    rows: list[dict[str, Any]] = [
        {
            "of": ": ".join(filter(None, (block.name, model.name))),
            "score": name,
            "title": REGISTRY[name].title,
            "value": estimate.value,
            "lower": estimate.lower,
            "upper": estimate.upper,
            "coverage": estimate.coverage,
            "reason": f"no interval, since {why}"
            if (why := estimate.no_interval)
            else estimate.reason,
        }
        for block in blocks
        for model in block.scored.models
        for name, estimate in model.scores.items()
    ]
    measured = any(not math.isnan(row["coverage"]) for row in rows)
    columns = (
        *columns_as("title score | value:3[]"),
        *(columns_as("coverage:2 covers") if measured else ()),
    )
    note = _brackets(blocks) + (_COVERS if measured else "")
    return Table(
        data_frame(rows),
        columns,
        f"Scores of {_sizes(blocks)}, with intervals.",
        group="of",
        note=note + _reasons(rows),
    )


def _reasons(rows: Sequence[Mapping[str, Any]]) -> str:
    """Sentences for a note: what scores lack or how they were computed, and why.

    A reason that holds for a score in every block of rows is stated without the blocks.
    """
    every: dict[str, list[str]] = {}
    having: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        every.setdefault(row["title"], []).append(row["of"])
        if row["reason"]:
            having.setdefault(row["reason"], {}).setdefault(row["title"], []).append(row["of"])
    return "".join(
        f" {', '.join(_of_some(title, of, every[title]) for title, of in titles.items())}: "
        f"{reason}."
        for reason, titles in having.items()
    )


def _of_some(title: str, of: Sequence[str], every: Sequence[str]) -> str:
    """The title of a score and, unless they are all, the blocks of rows that have it."""
    return title if len(of) == len(every) else f"{title} ({_some(of, '; ')})"


def _tests(blocks: Sequence[_Block]) -> Table | None:
    rows: list[dict[str, Any]] = [
        {
            "of": ": ".join(
                filter(None, (block.name, f"{model.name} minus {block.scored.reference}"))
            ),
            "method": model.name,
            "measure": name,
            "estimate": difference.first,
            "lower": model.scores[name].lower,
            "upper": model.scores[name].upper,
            "coverage": model.scores[name].coverage,
            **named("difference", (difference.value, *difference.interval)),
            "difference_coverage": difference.coverage,
            "n_responses": difference.n,
            "p_value": difference.p_value,
            "corrected": difference.corrected,
            "better": difference.better,
            "stars": block.scored.stars(model.name, name),
            "status": str(difference.status),
            "reason": difference.reason or model.scores[name].reason,
            "title": REGISTRY[name].title,
        }
        for block in blocks
        for model in block.scored.models
        for name, difference in model.differences.items()
    ]
    if not rows:
        return None
    measured = any(not math.isnan(row["difference_coverage"]) for row in rows)
    title, difference = columns_as("title score | difference:3±")
    columns = (
        *(title, replace(difference, stars="stars")),
        *(columns_as("difference_coverage:2 covers") if measured else ()),
        *columns_as("p_value> p | corrected>", p_value=p_value, corrected=p_value),
    )
    responses = counted_range([row["n_responses"] for row in rows], "response")
    starred = any(
        row["stars"] and row["difference_lower"] <= 0.0 <= row["difference_upper"] for row in rows
    )
    return Table(
        data_frame(rows),
        columns,
        f"Tests paired by response on the claims that all models have, of {responses}.",
        group="of",
        note="Permutation tests, Holm-corrected over all scores and models of the same data. In "
        "brackets: intervals of the difference."
        + (_COVERS if measured else "")
        + (_STARRED * starred)
        + _reasons(rows),
    )


_STARRED = (
    " Stars are of the permutation test, which can be significant where the interval, which is "
    "from resampled responses, contains 0."
)


def _check_recalibrations(asked: Sequence[str]) -> None:
    from calibration.recalibration import RECALIBRATORS

    offered = [name.replace("_", "-") for name in RECALIBRATORS]
    for name in asked:
        if name not in offered:
            raise InputError(
                f"--recalibrate {name}: this method is unknown; use some of {', '.join(offered)}"
            )


def _recalibrated(
    blocks: Sequence[_Block],
    names: Sequence[str],
    settings: ScoreSettings,
    remarks: list[str],
) -> Table:
    """Scores of recalibrated probabilities, with maps that were learned on other responses."""
    from calibration.recalibration import AS_GIVEN, recalibrations
    from calibration.scoring import score as scores_of

    rows: list[dict[str, Any]] = []
    conventions = settings.declared()
    for block in blocks:
        for model in dict.fromkeys(block.frame["model"]):
            part = block.of(model)
            of = ": ".join(filter(None, (block.name, model)))
            tell(f"{of}: {', '.join(names)}")
            p, y, groups = (
                part[name].to_numpy(dtype=object) for name in ("p", "label", "response")
            )
            maps = recalibrations(p, y, groups, names, n_folds=settings.folds, seed=settings.seed)
            scored = scores_of(
                *(maps.p, y, groups),
                folds=maps.folds,
                scores=scores_under(settings.scores or USUAL_SCORES, conventions),
                reference=AS_GIVEN,
                n_resamples=settings.resamples,
                k=conventions.k,
                intervals=settings.interval_settings,
                n_bins=settings.bins,
                unlabeled=conventions.unlabeled,
            )
            scored = scored_under(scored, conventions)
            remarks += [f"{of}: {each}" for each in maps.missing]
            rows += [{"of": of, **row} for row in _wide_rows(scored)]
    return Table(
        data_frame(rows),
        (Column("model", "recalibration"), *_score_columns(blocks, intervals=False)),
        "Recalibrated probabilities, with maps that were learned on other responses.",
        group="of",
        note=(
            "Stars: paired tests against the given probabilities. best is chosen within the "
            "folds, so that no claim influences its own map. AUROC compares claims of the same "
            "fold."
        ),
        beside=_beside(rows, blocks[0].scored.scores, "of"),
    )


def _verdicts(blocks: Sequence[_Block]) -> list[str]:
    """Sentences on the model with the best Brier score for each data, and its certainty."""
    sentences = []
    for block in blocks:
        models, scored = block.scored.models, block.scored
        if "brier" not in models[0].scores:
            continue
        of = f"{block.name}: " if block.name else ""
        if len(models) == 1:
            (model,) = models
            estimate = model.scores["brier"]
            known = "" if math.isnan(estimate.lower) else f" {interval(*estimate.interval)}"
            base_rate = model.scores.get("corp_brier_uncertainty")
            always = (
                f"; constantly predicting the base rate has {number(base_rate.value)}"
                if base_rate
                else ""
            )
            sentences.append(
                f"{of}{model.name} has a Brier score of {number(estimate.value)}{known} on "
                f"{counted(model.n_claims, 'claim')} of "
                f"{counted(model.n_responses, 'response')}{always}."
            )
            continue
        best = min(models, key=lambda model: model.scores["brier"].value)
        lowest = number(best.scores["brier"].value)
        text = f"{of}{best.name} has the lowest Brier score, {lowest}"
        if scored.tested:
            marked = {
                how: [
                    model.name
                    for model in models
                    if scored.stars(model.name, "brier")
                    and model.differences["brier"].better is better
                ]
                for how, better in (("better", True), ("worse", False))
            }
            verdicts = [
                f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} significantly {how}"
                for how, names in marked.items()
                if names
            ]
            apart = best.name != scored.reference
            none = f"{'none' if apart else 'no other'} is significantly better or worse"
            than = f" than {scored.reference}" if apart else ""
            text += f"; {' and '.join(verdicts) or none}{than}"
        sentences.append(f"{text}.")
    return sentences


def _agreement(blocks: Sequence[_Block]) -> list[str]:
    """Remarks on models with equal probabilities for the same claims."""
    from calibration.cells import SAME_POSTERIORS, agreeing, cells_of

    sentences = []
    for block in blocks:
        if not block.scored.tested:
            # Their claims cannot be paired.
            continue
        claim = "claim" if "claim" in block.frame else None
        cells = cells_of(block.frame, "model", label="label", response="response", claim=claim)
        alike = [
            _some([cells[at].named["model"] for at in group.positions], " = ")
            for group in agreeing(cells).groups
            if len(group.positions) > 1
        ]
        if alike:
            of = f"{block.name}: " if block.name else ""
            sentences.append(
                f"{of}{_some(alike, '; ')}: their probabilities never differ by more than "
                f"{SAME_POSTERIORS:g}."
            )
    return sentences


def _some(names: Sequence[str], between: str) -> str:
    more = [f"{len(names) - 4:,} more"] if len(names) > 4 else []
    return between.join([*names[:4], *more])


def _undefined(blocks: Sequence[_Block]) -> list[str]:
    """Remarks on scores without a finite value, with the reason."""
    models_by_reason: dict[tuple[str, str], list[str]] = {}
    for block in blocks:
        for model in block.scored.models:
            for name, estimate in model.scores.items():
                if not math.isfinite(estimate.value):
                    key = (REGISTRY[name].title, estimate.reason or estimate.status)
                    of = ", ".join(filter(None, (block.name, model.name)))
                    models_by_reason.setdefault(key, []).append(of)
    return [
        f"{title} has no finite value, because {reason}: "
        f"{'; '.join(models[:4])}{f' and {len(models) - 4} more' if len(models) > 4 else ''}."
        for (title, reason), models in models_by_reason.items()
    ]


def _remarks_by_block(blocks: Sequence[_Block]) -> list[str]:
    """Sentences of the reports, without repeating a sentence that all data share.

    Remarks that concern only intervals are in the note of their table.
    """
    from calibration.estimate import ABOVE_INTERVAL
    from calibration.scores.coverage import COVERS

    return [
        f"{block.name}: {remark}" if block.name and "without a label" in remark else remark
        for block in blocks
        for remark in block.scored.remarks
        if remark != block.scored.stars_note or not block.scored.tested
        if not remark.startswith(("In brackets", ABOVE_INTERVAL, COVERS))
    ]


def _figures(blocks: Sequence[_Block]) -> dict[str, PaperFigure]:
    """Reliability diagram and risk-coverage curve for each data."""
    from calibration.figures import risk_coverage_figure

    figures: dict[str, PaperFigure] = {}
    for block_number, block in enumerate(blocks, 1):
        n_models = len(block.scored.models)
        reliability, risks = block.scored.curves()
        suffix = f"-{block_number}" if len(blocks) > 1 else ""
        of = block.name
        if n_models > len(risks):
            chosen = f"the {len(risks)} of {counted(n_models, 'model')} with the lowest Brier score"
            of = ", ".join(filter(None, (of, chosen)))
        title = ": ".join(filter(None, ("Reliability", of)))
        shown = reliability_figure(reliability, block.scored.bins(), title)
        figures[f"reliability{suffix}"] = shown
        rows = [
            {"model": model, "coverage": row["coverage"], "risk": row["risk"]}
            for model, curve in risks.items()
            for row in curve.rows()
        ]
        title = ": ".join(filter(None, ("Risk-coverage curve", of)))
        same = all(len({round(risk, 9) for risk in curve.risk}) == 1 for curve in risks.values())
        figures[f"risk-coverage{suffix}"] = PaperFigure(
            risk_coverage_figure(risks),
            data_frame(rows),
            title,
            "the risk is the same at every coverage" if same else "",
        )
    return figures
