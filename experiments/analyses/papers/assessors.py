"""Graph-based and prompt-based assessors side by side, in the form of FactReasoner's tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from calibration.significance import paired_t_test
from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.shared.assessor_measures import (
    DIRECTIONS,
    PROMPTS,
    Assessed,
    assessed,
)
from experiments.analyses.papers.shared.loading import load_evidence
from experiments.analyses.papers.shared.published import (
    Published,
    printed,
    records,
    rows_of,
    with_published,
)
from experiments.analyses.papers.shared.sources import SourceName
from experiments.findings.artefacts import Artefacts
from experiments.findings.table import Column, Table, data_frame, text_columns
from experiments.study.config import STRICT, BackendName, Count, Encoding, Variant, known
from factormodels.claims import Relation, RelationKind
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    import pandas as pd

SIGNIFICANT = 0.05
"""The p-value below which the best is in bold."""

Judged = Mapping[str, Mapping[str, Assessed]]
"""What assessors say of the responses, by language model and assessor."""


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        data: name of the responses.
        dataset: name of the dataset in the printed tables.
        source: name of the knowledge source there.
        tables: the printed tables, each by its number; with standard deviations where it has them.
        tests: number of the printed table of tests; empty: there is none.
        calibration: whether to table the Brier scores of the graph-based assessors (C.2).
        models: the language models, in the order of the tables.
        labelled: whether there are measures against labels.
        claims: "all", or "conflicts": single true claims with evidence on both sides, by the
            relations that are recorded.
        prompts: the assessors by a prompt, by their names in the tables.
        variants: the graph-based assessors.
        encoding: encoding of relations.
        backend: the algorithm.
        k: K of F1@K.
        published: the numbers that stand in the table of published ones.
        data_file: file that says where data are; None: the default one, if it exists.
    """

    __pydantic_config__: ClassVar = STRICT

    data: SourceName
    dataset: str
    source: str
    tables: Annotated[tuple[str, ...], Field(min_length=1)]
    tests: str = ""
    calibration: bool = False
    models: tuple[str, ...] = (
        "granite-3.0-8b-instruct",
        "llama-3.1-70b-instruct",
        "mixtral-8x22b-instruct",
    )
    labelled: bool = True
    claims: Literal["all", "conflicts"] = "all"
    prompts: tuple[Annotated[str, known(lambda: PROMPTS, "assessor")], ...] = ("FS", "FV", "VS")
    variants: tuple[Variant, ...] = ("FR1", "FR2", "FR3")
    encoding: Encoding = "implication"
    backend: BackendName = "auto"
    k: Literal["median", "half"] | Count = "median"
    published: tuple[Published, ...] = ()
    data_file: str | None = None


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """The tables of the measures, of their tests and of the calibration."""
    evidence = load_evidence(
        settings.data,
        settings.models,
        context,
        data_file=settings.data_file,
        change=lambda graphs: _chosen(graphs, settings),
    )
    for block in evidence.blocks:
        if settings.labelled and not any(
            atom.label is not None for graph in block.graphs for atom in graph.atoms
        ):
            raise InputError(
                f"{settings.data}, {block.model}: no claim has a label; give labelled data, "
                "or settings.labelled=false"
            )
    found = {}
    with context.track("blocks", len(evidence.blocks)) as advance:
        for block in evidence.blocks:
            found[block.model] = assessed(
                block,
                settings.prompts,
                settings.variants,
                encoding=settings.encoding,
                backend=settings.backend,
                k=settings.k,
            )
            advance()
    tables = {
        f"table-{number}": _table(number, settings, found, evidence.remark)
        for number in settings.tables
    }
    if settings.tests:
        tables[f"table-{settings.tests}"] = _tests(settings, found, evidence.remark)
    if settings.calibration:
        tables["calibration"] = _calibration(settings, found, evidence.remark)
    return with_published(tables, settings.published, evidence.remark)


def _chosen(graphs: Iterable[FactGraph], settings: Settings) -> Sequence[FactGraph]:
    chosen = list(graphs)
    if settings.claims == "conflicts" and any(graph.relations for graph in chosen):
        return conflicting_claims(chosen)
    return chosen


_COLUMNS = {
    "supported": ("#S", r"\#S", 0),
    "contradicted": ("#C", r"\#C", 0),
    "undecided": ("#U", r"\#U", 0),
    "precision": ("Pr", r"$\mathit{Pr}$", 2),
    "f1": ("F1", "F1", 2),
    "f1_at_k": ("F1@K", "F1@$K$", 2),
    "mae": ("MAE", "MAE", 2),
    "entropy": ("E", r"$\mathcal{E}$", 2),
    "accuracy": ("accuracy", "Accuracy", 2),
}


