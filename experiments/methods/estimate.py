"""Estimates from few labels and many probabilities, and the choice of claims to label next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from calibration.estimation import (
    CALIBRATED,
    OF_LABELS,
    OF_NUMBERS,
    QUANTITIES,
    REGRESSIONS,
    FoldJudges,
    PoweredEstimate,
    Quantity,
    Unit,
    balance,
    batch_weights,
    difference,
    draw,
    inclusion_probabilities,
    minus,
    observed_residuals,
    planned_error,
    planned_freedom,
    quantity_by_judges,
    share,
    spread,
    stratified_order,
)
from calibration.estimation import estimate as estimated
from calibration.estimation.calibration_errors import CalibrationError
from calibration.estimation.estimates import Inverted
from calibration.estimation.linear import Linearized
from calibration.grouping import Grouping, group_by_response
from calibration.intervals import missing_kind_warning, student_quantile
from calibration.validation import Floats, Integers
from experiments.columns.cells import (
    LabelColumn,
    NumberLabels,
    label_value,
    number_labels,
)
from experiments.columns.claims import part_name, read_claims
from experiments.columns.frame import ClaimFrame
from experiments.columns.options import ProbabilityColumns, TaughtSettings
from experiments.columns.reader import Columns, TableReader, as_option
from experiments.columns.roles import (
    LABEL,
    SHEET_BATCH,
    SHEET_CLAIM,
    SHEET_PROBABILITY,
    SHEET_RESPONSE,
)
from experiments.columns.sources import name_of
from experiments.findings.artifacts import PaperFigure
from experiments.findings.findings import Findings
from experiments.findings.markup import csv_text
from experiments.findings.table import ENDS, Table, columns_as, data_frame, named, text_columns
from experiments.findings.text import interval, number, p_equals, some_of
from experiments.progress import tell
from experiments.settings import USUAL, ColumnNames, Files, Names, Numbers, Option, front_door
from experiments.settings.limits import DrawnSettings, ErrorBins, Folds, KPolicy
from factormodels.claims import ClaimLabel
from factormodels.errors import InputError, unknown_name
from factormodels.io.source.files import write_text
from factormodels.io.source.opening import exists
from factormodels.io.tables.data_table import DataTable, read_table
from factormodels.nouns import counted, counted_range, is_or_are

if TYPE_CHECKING:
    import pandas as pd

    from experiments.columns.sources import Data

_SHEET = ("label", "probability", "batch")
"""Columns of a sheet besides those that identify the claim."""

_TIDY = {
    "of": "model",
    "quantity": "quantity",
    "value": "value",
    "value_lower": "lower",
    "value_upper": "upper",
    "standard_error": "standard_error",
    "labels": "labels_alone",
    "predictions": "probabilities_alone",
    "n_labeled": "n_labeled",
    "n_responses": "n_responses",
    "effective": "effective_responses",
    "level": "level",
}
"""Columns of the table of estimates in the tidy frame, with their names there."""

_MEAN = "mean"
"""Quantity that is defined for numeric labels only."""

_LEVEL_UNSEEN = (
    "{of}: most of the ECE is an error in the overall level of the learned judge, which its own "
    "training labels do not reveal. The upper end of its interval allows for that error; labels of "
    "other responses give a narrower interval."
)
"""Caution about the ECE of a judge that was trained on the same labels."""

_NOT_ALIKE = 0.01
"""p-value below which the command reports that labeled responses differ from all responses."""

_SEEN = 10
"""Number of labeled responses from which on their residuals determine a plan."""

_PLANNED = (10, 20, 40, 80, 160, 320, 640)
"""Numbers of units in a plan."""


class EstimateSettings(
    DrawnSettings,
    ProbabilityColumns,
    TaughtSettings,
):
    """Estimates, and claims to label next."""

    judge: Annotated[Literal["given", "learn"], USUAL] = "given"
    """Use the probabilities as given, or also learn a judge in folds of responses. No probability
    of the learned judge depends on the labels that correct it."""

    numbers: ColumnNames = ()
    """Column of numbers that --judge learn uses in addition to the log odds of the probabilities;
    repeatable."""

    folds: Folds = 5
    """Number of folds of labeled responses for --judge learn."""

    labels: Annotated[Files, Option("FILE", usual=True)] = ()
    """Sheet of labels written by --choose and then filled in; repeatable."""

    quantities: Annotated[Names, USUAL] = ("share", "mean-share", "brier", "f1-at-k")
    """Quantities to estimate: share (of true claims, over all), mean-share (mean over responses),
    brier, f1-at-k, accuracy, auroc, ece, kept-precision (share of true claims at or above
    --threshold), quantile (of the responses' shares of true claims), ols or logistic (coefficients
    of truth on the columns of --on), mean (of numeric labels). For quantile, ols and mean, labels
    may be any numbers."""

    on: Annotated[ColumnNames, USUAL] = ()
    """Numeric regressor for --quantities ols and logistic; repeatable. An intercept is added."""

    q: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Level for --quantities quantile; 0.5 is the median response."""

    threshold: Annotated[float, Field(ge=0, le=1), Option("P")] = 0.5
    """Smallest probability of the claims that --quantities kept-precision keeps."""

    bins: ErrorBins = 10
    """Number of equal-width bins for --quantities ece."""

    k: KPolicy = "median"

    reference: Annotated[str | None, Option("NAME")] = None
    """Model to compare the others with; the first by default."""

    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """Nominal coverage of intervals."""

    looks: Annotated[int, Field(ge=1)] = 1
    """Total number of looks at intervals before labeling stops. Each look has level 1 - (1 -
    level)/looks, so that stopping at any look is valid.
    """

    finite: bool = False
    """Estimate for exactly these responses, not for the population that they come from."""

    choose: Annotated[int | None, Field(ge=1), USUAL] = None
    """Number of claims or responses to label next."""

    unit: Annotated[Literal["claim", "response"], USUAL] = "response"
    """Unit to choose: single claims, or whole responses."""

    stratified: bool = False
    """Stratify the choice by response length and, within each length, by probability, in
    proportion. Sampling probabilities stay the same."""

    minutes: Numbers = (2.0, 1.0)
    """Minutes that a person needs to read a response, and to label a claim."""

    sheet: Annotated[Path | None, Option("FILE", writes=True, usual=True)] = None
    """Write the units that --choose selects to this CSV, to be filled in."""


