"""Relation models by name, with the facts that results depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from experiments.settings import Option
from factormodels.decoded_values import shown
from factormodels.errors import InputError, MissingDependencyError, unknown_name
from factormodels.extraction.asking.table import RELATION, RELATION_PROMPTS, STATED_RELATION
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.language_model.log_probabilities import OPENNESS
from factormodels.extraction.prompts.replaced import OURS, Prompts, prompts_of
from factormodels.extraction.relation_models.base import (
    Judgment,
    Missing,
    RelationModel,
    TextPair,
)
from factormodels.extraction.relation_models.prompted import SAMPLES, Method, stage_of_method
from factormodels.io.source.opening import opened
from factormodels.nouns import counted

LOCAL = ("nli", "minicheck", "alignscore")
"""Relation models that are loaded from a local folder."""

_OF_A_PLACE = {
    "recorded": ("recorded", "read_recorded"),
    **{kind: (kind, f"load_{kind}") for kind in LOCAL},
}
"""Loaders of relation models from a file or folder, by name: module and function."""

_BY_TOKENS = ("automatic", "logprobs")
"""Methods that can use log-probabilities."""

RELATIONS = ("lexical", "model", "recorded:FILE", *(f"{kind}:FOLDER" for kind in LOCAL))
"""Relation models, as options name them."""


def name_of_relations(relations: Any) -> str | None:
    """Name of a relation model: from the option, its own name, or its class."""
    if relations is None or isinstance(relations, str):
        return relations
    return str(getattr(relations, "name", type(relations).__name__))


def _relations(value: Any) -> Any:
    if value is None or isinstance(value, str) or callable(getattr(value, "judge", None)):
        return value
    raise ValueError("give a name, or an object with judge(pairs)")


Relations = Annotated[
    Any, Option("NAME"), BeforeValidator(_relations), PlainSerializer(name_of_relations)
]
"""A relation model: a name of `RELATIONS`, or an object with the methods of `RelationModel`."""


@dataclass(frozen=True)
class NamedRelations:
    """A user's relation model, with a name.

    Attributes:
        model: the user's model.
        name: its name.
    """

    model: Any
    name: str

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        """Return an answer per pair, in order."""
        given = self.model.judge(pairs)
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InputError(
                f"the relation model {self.name} returned {shown(given)} for "
                f"{counted(len(pairs), 'pair')}; return a list of one answer per pair, in order"
            )
        answers = list(given)
        if len(answers) != len(pairs):
            raise InputError(
                f"the relation model {self.name} gave {len(answers)} answers to "
                f"{counted(len(pairs), 'pair')}; return one answer per pair, in order"
            )
        for answer in answers:
            if not isinstance(answer, Judgment | Missing):
                raise InputError(
                    f"the relation model {self.name} answered {shown(answer)}; answer with a "
                    "Judgment or Missing of factormodels.extraction.relation_models.base"
                )
        return answers


def relation_model(
    name: str | RelationModel,
    model: LanguageModel | None = None,
    labels: Mapping[str, str] | None = None,
    *,
    method: Method = "automatic",
    window: int | None = None,
    openness: float = OPENNESS,
    prompt: str = RELATION.prompt,
    option: str = "--relations",
    also: Sequence[str] = (),
) -> tuple[RelationModel, dict[str, Any]]:
    """Build the relation model of a name in `RELATIONS`, with the facts that results depend on.

    Args:
        name: a name of `RELATIONS`, or a relation model.
        model: the language model, for "model".
        labels: relation of each label of an NLI model, if the labels' names do not show it.
        method: origin of the language model's probabilities, a value of `Method`.
        window: context length in tokens; None for the known value.
        openness: largest width of the range of a probability from log-probabilities.
        prompt: prompt of the language model, a name of `RELATION_PROMPTS`.
        option: option that has the name, for errors.
        also: further names that the option accepts, for errors.

    Raises:
        InputError: for an unknown name, or a missing model.
        MissingDependencyError: if it needs a library that is not installed.
    """
    if not isinstance(name, str):
        return NamedRelations(name, str(name_of_relations(name))), {}
    kind, _, named_path = name.partition(":")
    if name == "model":
        if model is None:
            raise InputError(f"{option} model needs a language model; name one with --model")
        refuse_unasked_prompts(prompts_of(model), prompt)
        # There are no further facts: `_model_facts` has name, method and prompts.
        built = build_relation_model(
            "prompted",
            model=model,
            method=method,
            window=window,
            openness=openness,
            prompt=prompt,
        )
        facts: dict[str, Any] = {} if window is None else {"window": window}
        # The default is not a fact, so that batches of earlier versions continue.
        return built, facts if prompt == RELATION.prompt else facts | {"relation_prompt": prompt}
    if name == "lexical":
        return build_relation_model(name), {}
    if kind in ("recorded", *LOCAL) and named_path:
        path = Path(named_path)
        path_facts = relation_model_facts(kind, path=path)
        built = build_relation_model(kind, path=path, labels=labels)
        return built, {f"{kind}_sha256": path_facts["sha256"]}
    raise InputError(unknown_name(f"{option} {name!r}", name, (*also, *RELATIONS)))


def refuse_unasked_prompts(prompts: Prompts, asked: str) -> None:
    """Refuse a user's relation prompts if none of them is used.

    Args:
        prompts: the prompts.
        asked: name of the relation prompt in use.

    Raises:
        InputError: if they replace only unused relation prompts.
    """
    replaced = [name for name in RELATION_PROMPTS if name in prompts.replaced]
    if replaced and asked not in replaced:
        raise InputError(
            f"--prompts replaces the prompt {replaced[0]!r}, and relations use the prompt "
            f"{asked!r}; give --relation-prompt {replaced[0]}, or name the file {asked}.yaml"
        )


def build_relation_model(
    kind: str,
    *,
    path: Path | None = None,
    model: LanguageModel | None = None,
    method: Method = "automatic",
    samples: int | None = None,
    window: int | None = None,
    labels: Mapping[str, str] | None = None,
    openness: float = OPENNESS,
    prompt: str = RELATION.prompt,
) -> RelationModel:
    """Load a relation model.

    Args:
        kind: lexical, prompted, recorded, or one of `LOCAL`.
        path: file of recorded judgments, or folder of a local model.
        model: the language model of "prompted".
        method: origin of its probabilities.
        samples: answers per pair, for the method "samples"; None for the default.
        window: context length in tokens; None for litellm's value.
        openness: largest width of the range of a probability from log-probabilities.
        prompt: prompt of the language model, a name of `RELATION_PROMPTS`.

    Raises:
        InputError: for a missing model.
        MissingDependencyError: if it needs a library that is not installed.
    """
    if kind == "prompted" and model is not None:
        from factormodels.extraction.relation_models.prompted import (
            WINDOW,
            PromptedRelationModel,
        )

        known = window or known_window(model.name) or WINDOW
        options: dict[str, Any] = {"openness": openness, "prompt": prompt}
        if samples is not None:
            options["samples"] = samples
        return PromptedRelationModel(model, method, window=known, **options)
    if kind == "lexical":
        from factormodels.extraction.relation_models.lexical import LexicalRelations

        return LexicalRelations()
    if path is not None and kind in _OF_A_PLACE:
        module, name = _OF_A_PLACE[kind]
        load = getattr(import_module(f"factormodels.extraction.relation_models.{module}"), name)
        loaded: RelationModel = load(path, labels=labels) if kind == "nli" else load(path)
        return loaded
    raise InputError(
        f"the relation model {kind!r} lacks its path or language model; give the missing argument"
    )


def relation_model_facts(
    kind: str,
    *,
    path: Path | None = None,
    method: Method = "automatic",
    samples: int | None = None,
    openness: float = OPENNESS,
    prompt: str = RELATION.prompt,
    prompts: Prompts = OURS,
) -> dict[str, Any]:
    """Facts that a relation model's answers depend on, as JSON values, without loading it.

    The facts are the content hash of a file or folder, or the prompts of a language model and their
    hashes.

    Raises:
        InputError: if there is no such file or folder.
    """
    if kind in LOCAL and path is not None and not path.is_dir():
        raise InputError(f"{path}: there is no such folder; name the folder of a local model")
    path_facts = {} if path is None else {"sha256": content_hash(path)}
    if kind != "prompted":
        return path_facts
    names = [stage_of_method(method, prompt).prompt]
    if method in _BY_TOKENS:
        names.append(STATED_RELATION.prompt)  # fallback without log-probabilities
    asked: dict[str, Any] = {
        "method": method,
        "prompts": [prompts.identity_of(name) for name in names],
    }
    if method in _BY_TOKENS:
        asked["openness"] = openness
    if method != "samples":
        return {**asked, **path_facts}
    return {**asked, "samples": samples or SAMPLES}


_OWN_WINDOW = ("ollama", "ollama_chat")
"""Providers whose servers set the context length themselves."""


def known_window(model: str) -> int | None:
    """Context length of a language model in tokens, from litellm's list; None if unknown.

    Args:
        model: the model as litellm spells it, with its provider.
    """
    provider, _, name = model.partition("/")
    if not name or provider in _OWN_WINDOW:
        return None
    from factormodels.extraction.language_model.litellm_library import quiet_litellm

    try:
        listed = quiet_litellm().model_cost
    except MissingDependencyError:
        return None
    known = (listed.get(model) or listed.get(name) or {}).get("max_input_tokens")
    return known if isinstance(known, int) and known > 0 else None


def content_hash(path: Path) -> str:
    """SHA-256 of a file, or of the names and hashes of all files in a folder.

    Raises:
        InputError: if a file is missing or cannot be read.
    """
    if path.is_dir():
        # File names are included, since models look files up by name; the folder's own name is not.
        parts = [f"{file.name} {content_hash(file)}\n" for file in sorted(path.iterdir())]
        return hashlib.sha256("".join(parts).encode()).hexdigest()
    digest = hashlib.sha256()
    with opened(path) as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()
