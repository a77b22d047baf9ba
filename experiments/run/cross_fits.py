"""Learned priors of a study: what each fold's others teach, and the graphs that hold it.

They are fitted to the data as they are stated; strengths act on what was learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.learned_priors import LearnedPriors, Specification
from calibration.learned_priors.learned import apply
from calibration.learned_priors.parameters import Parameter, Parameters, ParameterScale
from experiments.results.rows import FAILED
from experiments.run.learning import KEEP, LEARN, specification
from experiments.study.config_parts import Learned, PriorSetting
from factormodels.errors import FactormodelsError
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    import pandas as pd

WHOLE = -1
"""In place of a fold: responses without a label, for which all labelled ones are others."""

COLUMNS = (
    *("dataset", "variant", "relation_model", "encoding", "prior", "fold", "parameter", "estimate"),
    *("standard_error", "lower", "upper", "start", "parameter_status"),
    *("n_responses", "n_labelled", "status", "converged", "error"),
)
"""Columns of priors.csv; a fit that failed has one row without a parameter."""

Key = tuple[str, str, str, str]
"""Variant, relation model, encoding and what tables call the priors."""


@dataclass(frozen=True)
class FoldFit:
    """What the responses outside one fold teach.

    Attributes:
        parameters: the free numbers.
        theta: their values on the scales without bounds, (k,).
        table: rows of `calibration.learned_priors.LearnedValue`, as plain data.
        n_responses: number of responses that it was fitted to.
        n_labelled: number of their labelled atoms.
        status: how the search ended, or `FAILED`.
        error: why it failed.
    """

    parameters: Parameters = field(default_factory=partial(Parameters, ()))
    theta: tuple[float, ...] = ()
    table: tuple[Mapping[str, Any], ...] = ()
    n_responses: int = 0
    n_labelled: int = 0
    status: str = FAILED
    error: str = ""

    @property
    def converged(self) -> bool:
        """Whether the search ended at an optimum, be it at the end of a range."""
        return self.status in ("converged", "boundary")


@dataclass(frozen=True)
class CrossFit:
    """Priors learned for the responses of a dataset in one view.

    Attributes:
        dataset: name of the dataset.
        variant: view of its graphs.
        relation_model: what the study calls the source of their relations.
        encoding: encoding of their relations.
        prior: the setting of the priors.
        fold: the fold of each response, (n_responses,), or `WHOLE`.
        fits: what was learned without each fold.
    """

    dataset: str
    variant: str
    relation_model: str
    encoding: str
    prior: PriorSetting
    fold: tuple[int, ...]
    fits: Mapping[int, FoldFit]

    @property
    def key(self) -> Key:
        """What tells it from the others of its dataset."""
        return self.variant, self.relation_model, self.encoding, self.prior.title

    def of(self, responses: Sequence[int]) -> CrossFit:
        """Return it for some responses alone, by position."""
        return replace(self, fold=tuple(self.fold[response] for response in responses))

    def graph(self, response: int, graph: FactGraph) -> FactGraph:
        """Return a response's view with what was learned without its fold.

        Raises:
            FactormodelsError: if nothing was learned, because the fit failed.
        """
        fit = self.fits[self.fold[response]]
        if fit.error:
            raise FactormodelsError(f"its priors could not be learned: {fit.error}")
        chosen = specification_of(self.prior, self.encoding)
        return apply(graph, chosen, fit.parameters, np.array(fit.theta))


def specification_of(prior: PriorSetting, encoding: str) -> Specification:
    """Return what a setting of the priors makes free, what it sets, and what it leaves."""
    learned = prior.learned or Learned()
    relations = [name for name in ("temperature", "probability") if name in learned.parameters]
    atom, context = (
        LEARN if f"{name}_prior" in learned.parameters else KEEP if value is None else repr(value)
        for name, value in (("atom", prior.atom), ("context", prior.context))
    )
    return specification(atom, context, relations[0] if relations else KEEP, learned.by, encoding)


def priors_table(fits: Sequence[CrossFit]) -> pd.DataFrame:
    """Return what was learned, one row per fold and parameter, with the columns `COLUMNS`.

    The fold is empty for the fit of all labelled responses, by which those without labels are
    judged.
    """
    import pandas as pd

    rows = []
    for cross in fits:
        for fold, fit in cross.fits.items():
            shared = {
                **{name: getattr(cross, name) for name in COLUMNS[:4]},
                "prior": cross.prior.title,
                "fold": pd.NA if fold == WHOLE else fold,
                **{name: getattr(fit, name) for name in ("n_responses", "n_labelled", "status")},
                "converged": fit.converged,
                "error": fit.error,
            }
            for value in fit.table or ({},):
                own = {name: value.get(name) for name in COLUMNS if name in value}
                own |= {"parameter": value.get("name"), "parameter_status": value.get("status")}
                rows.append({**shared, **{k: v for k, v in own.items() if k not in shared}})
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"fold": "Int64"})


def as_plain(learned: LearnedPriors) -> dict[str, Any]:
    """Return a fit as plain JSON data."""
    return {
        "error": "",
        "parameters": [asdict(item) for item in learned.parameters.items],
        "theta": learned.theta.tolist(),
        "table": [asdict(value) for value in learned.table()],
        "n_responses": learned.n_responses,
        "n_labelled": learned.n_labelled,
        "status": str(learned.status),
    }


def from_plain(value: Mapping[str, Any]) -> FoldFit:
    """Return the fit that plain data stand for; that of an error alone has failed."""
    if value["error"]:
        return FoldFit(error=value["error"])
    items = (
        Parameter(**{**item, "key": tuple(item["key"]), "scale": ParameterScale(item["scale"])})
        for item in value["parameters"]
    )
    return FoldFit(
        parameters=Parameters(tuple(items)),
        theta=tuple(value["theta"]),
        table=tuple(value["table"]),
        n_responses=value["n_responses"],
        n_labelled=value["n_labelled"],
        status=value["status"],
    )
