"""Strict reader of YAML written by users.

Nodes are counted while PyYAML composes them, before values are built. ruamel.yaml (0.19, safe and
pure) refuses duplicate keys and tags and survives nested aliases, but 3,000 nested brackets take 2
s and end in a RecursionError (here the 51st is refused), an alias within its own target becomes a
list that contains itself, 012 is read as 12, and dates are not plain data.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml

from factormodels.decoded_values import shown
from factormodels.errors import InputError

_MOST_CHARACTERS = 2**20
"""Maximum characters of a YAML text, and of its values with every alias expanded."""

_MOST_VALUES = 20_000
"""Maximum mappings, lists, keys and scalars, with every alias expanded."""

_MOST_LEVELS = 50
_MOST_DIGITS = 250
"""Maximum digits of a number, which a float can represent to any base."""

_SHOWN = 200

_TAG = "tag:yaml.org,2002:"
_NUMBERS = (f"{_TAG}int", f"{_TAG}float")


@dataclass(frozen=True)
class _Extent:
    """Size of a node, with every alias expanded."""

    values: int
    characters: int
    levels: int


class _Loader(yaml.SafeLoader):
    """YAML's safe subset of plain data, without its pitfalls and with limits.

    Duplicate keys are refused (PyYAML keeps the last), and 1e-6 is a number (a text in YAML 1.1,
    since it has no point). Dates stay texts. The size of a text with its aliases expanded is
    determined before values are built.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._extents: dict[int, _Extent] = {}
        self._open = 0
        self._composed = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node, unless the data are too many or nested too deeply."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        self._composed += 1
        self._open += 1
        if self._open > _MOST_LEVELS:
            _refuse(f"values are nested more than {_MOST_LEVELS} deep", event.start_mark)
        if self._composed > _MOST_VALUES:
            _refuse(f"there are more than {_MOST_VALUES:,} values", event.start_mark)
        node = super().compose_node(parent, index)
        self._open -= 1
        if isinstance(event, yaml.AliasEvent):
            if node is not None and id(node) not in self._extents:
                _refuse(
                    "an alias refers to a value that contains it: write the value out",
                    event.start_mark,
                )
        elif node is not None:
            extent = self._extents[id(node)] = self._extent(node)
            if extent.values > _MOST_VALUES or extent.characters > _MOST_CHARACTERS:
                _refuse(
                    f"its aliases expand to more than {_MOST_VALUES:,} values or "
                    f"{_MOST_CHARACTERS:,} characters",
                    event.start_mark,
                )
            if extent.levels > _MOST_LEVELS:
                _refuse(f"aliases nest values more than {_MOST_LEVELS} deep", event.start_mark)
        return node

    def _extent(self, node: yaml.Node) -> _Extent:
        if isinstance(node, yaml.ScalarNode):
            return _Extent(1, len(node.value), 1)
        nodes = (
            itertools.chain.from_iterable(node.value)
            if isinstance(node, yaml.MappingNode)
            else node.value
        )
        parts = [self._extents[id(inner)] for inner in nodes]
        return _Extent(
            1 + sum(part.values for part in parts),
            sum(part.characters for part in parts),
            1 + max((part.levels for part in parts), default=0),
        )

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node; refuse a text that does not match its tag."""
        if isinstance(node, yaml.ScalarNode):
            if node.tag in _NUMBERS and len(node.value) > _MOST_DIGITS:
                _refuse(f"the number has more than {_MOST_DIGITS:,} digits", node.start_mark)
            if node.tag in _NUMBERS and _TRAP.match(node.value):
                _refuse(
                    f"{shown(node.value)} is a number to base 8 or 60 in YAML: write it to base "
                    "10, or a text in quotes",
                    node.start_mark,
                )
            if _SURROGATE.search(node.value):
                _refuse("half of a character (a surrogate) is there", node.start_mark)
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, OverflowError, AttributeError, TypeError):
            kind = node.tag.removeprefix(_TAG)
            _refuse(f"{shown(node.value)} is not of the type {kind}", node.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping of a node; refuse duplicate keys."""
        if not isinstance(node, yaml.MappingNode):
            _refuse("this is not a mapping", node.start_mark)
        seen: set[str] = set()
        for key_node, _ in node.value:
            # A merge (<<) may occur several times, and its keys may be overridden by design.
            if key_node.tag == f"{_TAG}merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):
                # Keys become texts in the result, so that 1 and "1" are equal.
                text = key if isinstance(key, str) else json.dumps(key)
                if text in seen:
                    _refuse(f"the key {shown(key)} is given twice", key_node.start_mark)
                seen.add(text)
        return super().construct_mapping(node, deep)


_TRAP = re.compile(r"[-+]?(0[0-7_]+$|.*:)")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _as_written(_: _Loader, node: yaml.Node) -> str:
    return str(node.value)


def _undefined(_: _Loader, node: yaml.Node) -> NoReturn:
    _refuse(f"could not determine a constructor for the tag {node.tag!r}", node.start_mark)


_Loader.add_implicit_resolver(
    f"{_TAG}float",
    re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    # First characters of such a number, by which PyYAML looks up patterns.
    list("-+0123456789"),
)
# Keep dates as texts, and refuse values that are not plain data.
_Loader.add_constructor(f"{_TAG}timestamp", _as_written)
for _kind in ("binary", "omap", "pairs", "set"):
    _Loader.add_constructor(f"{_TAG}{_kind}", _undefined)


def _refuse(problem: str, mark: Any) -> NoReturn:
    raise yaml.constructor.ConstructorError(None, None, problem, mark)


def parse_yaml(text: str, where: str) -> Any:
    """Return the plain data (mappings, lists, texts, numbers) of YAML `text`.

    Raises:
        InputError: if it is not YAML, repeats a key, refers to itself, or exceeds the limits;
            `where` names it.
    """
    if len(text) > _MOST_CHARACTERS:
        raise InputError(
            f"{where}: the YAML has {len(text):,} characters, and {_MOST_CHARACTERS:,} are "
            "allowed; move data to separate files"
        )
    try:
        data = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise InputError(f"{where}: {_yaml_reason(error)}; correct the YAML") from None
    try:
        # A round trip through JSON refuses values that JSON does not support, and turns aliases
        # into independent copies.
        return json.loads(json.dumps(data))
    except TypeError:
        raise InputError(f"{where}: a key is not a plain text; quote the key") from None


def yaml_text(value: Any) -> str:
    """Return plain data as YAML, with keys in order."""
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    return text


def parse_assignment(text: str, where: str) -> tuple[str, Any]:
    """Return (key, value) of "key=value", with the value parsed as YAML.

    Raises:
        InputError: if there is no key or no "=", or the value is not YAML.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"{where}: {shown(text)} is not a setting; write key=value")
    return key.strip(), parse_yaml(value, f"{where} {shown(text)}")


def _yaml_reason(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    position = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return f"{position}{problem if len(problem) <= _SHOWN else problem[:_SHOWN] + '...'}"
