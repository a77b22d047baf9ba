"""Priors of the sources of passages, learned from labeled claims and scored on others."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from calibration.intervals import missing_kind_warning
from calibration.learned_potentials.graph_fitting import (
    WHOLE,
    FitStatus,
    LearnedPotentials,
    ValueStatus,
    cross_fitting,
)
from calibration.learned_potentials.graph_loss import with_labels
from calibration.learned_potentials.graph_potentials import CONTEXTS, Potentials, source_class
from experiments.columns.reader import as_option
from experiments.findings.claim_scores import (
    RANKED,
    labeled_atoms,
    score_change,
    scores_with_intervals,
)
from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as, data_frame, named
from experiments.findings.text import labeled_sizes, some_of
from experiments.progress import tell
from experiments.settings import option_of
from experiments.settings.inputs import graphs_of
from experiments.settings.source_priors import ENCODING_COLUMN
from factormodels.claims import is_evidence
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.source.files import write_text
from factormodels.nouns import counted
from factormodels.passage_sources import OTHERS, PassageKey
from factormodels.variants import has_default_prior, passage_source, variant
from inference.batch import claim_posteriors

if TYPE_CHECKING:
    from experiments.methods.fit import FitSettings
    from experiments.settings.inputs import Responses

KINDS = ("source", "domain", "kind")
"""Values of --columns that learn priors of sources."""

FEWEST = 20
"""Number of labeled claims below which a source has no separate prior and uses the prior of
`others`."""

MATTERS = 0.001
"""Difference of Brier scores below which the choice of priors does not matter."""

_SPREAD = 10.0
"""Standard deviation of the normal prior on the log odds of a prior. A smaller value pulls the
prior of an unreliable source toward the given prior: intervals from 60 responses covered a prior of
0.3 in 0.88 of 180 draws with 3, and in 0.96 of 54 draws with 10."""

_LEVEL = 0.95
"""Nominal coverage of the intervals."""

_READ = ("columns", "save", "variant", "folds", "seed", "objective")
"""Settings that learning priors uses."""

GIVEN, SHARED = "priors as given", "one prior"


def fitted_sources(responses: Responses, settings: FitSettings) -> Findings:
    """Learn a prior for each source of passages, and score the priors on held-out responses.

    Args:
        responses: labeled responses with passages and relations.
        settings: settings of learning; `columns` is one of `KINDS`.

    Raises:
        InputError: if no claim has a label, or no passage states a source.
        MissingDependencyError: if PyTorch is not installed.
    """
    _check(settings)
    by = cast("PassageKey", settings.columns[0])
    source = str(responses) if isinstance(responses, str | Path) else "the responses"
    graphs = [variant(graph, settings.variant) for graph in with_labels(graphs_of(responses))]
    if settings.folds == 1 or settings.folds > len(graphs):
        raise InputError(
            f"{source}: --folds {settings.folds} does not fit {counted(len(graphs), 'response')} "
            f"with labels; give 2 to {len(graphs)}, or 0 for none"
        )
    n_passages, n_claims = _counts(graphs, by)
    if not any(n_passages):
        raise InputError(
            f"{source}: no passage states its {by}; give links, or a column 'source' in a table "
            "of relations"
        )
    frequent = sorted(name for name, count in n_claims.items() if name and count >= FEWEST)
    models = {
        SHARED: Potentials((CONTEXTS,), contexts_by=source_class(by, ())),
        f"prior by {by}": Potentials((CONTEXTS,), contexts_by=source_class(by, frequent)),
    }
    atoms, p = labeled_atoms(graphs, source), {}
    p[GIVEN] = claim_posteriors(graphs)
    for name, potentials in models.items():
        tell(f"learns: {name}")
        crossing = cross_fitting(
            graphs,
            potentials,
            n_folds=max(settings.folds, 2),
            seed=settings.seed,
            objective=settings.objective,
            penalty=_SPREAD,
            with_errors=False,
        )
        if settings.folds:
            p[name] = claim_posteriors(crossing.learned()[1])
    learned = _whole(graphs, models[f"prior by {by}"], settings)
    rows = _prior_rows(learned, n_passages, n_claims, set(frequent))
    scores = _score_rows({name: each[atoms.kept] for name, each in p.items()}, atoms, settings.seed)
    of = labeled_sizes(graphs)
    tables = {"priors": _priors_table(rows, by, of)}
    if settings.folds:
        tables = {"scores": _scores_table(scores, of), **tables}
    encoding = models[f"prior by {by}"].encoding
    sentences = [
        *_sentences(scores if settings.folds else [], rows, learned, by),
        f"The priors belong to the encoding {encoding}: another one gives the same prior another "
        "effect.",
    ]
    if settings.save is not None:
        _write(rows, encoding, settings.save)
        sentences.append(
            f"The priors are in {settings.save}: {as_option('--prior', str(settings.save))} with "
            f"{as_option('--prior-by', by)} uses them."
        )
    return Findings(source, tuple(sentences), tables)


def _check(settings: FitSettings) -> None:
    """Refuse options that do not apply to learning priors.

    Raises:
        InputError: for the first such option, a second family, or a file that is not .csv.
    """
    if len(settings.columns) > 1:
        raise InputError(
            f"--columns {','.join(settings.columns)}: source, domain and kind learn priors and "
            "cannot be combined with other columns; leave the others out"
        )
    for name in sorted(settings.model_fields_set):
        if name not in _READ:
            raise InputError(
                f"--{option_of(type(settings), name).name} applies to a judge, and --columns "
                f"{settings.columns[0]} learns priors of passages; leave one out"
            )
    if settings.save is not None and settings.save.suffix != ".csv":
        raise InputError(
            f"--save {settings.save}: priors of sources are a table; name a file that ends in .csv"
        )


def _whole(
    graphs: Sequence[FactGraph], potentials: Potentials, settings: FitSettings
) -> LearnedPotentials:
    """Fit to all responses, with standard errors."""
    crossing = cross_fitting(
        graphs, potentials, n_folds=2, objective=settings.objective, penalty=_SPREAD
    )
    return crossing.without(WHOLE)


def _counts(graphs: Sequence[FactGraph], by: PassageKey) -> tuple[Counter[str], Counter[str]]:
    """Counts of passages, and of labeled claims with a relation to one, by source ("" for none)."""
    n_passages: Counter[str] = Counter()
    n_claims: Counter[str] = Counter()
    for graph in graphs:
        sources = {
            context.id: passage_source(context, graph, by)
            for context in graph.contexts
            if has_default_prior(context)
        }
        n_passages.update(sources.values())
        labeled = {atom.id for atom in graph.atoms if atom.label is not None}
        pairs = set()
        for relation in graph.relations:
            for passage, claim in (
                (relation.source, relation.target),
                (relation.target, relation.source),
            ):
                evidence = is_evidence(relation.kind, relation.probability)
                if passage in sources and claim in labeled and evidence:
                    pairs.add((sources[passage], claim))
        n_claims.update(name for name, _ in pairs)
    if not any(n_passages):
        n_passages.clear()
    return n_passages, n_claims


def _prior_rows(
    learned: LearnedPotentials,
    n_passages: Counter[str],
    n_claims: Counter[str],
    frequent: set[str],
) -> list[dict[str, Any]]:
    """A row per prior, the largest number of claims first and `others` last."""
    rows = []
    for value in learned.table():
        name = value.name.removeprefix(f"{CONTEXTS}[").removesuffix("]")
        inside = [name] if name != OTHERS else [each for each in n_passages if each not in frequent]
        known = value.status is ValueStatus.OK
        row: dict[str, Any] = {
            "source": name,
            "passages": sum(n_passages[each] for each in inside),
            "claims": sum(n_claims[each] for each in inside),
        }
        ends = (value.lower, value.upper) if known else (math.nan, math.nan)
        row |= named("prior", (value.estimate, *ends))
        row |= {"effective": value.effective, "few": value.may_lack_kinds(_LEVEL)}
        rows.append(row | {"status": str(value.status)})
    return sorted(rows, key=lambda row: (row["source"] == OTHERS, -row["claims"], row["source"]))


def _score_rows(p: Mapping[str, Any], atoms: Any, seed: int) -> list[dict[str, Any]]:
    """Scores of each set of posteriors, and its Brier score minus that with the given priors."""
    rows = []
    for name, each in p.items():
        row: dict[str, Any] = {"model": name}
        row |= scores_with_intervals(each, atoms, RANKED, seed)
        changes = {"difference": GIVEN, "difference_shared": SHARED}
        for column, other in changes.items():
            ends = (math.nan,) * 3
            if other in p and other != name and (other == GIVEN or name != GIVEN):
                ends = score_change("brier", each, p[other], atoms, seed)
            row |= named(column, ends)
        rows.append(row)
    return rows


def _priors_table(rows: Sequence[Mapping[str, Any]], by: str, of: str) -> Table:
    return Table(
        data_frame([dict(row) for row in rows]),
        columns_as(
            f"source {by} | passages:0 | claims:0 labeled claims | prior:3± | "
            "effective:1 responses | status"
        ),
        f"Priors of passages by source, learned from {of}.",
        note="In brackets: 95% intervals over responses. Others: sources with fewer than "
        f"{FEWEST} labeled claims, and passages without a source. Passages with a stated "
        "prior keep it. Responses: of equal size, that say as much about the prior.",
    )


def _scores_table(rows: Sequence[Mapping[str, Any]], of: str) -> Table:
    return Table(
        data_frame([dict(row) for row in rows]),
        columns_as(
            "model | brier:4± Brier | log_loss:3± log loss | auroc:3± AUROC | "
            "difference:4± Brier minus as given | difference_shared:4± Brier minus one prior"
        ),
        f"Scores of {of}, held out by fold.",
        note=(
            "In brackets: 95% intervals over responses; differences are paired. Relations are "
            "as given."
        ),
    )


def _sentences(
    scores: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    learned: LearnedPotentials,
    by: PassageKey,
) -> Iterator[str]:
    """Sentences on the effect of priors by source, and on the training data."""
    if scores:
        last = scores[-1]
        ends = last["difference_shared_lower"], last["difference_shared_upper"]
        if max(map(abs, ends)) < MATTERS:
            verdict = f"less than {MATTERS:g}, so that a single prior does as well"
        elif ends[1] < 0:
            verdict = "priors by source help"
        elif ends[0] > 0:
            verdict = "one prior is better"
        else:
            verdict = "these labels cannot distinguish them from a single prior"
        yield (
            f"On held-out responses, the Brier score with a prior by {by} minus that with a "
            f"single prior is {last['difference_shared']:+.4f} [{ends[0]:+.4f}, {ends[1]:+.4f}]: "
            f"{verdict}."
        )
    weak = [row["source"] for row in rows if row["prior_upper"] < 0.5]
    if weak:
        yield (
            f"Reliable with less than even odds: {some_of(weak)}; passages of these sources "
            "change claims little."
        )
    few = [row for row in rows if row["few"] and not math.isnan(row["prior_lower"])]
    if few:
        least = min(few, key=lambda row: row["effective"])
        which = f"Intervals ({some_of([row['source'] for row in few])})"
        lack = missing_kind_warning(which, least["effective"], _LEVEL, whose=least["source"])
        yield f"{lack} Label more."
    # A prior that depends on a single response has no interval either.
    unsure = [row["source"] for row in rows if math.isnan(row["prior_lower"])]
    if unsure:
        yield (f"Labels do not determine the prior of {some_of(unsure)}; it has no interval.")
    if learned.status is FitStatus.NOT_CONVERGED:
        yield "The optimizer did not converge; use FR1, whose posteriors are exact."
    yield (
        f"Learned from {counted(learned.n_labeled, 'labeled claim')} of "
        f"{counted(learned.n_responses, 'response')}, with a normal prior of standard deviation "
        f"{_SPREAD:g} on the log odds, centered at the given priors."
    )


def _write(rows: Sequence[Mapping[str, Any]], encoding: str, path: Path) -> None:
    """Write priors as a table that --prior reads."""
    text = io.StringIO()
    names = ("source", "prior", "prior_lower", "prior_upper", "claims")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*names, ENCODING_COLUMN))
    for row in rows:
        cells = [*(row[name] for name in names), encoding]
        writer.writerow(["" if isinstance(x, float) and np.isnan(x) else x for x in cells])
    write_text(path, text.getvalue())
