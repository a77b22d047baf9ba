"""Learn a judge from labeled responses, score it, and apply it to other responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from calibration.estimation import QUANTITIES, FoldJudges
from calibration.intervals import IntervalSettings
from calibration.learned_potentials import (
    RESPONSE,
    SENTENCE,
    FieldSettings,
    Judge,
    Shift,
    ShiftStatus,
    UserColumns,
    judged,
    learn_judge,
    read_judge,
)
from calibration.learned_potentials.columns import records_texts
from calibration.learned_potentials.harm import TOLERANCE, Harm
from calibration.learned_potentials.methods import (
    Learner,
    base_rate,
    boosted_trees,
    cross_fitted,
    field,
    fold_judges,
    labeled_folds,
    logistic,
    of_posteriors,
    recalibrated,
)
from calibration.learned_potentials.shift import FEWEST
from experiments.asking.relation_settings import RelationMethodSettings
from experiments.asking.settings import AskingSettings
from experiments.columns.frame import claim_row, long_frame
from experiments.columns.user_columns import UserTable, read_user_table
from experiments.columns.verdicts import AS_GIVEN
from experiments.findings.artifacts import PaperFigure
from experiments.findings.findings import CLAIMS, Findings, no_figures
from experiments.findings.table import Table, columns_as, data_frame, named, with_note
from experiments.findings.text import interval, labeled_sizes, number, p_value, some_of
from experiments.methods.estimate import EstimateSettings, estimates_by_judges
from experiments.methods.learned_judge import folds_sentence
from experiments.methods.relation_fit import fitted_relations
from experiments.methods.source_fit import KINDS as SOURCE_KINDS
from experiments.methods.source_fit import fitted_sources
from experiments.progress import tell
from experiments.settings import (
    USUAL,
    ColumnNames,
    Names,
    Option,
    Settings,
    declared_in,
    front_door,
    option_of,
)
from experiments.settings.conventions import graph_names, note_of
from experiments.settings.inputs import graphs_of, is_present_table, is_table
from experiments.settings.limits import DrawnSettings, ObjectiveName, Replicates, VariantName
from factormodels.conventions import DEFAULT
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.text_match import leaves_no_topic_out
from factormodels.fact_graph import FactGraph
from factormodels.metadata.learned_from import (
    LEARNED_FROM,
    LearnedFrom,
    joined_mark,
    relations_mark,
)
from factormodels.nouns import counted, is_or_are
from factormodels.variants import variant
from inference.batch import claim_posteriors

if TYPE_CHECKING:
    import pandas as pd

    from calibration.learned_potentials import ClaimTable
    from calibration.validation import Floats, Integers
    from experiments.columns.sources import Data
    from experiments.settings.inputs import Responses


FIELD = "field"
_SCORES = ("brier", "log_loss", "auroc")
_OF_BOTH = ("save", "relations", "folds")
"""Settings that learning a correction of relations also uses."""


class ColumnSettings(Settings):
    """Your own columns.

    Options that add columns of a table to those of the graphs.
    """

    table: Annotated[Path | None, Option("FILE", usual=True)] = None
    """Table with your own columns: a row per claim, identified by response and claim."""

    numbers: Annotated[ColumnNames, USUAL] = ()
    """Numeric column that the potential uses, from --table or a table of labeled claims;
    repeatable."""

    groups: ColumnNames = ()
    """Column of --table whose values define groups, for --causes; repeatable."""

    def user_table(self) -> UserTable | None:
        """Table of the user's columns; None without one.

        Raises:
            InputError: if the table cannot be read, no column is named, or a value is not a number.
        """
        if self.table is not None:
            if not (self.numbers or self.groups):
                raise InputError(
                    f"--table {self.table}: no column is named; give --numbers COLUMN, or "
                    "--groups COLUMN with --causes COLUMN"
                )
            return read_user_table(self.table, self.numbers, self.groups)
        if self.numbers or self.groups:
            raise InputError(
                "--numbers and --groups name columns of a table, and none is given; give "
                "--table FILE, or a table of labeled claims"
            )
        return None

    def own_responses(self, responses: Responses | Data, *, labeled: bool) -> UserTable | None:
        """Table of labeled claims with the columns of `numbers`; None for other data.

        Args:
            responses: input of the command.
            labeled: True if labels are required.

        Raises:
            InputError: as `read_user_table`.
        """
        if self.table is not None or not self.numbers or not _holds_rows(responses):
            return None
        data = cast("Data", responses)
        return read_user_table(data, self.numbers, self.groups, labels=labeled)


class FitSettings(DrawnSettings, ColumnSettings, RelationMethodSettings, AskingSettings):
    """Learning.

    Options of `fit`.
    """

    unusual: ClassVar = frozenset({"model", "api_base", "max_cost", "dry_run"})

    save: Annotated[Path | None, Option("FILE", writes=True, usual=True)] = None
    """Write the learned judge to this file (JSON)."""

    relations: Annotated[str | None, Option("NAME", usual=True)] = None
    """Learn a correction of this relation model instead, from labeled pairs: given (a table with
    probabilities), lexical, model, ..."""

    columns: Annotated[Names, USUAL] = ("evidence", "position", "texts")
    """Families of columns: evidence, position, neighbors (means over sentence and response), others
    (passages not retrieved for the claim), passages (words of topic and claim in their texts),
    texts (words and names of the claim in them), samples (relations of sampled answers). The family
    texts has the share of the claim's names in any passage of the response, and the share of its
    words in one sentence; it is left out if a response lacks texts and another family is given.
    Only samples uses sampled answers. Given alone, source, domain or kind instead learns a prior
    for each source or kind of context, for --prior."""

    causes: Names = ("sentence", "response")
    """Hidden causes, from the finest group to the coarsest: sentence, response, a column of
    --groups; none for no cause."""

    potential: Literal["linear", "small"] = "linear"
    """Function from columns to log odds; small: linear plus eight tanh units."""

    objective: ObjectiveName = "log_loss"
    """Objective to minimize: log loss or Brier score of each claim's posterior, or the negative
    joint log likelihood of all labels of a response.
    """

    penalty: Annotated[float | None, Field(ge=0, allow_inf_nan=False), Option("X")] = None
    """L2 penalty: multiplies half the squared weights of standardized columns; by default chosen in
    inner folds of responses."""

    coupling_penalty: Annotated[float, Field(ge=0, allow_inf_nan=False), Option("X")] = 10.0
    """L2 penalty on couplings: multiplies half the squared couplings of causes; shrinks couplings
    if responses are few."""

    variant: Annotated[VariantName, USUAL] = "FR1"
    """Relations that count as evidence for a claim."""

    folds: Annotated[int, Field(ge=0), USUAL] = 5
    """Number of folds of responses for scores on held-out responses; 0 for none."""

    members: Annotated[int, Field(ge=1)] = 3
    """Number of seeds to average over, for a nonlinear potential."""

    estimate: Annotated[Names, USUAL] = ()
    """Estimate these quantities over all claims, labeled or not, from the posteriors of the folds
    and the labels, as `factormodels estimate` does: share, mean-share, brier, f1-at-k, accuracy,
    auroc, ece, kept-precision, quantile."""

    def families(self, graphs: Sequence[FactGraph]) -> tuple[str, ...]:
        """Families of columns of some responses."""
        others = tuple(name for name in self.columns if name != "texts")
        return self.columns if records_texts(graphs) or not others else others

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels of causes; empty for `none`."""
        return tuple(name for name in self.causes if name != "none")

    def check_learner(self) -> None:
        """Refuse options of a judge if `relations` is given, and options of asking if it is not.

        Raises:
            InputError: for the first such option.
        """
        if self.relations is None:
            asked = (*AskingSettings.model_fields, *RelationMethodSettings.model_fields)
            unread, why = asked, "applies to relations from a model; give --relations too"
        else:
            unread = tuple(
                name
                for name, declared in (
                    (name, declared_in(FitSettings, name)) for name in FitSettings.model_fields
                )
                if declared in (FitSettings, ColumnSettings) and name not in _OF_BOTH
            )
            why = "applies to a judge, and --relations learns a correction; leave one out"
        for name in unread:
            if name in self.model_fields_set:
                raise InputError(f"--{option_of(FitSettings, name).name} {why}")

    @property
    def field(self) -> FieldSettings:
        """Settings for fitting the conditional random field."""
        return FieldSettings(
            self.potential,
            self.objective,
            self.penalty,
            self.coupling_penalty,
            self.members,
            seed=self.seed,
        )


