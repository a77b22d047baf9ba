"""Judges: fitted fields with the data needed to apply them to other responses, saved as JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from calibration.learned_potentials.columns import (
    FAMILIES,
    MEANINGS,
    OTHERS,
    RESPONSE,
    SENTENCE,
    ClaimTable,
    UserColumns,
    claim_table,
    records_texts,
)
from calibration.learned_potentials.fitting import (
    LEAST_SPREAD,
    ColumnScale,
    Field,
    FieldSettings,
    fit_field,
)
from calibration.learned_potentials.harm import Harm, harm_of
from calibration.learned_potentials.modules import POTENTIALS, MakeModule, batch_of
from calibration.learned_potentials.shift import LawOfEvidence, Shift, shift_of
from calibration.validation import Floats
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.learned_files import (
    LARGEST,
    Fields,
    LearnedFormat,
    learned_content,
    read_learned,
)
from factormodels.io.source.files import read_text, write_text
from factormodels.io.taught_responses import identities_as_plain, identities_from
from factormodels.metadata.evidence_source import WORDS, EvidenceSource, evidence_sources
from factormodels.metadata.learned_from import (
    LearnedFrom,
    ResponseIdentity,
    joined_mark,
    labeled_identities,
    learned_from,
    relations_mark,
)
from factormodels.metadata.recorded_verdicts import ASSESSORS_KEY, RecordedVerdict, verdict_facts
from factormodels.nouns import counted
from factormodels.variants import VARIANTS

_FILE = LearnedFormat(
    "factormodels judge",
    2,
    "judge",
    "give the file that factormodels fit wrote, and then the responses",
    "fit it anew",
)

LINEAR, CUSTOM = "linear", "custom"
_OWN_COLUMN = "a column of the user"
_SCALE = ("lower", "upper", "mean", "spread")

_MOST_WEIGHT = 1e4
"""Largest magnitude of a weight in log odds per standard deviation. Its exponential is not finite,
so that a larger weight has no further effect."""

NAME = "judge"
"""Name of the assessor under which a judge's posteriors are recorded."""

_LAW = ("support 1", "mean support", "passages")
"""Columns whose distribution is saved, in addition to the distribution of the log odds."""