@dataclass(frozen=True, eq=False)
class _Claims:
    """Claims of a table without duplicates, with their columns.

    Attributes:
        frame: a row per claim, in order: position, response, claim, `by`, and its mean p.
        y: True, False or None, (n,), object.
        irrelevant: bool (n,), True if a label excludes the claim.
        batch: int64 (n,), the batch in which the claim was labeled; -1 without a label.
        weights: float64 (n,), number of claims that each labeled claim represents.
        grouping: the responses of every combination of data and model.
        by: names of the columns that separate data and models.
        judges: by column of probabilities, the judges of folds that produced them, by row of the
            table.
    """

    frame: pd.DataFrame
    y: Any
    irrelevant: Any
    batch: Integers
    weights: Floats
    grouping: Grouping
    by: tuple[str, ...]
    judges: Mapping[str, FoldJudges] = field(default_factory=dict)

    @property
    def labeled(self) -> Any:
        """True for claims with a label, bool (n,)."""
        return self.batch >= 0

    @property
    def counting(self) -> Any:
        """True for claims with a label that counts, bool (n,)."""
        return self.labeled & ~self.irrelevant


@front_door
def estimate(data: Data, settings: EstimateSettings) -> Findings:
    """Estimate scores of all claims from few labels and many probabilities.

    Estimates shares of true claims, Brier, F1@K, accuracy, AUROC, ECE, quantiles and regression
    coefficients, with intervals over responses, by prediction-powered inference: labels make the
    intervals valid for any probabilities, and good probabilities narrow them. The estimate from
    labels alone is shown for comparison. With --judge learn, the same labels also train a judge, in
    folds of responses, so that no label counts twice. Labels must be a random sample of claims or
    of whole responses, or come from --choose, which writes a sheet of claims to label next and
    prefers uncertain claims. --labels reads the sheet and corrects for the sampling probabilities.
    Labeling in batches is valid if the number of batches is fixed beforehand or given with --looks.

    Examples::

        estimate("claims.csv")
        estimate("claims.csv", quantities="accuracy,auroc,ece", bins=5)
        estimate("claims.csv", quantities="logistic", on="position")
        estimate("claims.csv", judge="learn", numbers="length")
        estimate("ratings.csv", quantities="quantile,ols", on="length")
        estimate("claims.csv", choose=20, sheet="first.csv")
        estimate("claims.csv", labels="first.csv")
        estimate("claims.csv", labels="first.csv", choose=9, sheet="b.csv")
        estimate("assessed/graphs.jsonl", labels=["first.csv", "b.csv"])

    Args:
        data: Probabilities, and labels of some claims: CSV, TSV, Excel, Parquet, JSON Lines or
            JSON; one row per claim, or per claim and model. Or responses with verdicts, such as
            `factormodels assess` wrote. Or a log of Inspect, promptfoo or lm-evaluation-harness. In
            Python also a data frame, records, or findings with claims.
        settings: options; in Python, pass the fields as keywords instead.

    Raises:
        InputError: if the data or a sheet cannot be read, or an option does not fit them.
    """
    for name in settings.quantities:
        if name not in (known := (*QUANTITIES, *REGRESSIONS, _MEAN)):
            raise InputError(unknown_name(f"--quantities {name}", name, known))
        if name in REGRESSIONS and not settings.on:
            raise InputError(f"--quantities {name}: no regressor is named; name columns with --on")
    if len(settings.minutes) != 2 or min(settings.minutes) < 0 or settings.minutes[1] <= 0:
        text = ",".join(f"{each:g}" for each in settings.minutes)
        raise InputError(
            f"--minutes {text}: give two numbers, the minutes to read a response and to label a "
            "claim, the second above 0"
        )
    return estimates_by_judges(data, settings)