@front_door
def fit(responses: Responses | Data, settings: FitSettings) -> Findings:
    """Learn a judge from labeled responses, and save it.

    The judge is a conditional random field. The log odds of a claim are a function of columns,
    linear by default (--potential). Hidden causes connect the claims of a sentence and of a
    response, and are summed out exactly. Shows scores of the judge and of baselines on held-out
    responses, then the learned parameters with standard errors over responses. --save writes the
    judge, with the names of the models that produced its evidence. --out B.jsonl writes the
    responses with the posteriors of the folds: no response's own labels trained its posteriors, so
    that `factormodels score` and `factormodels estimate` may use the same labels.

    With --relations it instead learns to correct a relation model's label bias: a weight and a
    constant for the log-probability of each relation. Shows accuracy, log loss and calibration
    error on held-out responses: uncorrected, corrected, and corrected by the mean answer.
    `factormodels assess --relation-correction FILE` applies it.

    With --columns domain (or source) it learns how reliable the passages of each site are. Shows a
    prior with its interval for each site, and compares scores on held-out responses with those of a
    single prior. With --columns kind it learns how reliable passages and sampled answers are.
    --save P.csv writes the priors for --prior P.csv.

    Examples::

        fit("factscore", save="judge.json")
        fit("graphs.jsonl", save="judge.json", potential="small",
            columns="evidence,position,neighbors")
        fit("graphs.jsonl", table="mine.csv", numbers="confidence",
            causes="sentence,response", save="judge.json")
        fit("graphs.jsonl").save("folds.jsonl")
        fit("votes.csv", numbers=["gpt", "llama"], save="judge.json")
        fit("linked.jsonl", columns="domain", save="priors.csv")
        fit("pairs.csv", relations="given", save="correction.json")
        fit("factcheck-GPT-benchmark.jsonl", relations="model", model="openai/NAME",
            save="correction.json")

    Args:
        responses: Labeled responses, or the name of an embedded dataset; or a table with response,
            claim and label, to learn from its --numbers alone, such as several models' scores. With
            --relations responses with human relations, or a table with claim, passage, human
            relation and probabilities of entailment, contradiction and neutral. In Python a table
            may also be a data frame, records, or findings with claims.
        settings: options; in Python, pass the fields as keywords instead.

    Raises:
        InputError: if they cannot be read, lack true or false labels, or the columns do not fit.
        MissingDependencyError: if PyTorch is not installed.
    """
    settings.check_learner()
    if settings.relations is not None:
        return fitted_relations(responses, settings)
    if not set(SOURCE_KINDS).isdisjoint(settings.columns):
        return fitted_sources(cast("Responses", responses), settings)
    source = str(responses) if isinstance(responses, str | Path) else "the responses"
    votes = settings.own_responses(responses, labeled=True)
    user_table = votes or settings.user_table()
    graphs = _graphs(responses) if votes is None else votes.graphs
    user_columns = None if user_table is None else user_table.columns
    families = settings.families(graphs)
    causes = settings.levels
    if votes is not None:
        # A table has no evidence; its claims are grouped only by response.
        families = families if "columns" in settings.model_fields_set else ()
        causes = causes if "causes" in settings.model_fields_set else (RESPONSE,)
    labeled = sum(any(atom.label is not None for atom in graph.atoms) for graph in graphs)
    if not labeled:
        raise InputError(f"{source}: no claim has a label; give labeled responses")
    if settings.folds == 1 or settings.folds > labeled:
        some = {1: "", 2: "2, or "}.get(labeled, f"2 to {labeled}, or ")
        raise InputError(
            f"{source}: --folds {settings.folds} does not fit {counted(labeled, 'response')} with "
            f"labels; give {some}0 for none"
        )
    for name in settings.estimate:
        if name not in QUANTITIES:
            raise InputError(unknown_name(f"--estimate {name}", name, QUANTITIES))
    if settings.estimate and not settings.folds:
        raise InputError(
            "--estimate needs posteriors of folds, since labels would count twice otherwise; "
            "give --folds 2 or more"
        )
    tell("learns from all responses")
    judge = learn_judge(
        graphs,
        settings.field,
        families=families,
        causes=causes,
        view=settings.variant,
        own=user_columns,
    )
    of, tables, sentences = labeled_sizes(graphs), {}, []
    cross_fit: tuple[FactGraph, ...] = ()
    frames: dict[str, Callable[[], pd.DataFrame]] = {}
    draw = no_figures
    if settings.folds:
        rows, sentence, predictions, judges = _out_of_fold(graphs, judge, settings, user_columns)
        others = LearnedFrom.OTHER_RESPONSES
        marks = [joined_mark(others, relations_mark(graph)) or others for graph in graphs]
        cross_fit = judged(graphs, predictions[FIELD], marks)
        frames = {CLAIMS: lambda: _claims(graphs, predictions[FIELD], marks)}
        as_given = any(row["model"] == _as_given(settings.variant) for row in rows)
        note = note_of(DEFAULT, graph_names([settings.variant])) if as_given else ""
        tables["scores"] = with_note(_scores_table(rows, of), note)
        sentences.append(sentence)
        judge = replace(judge, scores=tuple(rows))
        if settings.estimate:
            estimates = _estimates(graphs, predictions, judges, settings)
            tables |= estimates.tables
            sentences.append(folds_sentence(judge.table(graphs, user_columns), settings.folds))
            sentences += estimates.sentences
            draw = estimates.draw
    tables |= {"columns": _columns_table(judge, of), "causes": _causes_table(judge, of)}
    if votes is None and judge.families != settings.columns:
        sentences.append(f"{_without_texts(graphs)}: columns of texts are left out.")
    sentences += _unread_samples(graphs, judge.families)
    if not judge.field.converged:
        sentences.append("The optimizer did not converge; set --penalty, or use fewer columns.")
    sentences.append(
        f"Learned from {counted(len(judge.labels), 'labeled claim')} of "
        f"{counted(judge.law.n_responses, 'response')}, {100 * judge.share:.0f}% of them true; "
        f"columns: {', '.join((*judge.families, *judge.own_columns))}; "
        f"evidence: {'; '.join(map(str, judge.sources))}; penalty {judge.field.penalty:g}."
    )
    if user_table is not None and user_table.remark:
        sentences.append(user_table.remark)
    if settings.save is not None:
        judge.save(settings.save)
        sentences.append(f"The judge is in {settings.save}.")
    return Findings(
        *(source, tuple(sentences), tables),
        graphs=cross_fit,
        frames=frames,
        draw=draw,
        tidy=(lambda: _tidy_scores(judge.scores)) if settings.folds else None,
    )


