"""Names of integer classes stated in a file, which replace the integers.

Hugging Face's `datasets` stores a label as an integer and the names of the classes separately. They
are read from the schema metadata of Arrow and Parquet (key `huggingface`), from dataset_info.json,
from the dataset card README.md, and from the JSON of the dataset viewer. Class -1 is a missing
label, and texts that are already names are kept (datasets' features.py, `ClassLabel`).

Names may also be in the attributes of a pandas data frame (`attrs`, which Parquet keeps), or in the
metadata of an Arrow schema or field. `classes_of_attributes` reads the usual notations, such as
{"label": ["false", "true"]} and {"class_names": {"label": {"0": "false", "1": "true"}}}.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factormodels.decoded_values import as_object, shown
from factormodels.errors import InputError
from factormodels.io.json import decode
from factormodels.io.source.opening import (
    Source,
    decoded,
    read_whole,
    source_name,
)

ClassTree = Mapping[str, Any]
"""Names of classes by column: a tuple of names, or a tree for a column of objects.

A column of lists has the entry of its elements.
"""

SCHEMA_KEY = b"huggingface"

_INFO = "dataset_info.json"
_INFOS = "dataset_infos.json"
_CARD = "README.md"
_FENCE = (b"---", b"\xef\xbb\xbf---")
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_MOST_SHOWN = 12
_LEAST_CLASSES = 2

_PANDAS_ATTRIBUTES = "PANDAS_ATTRS"
"""Metadata key under which pandas writes `DataFrame.attrs`, as JSON."""

_RESERVED = frozenset((SCHEMA_KEY, b"pandas", b"ARROW:schema"))
_OF_PARQUET = b"PARQUET:"

_NAMES_KEY = re.compile(
    r"(?P<column>.*?)(names|classes|categories|label map(ping)?|id2label|label2id"
    r"|(class|value) labels?)( names?)?"
)
"""Keys of names of classes, after the name of their column or without it."""

_LABELS = ("label", "labels", "class")
"""Column of the names if none is stated."""

_NUMBERED = re.compile(r"(\d{1,9})\s*(?:=|:|->|→)\s*(\S.*)")


@dataclass(frozen=True)
class Description:
    """Classes stated in a file beside a table.

    Attributes:
        source: the file.
        classes: names of classes.
        columns: all columns of the described dataset.
    """

    source: str
    classes: ClassTree
    columns: frozenset[str]


def classes_of_schema(metadata: Mapping[bytes, bytes] | None, source: object) -> ClassTree:
    """Return the names of classes in the metadata of an Arrow schema; empty if there are none.

    Raises:
        InputError: if the metadata cannot be interpreted.
    """
    stated = (metadata or {}).get(SCHEMA_KEY)
    if stated is None:
        return {}
    where = f"{source}: its metadata 'huggingface'"
    try:
        value = json.loads(stated)
    except (ValueError, RecursionError):
        raise InputError(
            f"{where} is not JSON, so that names of classes are lost; save it again"
        ) from None
    info = as_object(value, where).get("info")
    return {} if info is None else _of_info(info, where)


def classes_of_arrow(schema: Any, source: object) -> ClassTree:
    """Return the names of classes in the metadata of an Arrow schema or of its fields.

    Args:
        schema: a `pyarrow.Schema`.
        source: its file, for messages.

    Raises:
        InputError: as in `classes_of_schema` and `classes_of_attributes`.
    """
    import pyarrow as pa

    tree = dict(classes_of_schema(schema.metadata, source))
    attributes = {
        key.decode(errors="replace"): value
        for key, value in (schema.metadata or {}).items()
        if key not in _RESERVED
    }
    if _PANDAS_ATTRIBUTES in attributes:
        stated = _json(attributes.pop(_PANDAS_ATTRIBUTES))
        attributes |= stated if isinstance(stated, dict) else {}
    numeric = [
        field.name
        for field in schema
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    ]
    stated_by = dict.fromkeys(tree, "its metadata 'huggingface'")
    described = [(classes_of_attributes(attributes, numeric, source), "its metadata")]
    for field in schema:
        metadata = {
            key.decode(errors="replace"): value
            for key, value in (field.metadata or {}).items()
            if not key.startswith(_OF_PARQUET)
        }
        names = _names_of_field(metadata) if metadata and field.name in numeric else None
        if names is not None:
            described.append(({field.name: names}, "the metadata of its field"))
    for classes, location in described:
        _join(tree, stated_by, classes, location, str(source))
    return tree


def classes_of_attributes(
    attributes: Mapping[str, Any], columns: Collection[str], where: object
) -> ClassTree:
    """Return the names of classes in user-defined attributes of a table.

    Names are a list of texts, an object from 0, 1, ... to texts or from texts to these, or a text
    such as "0 = false, 1 = true". Their key is the name of the column, at the top level or within
    an object of columns; or a word for such names (`class_names`, `id2label`, `label_names`), in
    which case they belong to the column that the word names, or to a column "label".

    Args:
        attributes: values by name; bytes and texts may be JSON.
        columns: columns of numbers, the only possible classes.
        where: the table, for errors.

    Raises:
        InputError: if there are names of classes without their column.
    """
    by_name = {_word(column): column for column in reversed(list(columns))}
    tree: dict[str, Any] = {}
    for key, raw in attributes.items():
        value = _json(raw)
        if key in columns and (names := _stated_names(value)) is not None:
            tree[key] = names
        elif isinstance(value, dict) and not by_name.keys().isdisjoint(map(_word, value)):
            named = {by_name.get(_word(column)): _stated_names(of) for column, of in value.items()}
            tree |= {column: names for column, names in named.items() if column and names}
        elif by_name and (match := _NAMES_KEY.fullmatch(_word(key))) is not None:
            names = _stated_names(value)
            if names is None:
                continue
            owner = match["column"].strip()
            known = [owner, *(_LABELS if owner in ("", *_LABELS) else ())]
            column = next((by_name[name] for name in known if name in by_name), None)
            if column is None and owner not in ("", *_LABELS):
                # Names of something else, such as annotators.
                continue
            if column is None:
                raise InputError(
                    f"{where}: its attribute {key!r} names the classes {_listed(names)}, and not "
                    "their column; write {'class_names': {COLUMN: [NAME, ...]}}"
                )
            tree[column] = names
    return tree


def _names_of_field(metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the names of classes in the metadata of a field; None if there are none."""
    if (names := _stated_names(metadata)) is not None:
        return names
    return next((names for value in metadata.values() if (names := _stated_names(_json(value)))),
                None)  # fmt: skip