def estimates_by_judges(
    data: Data, settings: EstimateSettings, judges: Mapping[str, FoldJudges] | None = None
) -> Findings:
    """Estimate as `estimate` does, from a claim table and the judges that produced it.

    Args:
        data: probabilities and labels, as for `estimate`.
        settings: options.
        judges: judges of folds by the name of the column of probabilities that they produced, each
            with all claims of the data in order.

    Raises:
        InputError: as `estimate`.
    """
    sheets = [read_table(source) for source in settings.labels]
    _refuse_to_lose_labels(settings.sheet)
    judged = read_claims(
        data,
        settings,
        labeled=False,
        texts=settings.choose is not None,
        numbers=list(_sheet_labels(sheets)),
    )
    if judged.of_numbers:
        _refuse_of_numbers(judged, settings)
    elif _MEAN in settings.quantities:
        raise InputError(
            f"{judged.table.source}: labels are true or false, and --quantities {_MEAN} needs "
            "numeric labels; use --quantities share"
        )
    judged, claims = _claims(judged, sheets, settings)
    if judges is not None:
        claims = replace(claims, judges=judges)
    table, remarks = judged.table, judged.remarks
    if not claims.counting.any() and settings.choose is None:
        counts = " that counts" if claims.labeled.any() else ""
        raise InputError(
            f"{table.source}: no claim has a label{counts}; choose claims to label with --choose "
            "N, and pass the filled-in sheet with --labels"
        )
    if settings.judge == "learn" and claims.counting.any():
        judged, claims = _learned(judged, claims, settings)
        remarks = judged.remarks
    sentences: list[str] = []
    tables: dict[str, Table] = {}
    rows: list[dict[str, Any]] = []
    if claims.counting.any():
        tell("estimates")
        columns = _columns(table, settings)
        before = len(remarks)
        rows, differences = _estimates(judged, claims, columns, settings, remarks)
        if not rows and settings.choose is None:
            why = " ".join(dict.fromkeys(remarks[before:])).removesuffix(".")
            raise InputError(f"{table.source}: {why}")
        if rows:
            sentences += _verdicts(rows)
            sentences += _few_effective([*rows, *differences])
            sentences += _unlike(claims)
            tables["estimates"] = _estimates_table(rows, settings)
        if differences:
            tables["differences"] = _differences_table(differences)
    if settings.choose is not None:
        chosen, text = _chosen(table, claims, settings)
        tables |= chosen
        sentences.append(text)
    return Findings(
        source=name_of(data),
        sentences=tuple(dict.fromkeys([*sentences, *remarks])),
        tables=tables,
        draw=lambda: _figures(rows),
        tidy=(lambda: _tidy(rows)) if rows else None,
    )


