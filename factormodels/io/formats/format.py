"""What a format declares of itself."""

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
class Format:
    """A format of the records of a dataset.

    Attributes:
        name: what the command line calls it.
        title: the dataset.
        owner: where its owner publishes it.
        holds: what a file of it becomes.
        keys: the keys that documentation names it by.
        recognize: whether a JSON object is a record of it.
        read: what a record becomes, given its file and line: an item, a list of items, or what
            `gather` takes.
        record: the record that `read` takes, whose keys are used.
        fields: the keys that a record should have, of which a check says where they lack: ``a[].b``
            is the key b of every entry of the list a, ``a{}.b`` of every value of the object a.
        also: further keys that are used, or passed over because another key says the same, written
            as in `fields`; * stands for any text. Every other key of a record is not used.
        gather: what becomes of all records together, where that takes more than one.
        companion: the format of the file that belongs beside it; empty where there is none.
        closed: whether `read` refuses keys that it does not know.
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

    @cached_property
    def used_keys(self) -> Tree | None:
        """The keys of a record that are used; None if `read` refuses every other key."""
        if self.closed:
            return None
        stated = key_tree((*self.keys, *self.fields, *self.also))
        if self.record is None:
            return stated
        # The library behind records is loaded for formats that have one.
        from factormodels.io.formats.record import declared_keys

        return _merged(stated, declared_keys(self.record))

    def fits(self, obj: object) -> bool:
        """Whether a JSON value is a record of this format."""
        return isinstance(obj, dict) and self.recognize(obj)

    def items(self, parsed: Sequence[Any]) -> list[Item]:
        """Items of what `read` returned for several records, in order."""
        if self.gather is not None:
            return list(self.gather(parsed))
        gathered: list[Item] = []
        for value in parsed:
            gathered.extend(value if isinstance(value, list) else [value])
        return gathered


def _merged(first: Tree, second: Tree) -> Tree:
    """Return the keys of two trees; below a key of both, those of both."""
    below = {key: _merged(tree, second[key]) for key, tree in first.items() if key in second}
    return {**first, **second, **below}
