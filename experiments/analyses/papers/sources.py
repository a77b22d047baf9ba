"""Where the data of the papers' studies are: one file of the user's, and stand-ins without it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from experiments.study.config import STRICT, DatasetChoice, known
from experiments.study.plain_yaml import parse_yaml
from factormodels.errors import InputError, unknown_name
from factormodels.io.files import read_text

DATA_FILE = "factormodels-data.yaml"
"""The file that says where data are, looked for in the current folder."""

VARIABLE = "FACTORMODELS_DATA"
"""The environment variable that names another file in its place."""

_GRAPHS = "fact graphs with texts, one per line, each claim with the passages found for it"

SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "biographies-wikipedia": f"157 labelled biographies of FActScore with Wikipedia: {_GRAPHS}",
        "biographies-google": f"the same biographies with results of Google Search: {_GRAPHS}",
        "askh-wikipedia": f"200 answers to AskHistorians with Wikipedia: {_GRAPHS}",
        "askh-google": f"the same answers with results of Google Search: {_GRAPHS}",
        "books-wikipedia": f"200 responses to paragraphs of FreshBooks with Wikipedia: {_GRAPHS}",
        "books-google": f"the same responses with results of Google Search: {_GRAPHS}",
        "eli5-wikipedia": f"200 answers to ELI5 with Wikipedia: {_GRAPHS}",
        "eli5-google": f"the same answers with results of Google Search: {_GRAPHS}",
        "lfobj-wikipedia": f"380 responses to LongFact-Objects with Wikipedia: {_GRAPHS}",
        "lfobj-google": f"the same responses with results of Google Search: {_GRAPHS}",
        "conflicts": "ConflictBank as published: true claims with a passage for and one against",
        "factor-expert": "Expert-FACTOR as published, or judged pairs of texts as relations",
        "factor-news": "News-FACTOR as published, or judged pairs of texts as relations",
        "core-responses": "labelled responses with texts, such as the biographies of FActScore",
        "fastfact-bench": "FaStfact-Bench with its labels as published, or responses with "
        "claims as people judged them, the benchmark in the metadata",
        "fastfact-pipelines": "by pipeline: its claims on FaStfact-Bench, the verdict as each "
        "claim's annotation, and the tokens it took in the metadata",
        "fastfact-models": "by model: responses with judged claims, and in the metadata k_prime, "
        "the number of claims that people count",
        "factscore-labelled": "FActScore's labelled responses of ChatGPT, by sentence",
        "self-judged": "by model: claims with human labels and the model's own judgements, as "
        "records of `calibration.self_knowledge`",
        "generations": "by model: biographies as generated, refusals among them",
    }
)
"""The datasets that the studies of the papers ask for, and what each is."""


@dataclass(frozen=True)
class PaperData:
    """The data of a study: the user's, or a stand-in where there are none.

    Attributes:
        source: a name of `SOURCES`, which the user's file may give a path.
        stand_in: what is used in its place.
    """

    __pydantic_config__: ClassVar = STRICT

    source: Annotated[str, known(lambda: SOURCES, "source")]
    stand_in: DatasetChoice


@dataclass(frozen=True)
class ModelAccess:
    """How a language model of a paper is asked.

    Attributes:
        provider: its name at the provider, as litellm spells it.
        cache: file of its answers.
        replay: whether it answers from that file alone.
    """

    provider: str
    cache: Path
    replay: bool = True


@dataclass(frozen=True)
class UserData:
    """What the user's file says.

    Attributes:
        where: what errors call the file; empty if there is none.
        paths: by name of `SOURCES` the file of the data, or files by name of model.
        models: by the name that the papers use, how a language model is asked.
    """

    where: str = ""
    paths: Mapping[str, Path | Mapping[str, Path]] = field(default_factory=dict)
    models: Mapping[str, ModelAccess] = field(default_factory=dict)


def user_data(path: str | os.PathLike[str] | None = None) -> UserData:
    """Return what the user's file says of where data are; nothing if there is no such file.

    Args:
        path: the file; None takes that of the environment variable `FACTORMODELS_DATA`, else
            `factormodels-data.yaml` in the current folder, if it exists.

    Raises:
        InputError: if the file cannot be read, or names no source, key or path that there is.
    """
    named = os.fspath(path) if path is not None else os.environ.get(VARIABLE, "")
    file = Path(named or DATA_FILE)
    if not named and not file.is_file():
        return UserData()
    where = str(file)
    content = _mapping(parse_yaml(read_text(file), where) or {}, where)
    for key in content:
        if key not in ("datasets", "models"):
            raise InputError(f"{where}: {unknown_name(f'the key {key!r}', key, _KEYS)}")
    paths: dict[str, Path | Mapping[str, Path]] = {}
    for name, value in _mapping(content.get("datasets", {}), f"{where}: datasets").items():
        if name not in SOURCES:
            raise InputError(
                f"{where}: datasets: {unknown_name(f'the dataset {name!r}', name, SOURCES)}"
            )
        place = f"{where}: datasets.{name}"
        paths[name] = (
            {model: _file(each, file, f"{place}.{model}") for model, each in value.items()}
            if isinstance(value, dict)
            else _file(value, file, place)
        )
    models = {
        name: _access(value, file, f"{where}: models.{name}")
        for name, value in _mapping(content.get("models", {}), f"{where}: models").items()
    }
    return UserData(where, MappingProxyType(paths), MappingProxyType(models))


_KEYS = ("datasets", "models")
_ACCESS = ("provider", "cache", "replay")


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: {value!r} is no mapping; write names with a path each")
    return value


def _file(value: Any, file: Path, where: str) -> Path:
    if not isinstance(value, str) or not value:
        raise InputError(f"{where}: {value!r} is no path; name a file")
    path = file.parent / value
    if not path.is_file():
        raise InputError(f"{where}: there is no file {path}; correct the path or leave it out")
    return path


def _access(value: Any, file: Path, where: str) -> ModelAccess:
    given = _mapping(value, where)
    for key in given:
        if key not in _ACCESS:
            raise InputError(f"{where}: {unknown_name(f'the key {key!r}', key, _ACCESS)}")
    for key in ("provider", "cache"):
        if not isinstance(given.get(key), str) or not given[key]:
            raise InputError(f"{where}: {key} is {given.get(key)!r}; give a text")
    replay = given.get("replay", True)
    if not isinstance(replay, bool):
        raise InputError(f"{where}: replay is {replay!r}; give true or false")
    return ModelAccess(given["provider"], file.parent / given["cache"], replay)