def _tidy(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A row per model and quantity: the estimate, and the value from labels alone."""
    frame = data_frame(rows)[[*_TIDY]]
    return frame.rename(columns=_TIDY)


def _learned(
    judged: ClaimFrame, claims: _Claims, settings: EstimateSettings
) -> tuple[ClaimFrame, _Claims]:
    """Add a learned judge to the models; --choose then uses it."""
    # Imported here because it loads the libraries that learn a field.
    from experiments.methods.learned_judge import LEARNED, with_learned_judge

    places = claims.frame["place"]
    labels = [math.nan if value is None else float(value) for value in claims.y]
    judged, judges = with_learned_judge(
        judged,
        dict(zip(places, labels, strict=True)),
        numbers=settings.numbers,
        folds=settings.folds,
        seed=settings.seed,
    )
    learned = judged.frame[judged.frame["column"] == LEARNED].set_index("place")["p"]
    p = places.map(learned).fillna(claims.frame["p"])
    frame = claims.frame.assign(p=p)
    return judged, replace(claims, frame=frame, judges={LEARNED: judges})


# -------------------------------------------------------------------------------------- labels


def _refuse_to_lose_labels(path: Path | None) -> None:
    """Refuse to replace a sheet that somebody has begun to fill in."""
    if path is None or not exists(path):
        return
    n_labels = sum(
        value is not None and str(value).strip() != ""
        for value in _sheet_labels([read_table(path)])
    )
    if n_labels:
        raise InputError(
            f"--sheet {path}: this sheet has {counted(n_labels, 'label')}, which would be lost; "
            f"give another file, and pass this one with {as_option('--labels', str(path))}"
        )


def _sheet_labels(sheets: Sequence[DataTable]) -> Iterator[Any]:
    """Yield the label cells of sheets."""
    for sheet in sheets:
        label = Columns(sheet.columns, sheet.source).known(LABEL)
        yield from (row.get(label) for row in sheet.rows if label is not None)


def _refuse_of_numbers(judged: ClaimFrame, settings: EstimateSettings) -> None:
    """Refuse options that are undefined for numeric labels.

    Raises:
        InputError: for such a quantity, for `choose`, or for a learned judge.
    """
    why = f"{judged.table.source}: labels are numbers other than 0 and 1"
    others = [name for name in settings.quantities if name not in OF_NUMBERS]
    if others:
        defined = [name for name in OF_NUMBERS if settings.on or name not in REGRESSIONS]
        raise InputError(
            f"{why}, and {', '.join(others)} {is_or_are(len(others))} for true-or-false labels; "
            f"write --quantities '{','.join(defined)}', or name the labels that mean true, as in "
            "--true 4 --true 5"
        )
    if settings.choose is not None:
        raise InputError(f"{why}; leave out --choose, which needs probabilities of being true")
    if settings.judge == "learn":
        raise InputError(f"{why}; leave out --judge learn, which needs true and false labels")


def _claims(
    judged: ClaimFrame, sheets: Sequence[DataTable], settings: EstimateSettings
) -> tuple[ClaimFrame, _Claims]:
    """Claims without duplicates, with labels from the table or the sheets, and weights.

    Responses whose own labels trained the probabilities are excluded, labeled or not.
    """
    frame = judged.frame
    once = frame.drop_duplicates("place").reset_index(drop=True)
    once["p"] = frame.groupby("place", sort=False)["p"].mean().to_numpy()
    responses = zip(once["by"], once["response"], strict=True)
    owners = [(*by, str(response)) for by, response in responses]
    grouping = group_by_response(owners)
    order = once.groupby(grouping.index).cumcount() + 1
    numbered = once["claim"].isna()
    once["claim"] = once["claim"].where(~numbered, order.astype(str))
    labels = once["label"].astype(object)
    y = labels.where(labels.notna(), None).to_numpy(dtype=object).copy()
    irrelevant = once["irrelevant"].to_numpy(dtype=bool).copy()
    known = once["label"].notna().to_numpy() | irrelevant
    batch = np.where(known, 0, -1)
    chances = np.full(len(once), np.nan)
    places = {
        (*owner, claim): index
        for index, (owner, claim) in enumerate(zip(owners, once["claim"], strict=True))
    }
    of_sheets: list[str] = []
    for at, sheet in enumerate(sheets, 1):
        claim_values = (y, irrelevant, batch, chances)
        of_sheets += _read_sheet(sheet, at, judged, places, settings, claim_values)
    judged = replace(judged, remarks=[*judged.remarks, *of_sheets])
    counting = once["place"][[value is not None for value in y]]
    judged = judged.without_taught(frame["place"].isin(counting), settings)
    stays = once["place"].isin(judged.frame["place"]).to_numpy()
    if not stays.all():
        once = once[stays].reset_index(drop=True)
        y, irrelevant, batch, chances = (each[stays] for each in (y, irrelevant, batch, chances))
        grouping = group_by_response(
            [owner for owner, stay in zip(owners, stays, strict=True) if stay]
        )
    weights = _weights(batch, chances, grouping)
    return judged, _Claims(once, y, irrelevant, batch, weights, grouping, judged.by)


def _read_sheet(
    sheet: DataTable,
    number: int,
    judged: ClaimFrame,
    places: Mapping[tuple[Any, ...], int],
    settings: EstimateSettings,
    known: tuple[Any, Any, Integers, Floats],
) -> list[str]:
    """Read labels and sampling probabilities from a sheet; return remarks on it.

    A row without a batch belongs to batch `number`.
    """
    y, irrelevant, batch, chances = known
    names = Columns(sheet.columns, sheet.source)
    reader = TableReader(sheet, names)
    group_columns = [names.given("--by", name) for name in judged.by]
    response = names.required(SHEET_RESPONSE)
    claim = names.required(SHEET_CLAIM)
    labels: LabelColumn | NumberLabels
    if judged.of_numbers:
        labels = number_labels(sheet, names.required(LABEL))
    else:
        labels = reader.labels(names.required(LABEL), settings, labeled=False)
    probability = names.optional(SHEET_PROBABILITY)
    batches = names.optional(SHEET_BATCH)
    shares = None if probability is None else reader.shares(probability)
    for position, meaning in enumerate(labels.meanings):
        if meaning is None:
            continue
        key = (
            *(part_name(reader.cell(position, name)) for name in group_columns),
            reader.name_if_any(position, response),
            reader.name_if_any(position, claim),
        )
        claim_number = places.get(key)
        if claim_number is None:
            raise InputError(
                f"{reader.locate(position)}: the table has no claim {key[-1]!r} of response "
                f"{key[-2]!r}; use the sheet that was written for these data"
            )
        if batch[claim_number] >= 0:
            raise InputError(
                f"{reader.locate(position)}: claim {key[-1]!r} of response {key[-2]!r} already "
                "has a label, in the table or an earlier sheet; keep one of the two labels"
            )
        value, where = reader.cell(position, batches), reader.locate(position, batches or "")
        y[claim_number], batch[claim_number] = label_value(meaning), _batch(value, number, where)
        irrelevant[claim_number] = meaning is ClaimLabel.IRRELEVANT
        if shares is not None:
            chance = shares.read(position)
            if chance == 0:
                raise InputError(
                    f"{reader.locate(position, probability)}: the sampling probability is 0; "
                    "give a number above 0"
                )
            chances[claim_number] = math.nan if chance is None else chance
    n_unfilled = sum(meaning is None for meaning in labels.meanings)
    said_so = [
        labels.comma_remark(),
        "" if shares is None else shares.remark(),
        _unfilled(n_unfilled, len(labels.meanings)),
    ]
    return [f"{sheet.source}: {remark}" for remark in said_so if remark]


def _batch(value: Any, otherwise: int, where: str) -> int:
    """Batch in a cell of a sheet; `otherwise` if the cell is empty."""
    if value is None or not str(value).strip() or value != value:
        return otherwise
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (number >= 1 and number.is_integer()):
        raise InputError(f"{where}: {value!r} is not the number of a batch; give 1, 2, ...")
    return int(number)


def _unfilled(n_unfilled: int, n_rows: int) -> str:
    """Remark on a sheet with empty labels."""
    if not n_unfilled:
        return ""
    if n_unfilled == n_rows:
        return "no row has a label yet."
    return (
        f"{n_unfilled:,} of {counted(n_rows, 'row')} {'has' if n_unfilled == 1 else 'have'} no "
        "label. Estimates treat the labeled rows as the whole choice, which is valid only if "
        "labels are missing at random."
    )


def _weights(batch: Integers, chances: Floats, grouping: Grouping) -> Floats:
    """Weights of labeled claims; labels without a sampling probability count as random."""
    filled = chances.copy()
    for at in np.unique(batch[batch >= 0]):
        in_batch = batch == at
        unknown = in_batch & np.isnan(chances)
        if unknown.any():
            before = (batch >= 0) & (batch < at)
            open_before = ~before
            drawn, available = grouping.sums(in_batch), grouping.sums(open_before)
            if (drawn[drawn > 0] == grouping.sizes[drawn > 0]).all():
                filled[unknown] = (drawn > 0).sum() / (available > 0).sum()
            else:
                filled[unknown] = in_batch.sum() / open_before.sum()
    weights = np.ones(batch.size)
    labeled = batch >= 0
    if labeled.any():
        weights[labeled] = batch_weights(filled[labeled], batch[labeled])
    return weights


# ------------------------------------------------------------------------------------ estimates


def _columns(table: DataTable, settings: EstimateSettings) -> dict[str, Floats]:
    """Regressors of every row of the table, by column.

    Raises:
        InputError: if there is no such column, or one of its cells is not a number.
    """
    if not set(settings.quantities) & set(REGRESSIONS):
        return {}
    reader, numbers = TableReader(table), {}
    for asked in settings.on:
        column = reader.columns.given("--on", asked)
        cells = [reader.filled_number(index, column, "--on") for index in range(len(reader))]
        numbers[column] = np.array(cells)
    return numbers


def _estimates(
    judged: ClaimFrame,
    claims: _Claims,
    columns: Mapping[str, Floats],
    settings: EstimateSettings,
    remarks: list[str],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A row for every data, model and quantity, and a row for every difference of models."""
    level = 1 - (1 - settings.level) / settings.looks
    where = {index: number for number, index in enumerate(claims.frame["place"])}
    rows: list[dict[str, Any]] = []
    differences: list[dict[str, Any]] = []
    for data, part in judged.parts().items():
        made: dict[str, dict[str, Linearized | Inverted]] = {}
        same: dict[str, tuple[Any, ...]] = {}
        for model, model_rows in part.groupby("model", sort=False):
            numbers = np.array([where[index] for index in model_rows["place"]])
            if not claims.counting[numbers].any():
                remarks.append(f"{_of(data, str(model))}: no claim has a label that counts.")
                continue
            ids = model_rows["claim"] if "claim" in model_rows else model_rows["place"]
            same[str(model)] = tuple(
                zip(model_rows["response"], ids, claims.y[numbers], strict=True)
            )
            of = _of(data, str(model))
            quantities = _of_numbers if judged.of_numbers else _quantities
            made[str(model)] = quantities(
                model_rows, numbers, claims, columns, settings, remarks, of
            )
        by_model = {
            model: _found(quantities, level, settings, remarks, _of(data, model))
            for model, quantities in made.items()
        }
        rows += [
            {"of": _of(data, model), "quantity": name, **_row(each)}
            for model, estimates in by_model.items()
            for name, each in estimates.items()
        ]
        if len(by_model) > 1:
            reference = settings.reference or next(iter(by_model))
            if reference not in by_model:
                raise InputError(
                    f"--reference {reference}: no labeled model has this name; use one of "
                    f"{', '.join(map(repr, by_model))}"
                )
            for model in by_model:
                if model != reference:
                    paired = same[model] == same[reference]
                    differences += _differences(
                        data, (model, reference), made, by_model, level, settings, paired=paired
                    )
    return rows, differences


def _quantities(
    rows: pd.DataFrame,
    numbers: Any,
    claims: _Claims,
    columns: Mapping[str, Floats],
    settings: EstimateSettings,
    remarks: list[str],
    of: str,
) -> dict[str, Linearized | Inverted]:
    made: dict[str, Linearized | Inverted] = {}
    judges = claims.judges.get(rows["column"].iloc[0])
    if judges is not None:
        judges = judges.of(rows["place"])
    judged = rows["p"].to_numpy(), claims.y[numbers], rows["response"].to_numpy()
    how = {"irrelevant": claims.irrelevant[numbers], "weights": claims.weights[numbers]}
    more: dict[str, dict[str, Any]] = {
        "f1-at-k": {"k": settings.k},
        "ece": {"n_bins": settings.bins},
        "kept-precision": {"threshold": settings.threshold},
        "quantile": {"q": settings.q},
    }
    for name in settings.quantities:
        if name in REGRESSIONS:
            coefficients = REGRESSIONS[name](_rows_of(columns, rows), *judged, **how)
            made |= {each.title: each for each in coefficients}
            continue
        try:
            options = {**how, **more.get(name, {})}
            if judges is None:
                quantity = QUANTITIES[name](*judged, **options)
            else:
                quantity = quantity_by_judges(name, judges, *judged[1:], **options)
                if name == "ece":
                    remarks.append(_LEVEL_UNSEEN.format(of=of))
        except InputError as error:
            # Other models and quantities may still have estimates.
            remarks.append(f"{of}: {error}.")
            continue
        if not quantity.labeled.any() or (
            isinstance(quantity, Quantity) and not (quantity.labeled & (quantity.size > 0)).any()
        ):
            remarks.append(_left_out(name, quantity.title, of))
            continue
        made[name] = quantity
        if isinstance(quantity, CalibrationError) and quantity.open_share:
            remarks.append(
                f"{of}: {quantity.open_share:.1%} of the claims are in bins without a labeled "
                "claim; the upper end of the ECE assumes the worst case for them. Use fewer "
                "--bins to reduce their number."
            )
    return made


def _of_numbers(
    rows: pd.DataFrame,
    numbers: Any,
    claims: _Claims,
    columns: Mapping[str, Floats],
    settings: EstimateSettings,
    remarks: list[str],
    of: str,
) -> dict[str, Linearized | Inverted]:
    """Quantities of numeric labels; `_quantities` has those of true and false labels."""
    given = rows["p"].to_numpy(), claims.y[numbers].astype(float), rows["response"].to_numpy()
    weights = claims.weights[numbers]
    made: dict[str, Linearized | Inverted] = {}
    for name in settings.quantities:
        try:
            if name in REGRESSIONS:
                coefficients = OF_NUMBERS[name](_rows_of(columns, rows), *given, weights=weights)
                made |= {each.title: each for each in coefficients}
            else:
                options = {"q": settings.q} if name == "quantile" else {}
                made[name] = OF_NUMBERS[name](*given, **options, weights=weights)
        except InputError as error:
            remarks.append(f"{of}: {error}.")
    return made


def _rows_of(columns: Mapping[str, Floats], rows: pd.DataFrame) -> dict[str, Floats]:
    """Regressors of some rows of the table, by column."""
    places = rows["place"].to_numpy()
    return {column: values[places] for column, values in columns.items()}


def _left_out(name: str, title: str, of: str) -> str:
    """Reason why a quantity is left out."""
    if name in ("f1-at-k", "quantile"):
        what = "F1@K" if name == "f1-at-k" else "The quantile"
        return (
            f"{what} is left out: it needs responses all of whose claims are labeled "
            "(--unit response)."
        )
    return f"{of}: the {title} is left out: none of these claims has a label that counts."


def _found(
    quantities: Mapping[str, Linearized | Inverted],
    level: float,
    settings: EstimateSettings,
    remarks: list[str],
    of: str,
) -> dict[str, PoweredEstimate]:
    """Estimates of the quantities that the labels determine; adds remarks on the others."""
    estimates = {}
    for name, each in quantities.items():
        try:
            estimates[name] = estimated(each, level=level, finite=settings.finite)
        except InputError as error:
            remarks.append(f"{of}: {error}.")
    return estimates


def _differences(
    data: str,
    models: tuple[str, str],
    made: Mapping[str, Mapping[str, Linearized | Inverted]],
    estimates: Mapping[str, Mapping[str, PoweredEstimate]],
    level: float,
    settings: EstimateSettings,
    *,
    paired: bool,
) -> list[dict[str, Any]]:
    """Differences of two models, on the same claims only of quantities that use probabilities."""
    of_first, of_second = (made[model] for model in models)
    of_regressions = tuple(f"{kind}: " for kind in ("linear", "logistic"))
    rows = []
    for name in [name for name in estimates[models[0]] if name in estimates[models[1]]]:
        if paired and (name in OF_LABELS or name.startswith(of_regressions)):
            continue
        first, second = of_first[name], of_second[name]
        if isinstance(first, Inverted) or isinstance(second, Inverted):
            continue
        each = None
        # Two judges keep different claims.
        same_claims = paired and name != "kept-precision"
        if same_claims and isinstance(first, Quantity) and isinstance(second, Quantity):
            each = estimated(minus(first, second), level=level, finite=settings.finite)
        if each is None:
            each = difference(*(estimates[model][name] for model in models))
        of = ": ".join(filter(None, (data, f"{models[0]} minus {models[1]}")))
        rows.append({"of": of, "quantity": name, **_row(each)})
    return rows


def _of(data: str, model: str) -> str:
    return ": ".join(filter(None, (data, model)))


def _row(powered: PoweredEstimate) -> dict[str, Any]:
    return {
        "title": powered.title,
        **named("value", (powered.value, powered.lower, powered.upper)),
        **named("labels", (powered.labels_value, powered.labels_lower, powered.labels_upper)),
        "predictions": powered.predictions_value,
        "weight": powered.power,
        "worth": powered.labels_saved,
        "standard_error": powered.error,
        "freedom": powered.freedom,
        "effective": powered.effective,
        "unseen_share": powered.unseen_share,
        "may_lack_kinds": powered.may_lack_kinds,
        "n_labeled": powered.n_labeled,
        "n_responses": powered.n_responses,
        "n_items": powered.n_items,
        "level": powered.level,
    }


_BESIDE = columns_as(
    "value:3± estimate | labels:3± labels alone | predictions:3 probabilities alone"
)


_FREEDOM = "df: degrees of freedom of the variance in the interval of the estimate."


def _estimates_table(rows: Sequence[Mapping[str, Any]], settings: EstimateSettings) -> Table:
    level = 100 * rows[0]["level"]
    about = "these responses" if settings.finite else "responses like these"
    looks = f", {settings.looks} looks shared out" if settings.looks > 1 else ""
    no_factor = any(row["quantity"] == "ece" for row in rows)
    counted_only = " (none for the ECE, whose probabilities only count the claims of bins)"
    return Table(
        data_frame(rows),
        (
            *columns_as('title ""'),
            *_BESIDE,
            *columns_as(
                "worth:1 labels saved | n_labeled:0 labeled | effective:1 responses | freedom:1 df"
            ),
        ),
        "Estimates of the values from labels of all claims.",
        group="of" if len({row["of"] for row in rows}) > 1 else "",
        note=f"In brackets: {level:.4g}% intervals{looks}, about {about}. Labels saved: factor by "
        "which labels alone would have to increase for the same interval"
        f"{counted_only if no_factor else ''}. Responses: number of equal-sized responses with as "
        "much information as the labeled ones, or as that many random ones if these have less. "
        f"{_FREEDOM}",
    )


def _differences_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        data_frame(rows),
        (*columns_as('title ""'), *_BESIDE, *columns_as("freedom:1 df")),
        "Differences of models.",
        group="of",
        note="For the same claims, quantities that depend on labels alone are equal in all "
        "models. A response's contributions to both models are paired, both in labels alone "
        f"and in the estimate. {_FREEDOM}",
    )


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    sentences = []
    several = len({row["of"] for row in rows}) > 1
    for row in rows:
        unvaried = math.isnan(row["value_lower"]) and row["freedom"] > 0
        if row["quantity"] != rows[0]["quantity"] and not unvaried:
            continue
        of = f"{row['of']}: " if several else ""
        if math.isnan(row["value_lower"]):
            responses = counted(row["n_responses"], "response")
            why = f"labels are of {responses}"
            if unvaried:
                why = f"labels of {responses} are alike, or fitted exactly"
            sentences.append(
                f"{of}{row['title']} {number(row['value'])}; there is no interval, because "
                f"{why}: label more."
            )
            continue
        ends = interval(row["value_lower"], row["value_upper"])
        alone = interval(row["labels_lower"], row["labels_upper"])
        used = (
            f"labels alone say {alone}"
            if row["weight"] != 0
            else "the probabilities do not help, so only labels are used"
        )
        sentences.append(
            f"{of}{row['title']} {number(row['value'])} {ends} from {row['n_labeled']:,} labeled "
            f"of {row['n_items']:,}; {used}."
        )
    return sentences