def _as_given(variant: str) -> str:
    """Name of the posteriors of the graphs in a view, without learning.

    `AS_GIVEN` alone names posteriors under all relations, as in `score` and `estimate`.
    """
    return AS_GIVEN if variant == "given" else f"{variant} {AS_GIVEN}"


def _estimates(
    graphs: Sequence[FactGraph],
    predictions: Mapping[str, Floats],
    judges: FoldJudges,
    settings: FitSettings,
) -> Findings:
    """Estimates from the field's posteriors and, if relations give any, from those given."""
    asked = EstimateSettings(quantities=settings.estimate)
    names = [name for name in (FIELD, _as_given(settings.variant)) if name in predictions]
    for name in names:
        mark = LearnedFrom.OTHER_RESPONSES if name == FIELD else None
        marks = [joined_mark(mark, relations_mark(graph)) for graph in graphs]
        graphs = judged(graphs, predictions[name], marks, name)
    return estimates_by_judges(
        graphs, asked.model_copy(update={"p": tuple(names)}), {FIELD: judges}
    )


def _holds_rows(data: object) -> bool:
    """Return True if the data are rows of claims: a table, or findings."""
    return is_table(data) or isinstance(data, Findings)


def _graphs(responses: Responses | Data) -> tuple[FactGraph, ...]:
    """Read responses as fact graphs.

    Raises:
        InputError: as `graphs_of`; for a table of claims, the message names the option that reads
            it.
    """
    try:
        return graphs_of(cast("Responses", responses))
    except InputError as error:
        if not is_present_table(responses):
            raise
        raise InputError(
            f"{error}. To read a table of labeled claims, give --numbers COLUMN for each column "
            "to learn from"
        ) from None