def _stated_names(value: Any) -> tuple[str, ...] | None:
    """Return the names of the classes 0, 1, ... that a value states; None if it states none."""
    if isinstance(value, str):
        parts = [_NUMBERED.fullmatch(part.strip()) for part in re.split(r"[,;|\n]", value)]
        if not all(parts):
            return None
        value = {part[1]: part[2] for part in parts if part}
    if isinstance(value, dict):
        inner = value.get("names", value.get("categories", value.get("class_label")))
        if isinstance(inner, list | dict):
            return _stated_names(inner)
        value = {str(key): _text(name) for key, name in value.items()}
        numbers = [str(number) for number in range(len(value))]
        if sorted(value) != sorted(numbers):
            value = {number: name for name, number in value.items()}
        if not value or sorted(value) != sorted(numbers):
            return None
        value = [value[number] for number in numbers]
    if not isinstance(value, list | tuple) or len(value) < _LEAST_CLASSES:
        return None
    texts = tuple(_text(name) for name in value)
    are_names = all(isinstance(name, str | bytes) for name in value) and all(texts)
    return texts if are_names and len(set(texts)) == len(texts) else None


def _word(name: Any) -> str:
    return " ".join(re.sub(r"[_-]", " ", str(name)).split()).casefold()


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _json(value: Any) -> Any:
    """Return the JSON value of a text or bytes, or the text if invalid; other values unchanged."""
    if not isinstance(value, str | bytes):
        return value
    text = _text(value)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _join(
    tree: dict[str, Any], stated_by: dict[str, str], classes: ClassTree, by: str, source: str
) -> None:
    """Add names of classes to a tree; statements about the same column must be equal."""
    for column, names in classes.items():
        if tree.setdefault(column, names) != names:
            raise InputError(
                f"{source}: column {column!r} has the classes {_listed(tree[column])} by "
                f"{stated_by[column]} and {_listed(names)} by {by}; correct one of the two"
            )
        stated_by.setdefault(column, by)


