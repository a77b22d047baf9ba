"""Locations of a study's data: named in a user's file, or replaced by embedded data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from experiments.analyses.context import AnalysisContext
from experiments.study.config import DatasetChoice, known
from experiments.study.data import StudyData, load_dataset
from factormodels import datasets
from factormodels.errors import InputError, unknown_name
from factormodels.fact_graph import FactGraph
from factormodels.io.source.files import read_text
from factormodels.io.source.opening import exists
from factormodels.io.yaml import parse_yaml
from factormodels.nouns import counted, is_or_are

DATA_FILE = "factormodels-data.yaml"
"""The file with the locations of data, expected in the current folder."""

VARIABLE = "FACTORMODELS_DATA"
"""The environment variable that names another file to use instead."""

SOURCES: Mapping[str, str] = MappingProxyType(
    {
        # FActScore's labeled/ChatGPT.jsonl: github.com/shmsw25/FActScore.
        "factscore-labelled": "factscore",
        # Labeled responses with texts, such as the same file; the embedded biographies have no
        # texts.
        "core-responses": "demonstration",
        # Passages and claims with texts whose relation people know, such as FACTOR's.
        "related-pairs": "demonstration",
        # The responses of each model, by its name, with their claims, labeled or not.
        "generations": "demonstration",
        # FaStfact-Bench with its labels, or Factcheck-Bench's own file.
        "fastfact-bench": "factcheck-bench",
        # Claims with labels and the judgments of each model, by its name.
        "self-judged": "selfcheck",
    }
)
"""Names in a user's file, with the embedded dataset used in their place."""

SAME_DATA = ("factscore-labelled",)
"""Sources whose responses and labels are the same as in an embedded dataset."""

SourceName = Annotated[str, known(lambda: SOURCES, "dataset")]
"""The name of one of them, in the settings of an analysis."""

LabeledTexts = Annotated[SourceName, Field(description="Name of the labeled responses with texts.")]
"""The name of labeled responses with texts, with its description."""

Place = Path | str
"""A file, or the name of an embedded dataset."""


@dataclass(frozen=True)
class UserData:
    """Contents of the user's file.

    Attributes:
        where: name of the file in error messages; empty if there is none.
        paths: the file of the data or the name of an embedded dataset, by the name in `SOURCES` and
            the name of the model, which is empty for a source that serves all models.
    """

    where: str = ""
    paths: Mapping[str, Mapping[str, Place]] = field(default_factory=dict)

    def places(self, name: str) -> Mapping[str, Place]:
        """The files of a source by the name of the model."""
        return self.paths.get(name, {})


def user_data() -> UserData:
    """Locations of data from the user's file; empty without such a file.

    It is the file that the environment variable `FACTORMODELS_DATA` names, else
    `factormodels-data.yaml` in the current folder, if it exists.

    Raises:
        InputError: if the file cannot be read, or names a source or path that does not exist.
    """
    named = os.environ.get(VARIABLE, "")
    file = Path(named or DATA_FILE)
    if not named and not (exists(file) and file.is_file()):
        return UserData()
    where = str(file)
    content = _mapping(parse_yaml(read_text(file), where) or {}, where)
    for key in content:
        if key != "datasets":
            raise InputError(f"{where}: {unknown_name(f'the key {key!r}', key, ['datasets'])}")
    paths: dict[str, Mapping[str, Place]] = {}
    for name, value in _mapping(content.get("datasets", {}), f"{where}: datasets").items():
        if name not in SOURCES:
            raise InputError(
                f"{where}: datasets: {unknown_name(f'the dataset {name!r}', name, SOURCES)}"
            )
        paths[name] = {
            model: _place(each, file, f"{where}: datasets.{'.'.join(filter(None, (name, model)))}")
            for model, each in (value if isinstance(value, dict) else {"": value}).items()
        }
    return UserData(where, MappingProxyType(paths))


def load(name: str, context: AnalysisContext) -> tuple[tuple[FactGraph, ...], str]:
    """Load the user's responses, or embedded responses in their place, with remarks on them.

    Args:
        name: a name of `SOURCES`.
        context: what the analysis is run with.

    Raises:
        InputError: if a file cannot be read.
    """
    loaded, remark = load_by_model(name, context)
    return tuple(graph for each in loaded for graph in each.graphs), remark


def load_by_model(name: str, context: AnalysisContext) -> tuple[list[StudyData], str]:
    """Load the responses like `load`, separately by model; each is named after its model, if any.

    Args:
        name: a name of `SOURCES`.
        context: what the analysis is run with.

    Raises:
        InputError: if a file cannot be read.
    """
    choices, remark = _choices(name, context.given)
    if context.given is not None or user_data().places(name) or name in SAME_DATA:
        context.sources.add(name)
    return context.load(choices, "data"), remark


def user_responses(name: str) -> tuple[tuple[FactGraph, ...], str]:
    """Return the user's responses, or embedded responses in their place, and a remark.

    Args:
        name: a name of `SOURCES`.

    Raises:
        InputError: if a file cannot be read.
    """
    choices, remark = _choices(name)
    loaded = (load_dataset(choice, Path(), name) for choice in choices)
    return tuple(graph for each in loaded for graph in each.graphs), remark


def with_a_true_claim(
    graphs: Sequence[FactGraph], name: str, remark: str
) -> tuple[list[FactGraph], str]:
    """Return the responses that repetition can pad, and the remark with the number of the others.

    Args:
        graphs: labeled responses.
        name: their name in error messages.
        remark: the remark on them.

    Raises:
        InputError: if no claim is labeled true.
    """
    kept = [graph for graph in graphs if any(atom.label for atom in graph.atoms)]
    if not kept:
        raise InputError(f"{name}: no claim is labeled true; give labeled responses")
    left_out = len(graphs) - len(kept)
    return kept, remark + (
        f" {counted(left_out, 'response')} without a true claim {is_or_are(left_out)} left out."
        if left_out
        else ""
    )


def _choices(name: str, given: Path | None = None) -> tuple[list[DatasetChoice], str]:
    """Return the datasets of a source, and remarks on them."""
    if given is not None:
        if not (exists(given) and given.is_file()):
            raise InputError(f"--data {given}: there is no such file; correct the path")
        return [DatasetChoice(name=name, path=str(given.resolve()))], f"Data of {given}: {name}."
    user = user_data()
    places = user.places(name)
    remark = f"Data of {user.where}: {name}."
    if not places:
        places = {"": SOURCES[name]}
        remark = (
            f"Data: {SOURCES[name]}, which is embedded, in place of {name}; "
            f"--data FILE or {user.where or DATA_FILE} can name yours."
        )
    choices = [
        DatasetChoice(name=f"{name}: {model}" if model else name, path=str(source.resolve()))
        if isinstance(source, Path)
        else DatasetChoice(name=source)
        for model, source in places.items()
    ]
    return choices, remark


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: {value!r} is not a mapping; write names with a path each")
    return value


def _place(value: Any, file: Path, where: str) -> Place:
    if not isinstance(value, str) or not value:
        raise InputError(f"{where}: {value!r} is not a path; name a file")
    path = file.parent / value
    if exists(path) and path.is_file():
        return path
    if value in datasets.names():
        return value
    raise InputError(
        f"{where}: there is no file {path} and no embedded dataset of that name; correct the path, "
        f"name one of {', '.join(datasets.names())}, or leave it out"
    )