def _out_of_fold(
    graphs: Sequence[FactGraph],
    judge: Judge,
    settings: FitSettings,
    user_columns: UserColumns | None,
) -> tuple[list[dict[str, Any]], str, dict[str, Floats], FoldJudges]:
    """Scores of the field and its baselines on held-out responses, a sentence, and all posteriors.

    Returns:
        The scores, the sentence, posteriors by model, and the field of each fold.
    """
    table = judge.table(graphs, user_columns)
    kept = ~np.isnan(table.labels)
    fold = labeled_folds(table, settings.folds, settings.seed)
    tell(f"cross-fits in {counted(settings.folds, 'fold')}")
    judges = fold_judges(field(settings.field), table, fold)
    predictions = {FIELD: judges.unseen()}
    tell("cross-fits baselines")
    rivals: dict[str, Learner] = {"boosted trees": boosted_trees, "logistic regression": logistic}
    predictions |= {name: cross_fitted(learner, table, fold) for name, learner in rivals.items()}
    recorded = claim_posteriors([variant(graph, settings.variant) for graph in graphs])
    if np.ptp(recorded) > 0:
        alone, given = of_posteriors(table, recorded), _as_given(settings.variant)
        predictions |= {
            f"Platt scaling of {given}": cross_fitted(recalibrated("platt"), alone, fold),
            given: recorded,
        }
    for name in () if user_columns is None else user_columns.names:
        values = table.values[:, table.names.index(name)]
        if 0 <= values.min() < values.max() <= 1:
            curve = cross_fitted(recalibrated("isotonic"), of_posteriors(table, values), fold)
            predictions[f"isotonic curve of {name}"] = curve
    predictions["base rate"] = cross_fitted(base_rate, table, fold)
    labels, responses = table.labels[kept], table.responses[kept]
    intervals = IntervalSettings(n_bootstrap=500, seed=settings.seed)
    rows = score_rows(
        {name: p[kept] for name, p in predictions.items()}, labels, responses, fold[kept], intervals
    )
    best = min(rows[1:], key=lambda row: row["brier"])
    sentence = (
        f"On held-out responses the field has a Brier score of {rows[0]['brier']:.4f} "
        f"[{rows[0]['brier_lower']:.4f}, {rows[0]['brier_upper']:.4f}]; minus the best baseline "
        f"({best['model']}): {best['difference']:+.4f} [{best['difference_lower']:+.4f}, "
        f"{best['difference_upper']:+.4f}], paired over responses."
    )
    return rows, sentence, predictions, judges