def classes_of_features(features: Any, where: str) -> ClassTree:
    """Return the names of classes in `Features.to_dict()`, or in the dataset viewer's list of
    features.

    Raises:
        InputError: if the names of a class cannot be interpreted.
    """
    if isinstance(features, list):
        features = {
            str(entry["name"]): entry.get("type")
            for entry in features
            if isinstance(entry, dict) and "name" in entry
        }
    return _columns(as_object(features, where), where)


def classes_beside(source: Source) -> list[Description]:
    """Return descriptions of classes in the files of a dataset beside one of its tables.

    Args:
        source: a table, or the folder of a dataset.

    Raises:
        InputError: if such a file states classes that cannot be interpreted.
    """
    path = Path(source).absolute()
    if not path.exists():
        # Standard input, or a table in memory.
        return []
    folder = path if path.is_dir() else path.parent
    described = _of_infos(folder / _INFO, single=True)
    # Datasets of the Hub have their tables in a folder such as data/, below the card.
    for near in (folder, folder.parent):
        described += [*_of_infos(near / _INFOS, single=False), *_of_card_file(near / _CARD)]
    return [each for each in described if each.classes]


def stated_classes(
    source: Source,
    described: Sequence[Description],
    columns: Sequence[str],
    known: ClassTree | None = None,
) -> ClassTree:
    """Return the names of the classes of a table: its own, and those stated beside it.

    Args:
        source: the table, for errors.
        described: classes stated in files beside it; a description applies if the table has more
            than half of its columns.
        columns: names of the columns of the table.
        known: classes stated in the table itself.

    Raises:
        InputError: if two statements about one column differ.
    """
    tree = dict(known or {})
    stated_by = dict.fromkeys(tree, "the table itself")
    for description in described:
        shared = description.columns.intersection(columns)
        # Columns may have been dropped or added.
        if 2 * len(shared) <= len(description.columns):
            continue
        classes = {column: of for column, of in description.classes.items() if column in shared}
        _join(tree, stated_by, classes, description.source, source_name(source))
    return tree


def with_class_names(row: Mapping[str, Any], tree: ClassTree, where: str) -> dict[str, Any]:
    """Return a row with names in place of integers.

    Args:
        row: values by column.
        tree: names of the classes.
        where: place of the row, for errors.

    Raises:
        InputError: if a value is not a class of its column.
    """
    named = dict(row)
    for column, names in tree.items():
        if column in row:
            named[column] = _named(row[column], names, where, column)
    return named