@dataclass(frozen=True, eq=False)
class Judge:
    """A fitted field, with the data needed to apply it to other responses.

    Attributes:
        field: the fitted field.
        families: families of columns that it uses.
        view: graph variant whose relations count as a claim's evidence.
        own_columns: names of the user's columns.
        own_groups: names of the user's groups that are causes.
        sources: relation models and retrievers of the training evidence.
        law: evidence of the n training claims.
        labels: labels of the training claims, 1 or 0, (n,).
        n_claims: number of claims, labeled or not, on which columns were standardized.
        scores: rows of out-of-fold scores of the judge and of other methods; empty if not computed.
        without_texts: judge learned from the same labels without columns of texts, for responses
            that lack texts; None if this judge uses no texts.
        taught: identities of the training responses with labels.
        edited: whether its file has no digest, so that it cannot be verified as unmodified.
    """

    field: Field
    families: tuple[str, ...]
    view: str
    own_columns: tuple[str, ...]
    own_groups: tuple[str, ...]
    sources: tuple[EvidenceSource, ...]
    law: LawOfEvidence
    labels: Floats
    n_claims: int
    scores: tuple[Mapping[str, Any], ...] = ()
    without_texts: Judge | None = None
    taught: tuple[ResponseIdentity, ...] = ()
    edited: bool = False

    def reading(self, graphs: Sequence[FactGraph]) -> Judge:
        """Judge to apply to some responses: `without_texts` if any of them lacks texts."""
        other = self.without_texts
        return self if other is None or records_texts(graphs) else other

    @property
    def share(self) -> float:
        """Share of true claims among the training claims."""
        return float(self.labels.mean())

    def table(self, graphs: Sequence[FactGraph], own: UserColumns | None = None) -> ClaimTable:
        """Columns of other responses that the judge uses.

        Raises:
            InputError: for columns that do not match, or evidence recorded as made by another
                relation model or retriever.
        """
        have = (own.names, own.groups) if own is not None else ((), ())
        if have[0] != self.own_columns or not {*self.own_groups} <= {*have[1]}:
            needs = ", ".join((*self.own_columns, *self.own_groups)) or "none"
            raise InputError(
                f"the judge reads these columns of the user: {needs}; those given are "
                f"{', '.join((*have[0], *have[1])) or 'none'}"
            )
        table = claim_table(graphs, self.families, self.field.causes, view=self.view, own=own)
        _check_evidence(graphs, self.families, table)
        return table

    def other_evidence(self, graphs: Sequence[FactGraph]) -> str:
        """Sentence on recorded differences in the sources of evidence; empty if there are none."""
        differences = []
        for name, words in WORDS.items():
            learned = {getattr(source, name) for source in self.sources} - {None}
            here = {getattr(source, name) for source in evidence_sources(graphs)} - {None}
            if learned and here - learned:
                both = [", ".join(map(str, sorted(each, key=str))) for each in (here, learned)]
                differences.append(f"{words} {both[0]}, not {both[1]}")
        if not differences:
            return ""
        return (
            "the evidence here was made differently from the training evidence: "
            f"{'; '.join(differences)}"
        )

    def unrecorded(self, graphs: Sequence[FactGraph]) -> str:
        """Sentence on evidence whose sources are not recorded; empty if all are."""
        made = {
            "the training evidence": self.sources,
            "the evidence here": evidence_sources(graphs),
        }
        lacking = [
            words
            for words, sources in made.items()
            if any(None in (source.relation_model, source.retriever) for source in sources)
        ]
        if not lacking:
            return ""
        return (
            f"Not all sources of {' and '.join(lacking)} are recorded: whether both were made in "
            "the same way is unknown"
        )

    def shift(self, table: ClaimTable, *, n_bootstrap: int = 1000, seed: int = 0) -> Shift:
        """Test whether the evidence of other claims is a mixture of the training evidence."""
        new = _law(self.field, table, np.arange(len(table.labels)))
        true, false = (self.law.of(np.flatnonzero(self.labels == label)) for label in (1, 0))
        mean = float(self.field.probabilities(table).mean())
        return shift_of(true, false, new, mean, n_bootstrap=n_bootstrap, seed=seed)

    def harm(self, table: ClaimTable, *, n_bootstrap: int = 1000, seed: int = 0) -> Harm:
        """Bounds on the effect of a shift of evidence on the posteriors of other claims."""
        new = _law(self.field, table, np.arange(len(table.labels)))
        p = self.field.probabilities(table)
        return harm_of(self.law, self.labels, new, p, n_bootstrap=n_bootstrap, seed=seed)

    def probabilities(self, table: ClaimTable, share: float | None = None) -> Floats:
        """Posterior of each claim, (n,).

        Args:
            table: the claims, as returned by `table`.
            share: target mean of the posteriors, reached by adding a constant to all log odds; None
                keeps the learned prior.
        """
        if share is None:
            return self.field.probabilities(table)
        from scipy.optimize import brentq

        def missed(step: float) -> float:
            return float(self.field.probabilities(table, step).mean()) - share

        return self.field.probabilities(table, float(brentq(missed, -20.0, 20.0, xtol=1e-6)))

    def posteriors(self, graphs: Sequence[FactGraph], own: UserColumns | None = None) -> Floats:
        """Posterior of each claim, (n,), with every response judged separately.

        The posteriors of a response do not depend on what other responses lack. Unlike `table`,
        this method accepts responses that record none of the data that columns use.
        """
        parts = [np.empty(0)]
        # A table needs at least one claim.
        asked = (graph for graph in graphs if graph.atoms)
        for judge, group in groupby(asked, lambda graph: self.reading([graph])):
            causes = judge.field.causes
            table = claim_table(list(group), judge.families, causes, view=judge.view, own=own)
            parts.append(judge.field.probabilities(table))
        return np.concatenate(parts)

    def learned_from(self, graphs: Sequence[FactGraph]) -> list[LearnedFrom]:
        """Marks of the responses whose labels trained the judge or the relations that it uses."""
        marks = learned_from(self.taught, graphs)
        return [
            joined_mark(mark, relations_mark(graph)) or mark
            for mark, graph in zip(marks, graphs, strict=True)
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the judge as JSON.

        Raises:
            InputError: if the file cannot be written.
        """
        write_text(path, _lines(self.as_plain()) + "\n")

    def as_plain(self) -> dict[str, Any]:
        """The judge as JSON data."""
        content = {
            **_content(self),
            "without_texts": self.without_texts and _content(self.without_texts),
            "labelled_responses": identities_as_plain(self.taught),
        }
        return learned_content(_FILE, content, signed=not self.edited)


def learn_judge(
    graphs: Sequence[FactGraph],
    settings: FieldSettings | None = None,
    *,
    families: Sequence[str] = ("evidence", "position"),
    causes: Sequence[str] = (SENTENCE, RESPONSE),
    view: str = "FR1",
    own: UserColumns | None = None,
    scores: Sequence[Mapping[str, Any]] = (),
) -> Judge:
    """Learn a judge from labeled responses.

    Args:
        graphs: the responses; claims without a label only contribute as neighbors.
        settings: settings of the fit.
        families: families of columns.
        causes: levels of hidden causes.
        view: graph variant whose relations count as a claim's evidence.
        own: the user's columns.
        scores: rows of out-of-fold scores to save with the judge.

    Raises:
        InputError: as `claim_table` and `fit_field`.
    """
    table = claim_table(graphs, families, causes, view=view, own=own)
    _check_evidence(graphs, families, table)
    field = fit_field(table, settings)
    kept = np.flatnonzero(~np.isnan(table.labels))
    others, without = [name for name in families if name != "texts"], None
    if others and "texts" in families:
        without = learn_judge(graphs, settings, families=others, causes=causes, view=view, own=own)
    return Judge(
        field,
        tuple(families),
        view,
        own.names if own is not None else (),
        tuple(name for name in own.groups if name in causes) if own is not None else (),
        evidence_sources(graphs),
        _law(field, table, kept),
        table.labels[kept],
        len(table.labels),
        tuple(scores),
        without,
        labeled_identities(graphs),
    )


def read_judge(path: str | os.PathLike[str], module: MakeModule | None = None) -> Judge:
    """Read a judge from a file.

    Args:
        path: a file written by `Judge.save`.
        module: function that makes its module, if that is not in `modules.POTENTIALS`.

    Raises:
        InputError: if the file is not a judge, has another version, or is damaged.
    """
    return judge_of(read_text(path), path, module)


def judge_of(
    text: str, path: str | os.PathLike[str] = "the judge", module: MakeModule | None = None
) -> Judge:
    """Read a judge from the text of its file.

    Args:
        text: text written by `Judge.save`.
        path: name of the file in errors.
        module: function that makes its module, if that is not in `modules.POTENTIALS`.

    Raises:
        InputError: as `read_judge`.
    """
    judge, signed = read_learned(text, path, _FILE, lambda fields: _whole_judge(fields, module))
    return judge if signed else replace(judge, edited=True)


def with_judged_priors(graph: FactGraph, judge: Judge, view: FactGraph) -> FactGraph:
    """View of a response with the judge's posteriors as priors of its claims.

    Relations with passages, which the judge has already used, are left out. Relations between
    claims are kept.

    Args:
        graph: the response as recorded.
        judge: the judge.
        view: the view.
    """
    priors = dict(zip(graph.atom_ids, judge.posteriors([graph]).tolist(), strict=True))
    # A view of stars has copies of contexts, with different ids.
    contexts = set(view.context_ids)
    kept = tuple(r for r in view.relations if contexts.isdisjoint((r.source, r.target)))
    return replace(view.with_priors(atoms=priors), relations=kept)


def judged(
    graphs: Sequence[FactGraph],
    p: Floats,
    marks: Sequence[LearnedFrom | None],
    name: str = NAME,
) -> tuple[FactGraph, ...]:
    """Responses with posteriors recorded as the verdicts of an assessor.

    Args:
        graphs: the responses.
        p: posterior of each of their claims, in order.
        marks: by response, the labels from which its posteriors were learned, or None.
        name: name of the assessor.
    """
    values, results = iter(p.tolist()), []
    for graph, mark in zip(graphs, marks, strict=True):
        verdicts = {}
        for atom in graph.atoms:
            p_true = next(values)
            word = "supported" if p_true >= 0.5 else "unsupported"
            verdicts[atom.id] = RecordedVerdict(word, p_true)
        others = graph.metadata.get(ASSESSORS_KEY) or {}
        assessors = {**others, name: verdict_facts(verdicts, mark)}
        results.append(replace(graph, metadata={**graph.metadata, ASSESSORS_KEY: assessors}))
    return tuple(results)


def _content(judge: Judge) -> dict[str, Any]:
    """The judge as JSON data, without the judge for missing texts and the training responses."""
    field, law = judge.field, judge.law
    size, levels = field.parameters.shape[1], len(field.causes)
    errors = [None] * (size + 2 * levels)
    if field.standard_errors is not None:
        errors = field.standard_errors.tolist()
    linear = field.potential == LINEAR
    columns = []
    for number, name in enumerate(field.columns):
        column: dict[str, Any] = {"name": name, "meaning": MEANINGS.get(name, _OWN_COLUMN)}
        for key in _SCALE:
            column[key] = float(getattr(field.scale, key)[number])
        if linear:
            column["weight"] = float(field.parameters[0, number])
            column["standard_error"] = errors[number]
        columns.append(column)
    intercept = {"weight": float(field.parameters[0, -1]), "standard_error": errors[size - 1]}
    return {
        "families": list(judge.families),
        "variant": judge.view,
        "own_columns": list(judge.own_columns),
        "own_groups": list(judge.own_groups),
        "potential": field.potential,
        "columns": columns,
        **({"intercept": intercept} if linear else {"parameters": field.parameters.tolist()}),
        "causes": [
            {
                "level": name,
                "coupling": field.couplings[:, number].tolist(),
                "coupling_error": errors[size + number],
                "bias": field.biases[:, number].tolist(),
                "bias_error": errors[size + levels + number],
            }
            for number, name in enumerate(field.causes)
        ],
        "penalty": field.penalty,
        "converged": field.converged,
        "evidence": [asdict(source) for source in judge.sources],
        "learned_from": {
            "responses": law.n_responses,
            "claims": len(judge.labels),
            "share_true": judge.share,
            "claims_with_columns": judge.n_claims,
        },
        "scores": [
            {key: None if value != value else value for key, value in row.items()}
            for row in judge.scores
        ],
        "law": {
            "response": law.owners.tolist(),
            "label": judge.labels.astype(int).tolist(),
            "evidence": np.round(law.values, 4).T.tolist(),
        },
    }


_CONTENT = (
    *("families", "variant", "own_columns", "own_groups", "potential", "columns", "causes"),
    *("penalty", "converged", "evidence", "learned_from", "scores", "law"),
)
"""Keys of `_content`, except those of the potential."""


def _whole_judge(fields: Fields, module: MakeModule | None) -> Judge:
    """Read a judge from the JSON data of `Judge.as_plain`."""
    content, rest = dict(fields.value), dict[str, Any]()
    for key in ("without_texts", "labelled_responses"):
        if key in content:
            rest[key] = content.pop(key)
    judge = _judge_from(replace(fields, value=content), module)
    fields = replace(fields, value=rest)
    fields.only("without_texts", "labelled_responses")
    taught = identities_from(fields.object("labelled_responses"))
    if len(taught) != judge.law.n_responses:
        fields.refuse("labelled_responses", f"of {counted(judge.law.n_responses, 'response')}")
    others, without = [name for name in judge.families if name != "texts"], None
    if others and "texts" in judge.families:
        without = _judge_from(fields.object("without_texts"), module)
        if list(without.families) != others:
            fields.refuse("without_texts", f"a judge of the columns {', '.join(others)}")
        without = replace(without, taught=taught)
    elif rest["without_texts"] is not None:
        fields.refuse("without_texts", "null, where no column or every column reads texts")
    return replace(judge, without_texts=without, taught=taught)


def _judge_from(fields: Fields, module: MakeModule | None) -> Judge:
    """Read a judge from the JSON data of `_content`."""
    potential = fields.text("potential", (*POTENTIALS, CUSTOM))
    fields.only(*_CONTENT, "intercept" if potential == LINEAR else "parameters")
    # Earlier versions spelled a family "neighbours".
    spelled = fields.texts("families", (*FAMILIES, "neighbours"))
    families = tuple(name.replace("neighbours", "neighbors") for name in spelled)
    view = fields.text("variant", VARIANTS)
    own_columns, own_groups = fields.texts("own_columns"), fields.texts("own_groups")
    learned = fields.object("learned_from")
    learned.only("responses", "claims", "share_true", "claims_with_columns")
    n_claims = learned.whole("claims_with_columns", 2)
    names = (*(name for family in families for name in FAMILIES[family]), *own_columns)
    field = _field_from(fields, potential, names, own_groups, n_claims, module)
    law, labels = _law_from(fields.object("law"), learned, names)
    sources = fields.objects("evidence")
    if not sources:
        fields.refuse("evidence", "a list of one source or more")
    return Judge(
        field,
        families,
        view,
        own_columns,
        own_groups,
        tuple(map(_source_from, sources)),
        law,
        labels,
        n_claims,
        tuple(map(_scores_from, fields.objects("scores"))),
    )


def _field_from(
    fields: Fields,
    potential: str,
    names: tuple[str, ...],
    own_groups: tuple[str, ...],
    n_claims: int,
    module: MakeModule | None,
) -> Field:
    """Read the field of a judge with these columns."""
    if potential == CUSTOM and module is None:
        raise InputError(
            f"{fields.where}: the judge's potential is a user-defined module; read it in Python "
            "with read_judge(path, module=...)"
        )
    linear = potential == LINEAR
    columns = fields.objects("columns")
    if len(columns) != len(names):
        fields.refuse("columns", f"a list of {len(names)}: {', '.join(names)}")
    for name, column in zip(names, columns, strict=True):
        column.only("name", "meaning", *_SCALE, *(("weight", "standard_error") if linear else ()))
        column.text("name", (name,))
        column.text("meaning", (MEANINGS.get(name, _OWN_COLUMN),))
    scale = np.array([_scale_from(each, n_claims) for each in columns]).reshape(-1, len(_SCALE)).T
    batch = batch_of(module if potential == CUSTOM and module else potential, len(columns))
    if linear:
        parts = [*columns, fields.object("intercept")]
        parts[-1].only("weight", "standard_error")
        weights = [each.number("weight", -_MOST_WEIGHT, _MOST_WEIGHT) for each in parts]
        parameters = np.array([weights])
        errors = [each.optional_number("standard_error", 0.0) for each in parts]
    else:
        parameters = np.array(fields.rows("parameters", None, batch.size, _MOST_WEIGHT))
        errors = [None] * batch.size
        if not len(parameters):
            fields.refuse("parameters", "a list of one member or more")
    causes, members = fields.objects("causes"), len(parameters)
    known = (SENTENCE, RESPONSE, *own_groups)
    levels = tuple(cause.text("level", known) for cause in causes)
    if len(set(levels)) < len(levels) or not {*own_groups} <= {*levels}:
        fields.refuse("causes", f"a list that has each of {', '.join(known)} once at most")
    ends: dict[str, list[list[float]]] = {"coupling": [], "bias": []}
    of_causes: dict[str, list[float | None]] = {"coupling_error": [], "bias_error": []}
    for cause in causes:
        cause.only("level", *ends, *of_causes)
        for key, values in ends.items():
            values.append(cause.numbers(key, members, -_MOST_WEIGHT, _MOST_WEIGHT))
        for key, cause_errors in of_causes.items():
            cause_errors.append(cause.optional_number(key, 0.0))
    errors += [*of_causes["coupling_error"], *of_causes["bias_error"]]
    if None in errors and any(error is not None for error in errors):
        fields.refuse("columns", "a list in which all standard errors are given, or none is")
    return Field(
        names,
        levels,
        ColumnScale(*scale),
        potential,
        batch,
        parameters,
        np.array(ends["coupling"]).reshape(-1, members).T,
        np.array(ends["bias"]).reshape(-1, members).T,
        None if None in errors else np.array(errors, np.float64),
        fields.number("penalty", 0.0),
        fields.flag("converged"),
    )


def _scale_from(column: Fields, n_claims: int) -> list[float]:
    """Lower and upper end, mean and standard deviation of a column of n claims.

    The deviation must be at most half the range (Popoviciu 1935), and at least the deviation that
    the two claims at the ends alone cause. A constant column has deviation 1.
    """
    lower, upper, mean, spread = (column.number(key) for key in _SCALE)
    if lower > upper:
        column.refuse("lower", f"a number up to the upper end, {upper!r}")
    slack = 1e-9 * max(abs(lower), abs(upper))
    if not lower - slack <= mean <= upper + slack:
        column.refuse("mean", f"a number between the ends, {lower!r} and {upper!r}")
    width = upper - lower
    least, most = width / np.sqrt(2 * n_claims) - slack, width / 2 + slack
    constant = spread == 1.0 and least <= LEAST_SPREAD
    if not constant and not (spread > LEAST_SPREAD and least <= spread <= most):
        column.refuse(
            "spread",
            f"a standard deviation of {counted(n_claims, 'claim')} between the ends, {lower!r} "
            f"and {upper!r}",
        )
    return [lower, upper, mean, spread]


def _law_from(law: Fields, learned: Fields, names: Sequence[str]) -> tuple[LawOfEvidence, Floats]:
    """Distribution of evidence, and the labels of its claims."""
    law.only("response", "label", "evidence")
    n_responses = learned.whole("responses", 1)
    n_claims = learned.whole("claims", 2, learned.whole("claims_with_columns", 2))
    owners = law.wholes("response", n_claims, 0, n_responses - 1)
    if len(set(owners)) < n_responses:
        law.refuse(
            "response", f"a list in which each of {counted(n_responses, 'response')} has a claim"
        )
    labels = law.wholes("label", n_claims, 0, 1)
    if len(set(labels)) < 2:
        law.refuse("label", "a list that has both 0 and 1")
    share = float(np.mean(labels))
    if abs(learned.number("share_true", 0.0, 1.0) - share) > 1e-9:
        learned.refuse("share_true", f"the share of true labels, {share!r}")
    n_kinds = 1 + sum(name in names for name in _LAW)
    values = law.rows("evidence", n_kinds, n_claims, LARGEST)
    evidence = LawOfEvidence(np.array(values).T, np.array(owners, np.int64), n_responses)
    return evidence, np.array(labels, np.float64)


def _source_from(fields: Fields) -> EvidenceSource:
    """A source of evidence."""
    fields.only("relation_model", "least", "retriever", "top_k")
    return EvidenceSource(
        fields.optional_text("relation_model"),
        fields.optional_number("least", 0.0, 1.0),
        fields.optional_text("retriever"),
        None if fields.value["top_k"] is None else fields.whole("top_k"),
    )


def _scores_from(fields: Fields) -> Mapping[str, Any]:
    """A row of scores."""
    row: dict[str, Any] = {"model": fields.text("model")}
    for key in fields.value.keys() - {"model"}:
        value = fields.optional_number(key)
        row[key] = math.nan if value is None else value
    return {key: row[key] for key in fields.value}


def _lines(value: Any, margin: str = "") -> str:
    """Format JSON with every list or object of plain values on a single line."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(each, dict | list) for each in inner):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    step = f"{margin} "
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {_lines(each, step)}" for key, each in value.items()]
    else:
        rows = [_lines(each, step) for each in value]
    ends = "{}" if isinstance(value, dict) else "[]"
    return f"{ends[0]}\n{step}" + f",\n{step}".join(rows) + f"\n{margin}{ends[1]}"


def _law(field: Field, table: ClaimTable, kept: Any) -> LawOfEvidence:
    """Evidence of claims: their log odds from all columns, and the columns in `_LAW`."""
    # Round, because equal evidence in two responses must not differ by the order of a sum.
    log_odds = np.round(field.log_odds(table), 4)
    values = np.column_stack([log_odds, table.of(_LAW, ()).values])[kept]
    _, owners = np.unique(table.responses[kept], return_inverse=True)
    return LawOfEvidence(np.round(values, 4), owners.astype(np.int64), int(owners.max()) + 1)


def _check_evidence(
    graphs: Sequence[FactGraph], families: Sequence[str], table: ClaimTable
) -> None:
    """Refuse responses that record none of a family's data, whose columns would be constant."""
    relations = any(graph.relations for graph in graphs)
    others = table.of(list(OTHERS)[-1:], ()).values
    texts = any(c.text or c.snippet for graph in graphs for c in graph.contexts)
    there = {
        "evidence": ("relation", relations),
        "neighbors": ("relation", relations),
        "others": ("relation with a passage that was retrieved for other claims", others.any()),
        "passages": ("text of a passage", texts),
    }
    for family in families:
        words, present = there.get(family, ("", True))
        if not present:
            raise InputError(
                f"no response has a {words}, which the columns {family!r} read; make "
                "graphs with factormodels assess, or fit a judge of other --columns"
            )