def score_rows(
    p_by_model: Mapping[str, Floats],
    labels: Floats,
    responses: Any,
    fold: Integers | None,
    intervals: IntervalSettings,
) -> list[dict[str, Any]]:
    """Return a row of scores with intervals per model.

    `difference` is the Brier score of the first model minus that of the row's model.
    """
    from calibration.scoring import score as scores_of
    from calibration.significance.differences import score_difference

    rows = []
    first = next(iter(p_by_model.values()))
    for name, p in p_by_model.items():
        row: dict[str, Any] = {"model": name, "n_claims": len(p)}
        inside = np.clip(p, 1e-6, 1 - 1e-6)
        scored = scores_of(
            inside, labels, responses, scores=_SCORES, folds=fold, intervals=intervals
        )
        for score, value in scored.models[0].scores.items():
            row |= named(score, (value.value, *value.interval))
        ends = [np.nan] * 3
        if p is not first:
            change = score_difference(
                *("brier", first, p, labels, responses),
                n_bootstrap=intervals.n_bootstrap,
                seed=intervals.seed,
            )
            ends = [change.value, *change.interval]
        row |= named("difference", ends)
        rows.append({key: float(v) if isinstance(v, float) else v for key, v in row.items()})
    return rows


def _unread_samples(graphs: Sequence[FactGraph], families: Iterable[str]) -> list[str]:
    """Return a remark if no column uses the sampled answers; empty otherwise."""
    samples = sum(len(graph.sample_ids) for graph in graphs)
    if not samples or "samples" in families:
        return []
    return [
        f"{counted(samples, 'sampled answer')} {is_or_are(samples)} not used; add samples to the "
        "--columns of fit to learn from them."
    ]


def _scores_table(rows: Sequence[Mapping[str, Any]], of: str) -> Table:
    return Table(
        data_frame([dict(row) for row in rows]),
        columns_as(
            "model | brier:4± Brier | log_loss:3± log loss | auroc:3± AUROC | "
            "difference:4± Brier of the field minus this"
        ),
        f"Scores of {of}, held out by fold.",
        note="In brackets: 95% intervals over responses. AUROC is within folds; baselines learn in "
        "the same folds.",
    )


