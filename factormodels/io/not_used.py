"""Contents of a file that no reader used, for the last line of a command.

A reader states the keys of a record that it reads; `note_record` records the others within a block
of `noting`. The name of a key suggests its content. Claims, labels, evidence, probabilities and
responses are listed first, with counts; other keys follow, and are mentioned only after these.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType
from typing import Any

_KINDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "labels": frozenset(
            (
                *("label", "labels", "labelled", "labeled", "verdict", "verdicts", "annotation"),
                *("annotations", "factuality", "factual", "correct", "correctness", "truth"),
                *("truths", "gold", "judgement", "judgements", "judgment", "judgments", "human"),
                *("supported", "hallucination", "hallucinated", "hallucinations", "rating"),
            )
        ),
        "evidence": frozenset(
            (
                *("evidence", "evidences", "context", "contexts", "passage", "passages"),
                *("document", "documents", "doc", "docs", "snippet", "snippets", "reference"),
                *("references", "citation", "citations", "knowledge", "retrieved", "attribution"),
            )
        ),
        "claims": frozenset(
            (
                *("claim", "claims", "subclaim", "subclaims", "statement", "statements", "fact"),
                *("facts", "atom", "atoms", "triplet", "triplets", "assertion", "assertions"),
                *("proposition", "propositions"),
            )
        ),
        "probabilities": frozenset(
            (
                *("probability", "probabilities", "prob", "probs", "logprob", "logprobs", "p"),
                *("confidence", "confidences", "score", "scores", "likelihood"),
            )
        ),
        "responses": frozenset(
            (
                *("response", "responses", "answer", "answers", "completion", "completions"),
                *("generation", "generations", "output", "outputs", "samples", "sampled"),
            )
        ),
    }
)
"""Words in names of keys, by kind of content."""

_ABOUT = frozenset(
    (
        *("id", "ids", "idx", "url", "urls", "link", "links", "name", "names", "count", "index"),
        *("time", "date", "type", "model", "length", "path", "file", "title", "hash", "source"),
        *("stats", "tokens", "order"),
    )
)
"""Last words of names of properties of contents."""

_COUNTS = frozenset(("num", "n", "number", "count", "total"))
"""First words of names of counts."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_DEPTH = 4
_SAMPLE = 50
_MOST_OTHERS = 8

Tree = Mapping[str, "Tree"]
"""Keys that a reader reads, each with the keys that it reads below; empty if it reads all."""


@dataclass(slots=True)
class UnusedKey:
    """A key that no reader used.

    Attributes:
        kind: kind of content by its name; empty if unknown.
        count: number of its values, with elements of lists counted individually.
        inner: kinds of the keys within its values.
    """

    kind: str
    count: int = 0
    inner: set[str] = field(default_factory=set)

    @property
    def matters(self) -> bool:
        """True if it has contents that a command could have used."""
        return bool(self.kind or self.inner)


Notes = dict[str, dict[str, UnusedKey]]
"""Keys by file and path, such as ``claims.confidence``."""

_NOTES: ContextVar[Notes | None] = ContextVar("not_used", default=None)


@contextmanager
def noting() -> Iterator[Notes]:
    """Yield the notes of readers while the block runs.

    Within an enclosing block, the outer block receives the notes and the inner one none.
    """
    notes: Notes = {}
    if _NOTES.get() is not None:
        yield notes
        return
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


def key_tree(paths: Iterable[str]) -> Tree:
    """Return the tree of paths: ``a[].b`` is b of every entry of a, ``a{}.b`` of every value of a.

    A path within a key takes precedence over one that names only the key.
    """
    tree: dict[str, Any] = {}
    for path in paths:
        branch = tree
        for step in path.replace("[]", "").replace("{}", ".*").split("."):
            branch = branch.setdefault(step, {})
    return tree


def note_record(record: object, tree: Tree, source: object) -> None:
    """Note the keys of a record that its reader does not read, within `noting`."""
    notes = _NOTES.get()
    if notes is not None:
        note_unused(record, tree, notes.setdefault(str(source), {}))


def note_unused(record: object, tree: Tree, notes: dict[str, UnusedKey]) -> None:
    """Add the keys of a record that are not in a tree to notes."""
    for path, value in _unused(record, tree, ""):
        _add(notes, path, value)


def note_cells(rows: Iterable[Mapping[str, Any]], used: Collection[str], source: object) -> None:
    """Note the unused columns of a table, including those in lists of objects, within `noting`.

    Texts of claims and responses only identify a row, and are skipped.

    Args:
        rows: the rows.
        used: the columns that are used; keys within objects are joined by a dot.
        source: the file.
    """
    notes = _NOTES.get()
    if notes is None:
        return
    noted = notes.setdefault(str(source), {})
    names = frozenset(used)
    for row in rows:
        for path, value in _unused_cells(row, names, ""):
            if not (isinstance(value, str) and _kind_of(path) in ("claims", "responses")):
                _add(noted, path, value)