def _measures(settings: Settings) -> tuple[str, ...]:
    if settings.claims == "conflicts":
        return ("accuracy",)
    with_labels = {"f1", "mae"} if settings.labelled else set()
    plain = {"supported", "contradicted", "undecided", "precision", "f1_at_k", "entropy"}
    return tuple(name for name in _COLUMNS if name in plain | with_labels)


def _table(number: str, settings: Settings, found: Judged, remark: str) -> Table:
    """Our blocks, then the printed ones, with the columns of the printed table."""
    measures = _measures(settings)
    theirs = rows_of(printed("factreasoner_tables"), table=number)
    detailed = bool(theirs["sd"].notna().any())
    rows: list[dict[str, Any]] = []
    for model, judged in found.items():
        best = {name: _best(judged, name) for name in measures if name in DIRECTIONS}
        for assessor, one in judged.items():
            frame = one.measures()
            row = {
                **{"origin": "ours", "model": model, "assessor": assessor},
                **{"responses": len(frame), "missing": one.missing},
            }
            for name in measures:
                # Of no value the mean is nan, and of a single one the standard deviation.
                row[name] = frame[name].mean()
                row[f"{name}_sd"] = frame[name].std(ddof=1)
                row[f"{name}_best"] = best.get(name) == assessor
            rows.append(row)
    for key, group in theirs.groupby(["model", "assessor"], sort=False):
        own = {one["measure"]: one for one in records(group)}
        row = {"origin": "printed", **dict(zip(("model", "assessor"), key, strict=True))}
        for name in measures:
            value = own.get(name, {})
            row |= {name: value.get("mean", math.nan), f"{name}_sd": value.get("sd", math.nan)}
            row[f"{name}_best"] = False
        rows.append(row)
    frame = _with_blocks(data_frame(rows))
    columns = [Column("assessor", "assessor", "Assessor")]
    for name in measures:
        title, latex, digits = _COLUMNS[name]
        pairs = zip(frame[name], frame[f"{name}_sd"], strict=True)
        frame[f"{name}_text"] = [_with_sd(mean, sd, digits) for mean, sd in pairs]
        columns.append(
            Column(f"{name}_text", title, latex, right=True, bold=f"{name}_best")
            if detailed
            else Column(name, title, latex, digits=digits, bold=f"{name}_best")
        )
    caption = (
        f"FactReasoner, table {number}: {settings.dataset}, evidence from {settings.source}; "
        f"means over responses{' and standard deviations' if detailed else ''}. {remark}"
    )
    note = (
        "Bold: the best of a block of ours, where a paired t-test over responses tells it from "
        f"the next (p < {SIGNIFICANT:g}). E is -P log10 P, which falls again below P = 1/e: it "
        "does not order responses by truth, and is never in bold."
    )
    return Table(
        frame, tuple(columns), caption, group="block", note=f"{note}{_missing_note(found)}"
    )


def _missing_note(found: Judged) -> str:
    """What is said of claims without a verdict: how many, and why the first of them."""
    parts = [
        f" {assessor} of {model} has no verdict on {one.missing} of "
        f"{sum(len(graph.atoms) for graph in one.graphs)} claims ({one.reason})."
        for model, judged in found.items()
        for assessor, one in judged.items()
        if one.missing
    ]
    return "".join(parts) and f"{''.join(parts)} Tests leave a claim out on both sides."


