"""Reading a study: a YAML file or an embedded one, overrides, and errors that name the place."""

from __future__ import annotations

import dataclasses
import difflib
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from experiments.config import BackendChoice, Study
from experiments.misfit import misfit
from experiments.text_input import parse_assignment, parse_yaml
from factormodels.errors import InputError
from factormodels.io.files import read_text

_SHORTHANDS = {"datasets": "name", "backends": "backend"}
"""Lists whose entries may be written as a text, and the key that the text stands for."""

_LISTS = ("datasets", "variants", "encodings", "backends", "outputs")

_PLACE = re.compile(r"[^.\[\]]+|\[\d+\]")


@dataclass(frozen=True)
class LoadedStudy:
    """A study with where it came from.

    Attributes:
        study: the study.
        folder: where its relative paths start.
        where: what errors call its configuration.
    """

    study: Study
    folder: Path
    where: str


def embedded_studies() -> dict[str, str]:
    """Return the text of every embedded study by name."""
    folder = resources.files("experiments") / "configs"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {
        file.name.removesuffix(".yaml"): file.read_text(encoding="utf-8")
        for file in files
        if file.name.endswith(".yaml")
    }


def load_study(config: str, overrides: Iterable[str] = ()) -> LoadedStudy:
    """Return the study that `config` names: an embedded one, or a YAML file.

    Args:
        config: a name without folder and suffix for an embedded study, else the path of a file.
        overrides: "key=value" texts; a key is a place such as "priors.atom" or "backends[1].label".

    Raises:
        InputError: for an unknown name, a bad file, or a key or value that a study cannot have.
    """
    path = Path(config)
    if path.suffix or len(path.parts) != 1 or path.is_file():
        text, where, folder = read_text(path), config, path.parent
    else:
        embedded = embedded_studies()
        if config not in embedded:
            raise InputError(
                f"there is no embedded study {config!r}; use one of {', '.join(embedded)}, "
                "or name a YAML file"
            )
        text, where, folder = embedded[config], f"{config}.yaml", Path()
    raw = parse_yaml(text, where)
    if not isinstance(raw, dict):
        raise InputError(f"{where}: a study is a mapping of keys to values; write study: NAME, ...")
    expand_shorthands(raw)
    for override in (given := list(overrides)):
        key, value = parse_assignment(override, "override")
        _assign(raw, key, value, f"override {override!r}")
        expand_shorthands(raw)
    place = f"{where} with its overrides" if given else where
    return LoadedStudy(validated(raw, place), folder, where)


def validated(raw: Mapping[str, Any], where: str) -> Study:
    """Return the study that plain data stands for.

    Raises:
        InputError: one sentence that names the place, the value and the mend.
    """
    import json

    from pydantic import TypeAdapter, ValidationError

    try:
        # Strict JSON mode: a text is never taken for a number, a list is a tuple.
        return TypeAdapter(Study).validate_json(json.dumps(raw), strict=True)
    except ValidationError as error:
        raise InputError(f"{where}: {_sentence(raw, error.errors())}") from None


def expand_shorthands(raw: dict[str, Any]) -> None:
    """Write out what a study may say in short, in place.

    One text stands for a list of one; a text in the list of datasets or backends stands for a
    mapping with its name; a YAML boolean is a policy for unlabelled atoms.
    """
    for key in _LISTS:
        if isinstance(raw.get(key), str):
            raw[key] = [raw[key]]
    for key, meaning in _SHORTHANDS.items():
        if isinstance(items := raw.get(key), list):
            raw[key] = [{meaning: item} if isinstance(item, str) else item for item in items]
    if isinstance(policy := raw.get("unlabelled"), bool):
        raw["unlabelled"] = str(policy).lower()


def _assign(raw: dict[str, Any], key: str, value: Any, where: str) -> None:
    steps = _PLACE.findall(key)
    if "".join(steps) != key.replace(".", "") or not steps:
        raise InputError(f"{where}: {key!r} is no place; write priors.atom or backends[1].label")
    target: Any = raw
    for position, step in enumerate(steps):
        last = position == len(steps) - 1
        index: Any = int(step[1:-1]) if step.startswith("[") else step
        if isinstance(index, int):
            if not isinstance(target, list) or index >= len(target):
                count = len(target) if isinstance(target, list) else 0
                raise InputError(f"{where}: there is no entry {step}; it has {count}, from [0]")
        elif not isinstance(target, dict):
            raise InputError(f"{where}: {step!r} is no key there; check the place")
        if last:
            target[index] = value
        elif isinstance(index, str):
            if target.get(index) is None:
                target[index] = {}
            target = target[index]
        else:
            target = target[index]


def _sentence(raw: Any, errors: Sequence[Any]) -> str:
    # An unknown key explains a missing one better than the other way round.
    ordered = sorted(errors, key=lambda e: e["type"] != "unexpected_keyword_argument")
    error = ordered[0]
    place, value, cls = _locate(raw, error["loc"])
    match error["type"]:
        case "unexpected_keyword_argument":
            key = error["loc"][-1]
            known = [field.name for field in dataclasses.fields(cls)]
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}"
            if cls is BackendChoice and not near:
                hint += "; settings of the algorithm go under settings"
            return f"{place or key}: there is no such key; {hint}"
        case "missing":
            return f"the key {place!r} is missing; give it"
        case "value_error":
            reason = str(error["ctx"]["error"])
            return f"{place}: {_shown(value)}: {reason}" if place else reason
        case "dataclass_type" | "dataclass_exact_type":
            if value is None:
                return f"{place}: there is no value; give a mapping or leave the key out"
            return f"{place}: {_shown(value)} is no mapping; write keys and values"
    return f"{place}: {misfit(value, error, _shown(value))}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _locate(raw: Any, loc: Sequence[Any]) -> tuple[str, Any, type]:
    """Return the place of an error, the value there, and the dataclass that holds it."""
    place, value = "", raw
    cls: type = Study
    hint: Any = Study
    for position, step in enumerate(loc):
        if isinstance(step, int) and isinstance(value, list) and step < len(value):
            place, value = f"{place}[{step}]", value[step]
        elif isinstance(step, str) and isinstance(value, dict) and step in value:
            place, value = f"{place}.{step}" if place else step, value[step]
            hint = _field_type(cls, step) or hint
        elif position == len(loc) - 1 and isinstance(value, dict) and isinstance(step, str):
            place = f"{place}.{step}" if place else step
            break
        else:
            break  # The rest names a branch of a union, which is no place of the user's.
        if position < len(loc) - 1:
            cls = _dataclass_in(hint) or cls
    return place, value, cls


def _field_type(cls: type, name: str) -> Any:
    return typing.get_type_hints(cls, include_extras=False).get(name)


def _dataclass_in(hint: Any) -> type | None:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is not None:
        for argument in typing.get_args(hint):
            found = _dataclass_in(argument)
            if found is not None:
                return found
    return None