def _tidy_scores(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A row per model and score, with its interval, from rows with a column per score."""
    scores = ("brier", "log_loss", "auroc", "difference")
    return data_frame(
        [
            {
                **{"model": row["model"], "score": name, "value": row[name]},
                **{"lower": row[f"{name}_lower"], "upper": row[f"{name}_upper"]},
                "n_claims": row["n_claims"],
            }
            for row in rows
            for name in scores
            if name in row
        ]
    )


def _columns_table(judge: Judge, of: str) -> Table:
    frame = data_frame(judge.as_plain()["columns"]).rename(columns={"name": "column"})
    return Table(
        frame.reindex(columns=["column", "mean", "weight", "standard_error"]),
        columns_as("column | mean:3 | weight:3 | standard_error:3 standard error"),
        f"Weights of columns, learned from {of}.",
        note="Weight: log odds per standard deviation of the column; standard error: over "
        "responses. A nonlinear potential has no weights.",
    )


def _causes_table(judge: Judge, of: str) -> Table:
    field = judge.field
    size, levels = field.parameters.shape[1], len(field.causes)
    standard_errors = field.standard_errors
    errors = np.full(2 * levels, np.nan) if standard_errors is None else standard_errors[size:]
    rows = [
        {
            "cause": name,
            "coupling": float(field.couplings[:, index].mean()),
            "coupling_error": float(errors[index]),
            "bias": float(field.biases[:, index].mean()),
            "bias_error": float(errors[levels + index]),
        }
        for index, name in enumerate(field.causes)
    ]
    names = ("cause", "coupling", "coupling_error", "bias", "bias_error")
    return Table(
        data_frame(rows) if rows else data_frame([dict.fromkeys(names)]),
        columns_as(
            "cause | coupling:2 | coupling_error:2 standard error | bias:2 | "
            "bias_error:2 standard error"
        ),
        f"Couplings of causes, learned from {of}.",
        note="Coupling: log odds that a node below a cause agrees with it, shrunk toward 0 by "
        "--coupling-penalty.",
    )


_WHY = {
    ShiftStatus.OTHER_EVIDENCE: "no share of true claims makes the evidence here likely",
    ShiftStatus.TOO_FEW: f"fewer than {FEWEST} responses do not show how responses vary",
    ShiftStatus.UNDETERMINED: "the evidence fits shares up to the end of the range",
    ShiftStatus.CONTRADICTED: "the evidence and the posteriors point in opposite directions",
    ShiftStatus.SAME_SHARE: "the share of true claims here may equal the training share",
}
"""Reasons to keep the learned prior."""


class ApplySettings(DrawnSettings, ColumnSettings):
    """Applying the judge.

    Options of `apply`.
    """

    adapt: Annotated[bool, USUAL] = False
    """Shift the posteriors to the share of true claims estimated from the new evidence, if that
    evidence is a mixture of the learned distributions with another share; otherwise keep the
    learned prior.
    """

    other_evidence: bool = False
    """Use the judge even if another relation model or retriever produced the evidence."""

    n_bootstrap: Replicates = 1000
    """Number of bootstrap replicates for the shift check."""


@front_door
def apply(judge: Path, responses: Responses | Data, settings: ApplySettings) -> Findings:
    """Judge claims of responses with a judge that `fit` saved.

    First compares the evidence with mixtures of the training evidence of true and of false claims.
    Bounds the effect of the difference on the share of true claims and on the Brier score, and
    reports how many labeled responses would settle the question. Then gives a posterior for every
    claim, with the learned prior unless --adapt is given. Labels are not used. --out B.jsonl writes
    the responses with their posteriors, which `factormodels score` reads. Each response is marked
    if its labels trained the judge: `score`, `estimate` and `keep` refuse to use these labels
    again.

    Examples::

        apply("judge.json", "new.jsonl").save("new.judged.jsonl")
        apply("judge.json", "new.jsonl", adapt=True).report("new.html")
        apply("judge.json", "votes.csv", numbers=["gpt", "llama"])

    Args:
        judge: Judge file written by `fit --save`.
        responses: Responses, or the name of an embedded dataset; for a judge of --numbers, a table
            with response and claim. In Python also a data frame, records, or findings.
        settings: options; in Python, pass the fields as keywords instead.

    Raises:
        InputError: if a file cannot be read, or columns or evidence do not fit the judge.
        MissingDependencyError: if PyTorch is not installed.
    """
    whole = judge if isinstance(judge, Judge) else read_judge(judge)
    if _holds_rows(responses) and not settings.numbers and settings.table is None:
        settings = settings.model_copy(update={"numbers": whole.own_columns})
    votes = settings.own_responses(responses, labeled=False)
    user_table = votes or settings.user_table()
    graphs = _graphs(responses) if votes is None else votes.graphs
    user_columns = None if user_table is None else user_table.columns
    known = whole.reading(graphs)
    strange = known.other_evidence(graphs)
    if strange and not settings.other_evidence:
        raise InputError(f"{strange}; make both in the same way, or give --other-evidence")
    table = known.table(graphs, user_columns)
    replicates = {"n_bootstrap": settings.n_bootstrap, "seed": settings.seed}
    shift, harm = known.shift(table, **replicates), None
    if not np.isnan(shift.distance) and shift.n_responses >= FEWEST:
        harm = known.harm(table, **replicates)
    p = before = known.probabilities(table)
    # Moving posteriors to a share that may not have changed makes them worse.
    other_share = harm is not None and not (harm.share_lower <= shift.old_share <= harm.share_upper)
    determined = shift.determined and other_share
    moves = settings.adapt and determined
    if known is not whole and not moves:
        p = whole.posteriors(graphs, user_columns)
    sentences = [*_checked(harm), *_unread_samples(graphs, whole.families)]
    if user_table is not None and user_table.remark:
        sentences.append(user_table.remark)
    share = f"{number(shift.share)} {interval(shift.share_lower, shift.share_upper)}"
    if moves:
        p = known.probabilities(table, shift.share)
        sentences.append(
            f"The posteriors were moved to a share of {share}; their mean was "
            f"{number(float(before.mean()))}."
        )
    elif settings.adapt:
        why = ShiftStatus.SAME_SHARE if shift.determined else shift.status
        sentences.append(f"The learned prior stays: {_WHY[why]}.")
    elif determined:
        sentences.append(
            f"The evidence indicates a share of true claims of {share}; --adapt moves the "
            "posteriors to it."
        )
    sentences.append(
        f"The mean posterior of {counted(len(p), 'claim')} is {number(float(p.mean()))}; "
        f"{number(shift.old_share)} of the training claims are true."
    )
    marks = whole.learned_from(graphs)
    sentences += _taught(graphs, marks)
    if whole.edited:
        sentences.append("The judge's file has no digest, so its numbers cannot be verified.")
    sentences += _unjoined(known, graphs, table)
    if known is not whole:
        which = "all" if moves else "their"
        sentences.append(
            f"{_without_texts(graphs)}: {which} posteriors, and the check of shift, come from a "
            "judge that the same labels trained without columns of texts."
        )
    if strange:
        sentences.append(f"Note: {strange}.")
    elif unknown := known.unrecorded(graphs):
        sentences.append(f"{unknown}.")
    return Findings(
        source=str(responses) if isinstance(responses, str | Path) else "the responses",
        sentences=tuple(sentences),
        tables={
            **({} if harm is None else {"harm": _harm_table(harm)}),
            "shift": _shift_table(shift),
            "responses": _responses_table(table, p),
            CLAIMS: _claims_table(graphs, p, marks),
        },
        unshown=(CLAIMS,),
        settings={"judge": str(judge)},
        draw=lambda: _figures(known, table, shift),
        graphs=judged(graphs, p, marks),
        tidy=lambda: _claims(graphs, p, marks),
    )


def _without_texts(graphs: Sequence[FactGraph]) -> str:
    """Clause on the responses that lack texts, among those with claims."""
    of_claims = [graph for graph in graphs if graph.atoms]
    silent = sum(not records_texts([graph]) for graph in of_claims)
    if silent == len(of_claims):
        return f"{counted(silent, 'response')} with claims lack texts of claims or passages"
    return (
        f"{silent:,} of {counted(len(of_claims), 'response')} with claims lack texts of claims or "
        "passages"
    )


def _taught(graphs: Sequence[FactGraph], marks: Sequence[LearnedFrom]) -> list[str]:
    """Sentence on the responses whose labels trained the judge; empty if there are none."""
    names = [
        graph.id
        for graph, mark in zip(graphs, marks, strict=True)
        if mark is LearnedFrom.THIS_RESPONSE
    ]
    if not names:
        return []
    return [
        f"Labels of {counted(len(names), 'response')} here trained the judge ({some_of(names)}): "
        "they cannot score or correct these posteriors."
    ]


def _unjoined(judge: Judge, graphs: Sequence[FactGraph], table: ClaimTable) -> list[str]:
    """Remarks on columns of the judge that the responses lack: sentences, relations, topics."""
    sentences, n = [], len(table.labels)
    alone = sum(atom.sentence is None for graph in graphs for atom in graph.atoms)
    if SENTENCE in judge.field.causes and alone:
        do, they = ("does", "it is") if alone == 1 else ("do", "they are")
        who = f"{alone:,} of {counted(n, 'claim')} {do} not state the sentence that {they} from"
        if alone == n:
            who = "No claim here states the sentence that it is from"
        sentences.append(
            f"{who}: each counts as a separate sentence, and posteriors differ from those with "
            "sentences."
        )
    if "passages" in table.names:
        silent = int((table.values[:, table.names.index("passages")] == 0).sum())
        if silent:
            sentences.append(
                f"{silent:,} of {counted(n, 'claim')} {'has' if silent == 1 else 'have'} no "
                "relation with a retrieved passage: their posteriors depend only on the other "
                "columns and on causes with a coupling."
            )
    nameless = sum(map(leaves_no_topic_out, graphs)) if "texts" in judge.families else 0
    if nameless:
        sentences.append(
            f"{nameless:,} of {counted(len(graphs), 'response')} name no topic. Words of the "
            "topic then count as words of a claim in passages, which raises posteriors if the "
            "judge was learned from responses with topics."
        )
    return sentences


def _checked(harm: Harm | None) -> list[str]:
    """Bounds from the evidence: share of true claims, Brier score, number of labels needed."""
    if harm is None:
        return [
            "The effect of a shift of the evidence on the posteriors is unknown: "
            f"{_WHY[ShiftStatus.TOO_FEW]}."
        ]
    sentences = [
        f"{harm.unexplained:.0%} of the claims have evidence that no mixture of the learned "
        "distributions explains. If the truth of the others depends on evidence, or evidence on "
        "truth, as learned, the share of true claims here is in "
        f"{interval(harm.share_lower, harm.share_upper)}, and the Brier score in "
        f"{interval(harm.brier_lower, harm.brier_upper)}; the posteriors say "
        f"{number(harm.brier)}."
    ]
    if harm.bounded:
        sentences.append(
            f"The shift raises the Brier score by {number(harm.largest_rise)} at most: the "
            "posteriors can be used."
        )
    else:
        sentences.append(
            f"The shift may raise the Brier score by up to {number(harm.largest_rise)}. Labels "
            f"of {counted(harm.n_to_label, 'response')} here determine it to ±{TOLERANCE:g} if "
            "losses vary over responses as in the training data, and labels of "
            f"{harm.n_in_any_case:,} do so in any case. Label them, then score the posteriors or "
            "learn from the labels."
        )
    return sentences


def _responses_table(table: ClaimTable, p: Floats) -> Table:
    claims = data_frame({"response": [response for response, _ in table.ids], "p": p})
    by_response = claims.groupby("response", sort=False)["p"]
    return Table(
        by_response.agg(n_claims="size", mean="mean").reset_index(),
        columns_as("response | n_claims:0 claims | mean:3 expected share true"),
        "Posteriors by response.",
    )


def _claims(graphs: Sequence[FactGraph], p: Floats, marks: Sequence[LearnedFrom]) -> pd.DataFrame:
    """The long frame of the posteriors of claims, in order, and of which labels taught each."""
    claims = [
        (graph.id, atom, mark)
        for graph, mark in zip(graphs, marks, strict=True)
        for atom in graph.atoms
    ]
    return long_frame(
        claim_row(response, atom, value, **{f"p_{LEARNED_FROM}": str(mark)})
        for (response, atom, mark), value in zip(claims, p.tolist(), strict=True)
    )


def _claims_table(graphs: Sequence[FactGraph], p: Floats, marks: Sequence[LearnedFrom]) -> Table:
    return Table(
        _claims(graphs, p, marks),
        columns_as(f"response | claim | p:3 | p_{LEARNED_FROM} learned from labels of"),
        "Posteriors by claim.",
    )


def _harm_table(harm: Harm) -> Table:
    row = {
        **harm._asdict(),
        "largest_rise": harm.largest_rise,
        "n_to_label": harm.n_to_label,
        "n_in_any_case": harm.n_in_any_case,
    }
    return Table(
        data_frame([row]),
        columns_as(
            "unexplained:3 | share_lower:3 true at least | share_upper:3 at most | "
            "brier:3 Brier by posteriors | brier_lower:3 at least | brier_upper:3 at most | "
            "n_to_label:0 responses to label | n_in_any_case:0 in any case"
        ),
        "Bounds on the effect of a shift of the evidence.",
        note="Unexplained: share of claims beyond any mixture of the learned distributions. "
        "Bounds are 95% over responses; they hold if, for the other claims, truth depends on "
        "evidence, or evidence on truth, as learned. To label: responses for the Brier score "
        f"to ±{TOLERANCE:g}, if losses vary as in the training data.",
    )


def _shift_table(shift: Shift) -> Table:
    return Table(
        data_frame([{**asdict(shift), "status": shift.status.value.replace("_", " ")}]),
        columns_as(
            "distance:3[] | p_value> p | share:3± weight of true claims | "
            "old_share:3 share learned from | n_responses:0 responses | status evidence",
            p_value=p_value,
        ),
        "Test of the learned distribution of evidence on these data.",
        note="Distance: largest difference of two distribution functions of log odds, 0 to 1; If "
        "the judge uses support and number of passages, p covers them too. The weight is the "
        "share of true claims only if the learned distributions apply. With many responses p "
        "is small regardless of the harm; with few, such as 8, the test has little power.",
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
    from calibration.figures.panels import COLUMN, legend_below, nth_color, panels

    frame = _curves(judge, table, shift)
    with panels(1, 1, (COLUMN, 2.4)) as (figure, ((axes,),)):
        axes.plot(frame["log_odds"], frame["here"], color="0.1", label="here")
        axes.plot(frame["log_odds"], frame["mixture"], color=nth_color(0), label="best mixture")
        for name, dash in (("true", "--"), ("false", ":")):
            axes.plot(
                frame["log_odds"], frame[name], dash, color="0.6", label=f"{name}, learned from"
            )
        axes.set_xlabel("Log odds by a claim's own columns")
        axes.set_ylabel("Share of claims below")
        handles, names = axes.get_legend_handles_labels()
        legend_below(figure, handles, names, 2)
    title = "Evidence here and the best mixture of the learned distributions"
    return {"evidence": PaperFigure(figure, frame, title)}