def _with_blocks(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows with the headings of their blocks: a model, ours apart from what the paper prints."""
    pairs = zip(frame["origin"], frame["model"], strict=True)
    frame["block"] = [
        model if origin == "ours" else f"{model}, as the paper prints it" for origin, model in pairs
    ]
    return frame


def _best(judged: Mapping[str, Assessed], name: str) -> str | None:
    """The assessor that is significantly the best, if one is."""
    means = {
        assessor: DIRECTIONS[name] * mean
        for assessor, one in judged.items()
        if not math.isnan(mean := one.measures()[name].mean())
    }
    ranked = sorted(means, key=lambda assessor: -means[assessor])
    if len(ranked) < 2:
        return None
    # Two-sided: which of the two is first was chosen by the same responses that test it.
    p_value = _p_value(judged[ranked[0]], judged[ranked[1]], name, "two-sided")
    return ranked[0] if p_value is not None and p_value < SIGNIFICANT else None


def _p_value(one: Assessed, other: Assessed, name: str, alternative: str) -> float | None:
    """The p-value of a paired test over the claims on which both have a verdict."""
    import pandas as pd

    sides = {"one": one.measures(other)[name], "other": other.measures(one)[name]}
    both = pd.concat(sides, axis=1).dropna()
    if len(both) < 2:
        return None
    test = paired_t_test(both["one"], both["other"], alternative=alternative)
    return test.p_value if test.p_value == test.p_value else None


def _tests(settings: Settings, found: Judged, remark: str) -> Table:
    """One-sided paired t-tests of FR2 against the others, beside the printed p-values."""
    measures = ("precision", "f1", "mae") if settings.labelled else ("precision", "f1_at_k")
    theirs = rows_of(printed("factreasoner_tests"), table=settings.tests)
    blocks = [("ours", model) for model in found]
    blocks += [("printed", model) for model in theirs["model"].unique()]
    keys = ("origin", "model", "against", "comparison")
    rows = []
    for (origin, model), against in itertools.product(blocks, settings.prompts):
        row: dict[str, Any] = dict(
            zip(keys, (origin, model, against, f"FR2 vs {against}"), strict=True)
        )
        for name in measures:
            if origin == "printed":
                here = rows_of(theirs, model=model, against=against, measure=name)["p_value"]
                row[name] = float(here.iloc[0]) if len(here) else None
            elif {against, "FR2"} <= found[model].keys():
                better = "greater" if DIRECTIONS[name] > 0 else "less"
                row[name] = _p_value(found[model]["FR2"], found[model][against], name, better)
        rows.append(row)
    # Without prompt-based assessors there is nothing to compare, and the table is empty.
    frame = data_frame(rows, [*keys, *measures])
    frame[list(measures)] = frame[list(measures)].astype(float)
    columns = [Column("comparison", "assessors", "Assessors")]
    columns += [Column(name, *_COLUMNS[name][:2], digits=4) for name in measures]
    caption = (
        f"FactReasoner, table {settings.tests}: one-sided p-values of FR2 against the others. "
        f"{remark}"
    )
    note = "Ours: paired t-tests over responses, not corrected for their number."
    return Table(_with_blocks(frame), tuple(columns), caption, group="block", note=note)


def _calibration(settings: Settings, found: Judged, remark: str) -> Table:
    """The Brier scores of the graph-based assessors, means over responses."""
    rows = []
    for model, judged in found.items():
        for assessor in settings.variants:
            values = judged[assessor].measures()["brier"]
            rows.append(("ours", model, assessor, values.mean(), values.std(ddof=1)))
    theirs = rows_of(printed("factreasoner_tables"), table="C.2")
    for row in records(theirs):
        rows.append(("printed", row["model"], row["assessor"], row["mean"], row["sd"]))
    frame = data_frame(rows, ["origin", "model", "assessor", "brier", "brier_sd"])
    columns = (
        *text_columns("origin", "model", "assessor"),
        Column("brier", "Brier score", digits=3),
        Column("brier_sd", "standard deviation", digits=3),
    )
    caption = f"FactReasoner, C.2: Brier scores of responses, means over them. {remark}"
    return Table(frame, columns, caption)


def _with_sd(mean: float, sd: float, digits: int) -> str:
    if mean != mean:
        return "-"
    return f"{mean:.{digits}f}" if sd != sd else f"{mean:.{digits}f} ± {sd:.{digits}f}"


def conflicting_claims(graphs: Iterable[FactGraph]) -> tuple[FactGraph, ...]:
    """True claims with evidence on both sides, each a response with two passages.

    Of the passages that entail a claim the most probable is kept, and of those that contradict it,
    with the relation between the two if there is one.
    """
    found = []
    for graph in graphs:
        contexts = {context.id: context for context in graph.contexts}
        for atom in graph.atoms:
            if atom.label is not True:
                continue
            sides = [_strongest(graph, atom.id, kind) for kind in _SIDES]
            ends = [side.source for side in sides if side is not None]
            if len(set(ends)) < len(_SIDES):
                continue
            kept = {atom.id, *ends}
            found.append(
                replace(
                    graph,
                    id=f"{graph.id}-{atom.id}",
                    response=atom.text,
                    atoms=(atom,),
                    contexts=tuple(
                        replace(contexts[end], retrieved_for=(atom.id,)) for end in ends
                    ),
                    relations=tuple(
                        relation
                        for relation in graph.relations
                        if {relation.source, relation.target} <= kept
                    ),
                )
            )
    return tuple(found)


_SIDES = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION)


def _strongest(graph: FactGraph, atom: str, kind: RelationKind) -> Relation | None:
    context_ids = set(graph.context_ids)
    sides = [
        relation
        for relation in graph.relations
        if relation.target == atom and relation.kind is kind and relation.source in context_ids
    ]
    return max(sides, key=lambda relation: relation.probability, default=None)
