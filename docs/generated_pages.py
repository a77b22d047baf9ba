"""Pages that are made from the code at every build, so that they cannot drift from it.

They are written into docs/generated: the API reference, one page per package; the command line;
the backends, the rows of a run and the JSON Schemas.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from pkgutil import iter_modules
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PACKAGES = ("factormodels", "inference", "calibration", "experiments")

INTERNAL = ("kernels", "commands")
"""Last part of the names of packages without a page: compiled loops behind the backends, and the
command line's options, which have a page of their own."""


def connect(app: Sphinx) -> None:
    """Have the pages written before the sources are listed."""
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir) / "generated"))


def write_pages(folder: Path) -> None:
    """Write every generated page; one whose text has not changed keeps its date."""
    from command_line import page as command_line

    pages = {f"reference/{name}": reference_page(name) for name in documented_packages()}
    pages["reference/index"] = reference_index()
    pages["command-line"] = command_line()
    pages["schemas"] = schemas_page()
    pages["parts/backends"] = backends_table()
    pages["parts/promises"] = promises_table()
    pages["parts/rows"] = rows_table()
    pages["analyses"] = analyses_page()
    pages["parts/datasets"] = datasets_list()
    pages["parts/formats"] = formats_table()
    pages["parts/study-keys"] = study_keys()
    pages["parts/published"] = published_table()
    wanted = {folder / f"{name}.md": text for name, text in pages.items()}
    for path in folder.rglob("*.md"):
        if path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def documented_packages() -> list[str]:
    """Return the packages that have a page, from the lowest layer to the highest."""
    return [name for package in PACKAGES for name in _packages(package)]


def modules_of(package: str) -> list[str]:
    """Return a package and the modules directly in it, less what is private."""
    path = importlib.import_module(package).__path__
    return [
        package,
        *(
            f"{package}.{module.name}"
            for module in sorted(iter_modules(path), key=lambda module: module.name)
            if not module.ispkg and not module.name.startswith("_")
        ),
    ]


def _packages(package: str) -> Iterator[str]:
    yield package
    for module in sorted(
        iter_modules(importlib.import_module(package).__path__), key=lambda module: module.name
    ):
        name = f"{package}.{module.name}"
        if module.ispkg and module.name not in INTERNAL:
            yield from _packages(name)


def reference_index() -> str:
    """Return the page that the reference begins with."""
    listed = "\n".join(documented_packages())
    return (
        "# Reference\n\nMade from the docstrings. Imports run one way: experiments → calibration → "
        "inference → factormodels.\n\n```{toctree}\n:maxdepth: 1\n\n" + listed + "\n```\n"
    )