def class_columns(tree: ClassTree, above: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each column of classes with its names; keys of objects are joined by a dot."""
    for column, names in tree.items():
        if isinstance(names, tuple):
            yield f"{above}{column}", names
        else:
            yield from class_columns(names, f"{above}{column}.")


def _named(value: Any, names: Any, where: str, column: str) -> Any:
    if isinstance(value, list):
        return [_named(each, names, where, column) for each in value]
    if not isinstance(names, tuple):
        if not isinstance(value, dict):
            return value
        return {
            key: _named(inner, names[key], where, f"{column}.{key}") if key in names else inner
            for key, inner in value.items()
        }
    if value is None or value == -1 or value in names:
        return None if value == -1 else value
    if isinstance(value, float) and math.isnan(value):
        return None
    number = _whole(value)
    if number is None or not 0 <= number < len(names):
        if isinstance(value, str) and value.strip() in ("", "-1"):
            return None
        raise InputError(
            f"{where}, column {column!r}: {shown(value)} is not one of the stated classes "
            f"({_listed(names)}); correct the value or the names"
        )
    return names[number]


def _whole(value: Any) -> int | None:
    """Return the integer in a cell; None if it has anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        digits = re.fullmatch(r"\s*(\d{1,9})(\.0+)?\s*", value)
        return None if digits is None else int(digits[1])
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _of_info(info: Any, where: str) -> ClassTree:
    features = as_object(info, where).get("features")
    return {} if features is None else classes_of_features(features, where)


def _of_infos(path: Path, *, single: bool) -> list[Description]:
    """Return descriptions in JSON: one, or one per configuration of a dataset."""
    if not path.is_file():
        return []
    where = str(path)
    stated = as_object(decode(decoded(read_whole(path), path), path), where)
    infos = [as_object(info, where) for info in ([stated] if single else stated.values())]
    return [
        Description(where, _of_info(info, where), frozenset(info.get("features") or ()))
        for info in infos
    ]


def _of_card_file(path: Path) -> list[Description]:
    """Return descriptions in the front matter of a dataset card, one per configuration."""
    # Most files of this name are not cards, and may have any encoding or invalid YAML.
    content = read_whole(path) if path.is_file() else b""
    if not content.startswith(_FENCE) or b"class_label" not in content:
        return []
    front = _FRONT_MATTER.match(decoded(content, path))
    if front is None or "class_label" not in front[1]:
        return []
    from factormodels.io.yaml import parse_yaml

    where = str(path)
    stated = parse_yaml(front[1], where)
    infos = stated.get("dataset_info") if isinstance(stated, dict) else None
    lists = [
        info["features"]
        for info in (infos if isinstance(infos, list) else [infos])
        if isinstance(info, dict) and isinstance(info.get("features"), list)
    ]
    return [
        Description(where, _of_card(features, where) or {}, frozenset(_field_names(features)))
        for features in lists
    ]


def _of_card(stated: Any, where: str) -> Any:
    """Return the tree of a card's feature, or list of fields; None without classes."""
    if isinstance(stated, list):
        fields = {
            str(field["name"]): inner
            for field in stated
            if isinstance(field, dict)
            and "name" in field
            and (inner := _of_card(field, where)) is not None
        }
        return fields or None
    if not isinstance(stated, dict):
        return None
    if "class_label" in stated:
        names = as_object(stated["class_label"], where).get("names")
        if isinstance(names, dict):
            names = _in_order(names, where)
        return _class_names(names, where)
    for key in ("dtype", "sequence", "list", "large_list", "struct"):
        if isinstance(stated.get(key), dict | list):
            return _of_card(stated[key], where)
    return None


def _field_names(features: Sequence[Any]) -> Iterator[str]:
    return (str(field["name"]) for field in features if isinstance(field, dict) and "name" in field)


def _in_order(names: Mapping[str, Any], where: str) -> list[Any]:
    """Return names that a card gives by their integers, which must be 0, 1, and so on."""
    if set(names) != {str(number) for number in range(len(names))}:
        raise InputError(
            f"{where}: the names of classes {shown(dict(names))} are not numbered from 0; correct "
            "them"
        )
    return [names[str(number)] for number in range(len(names))]


def _columns(features: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {
        str(column): inner
        for column, feature in features.items()
        if (inner := _of_feature(feature, f"{where}, column {column!r}")) is not None
    }


def _of_feature(feature: Any, where: str) -> Any:
    """Return the tree of a feature of `datasets`; None without classes."""
    if isinstance(feature, list):
        return _of_feature(feature[0], where) if feature else None
    if not isinstance(feature, dict):
        return None
    kind = feature.get("_type")
    if not isinstance(kind, str):
        return _columns(feature, where) or None
    if kind == "ClassLabel":
        names = feature.get("names")
        # Without names, the integers are the names.
        return None if names is None else _class_names(names, where)
    return _of_feature(feature.get("feature"), where)


def _class_names(names: Any, where: str) -> tuple[str, ...]:
    texts = tuple(map(str, names)) if isinstance(names, list) else ()
    if not texts or len(set(texts)) < len(texts) or any(isinstance(n, dict | list) for n in names):
        raise InputError(
            f"{where}: {shown(names)} are not the names of classes; give a list of different texts"
        )
    return texts


def _listed(names: Any) -> str:
    if not isinstance(names, tuple):
        return shown(names)
    numbered = [f"{number} = {shown(name)}" for number, name in enumerate(names[:_MOST_SHOWN])]
    return ", ".join(numbered) + (", ..." if len(names) > _MOST_SHOWN else "")
