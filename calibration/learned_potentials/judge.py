"""A judge: a fitted field with all that its use on other responses asks for, as readable JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from calibration.learned_potentials.columns import (
    MEANINGS,
    OTHERS,
    RESPONSE,
    SENTENCE,
    ClaimTable,
    UserColumns,
    claim_table,
    records_texts,
)
from calibration.learned_potentials.fitting import ColumnScale, Field, FieldSettings, fit_field
from calibration.learned_potentials.modules import MakeModule, batch_of
from calibration.learned_potentials.shift import LawOfEvidence, Shift, shift_of
from calibration.validation import Floats
from factormodels.errors import InputError
from factormodels.evidence_source import WORDS, EvidenceSource, evidence_sources
from factormodels.fact_graph import FactGraph
from factormodels.io.files import read_text, write_text
from factormodels.recorded_verdicts import ASSESSORS_KEY, RecordedVerdict, verdict_facts

FORMAT, VERSION = "factormodels judge", 1

_NO_JUDGE = "this is no judge; give the file that factormodels fit wrote, and then the responses"

NAME = "judge"
"""What posteriors of a judge are recorded under."""

_LAW = ("support 1", "mean support", "passages")
"""Columns whose law is kept beside that of the log odds by all columns."""


@dataclass(frozen=True, eq=False)
class Judge:
    """A field that was learned, and what its use asks for.

    Attributes:
        field: the fitted field.
        families: families of columns that it reads.
        view: variant whose relations are a claim's own evidence.
        own_columns: names of columns of the user's.
        own_groups: names of groups of the user's that are causes.
        sources: what made the evidence that it was learned from.
        law: evidence of the claims that it was learned from.
        labels: their labels, 1 or 0, (n,).
        scores: rows of what it scored out of fold, and its rivals; empty where nobody looked.
        without_texts: what the same labels teach without columns of texts, for responses that
            lack some; None where it reads no texts.
    """

    field: Field
    families: tuple[str, ...]
    view: str
    own_columns: tuple[str, ...]
    own_groups: tuple[str, ...]
    sources: tuple[EvidenceSource, ...]
    law: LawOfEvidence
    labels: Floats
    scores: tuple[Mapping[str, Any], ...] = ()
    without_texts: Judge | None = None

    def reading(self, graphs: Sequence[FactGraph]) -> Judge:
        """The judge of some responses: `without_texts` where one of them lacks texts."""
        other = self.without_texts
        return self if other is None or records_texts(graphs) else other

    @property
    def share(self) -> float:
        """Share of true claims among those learned from."""
        return float(self.labels.mean())

    def table(self, graphs: Sequence[FactGraph], own: UserColumns | None = None) -> ClaimTable:
        """The columns that the judge reads, of other responses.

        Raises:
            InputError: for columns that do not fit, or evidence that another relation model or
                retriever is known to have made.
        """
        have = (own.names, own.groups) if own is not None else ((), ())
        if have[0] != self.own_columns or not {*self.own_groups} <= {*have[1]}:
            needs = ", ".join((*self.own_columns, *self.own_groups)) or "none"
            raise InputError(
                f"the judge reads these columns of one's own: {needs}; those given are "
                f"{', '.join((*have[0], *have[1])) or 'none'}"
            )
        found = claim_table(graphs, self.families, self.field.causes, view=self.view, own=own)
        _check_evidence(graphs, self.families, found)
        return found

    def other_evidence(self, graphs: Sequence[FactGraph]) -> str:
        """Sentence on what is known to have made the evidence otherwise; empty if nothing is."""
        told = []
        for name, words in WORDS.items():
            learned = {getattr(source, name) for source in self.sources} - {None}
            here = {getattr(source, name) for source in evidence_sources(graphs)} - {None}
            if learned and here - learned:
                both = [", ".join(map(str, sorted(each, key=str))) for each in (here, learned)]
                told.append(f"{words} {both[0]}, not {both[1]}")
        if not told:
            return ""
        return f"the evidence here was made otherwise than that learned from: {'; '.join(told)}"

    def unrecorded(self, graphs: Sequence[FactGraph]) -> str:
        """Sentence on evidence, there or here, of which nobody recorded what made it; or empty."""
        made = {
            "the evidence learned from": self.sources,
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
            f"What made {' and '.join(lacking)} is not all recorded: whether both were made in the "
            "same way is not known"
        )

    def shift(self, table: ClaimTable, *, n_bootstrap: int = 1000, seed: int = 0) -> Shift:
        """Whether the evidence of other claims is a mixture of what was learned."""
        new = _law(self.field, table, np.arange(len(table.labels)))
        true, false = (self.law.of(np.flatnonzero(self.labels == label)) for label in (1, 0))
        mean = float(self.field.probabilities(table).mean())
        return shift_of(true, false, new, mean, n_bootstrap=n_bootstrap, seed=seed)

    def probabilities(self, table: ClaimTable, share: float | None = None) -> Floats:
        """Posterior of each claim, (n,).

        Args:
            table: as `table` makes it.
            share: mean that the posteriors are moved to, by one step of all log odds; None: the
                prior that was learned stays.
        """
        if share is None:
            return self.field.probabilities(table)
        from scipy.optimize import brentq

        def missed(step: float) -> float:
            return float(self.field.probabilities(table, step).mean()) - share

        return self.field.probabilities(table, float(brentq(missed, -20.0, 20.0, xtol=1e-6)))

    def posteriors(self, graphs: Sequence[FactGraph], own: UserColumns | None = None) -> Floats:
        """Posterior of each claim, every response judged by what it records, (n,).

        What the other responses of a file lack changes nothing of a response. Unlike `table` it
        takes a response that records nothing of what columns read.
        """
        parts = [np.empty(0)]
        # A response without claims is nobody's, and a table has at least one claim.
        asked = (graph for graph in graphs if graph.atoms)
        for judge, group in groupby(asked, lambda graph: self.reading([graph])):
            causes = judge.field.causes
            table = claim_table(list(group), judge.families, causes, view=judge.view, own=own)
            parts.append(judge.field.probabilities(table))
        return np.concatenate(parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the judge as JSON.

        Raises:
            InputError: if the file cannot be written.
        """
        write_text(path, _lines(self.as_plain()) + "\n")

    def as_plain(self) -> dict[str, Any]:
        """The judge as JSON data."""
        field, scale = self.field, self.field.scale
        errors = field.standard_errors
        columns = []
        for place, name in enumerate(field.columns):
            meaning = MEANINGS.get(name, "a column of one's own")
            column: dict[str, Any] = {"name": name, "meaning": meaning}
            for key in ("lower", "upper", "mean", "spread"):
                column[key] = float(getattr(scale, key)[place])
            if field.potential == "linear":
                column["weight"] = float(field.parameters[0, place])
                column["standard_error"] = None if errors is None else float(errors[place])
            columns.append(column)
        return {
            "format": FORMAT,
            "version": VERSION,
            "families": list(self.families),
            "variant": self.view,
            "own_columns": list(self.own_columns),
            "own_groups": list(self.own_groups),
            "potential": field.potential,
            "columns": columns,
            "parameters": field.parameters.tolist(),
            "causes": [
                {
                    "level": name,
                    "coupling": field.couplings[:, place].tolist(),
                    "bias": field.biases[:, place].tolist(),
                }
                for place, name in enumerate(field.causes)
            ],
            "penalty": field.penalty,
            "converged": field.converged,
            "evidence": [asdict(source) for source in self.sources],
            "learned_from": {
                "responses": self.law.n_responses,
                "claims": len(self.labels),
                "share_true": self.share,
            },
            "scores": [
                {key: None if value != value else value for key, value in row.items()}
                for row in self.scores
            ],
            "without_texts": self.without_texts and self.without_texts.as_plain(),
            "law": {
                "response": self.law.owners.tolist(),
                "label": self.labels.astype(int).tolist(),
                "evidence": np.round(self.law.values, 4).T.tolist(),
            },
        }


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
    """A judge learned from labelled responses.

    Args:
        graphs: the responses; claims without a label are among their neighbours alone.
        settings: how the field is fitted.
        families: families of columns.
        causes: levels of hidden causes.
        view: variant whose relations are a claim's own evidence.
        own: columns of the user's.
        scores: what it scored out of fold, to be kept with it.

    Raises:
        InputError: as `claim_table` and `fit_field` do.
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
        tuple(scores),
        without,
    )


def read_judge(path: str | os.PathLike[str], module: MakeModule | None = None) -> Judge:
    """A judge from its file.

    Args:
        path: what `Judge.save` wrote.
        module: what makes its module, if that is none of `modules.POTENTIALS`.

    Raises:
        InputError: if it is no such file, of another version, or damaged.
    """
    return judge_of(read_text(path), path, module)


def judge_of(
    text: str, path: str | os.PathLike[str] = "the judge", module: MakeModule | None = None
) -> Judge:
    """A judge from the text of its file.

    Args:
        text: what `Judge.save` wrote.
        path: what errors call it.
        module: what makes its module, if that is none of `modules.POTENTIALS`.

    Raises:
        InputError: as `read_judge` does.
    """
    from factormodels.io.json_text import decode

    try:
        value = decode(text, str(path))
    except InputError:
        # Responses in the judge's place, or a file that was cut off.
        value = None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise InputError(f"{path}: {_NO_JUDGE}")
    if value.get("version") != VERSION:
        raise InputError(
            f"{path}: a judge of version {value.get('version')!r}; this release reads version "
            f"{VERSION}, so fit it anew"
        )
    try:
        return _from_plain(value, module)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{path}: the judge is damaged ({error!r}); fit it anew") from None


def with_judged_priors(graph: FactGraph, judge: Judge, view: FactGraph) -> FactGraph:
    """A view of a response whose claims have the judge's posteriors as priors.

    Relations with passages, which the judge has read, are left out; those between claims stay.

    Args:
        graph: the response as recorded.
        judge: the judge.
        view: the view.
    """
    priors = dict(zip(graph.atom_ids, judge.posteriors([graph]).tolist(), strict=True))
    # A view of stars has copies of contexts, under names of their own.
    contexts = set(view.context_ids)
    kept = tuple(r for r in view.relations if contexts.isdisjoint((r.source, r.target)))
    return replace(view.with_priors(atoms=priors), relations=kept)


def judged(graphs: Sequence[FactGraph], p: Floats) -> tuple[FactGraph, ...]:
    """Responses that carry posteriors as verdicts of an assessor named `NAME`.

    Args:
        graphs: the responses.
        p: posterior of each of their claims, in order.
    """
    values, found = iter(p.tolist()), []
    for graph in graphs:
        verdicts = {}
        for atom in graph.atoms:
            p_true = next(values)
            word = "supported" if p_true >= 0.5 else "unsupported"
            verdicts[atom.id] = RecordedVerdict(word, p_true)
        others = graph.metadata.get(ASSESSORS_KEY) or {}
        told = {**others, NAME: verdict_facts(verdicts)}
        found.append(replace(graph, metadata={**graph.metadata, ASSESSORS_KEY: told}))
    return tuple(found)


def _from_plain(value: Mapping[str, Any], module: MakeModule | None) -> Judge:
    columns, causes, law = value["columns"], value["causes"], value["law"]
    potential = value["potential"]
    if potential == "custom" and module is None:
        raise InputError(
            "the judge's potential is a module of one's own; read it in Python with "
            "read_judge(path, module=...)"
        )
    scale = ColumnScale(
        *(
            np.array([float(column[key]) for column in columns])
            for key in ("lower", "upper", "mean", "spread")
        )
    )
    parameters = np.array(value["parameters"], np.float64)
    batch = batch_of(module if potential == "custom" and module else potential, len(columns))
    if parameters.ndim != 2 or parameters.shape[1] != batch.size:
        raise ValueError(f"{parameters.shape} parameters of {len(columns)} columns")
    members = len(parameters)
    errors = [column.get("standard_error") for column in columns]
    field = Field(
        tuple(column["name"] for column in columns),
        tuple(cause["level"] for cause in causes),
        scale,
        potential,
        batch,
        parameters,
        np.array([cause["coupling"] for cause in causes], np.float64).reshape(-1, members).T,
        np.array([cause["bias"] for cause in causes], np.float64).reshape(-1, members).T,
        None if None in errors else np.array(errors, np.float64),
        float(value["penalty"]),
        bool(value["converged"]),
    )
    owners = np.array(law["response"], np.int64)
    evidence = np.array(law["evidence"], np.float64).T
    labels = np.array(law["label"], np.float64)
    if not len(owners) == len(evidence) == len(labels):
        raise ValueError("the law's columns are of different lengths")
    return Judge(
        field,
        tuple(value["families"]),
        value["variant"],
        tuple(value["own_columns"]),
        tuple(value["own_groups"]),
        tuple(EvidenceSource(**source) for source in value["evidence"]),
        LawOfEvidence(evidence, owners, int(value["learned_from"]["responses"])),
        labels,
        tuple(value["scores"]),
        _from_plain(value["without_texts"], module) if value.get("without_texts") else None,
    )


def _lines(value: Any, margin: str = "") -> str:
    """JSON for readers: what holds nothing but numbers and words stands in one line."""
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
    """Evidence of claims: their log odds by all columns, and columns of `_LAW`."""
    # Rounded, since equal evidence in two responses must not differ by the order of a sum.
    own = np.round(field.log_odds(table), 4)
    values = np.column_stack([own, table.of(_LAW, ()).values])[kept]
    _, owners = np.unique(table.responses[kept], return_inverse=True)
    return LawOfEvidence(np.round(values, 4), owners.astype(np.int64), int(owners.max()) + 1)


def _check_evidence(
    graphs: Sequence[FactGraph], families: Sequence[str], table: ClaimTable
) -> None:
    """Refuse responses that record nothing of what columns read: these would all say the same."""
    relations = any(graph.relations for graph in graphs)
    others = table.of(list(OTHERS)[-1:], ()).values
    texts = any(c.text or c.snippet for graph in graphs for c in graph.contexts)
    there = {
        "evidence": ("relation", relations),
        "neighbours": ("relation", relations),
        "others": ("relation with a passage that was retrieved for other claims", others.any()),
        "passages": ("text of a passage", texts),
    }
    for family in families:
        words, found = there.get(family, ("", True))
        if not found:
            raise InputError(
                f"no response has a {words}, which the columns {family!r} read; make "
                "graphs with factormodels assess, or fit a judge of other --columns"
            )
