"""Where the data of the papers' studies are: named by a file of the user's, or embedded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from experiments.results.manifest import file_hash
from experiments.study.config import known
from factormodels import datasets
from factormodels.errors import InputError, unknown_name
from factormodels.io.files import read_text
from factormodels.io.guarded_opening import exists
from factormodels.io.plain_yaml import parse_yaml

DATA_FILE = "factormodels-data.yaml"
"""The file that says where data are, looked for in the current folder."""

VARIABLE = "FACTORMODELS_DATA"
"""The environment variable that names another file in its place."""


@dataclass(frozen=True)
class PaperSource:
    """A dataset that studies of the papers ask for.

    Attributes:
        what: what a file of it holds, and in which form.
        owner: where its owner publishes it, or what it is made from.
        embedded: the embedded dataset that is taken where the user names no file: the same claims
            where the package has them, else claims that the same tables can be made of; empty:
            there is none.
        model: whose responses those are, where a file for each model is wanted.
    """

    what: str
    owner: str
    embedded: str = ""
    model: str = ""


_GRAPHS = "fact graphs with texts, one per line, each claim with the passages found for it"

_FACTSCORE = "github.com/shmsw25/FActScore publishes in its data as labeled/ChatGPT.jsonl"

_SEARCHED = "`factormodels assess` makes it from the responses"

_QUESTIONS = "whose questions github.com/carriex/lfqa_eval publishes"

_PARAGRAPHS = "whose paragraphs github.com/Yixiao-Song/VeriScore publishes"

_LONGFACT = "whose prompts github.com/google-deepmind/long-form-factuality publishes in longfact"

_FASTFACT = "github.com/Yingjia-Wan/FaStfact"

_FACTOR = "github.com/AI21Labs/factor publishes in its data"

_UNPUBLISHED = "which no owner publishes"


def _searched(what: str, engine: str, owner: str, embedded: str) -> PaperSource:
    return PaperSource(f"{what} with {engine} ({_GRAPHS})", f"{owner}; {_SEARCHED}", embedded)


_WIKIPEDIA, _GOOGLE = "passages of Wikipedia", "results of Google Search"

SOURCES: Mapping[str, PaperSource] = MappingProxyType(
    {
        f"{name}-{engine}": _searched(what, evidence, owner, embedded)
        for name, what, owner, embedded in (
            (
                *("biographies", "the 157 labelled biographies of FActScore"),
                *(f"which {_FACTSCORE}", "factscore"),
            ),
            ("askh", "200 answers to AskHistorians", _QUESTIONS, "factcheck-bench"),
            ("books", "200 responses to paragraphs of FreshBooks", _PARAGRAPHS, "factcheck-bench"),
            ("eli5", "200 answers to ELI5", _QUESTIONS, "factcheck-bench"),
            ("lfobj", "380 responses to LongFact-Objects", _LONGFACT, "factcheck-bench"),
        )
        for engine, evidence in (("wikipedia", _WIKIPEDIA), ("google", _GOOGLE))
    }
    | {
        "conflicts": PaperSource(
            "claims of ConflictBank (CB_claim_evidence or CB_qa as JSON Lines)",
            "which github.com/zhaochen0110/conflictbank publishes",
            "demonstration",
        ),
        "factor-expert": PaperSource(
            "Expert-FACTOR, or judged pairs of texts as relations of fact graphs",
            f"which {_FACTOR} as expert_factor.csv",
            "demonstration",
        ),
        "factor-news": PaperSource(
            "News-FACTOR, or judged pairs of texts as relations of fact graphs",
            f"which {_FACTOR} as news_factor.csv",
            "demonstration",
        ),
        "core-responses": PaperSource(
            "labelled responses with texts, such as the biographies of FActScore",
            f"which {_FACTSCORE}",
            "demonstration",
        ),
        "fastfact-bench": PaperSource(
            "FaStfact-Bench with its labels, or fact graphs with claims as people judged them and "
            "the benchmark in the metadata",
            f"which the README of {_FASTFACT} calls fastfact-bench_annotated.jsonl",
            "factcheck-bench",
        ),
        "fastfact-pipelines": PaperSource(
            "a file for each pipeline with its claims on FaStfact-Bench (fact graphs, the verdict "
            "as each claim's annotation, the tokens it took in the metadata)",
            _UNPUBLISHED,
        ),
        "fastfact-models": PaperSource(
            "a file for each model with judged claims of its responses to FaStfact-Bench (fact "
            "graphs, in the metadata k_prime, the number of claims that people count)",
            f"{_UNPUBLISHED}: the questions are fastfact-bench_for_eval.jsonl of {_FASTFACT}",
        ),
        "factscore-labelled": PaperSource(
            "FActScore's 183 responses of ChatGPT with labels by sentence",
            f"which {_FACTSCORE}",
            "factscore",
        ),
        "self-judged": PaperSource(
            "a file for each model with human labels of its claims and its own judgements, "
            "confidences or votes of them (as `factormodels self-knowledge` reads it)",
            f"{_UNPUBLISHED} of the paper's models: `self-knowledge --model` asks one; "
            "github.com/tatsu-lab/conformal-factual-lm has GPT-4's confidence in other claims",
            "selfcheck",
            "GPT-3",
        ),
        "generations": PaperSource(
            "a file for each model with its biographies, refusals among them (fact graphs)",
            "which github.com/shmsw25/FActScore publishes in its data under unlabeled",
        ),
    }
)
"""The datasets that the studies of the papers ask for, by name."""

# The name of one of them, in the settings of an analysis.
SourceName = Annotated[str, known(lambda: SOURCES, "dataset")]


Place = Path | str
"""A file, or the name of an embedded dataset."""


@dataclass(frozen=True)
class ModelAccess:
    """How a language model of a paper is asked.

    Attributes:
        provider: its name at the provider, as litellm spells it.
        cache: file of its answers.
        replay: whether it answers from that file alone.
        prompts: folder of templates in place of ours; None: ours.
        api_base: address of a compatible server; None for the provider's own.
    """

    provider: str
    cache: Path
    replay: bool = True
    prompts: Path | None = None
    api_base: str | None = None


@dataclass(frozen=True)
class UserData:
    """What the user's file says.

    Attributes:
        where: what errors call the file; empty if there is none.
        paths: by name of `SOURCES` the file of the data, the name of an embedded dataset, or
            either by name of model.
        models: by the name that the papers use, how a language model is asked.
    """

    where: str = ""
    paths: Mapping[str, Place | Mapping[str, Place]] = field(default_factory=dict)
    models: Mapping[str, ModelAccess] = field(default_factory=dict)


def user_data(path: str | os.PathLike[str] | None = None) -> UserData:
    """What the user's file says of where data are; nothing if there is no such file.

    Args:
        path: the file; None takes that of the environment variable `FACTORMODELS_DATA`, else
            `factormodels-data.yaml` in the current folder, if it exists.

    Raises:
        InputError: if the file cannot be read, or names no source, key or path that there is.
    """
    named = os.fspath(path) if path is not None else os.environ.get(VARIABLE, "")
    file = Path(named or DATA_FILE)
    if not named and not (exists(file) and file.is_file()):
        return UserData()
    where = str(file)
    content = _mapping(parse_yaml(read_text(file), where) or {}, where)
    for key in content:
        if key not in ("datasets", "models"):
            raise InputError(f"{where}: {unknown_name(f'the key {key!r}', key, _KEYS)}")
    paths: dict[str, Place | Mapping[str, Place]] = {}
    for name, value in _mapping(content.get("datasets", {}), f"{where}: datasets").items():
        if name not in SOURCES:
            raise InputError(
                f"{where}: datasets: {unknown_name(f'the dataset {name!r}', name, SOURCES)}"
            )
        place = f"{where}: datasets.{name}"
        paths[name] = (
            {model: _place(each, file, f"{place}.{model}") for model, each in value.items()}
            if isinstance(value, dict)
            else _place(value, file, place)
        )
    models = {
        name: _access(value, file, f"{where}: models.{name}")
        for name, value in _mapping(content.get("models", {}), f"{where}: models").items()
    }
    return UserData(where, MappingProxyType(paths), MappingProxyType(models))


def data_of(name: str, user: UserData, where: str) -> tuple[Place | Mapping[str, Place], str]:
    """Where the data of a study are, and what a reader must know of them.

    Args:
        name: a name of `SOURCES`.
        user: what the user's file says; where it does not name the data, they are embedded ones.
        where: what errors call the study.

    Raises:
        InputError: if the user's file does not name them and no embedded dataset has the like.
    """
    place = user.paths.get(name)
    if place is not None:
        return place, f"Data of {user.where}: {name}."
    source = SOURCES[name]
    if not source.embedded:
        raise InputError(f"{where}: {absence(name, user)}")
    remark = (
        f"Data: {source.embedded}, which is embedded, in place of {name}; "
        f"{user.where or DATA_FILE} can name yours."
    )
    return {source.model: source.embedded} if source.model else source.embedded, remark


def absence(name: str, user: UserData) -> str:
    """What is said of data that only the user has: what they are, and whose."""
    source = SOURCES[name]
    return (
        f"it needs {name}, {source.what}, {source.owner}; name your file under datasets in "
        f"{user.where or DATA_FILE}"
    )


def hash_of(place: Place) -> str:
    """Hexadecimal SHA-256 of the bytes of a file or of an embedded dataset."""
    return file_hash(place) if isinstance(place, Path) else datasets.load(place).sha256


_KEYS = ("datasets", "models")
_ACCESS = ("provider", "cache", "replay", "prompts", "api_base")


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


def _access(value: Any, file: Path, where: str) -> ModelAccess:
    given = _mapping(value, where)
    for key in given:
        if key not in _ACCESS:
            raise InputError(f"{where}: {unknown_name(f'the key {key!r}', key, _ACCESS)}")
    for key in ("provider", "cache"):
        if not isinstance(given.get(key), str) or not given[key]:
            raise InputError(f"{where}: {key} is {given.get(key)!r}; give text")
    replay = given.get("replay", True)
    if not isinstance(replay, bool):
        raise InputError(f"{where}: replay is {replay!r}; give true or false")
    prompts = given.get("prompts")
    if prompts is not None and not isinstance(prompts, str):
        raise InputError(f"{where}: prompts is {prompts!r}; name a folder")
    folder = None if prompts is None else file.parent / prompts
    base = given.get("api_base")
    if base is not None and (not isinstance(base, str) or not base):
        raise InputError(f"{where}: api_base is {base!r}; give the address of a server")
    return ModelAccess(given["provider"], file.parent / given["cache"], replay, folder, base)