def not_used_sentence(notes: Notes) -> str:
    """Return one line on unused contents; empty if no unused content matters."""
    texts = {source: text for source, keys in notes.items() if (text := _listed_keys(keys))}
    if len(texts) == 1:
        return f"Not used: {next(iter(texts.values()))}."
    parts = "; ".join(f"of {source}: {text}" for source, text in texts.items())
    return f"Not used {parts}." if parts else ""


def not_used_records(notes: Notes) -> list[dict[str, Any]]:
    """Return the keys that matter as records with file, key, count and kind of content."""
    return [
        {
            "file": source,
            "key": name,
            "count": key.count,
            "holds": sorted({key.kind, *key.inner} - {""}),
        }
        for source, keys in notes.items()
        for name, key in keys.items()
        if key.matters
    ]


def _listed_keys(keys: Mapping[str, UnusedKey]) -> str:
    parts = []
    order = [*_KINDS, ""]
    for name, key in sorted(keys.items(), key=lambda item: order.index(item[1].kind)):
        if key.matters:
            inner = [f"with {kind}" for kind in _KINDS if kind in key.inner - {key.kind}]
            parts.append(f"{name} ({', '.join((f'{key.count:,}', *inner))})")
    if not parts:
        return ""
    others = [name for name, key in keys.items() if not key.matters]
    if len(others) > _MOST_OTHERS:
        others = [*others[:_MOST_OTHERS], f"{len(others) - _MOST_OTHERS} more"]
    return ", ".join(parts) + (f"; also {', '.join(others)}" if others else "")


def _add(notes: dict[str, UnusedKey], path: str, value: object) -> None:
    key = notes.get(path)
    if key is None:
        key = notes[path] = UnusedKey(_kind_of(path))
    key.count += len(value) if isinstance(value, list) else 1
    if isinstance(value, list | dict):
        key.inner |= _kinds_within(value)


def _unused(value: object, tree: Tree, path: str) -> Iterator[tuple[str, object]]:
    """Yield the contents of an object under keys that are not in the tree, with their paths."""
    if isinstance(value, list):
        for entry in value:
            yield from _unused(entry, tree, path)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if _is_blank(inner):
                continue
            below = _below(tree, key)
            if below is None:
                yield f"{path}{key}", inner
            elif below:
                # Keys of an object of entries, such as ids, do not describe the content.
                name = path if key not in tree and "*" in tree else f"{path}{key}."
                yield from _unused(inner, below, name)


def _below(tree: Tree, key: str) -> Tree | None:
    if key in tree:
        return tree[key]
    return next((below for name, below in tree.items() if fnmatchcase(key, name)), None)


def _unused_cells(
    row: Mapping[str, Any], used: frozenset[str], path: str
) -> Iterator[tuple[str, object]]:
    for key, value in row.items():
        if key in used or _is_blank(value):
            continue
        name = f"{path}{key}"
        if name in used:
            continue
        if isinstance(value, dict):
            yield from _unused_cells(value, used, f"{name}.")
        elif isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
            # Columns within lists of objects are identified by their own names.
            if used.isdisjoint(_leaves(value)):
                yield name, value
                continue
            for entry in value:
                for leaf, cell in _unused_cells(entry, used, ""):
                    yield f"{name}.{leaf}", cell
        else:
            yield name, value


def _leaves(value: object) -> Iterator[str]:
    """Yield the keys of all objects within a value."""
    if isinstance(value, list):
        for entry in value:
            yield from _leaves(entry)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _leaves(inner)


def _is_blank(value: object) -> bool:
    if isinstance(value, str):
        return not value or value.isspace()
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or (isinstance(value, list | dict) and not value)


@lru_cache(maxsize=1024)
def _kind_of(path: str) -> str:
    words = [word.casefold() for word in _WORD.findall(path.rsplit(".", 1)[-1])]
    if not words or words[-1] in _ABOUT or words[0] in _COUNTS:
        return ""
    return next((kind for kind, known in _KINDS.items() if not known.isdisjoint(words)), "")


def _kinds_within(value: object, depth: int = 0) -> set[str]:
    """Return the kinds of the keys within a value, judged by its first entries."""
    if depth > _DEPTH:
        return set()
    if isinstance(value, list):
        return {kind for entry in value[:_SAMPLE] for kind in _kinds_within(entry, depth + 1)}
    if not isinstance(value, dict):
        return set()
    kinds = {
        kind for key, inner in value.items() if not _is_blank(inner) and (kind := _kind_of(key))
    }
    for inner in value.values():
        kinds |= _kinds_within(inner, depth + 1)
    return kinds
