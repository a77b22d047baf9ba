"""Names of integer classes that a file states about itself, in place of the integers.

Hugging Face's `datasets` stores a label as an integer and the names of the classes beside it. They
are read from the schema metadata of Arrow and Parquet (key `huggingface`), from dataset_info.json,
from the card README.md of the dataset, and from the JSON of the dataset viewer. A class -1 is a
missing label, and a text that is a name already is kept (datasets' features.py, `ClassLabel`).

Others write the names into the attributes of a data frame of pandas (`attrs`, which Parquet keeps),
or into the metadata of an Arrow schema or field: `classes_of_attributes` reads what people write
there, {"label": ["false", "true"]}, {"class_names": {"label": {"0": "false", "1": "true"}}} and
their kind.
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
"""Key of the metadata under which pandas writes `DataFrame.attrs`, as JSON."""

_RESERVED = frozenset((SCHEMA_KEY, b"pandas", b"ARROW:schema"))
_OF_PARQUET = b"PARQUET:"

_NAMES_KEY = re.compile(
    r"(?P<column>.*?)(names|classes|categories|label map(ping)?|id2label|label2id"
    r"|(class|value) labels?)( names?)?"
)
"""Words under which names of classes stand, behind the name of their column or without it."""

_LABELS = ("label", "labels", "class")
"""Whose names they are where no column is said."""

_NUMBERED = re.compile(r"(\d{1,9})\s*(?:=|:|->|→)\s*(\S.*)")


@dataclass(frozen=True)
class Description:
    """Classes that a file beside a table states.

    Attributes:
        source: the file.
        classes: names of classes.
        columns: all columns of the dataset that is described.
    """

    source: str
    classes: ClassTree
    columns: frozenset[str]


def classes_of_schema(metadata: Mapping[bytes, bytes] | None, source: object) -> ClassTree:
    """Names of classes in the metadata of an Arrow schema; empty where it states none.

    Raises:
        InputError: if the metadata cannot be understood.
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
    """Names of classes that an Arrow schema states in its metadata, or in those of its fields.

    Args:
        schema: a `pyarrow.Schema`.
        source: its file, for messages.

    Raises:
        InputError: as `classes_of_schema` and `classes_of_attributes`.
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
    """Names of classes in what somebody wrote beside a table.

    Names are a list of texts, an object from 0, 1, ... to texts or from texts to these, or a text
    such as "0 = false, 1 = true". They stand under the name of their column, alone or within an
    object of columns, or under a word for them (`class_names`, `id2label`, `label_names`), and are
    then those of the column that the word names, or of a column "label".

    Args:
        attributes: values by name; bytes and texts may be JSON.
        columns: columns that hold numbers, which alone can be classes.
        where: the table, which errors name.

    Raises:
        InputError: if there are names of classes, and it is not said of which column.
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
                # Of something else, such as the names of annotators.
                continue
            if column is None:
                raise InputError(
                    f"{where}: its attribute {key!r} names the classes {_listed(names)}, and not "
                    "their column; write {'class_names': {COLUMN: [NAME, ...]}}"
                )
            tree[column] = names
    return tree


def _names_of_field(metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Names of classes in the metadata of a field; None if it states none."""
    if (names := _stated_names(metadata)) is not None:
        return names
    return next((names for value in metadata.values() if (names := _stated_names(_json(value)))),
                None)  # fmt: skip


def _stated_names(value: Any) -> tuple[str, ...] | None:
    """Names of the classes 0, 1, ... that a value states; None if it states none."""
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
    """What a text or bytes say as JSON, or the text if they are none; other values as they are."""
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
    """Add names of classes to a tree, of which each column has one statement or equal ones."""
    for column, names in classes.items():
        if tree.setdefault(column, names) != names:
            raise InputError(
                f"{source}: column {column!r} has the classes {_listed(tree[column])} by "
                f"{stated_by[column]} and {_listed(names)} by {by}; correct one of the two"
            )
        stated_by.setdefault(column, by)


def classes_of_features(features: Any, where: str) -> ClassTree:
    """Names of classes in `Features.to_dict()`, or in the list of features of the dataset viewer.

    Raises:
        InputError: if a class has no names that can be understood.
    """
    if isinstance(features, list):
        features = {
            str(entry["name"]): entry.get("type")
            for entry in features
            if isinstance(entry, dict) and "name" in entry
        }
    return _columns(as_object(features, where), where)


def classes_beside(source: Source) -> list[Description]:
    """Descriptions of classes in the files of a dataset that lie beside one of its tables.

    Args:
        source: a table, or the folder of a dataset.

    Raises:
        InputError: if such a file states classes that cannot be understood.
    """
    path = Path(source).absolute()
    if not path.exists():
        # Standard input, or a table that is no file.
        return []
    folder = path if path.is_dir() else path.parent
    described = _of_infos(folder / _INFO, single=True)
    # A dataset of the Hub has its tables in a folder such as data/, below its card.
    for near in (folder, folder.parent):
        described += [*_of_infos(near / _INFOS, single=False), *_of_card_file(near / _CARD)]
    return [each for each in described if each.classes]


def stated_classes(
    source: Source,
    described: Sequence[Description],
    columns: Sequence[str],
    known: ClassTree | None = None,
) -> ClassTree:
    """Names of the classes of a table: those that it states itself, and those beside it.

    Args:
        source: the table, which errors name.
        described: what files beside it state; a description counts if the table has more than half
            of its columns.
        columns: names of the columns of the table.
        known: what the table states itself.

    Raises:
        InputError: if two statements about one column differ.
    """
    tree = dict(known or {})
    stated_by = dict.fromkeys(tree, "the table itself")
    for description in described:
        shared = description.columns.intersection(columns)
        # A column may have been dropped, or others added.
        if 2 * len(shared) <= len(description.columns):
            continue
        classes = {column: of for column, of in description.classes.items() if column in shared}
        _join(tree, stated_by, classes, description.source, source_name(source))
    return tree


def with_class_names(row: Mapping[str, Any], tree: ClassTree, where: str) -> dict[str, Any]:
    """A row with names in place of integers.

    Args:
        row: values by column.
        tree: names of the classes.
        where: the place of the row, which errors name.

    Raises:
        InputError: if a value is no class of its column.
    """
    named = dict(row)
    for column, names in tree.items():
        if column in row:
            named[column] = _named(row[column], names, where, column)
    return named


def class_columns(tree: ClassTree, above: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each column of classes with its names; keys of objects are joined with a dot."""
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
            f"{where}, column {column!r}: {shown(value)} is none of the classes that are stated "
            f"({_listed(names)}); correct the value or the names"
        )
    return names[number]


def _whole(value: Any) -> int | None:
    """The integer that a cell holds; None if it holds anything else."""
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
    """Descriptions in JSON: one, or one for each configuration of a dataset."""
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
    """Descriptions in the front matter of a dataset's card, one for each configuration."""
    # Most files of this name are no cards, and their encoding and YAML are of no concern here.
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
    """Tree of what a card says of a feature, or of a list of fields; None without classes."""
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
    """Names that a card gives by their integers, which must be 0, 1, and so on."""
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
    """Tree of a feature of `datasets`; None without classes."""
    if isinstance(feature, list):
        return _of_feature(feature[0], where) if feature else None
    if not isinstance(feature, dict):
        return None
    kind = feature.get("_type")
    if not isinstance(kind, str):
        return _columns(feature, where) or None
    if kind == "ClassLabel":
        names = feature.get("names")
        # Without names the integers are what the classes are called.
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
