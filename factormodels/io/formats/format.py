"""Declarations of formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from factormodels.io.formats.items import Item
from factormodels.io.not_used import Tree, key_tree
from factormodels.io.tables.records import Source

if TYPE_CHECKING:
    from factormodels.io.formats.record import ToolRecord

Read = Callable[[object, Source, int | None], Any]


@dataclass(frozen=True)
class ToolVerdicts:
    """Verdicts of another tool in the records of a format, for documentation.

    Attributes:
        tool: name of the tool.
        file: output of the tool that holds them.
        probability: P(true) of each verdict.
    """

    tool: str
    file: str
    probability: str


@dataclass(frozen=True)
class Format:
    """A format of the records of a dataset.

    Attributes:
        name: name on the command line.
        title: title of the dataset.
        owner: repository or site of its owner.
        holds: kind of the resulting items.
        keys: identifying keys, for documentation.
        recognize: returns whether a JSON object is a record of it.
        read: converts a record, given its file and line, to an item, a list of items, or an
            argument of `gather`.
        record: the type of the record that `read` uses, which declares the used keys.
        fields: the keys that a record should have, for reports of missing ones: ``a[].b`` is the
            key b of every entry of the list a, ``a{}.b`` of every value of the object a; one of
            ``a|b`` suffices.
        also: further keys that are used, or ignored because another key has the same content, in
            the notation of `fields`; * matches any text. All other keys of a record are unused.
        gather: converts all records together, if one is not enough.
        companion: the format of the file that belongs to it; empty if there is none.
        closed: whether `read` refuses unknown keys.
        verdicts: the verdicts of another tool in it; None if it has none.
    """

    name: str
    title: str
    owner: str
    holds: Literal["responses", "prompts", "pairs", "passages", "claims"]
    keys: tuple[str, ...]
    recognize: Callable[[Mapping[str, Any]], bool]
    read: Read
    record: type[ToolRecord] | None = None
    fields: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    gather: Callable[[Sequence[Any]], Sequence[Item]] | None = None
    companion: str = ""
    closed: bool = False
    verdicts: ToolVerdicts | None = None

    @property
    def every_field(self) -> tuple[str, ...]:
        """The keys of `fields`, with all that suffice in each other's place."""
        return tuple(name for path in self.fields for name in path.split("|"))

    @cached_property
    def used_keys(self) -> Tree | None:
        """Return the keys of a record that are used; None if `read` refuses all other keys."""
        if self.closed:
            return None
        stated = key_tree((*self.keys, *self.every_field, *self.also))
        if self.record is None:
            return stated
        # Imported on demand, for formats with a record type.
        from factormodels.io.formats.record import declared_keys

        return _merged(stated, declared_keys(self.record))

    def fits(self, obj: object) -> bool:
        """Return whether a JSON value is a record of this format."""
        return isinstance(obj, dict) and self.recognize(obj)

    def items(self, parsed: Sequence[Any]) -> list[Item]:
        """Return the items of the results of `read` for several records, in order."""
        if self.gather is not None:
            return list(self.gather(parsed))
        gathered: list[Item] = []
        for value in parsed:
            gathered.extend(value if isinstance(value, list) else [value])
        return gathered


def _merged(first: Tree, second: Tree) -> Tree:
    """Merge the keys of two trees, including those below common keys."""
    below = {key: _merged(tree, second[key]) for key, tree in first.items() if key in second}
    return {**first, **second, **below}
