"""YAML as the user writes it, strictly read; plain data as JSON can hold it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable
from typing import Any

import yaml

from factormodels.errors import InputError


class _Loader(yaml.SafeLoader):
    """YAML's safe subset without its two silent traps.

    Repeated keys are refused (PyYAML keeps the last), and 1e-6 is a number (YAML 1.1 takes it for
    a text, because it lacks the point).
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            # A merge (<<) may stand several times, and its keys may be overridden: that is what it
            # is for.
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is given twice", key_node.start_mark
                )
            if isinstance(key, Hashable):
                seen.add(key)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    # The characters that such a number may begin with, by which PyYAML looks patterns up.
    list("-+0123456789"),
)


def parse_yaml(text: str, where: str) -> Any:
    """The plain data (mappings, lists, texts, numbers) that YAML `text` stands for.

    Raises:
        InputError: if it is not YAML, repeats a key, or refers to itself; `where` names it.
    """
    try:
        data = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise InputError(f"{where}: {_yaml_reason(error)}; mend the YAML") from None
    except RecursionError:
        raise InputError(f"{where}: the YAML is nested too deeply; make it flatter") from None
    try:
        # Through JSON and back, so that nothing is left that JSON cannot hold: dates become texts,
        # and an alias becomes a copy that can be changed by itself.
        return json.loads(json.dumps(data, default=str))
    except (ValueError, RecursionError):
        raise InputError(
            f"{where}: an alias refers to what contains it; write the value out instead"
        ) from None
    except TypeError:
        raise InputError(f"{where}: a key is not a plain text; quote the key") from None


def parse_assignment(text: str, where: str) -> tuple[str, Any]:
    """(key, value) of "key=value", the value read by YAML's rules.

    Raises:
        InputError: if there is no key or no "=", or the value is not YAML.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"{where}: {text!r} is no setting; write key=value")
    return key.strip(), parse_yaml(value, f"{where} {text!r}")


def jsonable(value: Any) -> Any:
    """`value` as JSON can hold it: arrays as lists, numbers that are not finite as None."""
    # By what they can do rather than by type: arrays and mappings of libraries need not be loaded.
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): jsonable(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _yaml_reason(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return f"{place}{problem}"
