"""Relations of passages to claims as a table, with a row for each judged pair.

Columns are recognized by their names: the response, the claim, the passage, and the judgment: the
relation, with or without its probability, or the probabilities of entailment, contradiction and
neutral. Optional columns are texts, the label of the claim, and the address (`link`) and source of
the passage. The label of a claim, and the address and source of a passage, are the same in all its
rows:

    response,claim,passage,relation,probability,label
    r1,a1,c1,entailment,0.9,true
    r1,a2,c1,neutral,0.8,false

With three probabilities, the relation is the most probable kind, or neutral, with the distribution,
if that is less probable than 1/2. Without a column of neutral, its probability is the remainder.

A claim or passage without a text has its id as its text. A row without a passage is a claim without
retrieved passages.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factormodels.claims import (
    SUM_TOLERANCE,
    Atom,
    ClaimLabel,
    Context,
    Relation,
    RelationKind,
    check_stated_kind,
    evidence_or_neutral,
    likeliest_kind,
    validated_distribution,
)
from factormodels.decoded_values import located, shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.claim_rows import cell_name, required_name
from factormodels.io.labels import comma_remark, label_spelling
from factormodels.io.source.places import location
from factormodels.io.tables.numbers import Notation, cell_share, notation_remark
from factormodels.io.tables.records import Source
from factormodels.passage_sources import SOURCES_KEY
from factormodels.words import STANCES, folded

logger = logging.getLogger(__name__)


def _names_of_share(*words: str) -> tuple[str, ...]:
    """Return the names of a column with probabilities of a kind, from words for the kind."""
    forms = ("{}", "p {}", "p({})", "prob {}", "probability {}", "{} prob", "{} probability",
             "{} p", "{} score", "score {}")  # fmt: skip
    return tuple(form.format(word) for form in forms for word in words)


SHARE_NAMES: Mapping[str, tuple[str, ...]] = {
    "entailment": _names_of_share("entailment", "entails", "entail", "support", "supports"),
    "contradiction": _names_of_share(
        "contradiction", "contradicts", "contradict", "contra", "refute", "refutes"
    ),
    "neutral": _names_of_share(
        "neutral", "unrelated", "nei", "not enough info", "not enough information"
    ),
}
"""Recognized names of columns of a model's probabilities, by relation."""

_NAMES: Mapping[str, tuple[str, ...]] = {
    "response": (
        *("response", "response id", "answer id", "document"),
        # An id of a question, which is asked once. A plain id may identify the row, and a document
        # id the passage.
        *("qid", "query id", "question id", "prompt id", "sample id", "instance id", "example id"),
    ),
    "claim": ("claim", "claim id", "atom", "atom id"),
    "passage": ("passage", "passage id", "context", "context id", "evidence id"),
    "relation": ("relation", "relation kind", "stance", "verdict of passage"),
    "probability": (
        *("probability", "relation probability", "confidence", "prob", "conf", "score", "p"),
        *("relation score", "relation confidence", "stance score", "stance probability"),
    ),
    "label": ("label", "human label", "gold", "gold label", "annotation", "truth", "ground truth"),
    "claim text": ("claim text", "atom text"),
    "passage text": ("passage text", "context text", "evidence"),
    "link": ("link", "url", "passage link", "passage url", "context link", "evidence url"),
    "source": ("passage source", "context source", "evidence source", "source", "domain"),
    **SHARE_NAMES,
}
"""Recognized names of columns, the most likely first."""

_SHARES = tuple(SHARE_NAMES)


@dataclass(frozen=True)
class _Row:
    """A row, with its cells by meaning; missing columns are absent."""

    cells: Mapping[str, Any]
    where: str
    source: str

    def text(self, meaning: str) -> str:
        return cell_name(self.cells.get(meaning))