def _few_effective(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Remarks on intervals that may not cover, because the labels may lack a kind of response."""
    few = [row for row in rows if row["may_lack_kinds"] and not math.isnan(row["value_lower"])]
    if not few:
        return []
    least = min(few, key=lambda row: row["effective"])
    titles = list(dict.fromkeys(row["title"] for row in few))
    which = "The intervals" if len(few) == len(rows) else f"Intervals ({some_of(titles)})"
    # Each quantity weighs responses in its own way: a threshold keeps claims of some alone.
    alike = max(row["effective"] for row in few) < 1.001 * least["effective"]
    whose = "" if alike else f"the {least['title']}"
    lack = missing_kind_warning(which, least["effective"], least["level"], whose=whose)
    return [
        f"{lack} Label more; --choose N --stratified spreads labels over sizes and probabilities."
    ]


def _unlike(claims: _Claims) -> list[str]:
    """Remarks on labeled responses or claims that differ from all in size or mean probability."""
    grouping, labeled = claims.grouping, claims.labeled
    if np.ptp(claims.weights[labeled]) > 0:
        # A sample with unequal probabilities differs by design; weights correct for it.
        return []
    p = claims.frame["p"].to_numpy()
    n_of_response = grouping.sums(labeled)
    touched = n_of_response > 0
    if (n_of_response[touched] == grouping.sizes[touched]).all():
        what, units = "responses", touched
        known = {"number of claims": grouping.sizes.astype(float), "probability": grouping.means(p)}
    else:
        what, units = "claims", labeled
        sizes = grouping.sizes[grouping.index].astype(float)
        known = {"number of claims of their responses": sizes, "probability": p}
    sentences = []
    for name, values in known.items():
        compared = balance(values, units)
        if compared.p_value < _NOT_ALIKE:
            sentences.append(
                f"The labeled {what} differ from all: their mean {name} is "
                f"{number(compared.labeled)}, and the mean of all is {number(compared.overall)} "
                f"({p_equals(compared.p_value)}). Estimates assume a random sample."
            )
    return sentences


# --------------------------------------------------------------------------------------- choice


def _chosen(
    table: DataTable, claims: _Claims, settings: EstimateSettings
) -> tuple[dict[str, Table], str]:
    """Sheet to fill in, plan of intervals by number of labels, and a sentence on the choice."""
    unit = Unit(settings.unit)
    grouping = claims.grouping
    p = claims.frame["p"].to_numpy()
    expected = spread(p, grouping, unit)
    minutes = _minutes(unit, grouping, settings.minutes)
    free = ~claims.labeled if unit is Unit.CLAIM else grouping.sums(claims.labeled) == 0
    n = settings.choose or 0
    if n > free.sum():
        some = f"{counted(int(free.sum()), unit.value)} without a label; choose fewer"
        raise InputError(
            f"--choose {n}: {table.source} has {some if free.any() else f'a label of every {unit}'}"
        )
    chances = inclusion_probabilities(expected, minutes, n, free)
    batch = int(claims.batch.max(initial=0)) + 1
    order = None
    if settings.stratified:
        of_unit = np.arange(p.size) if unit is Unit.CLAIM else grouping.index
        n_of_unit = np.bincount(of_unit)
        order = stratified_order(
            np.bincount(of_unit, grouping.sizes[grouping.index]) / n_of_unit,
            np.bincount(of_unit, p) / n_of_unit,
            n,
        )
    drawn = draw(chances, settings.seed + batch, order)
    drawn_claims = drawn if unit is Unit.CLAIM else drawn[grouping.index]
    each = chances if unit is Unit.CLAIM else chances[grouping.index]
    rows = _sheet_rows(claims, drawn_claims, each, batch)
    if settings.sheet is not None:
        write_text(settings.sheet, csv_text(rows))
    cost = float(minutes[drawn].sum())
    shown = [name for name in rows[0] if name not in _SHEET]
    sheet = Table(
        data_frame(rows),
        (*text_columns(*shown), *columns_as("probability:4")),
        "Claims to label next.",
    )
    units = counted(int(drawn.sum()), unit.value)
    claims_of_units = "" if unit is Unit.CLAIM else f" with {counted(len(rows), 'claim')}"
    if settings.sheet is None:
        where, mend = "", "write it to a file with --sheet FILE and fill it in"
    else:
        where = f", in {settings.sheet}"
        others = " together with the earlier sheets" if settings.labels else ""
        option = as_option("--labels", str(settings.sheet))
        mend = f"fill it in and pass it with {option}{others}"
    sentence = (
        f"{units}{claims_of_units} to label{where}: about {cost / 60:.1f} hours. This is batch "
        f"{batch}: {mend}. Do not let the intervals decide when to stop, unless --looks gives "
        "the number of looks."
    )
    return {"sheet": sheet, **_plan(claims, settings, p)}, sentence


def _minutes(unit: Unit, grouping: Grouping, minutes: Sequence[float]) -> Floats:
    reading, labeling = minutes
    if unit is Unit.CLAIM:
        return np.full(grouping.index.size, reading + labeling)
    return reading + labeling * grouping.sizes.astype(float)


def _sheet_rows(claims: _Claims, chosen: Any, chances: Floats, batch: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for index in np.flatnonzero(chosen):
        row = claims.frame.iloc[index]
        rows.append(
            {
                **dict(zip(claims.by, row["by"], strict=True)),
                "response": str(row["response"]),
                "claim": row["claim"],
                **({"text": row["text"]} if "text" in claims.frame else {}),
                "label": None,
                "probability": float(chances[index]),
                "batch": batch,
            }
        )
    return rows


def _plan(claims: _Claims, settings: EstimateSettings, p: Floats) -> dict[str, Table]:
    """Expected intervals by number of further labels.

    Residuals are as large as those of the labels at hand, or of calibrated probabilities if the
    labels are of few responses. Empty if fewer claims are unlabeled than the smallest planned
    number.
    """
    grouping = claims.grouping
    law, seen = CALIBRATED, int((grouping.sums(claims.counting) > 0).sum())
    if seen >= _SEEN:
        y = np.array([math.nan if value is None else float(value) for value in claims.y])
        y[~claims.counting] = math.nan
        by_labels = share(
            p, y, grouping.index, irrelevant=claims.irrelevant, weights=claims.weights
        )
        law = observed_residuals(p, y, claims.weights, grouping, estimated(by_labels).power)
    rows = []
    at_hand: dict[str, int] = {}
    for unit in Unit:
        expected = spread(p, grouping, unit, law.alike)
        minutes = _minutes(unit, grouping, settings.minutes)
        labeled = claims.labeled if unit is Unit.CLAIM else grouping.sums(claims.labeled) > 0
        at_hand[unit.value] = int(labeled.sum())
        for n in [n for n in _PLANNED if n <= (~labeled).sum()]:
            chances = inclusion_probabilities(spread(p, grouping, unit), minutes, n, ~labeled)
            freedom = planned_freedom(np.where(labeled, 1.0, chances), grouping)
            # Labels of two responses or fewer give no interval.
            reach = math.nan
            if freedom > 0:
                reach = float(student_quantile(settings.level, np.asarray(freedom)))
            rows.append(
                {
                    "unit": unit.value,
                    "n": n,
                    "hours": float(chances @ minutes) / 60,
                    "half_width": reach
                    * planned_error(expected, chances, p, grouping, law, at_hand=labeled),
                }
            )
    if not rows:
        return {}
    known = " and ".join(counted(n, unit) for unit, n in at_hand.items() if n)
    caption = "Expected intervals by number of labels" + (
        f", added to the labels of {known} at hand." if known else "."
    )
    plan = Table(
        data_frame(rows),
        columns_as(
            f"n:0 {'to add' if known else 'labeled'} | hours:1 | "
            "half_width:3 share of true claims ±"
        ),
        caption,
        group="unit",
        note="If the probabilities are calibrated; worse ones widen the intervals."
        if seen < _SEEN
        else f"By the residuals of labels of {counted(seen, 'response')}.",
    )
    return {"plan": plan}


def _figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, PaperFigure]:
    """Figures of each estimate with the estimate from labels alone."""
    shown = [row for row in rows if not math.isnan(row["value_lower"])]
    if not shown:
        return {}
    from calibration.figures.panels import PAGE, draw_interval, nth_look, panels

    titles = list(dict.fromkeys(row["title"] for row in shown))
    names = list(dict.fromkeys(row["of"] for row in shown))
    size = (PAGE, 0.9 + 0.4 * len(names))
    with panels(1, len(titles), size, sharey=True) as (figure, (axes,)):
        for axis, title in zip(axes, titles, strict=True):
            for row in shown:
                height = len(names) - names.index(row["of"])
                for look, name in enumerate(("value", "labels")):
                    ends = tuple(row[f"{name}{end}"] for end in ENDS)
                    if row["title"] == title:
                        draw_interval(axis, height - 0.3 * look, ends, **nth_look(look))
            axis.set_xlabel(title[:1].upper() + title[1:])
        heights = [
            len(names) - index - 0.3 * look for index in range(len(names)) for look in (0, 1)
        ]
        tick_names = [f"{name}{more}" for name in names for more in ("", ", labels alone")]
        axes[0].set_yticks(heights, tick_names)
        axes[0].set_ylim(min(heights) - 0.25, max(heights) + 0.25)
    labeled = counted_range([row["n_labeled"] for row in shown], "label")
    responses = counted_range([row["n_responses"] for row in shown], "response")
    title = f"Estimates, compared with labels alone: {labeled} in {responses}"
    return {"beside-labels": PaperFigure(figure, data_frame(shown), title)}