def reference_page(package: str) -> str:
    """Return the page of one package: its modules, each with what it defines."""
    parts = [f"# {package}\n"]
    for name in modules_of(package):
        if name != package:
            parts.append(f"## {name.rpartition('.')[2]}\n")
        parts.append(
            f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n   :ignore-module-all:\n```\n"
        )
    return "\n".join(parts)


def schemas_page() -> str:
    """Return the page of the JSON Schemas."""
    from experiments.analyses.schemas import SCHEMAS, schema

    parts = [
        "# JSON Schemas\n",
        "Draft 2020-12; `factormodels schema NAME` prints them, "
        "`experiments.analyses.schemas.schema` "
        "returns them. [Data formats](../guide/data-formats.md) says what they are of.\n",
    ]
    for name in SCHEMAS:
        text = json.dumps(schema(name), indent=2, ensure_ascii=False)
        parts.append(f"## {name}\n\n```json\n{text}\n```\n")
    return "\n".join(parts)


def backends_table() -> str:
    """Return the registered backends with what their entries say."""
    from inference.registry import entries

    rows = [
        f"| `{name}` | {entry.log_z_kind} | {entry.summary} | {entry.limits} | "
        f"{f'`{entry.extra}`' if entry.extra else 'core'} |"
        for name, entry in entries().items()
    ]
    return _table(("name", "log Z", "algorithm", "graphs", "installed with"), rows)


def promises_table() -> str:
    """Return what every backend is held to on which graphs, from the table of the tests."""
    from tests.inference.promises import PROMISES

    rows = []
    for promise in PROMISES:
        settings = ", ".join(f"{key}={value}" for key, value in promise.settings.items())
        summary = (promise.graphs.__doc__ or "").split(".")[0].removeprefix("Return ")
        rows.append(
            f"| `{promise.backend}` | {settings} | {promise.kind} | {' '.join(summary.split())} | "
            f"{len(promise.seeds)} | {promise.tolerance:g} | {promise.reason} |"
        )
    heads = ("backend", "settings", "promise", "graphs", "how many", "tolerance", "why so much")
    return _table(heads, rows)


def rows_table() -> str:
    """Return the columns of a run's rows."""
    from experiments.results.rows import SCHEMA

    rows = [
        f"| `{field.name}` | {field.type} | {'yes' if field.nullable else 'no'} | "
        f"{(field.metadata or {})[b'description'].decode()} |"
        for field in SCHEMA
    ]
    return _table(("column", "type", "null", "meaning"), rows)


def analyses_page() -> str:
    """Return the page of the analyses that a study can ask for, each with its settings."""
    from experiments.analyses.registry import analysis, names

    parts = [
        "# Analyses\n",
        "What a study with the key `analysis` can ask for, and the keys of its `settings`. "
        "[Studies](../guide/studies.md) says how such a study is written; "
        "`factormodels run --list` shows those on board.\n",
    ]
    for name in names():
        found = analysis(name)
        parts.append(f"## {name}\n\n{found.summary}\n\n{keys_table(found.settings)}")
    return "\n".join(parts)


def published_table() -> str:
    """Return every number of the papers that a study puts ours beside, and its command."""
    from experiments.analyses.study import load_analysis
    from experiments.study.config_file import embedded_studies, read_raw

    rows = []
    for study in embedded_studies():
        if not study.startswith("papers/"):
            continue
        settings = load_analysis(read_raw(study, ())).settings
        for entry in getattr(settings, "published", ()):
            cells = (entry.source, entry.printed, f"`factormodels run {study}`", entry.needs)
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return _table(("source", "printed", "command", "data and models of the paper"), rows)


def datasets_list() -> str:
    """Return the embedded datasets with their titles and licences."""
    from factormodels import datasets

    rows = []
    for name in datasets.names():
        card = datasets.card(name)
        rows.append(f"| `{name}` | {card.title} | {card.licence} |")
    return _table(("dataset", "what", "licence"), rows)


def formats_table() -> str:
    """Return the formats of datasets that are read."""
    from factormodels.io.published.formats import FORMATS

    rows = [
        f"| `{each.name}` | {each.title} | {each.owner} | {each.holds} | "
        f"{', '.join(f'`{key}`' for key in each.keys)} |"
        for each in FORMATS
    ]
    return _table(("format", "dataset", "published by", "gives", "known by"), rows)


def study_keys() -> str:
    """Return tables of the keys of a study and of its parts."""
    from experiments.study import config, config_models, config_parts, config_selections

    parts = (
        ("", config.Study),
        ("A dataset", config_parts.DatasetChoice),
        ("`subset` of a dataset", config_parts.Subset),
        ("A backend", config_parts.BackendChoice),
        ("`only` of a backend", config_parts.Only),
        ("A setting of `priors`", config_parts.Priors),
        ("`learned` of priors", config_parts.Learned),
        ("A relation model", config_models.RelationModelChoice),
        ("An assessor", config_models.AssessorChoice),
        ("`language_model`", config_models.LanguageModelChoice),
        ("A selection", config_selections.SelectionChoice),
        ("`significance`", config_parts.Significance),
        ("A side of a pair", config_parts.Selector),
        ("`reliability`", config_parts.Reliability),
        ("`report`", config_parts.Report),
    )
    base = ("base", "text", "none", _BASE)
    return "\n".join(
        f"**{title}**\n\n{keys_table(model)}" if title else keys_table(model, base)
        for title, model in parts
    )


_BASE = "another study, by name or file: this one is laid over it, mappings key by key, lists whole"

Key = tuple[str, str, str, str]
"""A key of a configuration: its name, its type, its default and what it means."""


def keys_table(model: type, *more: Key) -> str:
    """Return the table of the keys that a part of a configuration may have.

    Args:
        model: the part, a dataclass.
        more: keys that are read before it is.
    """
    rows = [
        f"| `{key}` | {kind} | {default} | {meaning} |"
        for key, kind, default, meaning in (*more, *keys_of(model))
    ]
    return _table(("key", "type", "default", "meaning"), rows)


def keys_of(model: type) -> Iterator[Key]:
    """Yield the keys of a part of a configuration, from its fields and its docstring."""
    meanings = {name: text for base in reversed(model.__mro__) for name, text in _meanings(base)}
    hints = get_type_hints(model, include_extras=True)
    for field in dataclasses.fields(model):
        meaning = meanings.get(field.name, "")
        yield field.name, type_words(hints[field.name]), default_words(field), meaning


def _meanings(model: type) -> Iterator[tuple[str, str]]:
    section = (inspect.getdoc(model) or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    for entry in re.split(r"\n(?=    \w)", "\n" + section)[1:]:
        name, _, text = " ".join(entry.split()).partition(": ")
        yield name, text.rstrip(".")


def type_words(annotation: Any) -> str:
    """Return a type as somebody who writes YAML knows it."""
    arguments = get_args(annotation)
    origin = get_origin(annotation)
    if origin is Annotated:
        return type_words(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in (Union, UnionType):
        return " or ".join(type_words(each) for each in arguments if each is not NoneType)
    if origin is tuple:
        return f"list: {type_words(arguments[0])}"
    if dataclasses.is_dataclass(annotation) or origin in (dict, Mapping):
        return "mapping"
    plain = {str: "text", int: "whole number", float: "number", bool: "`true`, `false`"}
    return plain.get(annotation, "any")


def default_words(field: dataclasses.Field[Any]) -> str:
    """Return the default of a key as YAML would have it."""
    if _is_required(field):
        return "required"
    return "its own" if field.default is dataclasses.MISSING else _plain(field.default)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is field.default_factory is dataclasses.MISSING


def _plain(value: Any) -> str:
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, tuple):
        return ", ".join(map(_plain, value))
    if dataclasses.is_dataclass(value):
        required = [field.name for field in dataclasses.fields(value) if _is_required(field)]
        return _plain(getattr(value, required[0])) if required else "none"
    return f"`{json.dumps(value) if isinstance(value, bool) else value}`"


def _table(heads: tuple[str, ...], rows: list[str]) -> str:
    head = "| " + " | ".join(heads) + " |"
    return "\n".join([head, "|" + " --- |" * len(heads), *rows]) + "\n"