def looks_like_relation_row(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the columns of a relation of a passage to a claim."""
    columns = _columns(record)
    if any(isinstance(record[column], dict) for column in columns.values()):
        # The columns of a data frame, each an object, rather than a row.
        return False
    # A single share is a relation with missing columns, which are reported later.
    judged = "relation" in columns or not columns.keys().isdisjoint(_SHARES)
    return judged and columns.keys() >= {"response", "claim", "passage"}


def missing_columns(names: Sequence[str]) -> str:
    """Return the meanings that a table's columns lack for relations; empty if too few are
    recognized.

    Args:
        names: the columns of the table.
    """
    known = _columns(dict.fromkeys(names))
    # A single name, such as a claim, also occurs in many other tables.
    if len(known.keys() & {"response", "claim", "passage", "relation", *_SHARES}) < 2:
        return ""
    lacking = [name for name in ("response", "claim", "passage") if name not in known]
    if not known.keys() & {"relation", *_SHARES}:
        lacking.append("relation")
    return ", ".join(map(repr, lacking))


def parse_relation_row(obj: object, source: Source, line: int | None = None) -> _Row:
    """Return a row of the table, for `gather_relations`."""
    record: Mapping[str, Any] = obj if isinstance(obj, dict) else {}
    cells = {meaning: record[column] for meaning, column in _columns(record).items()}
    return _Row(cells, location(source, line), location(source))


def gather_relations(rows: Sequence[_Row]) -> list[FactGraph]:
    """Return the responses of a table, in the order of their first rows.

    Raises:
        InputError: for a row without its response or claim, an invalid relation or probability, a
            repeated pair, or a claim with two labels.
    """
    spelling = None
    if any(row.text("label") for row in rows):
        labels = [row.cells.get("label") for row in rows]
        _log_remark(rows[0], comma_remark("label", labels))
        spelling = label_spelling(labels, f"{rows[0].source}: column 'label'")
    responses: dict[str, list[_Row]] = {}
    labeled: dict[tuple[str, str], bool | None] = {}
    for row in rows:
        response, claim = (
            required_name(row.cells.get(meaning), f"{row.where}, column {meaning!r}", meaning)
            for meaning in ("response", "claim")
        )
        key = response, claim
        responses.setdefault(key[0], []).append(row)
        label_meaning = None if spelling is None else spelling.read(row.cells.get("label"))
        label = (
            None
            if label_meaning in (None, ClaimLabel.IRRELEVANT)
            else label_meaning is ClaimLabel.SUPPORTED
        )
        if labeled.setdefault(key, label) != label:
            raise InputError(
                f"{row.where}: claim {key[1]!r} of response {key[0]!r} has another label than in "
                "an earlier row; give each claim one label"
            )
    notations: dict[str, Counter[Notation]] = {}
    graphs = [
        _graph(name, response_rows, labeled, notations) for name, response_rows in responses.items()
    ]
    for meaning, counts in notations.items():
        _log_remark(rows[0], notation_remark(meaning, counts))
    if any(_leaves_neutral(row) for row in rows):
        _log_remark(
            rows[0],
            "No column is recognized as 'neutral': its probability is 1 minus those of entailment "
            "and contradiction",
        )
    return graphs


def _leaves_neutral(row: _Row) -> bool:
    """Return whether a row has columns of entailment and contradiction but not of neutral."""
    return _SHARES[-1] not in row.cells and row.cells.keys() >= set(_SHARES[:-1])


def _log_remark(row: _Row, remark: str) -> None:
    if remark:
        logger.warning("%s: %s", row.source, remark)


def _graph(
    name: str,
    rows: Sequence[_Row],
    labeled: Mapping[tuple[str, str], bool | None],
    notations: dict[str, Counter[Notation]],
) -> FactGraph:
    atoms: dict[str, Atom] = {}
    passages: dict[str, tuple[str, dict[str, None]]] = {}
    relations: dict[tuple[str, str], Relation] = {}
    links: dict[str, str] = {}
    sources: dict[str, str] = {}
    claims = {row.text("claim") for row in rows}
    for row in rows:
        claim, passage = row.text("claim"), row.text("passage")
        text = row.text("claim text") or claim
        atoms.setdefault(claim, Atom(claim, text, label=labeled[name, claim]))
        if not passage:
            continue
        # Claims and passages are often numbered alike, but ids are unique in a graph.
        passage_id = f"passage {passage}" if passage in claims else passage
        _, served = passages.setdefault(passage_id, (row.text("passage text") or passage, {}))
        served[claim] = None
        for meaning, known in (("link", links), ("source", sources)):
            stated = row.text(meaning)
            if known.setdefault(passage_id, stated) != stated:
                raise InputError(
                    f"{row.where}, column {meaning!r}: the passage {passage!r} has "
                    f"{shown(known[passage_id])} in an earlier row; give it one {meaning}"
                )
        if (passage_id, claim) in relations:
            raise InputError(
                f"{row.where}: the passage {passage!r} and the claim {claim!r} are in an earlier "
                "row; keep one"
            )
        relations[passage_id, claim] = _relation(row, passage_id, claim, notations)
    return FactGraph(
        name,
        tuple(atoms.values()),
        tuple(
            Context(passage_id, text, link=links[passage_id], retrieved_for=tuple(served))
            for passage_id, (text, served) in passages.items()
        ),
        tuple(relations.values()),
        metadata={SOURCES_KEY: named} if (named := _named(sources)) else {},
    )


def _named(sources: Mapping[str, str]) -> dict[str, str]:
    return {passage: name for passage, name in sources.items() if name}


def _relation(
    row: _Row, passage: str, claim: str, notations: dict[str, Counter[Notation]]
) -> Relation:
    def share(meaning: str) -> float | None:
        cell_at = f"{row.where}, column {meaning!r}"
        number, notation = cell_share(row.cells.get(meaning), cell_at, "a probability")
        notations.setdefault(meaning, Counter()).update(notation)
        return number

    shares = {kind: share(kind) for kind in _SHARES}
    word = folded(row.cells.get("relation"))
    if word and word not in STANCES:
        raise InputError(
            f"{row.where}, column 'relation': {shown(row.text('relation'))} is unknown; use one of "
            f"{', '.join(RelationKind)}"
        )
    known_shares = {kind: value for kind, value in shares.items() if value is not None}
    if _leaves_neutral(row) and len(known_shares) == len(_SHARES) - 1:
        known_shares[_SHARES[-1]] = left_to_neutral(known_shares, row.where)
    if known_shares and len(known_shares) < len(_SHARES):
        lacking = next(kind for kind in _SHARES if kind not in known_shares)
        if lacking not in row.cells:
            raise InputError(
                f"{row.where}: there is a probability of {next(iter(known_shares))}, and no column "
                f"is recognized as {lacking!r}; add it, or a column 'relation' with its "
                "'probability'"
            )
        raise InputError(
            f"{row.where}: column {lacking!r} is empty beside other probabilities; give all three"
        )
    if not word and not known_shares:
        raise InputError(
            f"{row.where}: it has no relation; give one, or the probabilities of "
            f"{', '.join(_SHARES)}"
        )
    with located(row.where):
        if not known_shares:
            alone = share("probability")
            return Relation(passage, claim, STANCES[word], 1.0 if alone is None else alone)
        pair = f"relation {passage!r} -> {claim!r}"
        distribution = validated_distribution(known_shares, pair)
        kind, probability = likeliest_kind(*(known_shares[share] for share in _SHARES))
        if word and (stated := STANCES[word]) is not kind:
            if stated not in known_shares:
                raise InputError(
                    f"{pair}: there is no probability of {stated} beside those of "
                    f"{', '.join(_SHARES)}; give one of these as the relation, or leave the three "
                    "probabilities out"
                )
            check_stated_kind(stated, distribution or (), pair)
            kind, probability = stated, known_shares[stated]
        return evidence_or_neutral(Relation(passage, claim, kind, probability, distribution))


def left_to_neutral(known_shares: Mapping[str, float], where: str) -> float:
    """Return the remainder of the probabilities of entailment and contradiction, for neutral."""
    total = sum(known_shares.values())
    if total > 1.0 + SUM_TOLERANCE:
        raise InputError(
            f"{where}: the probabilities of {' and '.join(known_shares)} sum to {total:g}, more "
            "than 1; give probabilities of one distribution, with neutral beside them"
        )
    return max(0.0, 1.0 - total)


def _columns(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the column of each meaning that a record has."""
    by_name = {folded(name): name for name in reversed([name for name in record if name])}
    return {
        meaning: by_name[known_name]
        for meaning, names in _NAMES.items()
        if (known_name := next((name for name in names if name in by_name), None)) is not None
    }
