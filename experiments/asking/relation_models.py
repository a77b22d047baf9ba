"""Relation models by name, with what results depend on of each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
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
    Judgement,
    Missing,
    RelationModel,
    TextPair,
)
from factormodels.extraction.relation_models.prompted import SAMPLES, Method, stage_of_method
from factormodels.io.source.opening import opened
from factormodels.nouns import counted

LOCAL = ("nli", "minicheck", "alignscore")
"""Relation models in a folder on this disk."""

_OF_A_PLACE = {
    "recorded": ("recorded", "read_recorded"),
    **{kind: (kind, f"load_{kind}") for kind in LOCAL},
}
"""By relation model of a file or folder, what loads it: module and function."""

_BY_TOKENS = ("automatic", "logprobs")
"""Methods that may read log-probabilities."""

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
"""A relation model: one of `RELATIONS`, or an object with the methods of `RelationModel`."""


@dataclass(frozen=True)
class NamedRelations:
    """A relation model of a user's own, with a name.

    Attributes:
        model: what judges.
        name: what it is called.
    """

    model: Any
    name: str

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        """Return an answer per pair, in order."""
        answers = list(self.model.judge(pairs))
        if len(answers) != len(pairs):
            raise InputError(
                f"the relation model {self.name} gave {len(answers)} answers to "
                f"{counted(len(pairs), 'pair')}; give one for each, in order"
            )
        for answer in answers:
            if not isinstance(answer, Judgement | Missing):
                raise InputError(
                    f"the relation model {self.name} answered {shown(answer)}; answer with a "
                    "Judgement or Missing of factormodels.extraction.relation_models.base"
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
        name: one of `RELATIONS`, or a relation model that is built.
        model: the language model, where it is one.
        labels: relation of each label of an NLI model, where their names do not tell.
        method: where the language model's probabilities come from: one of `Method`.
        window: tokens that it takes; None for what is known of it.
        openness: how far a probability from log-probabilities may be open.
        prompt: words that the language model is asked in, one of `RELATION_PROMPTS`.
        option: what gives the name, for errors.
        also: names that the option takes beside these, for errors.

    Raises:
        InputError: for an unknown name, or a model that is not there.
        MissingDependencyError: if it needs a library that is not installed.
    """
    if not isinstance(name, str):
        return NamedRelations(name, str(name_of_relations(name))), {}
    kind, _, named_path = name.partition(":")
    if name == "model":
        if model is None:
            raise InputError(f"{option} model needs a language model; name one with --model")
        refuse_unasked_prompts(prompts_of(model), prompt)
        # It has no further facts: `_model_facts` has its name, method and prompts.
        built = build_relation_model(
            "prompted",
            model=model,
            method=method,
            window=window,
            openness=openness,
            prompt=prompt,
        )
        facts: dict[str, Any] = {} if window is None else {"window": window}
        # The default is no fact, so that a batch of an earlier version goes on.
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
    """Refuse a user's prompts for relations if none of them is the one that is asked.

    Args:
        prompts: the prompts.
        asked: name of the prompt for relations that is asked.

    Raises:
        InputError: if they replace other prompts for relations alone.
    """
    replaced = [name for name in RELATION_PROMPTS if name in prompts.replaced]
    if replaced and asked not in replaced:
        raise InputError(
            f"--prompts replaces the prompt {replaced[0]!r}, and relations are asked for by "
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
    """A relation model, loaded and ready.

    Args:
        kind: lexical, prompted, recorded, or one of `LOCAL`.
        path: file of recorded judgments, folder of a local model.
        model: the language model of "prompted".
        method: where its probabilities come from.
        samples: its answers per pair, for the method "samples"; None for what is usual.
        window: tokens that it takes; None for what litellm knows of it.
        openness: how far its probabilities from log-probabilities may be open.
        prompt: words that it is asked in, one of `RELATION_PROMPTS`.

    Raises:
        InputError: for a model that is not there.
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
    raise InputError(f"the relation model {kind!r} lacks its path or language model; give it")


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
    """Facts that a relation model's answers depend on, as JSON values; nothing is loaded.

    For a file or folder this is the hash of the content, for a language model the prompts and their
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
        names.append(STATED_RELATION.prompt)  # where log-probabilities cannot be used
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
"""Providers whose servers limit the context length by a setting, not by the model."""


def known_window(model: str) -> int | None:
    """Tokens that a language model takes, from the list that comes with litellm; None if unknown.

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
    """The SHA-256 of a file, or of the names and hashes of all that a folder holds.

    Raises:
        InputError: if a file is not there or cannot be read.
    """
    if path.is_dir():
        # Names are part of it, since models look files up by name; the folder's own name is not.
        parts = [f"{file.name} {content_hash(file)}\n" for file in sorted(path.iterdir())]
        return hashlib.sha256("".join(parts).encode()).hexdigest()
    digest = hashlib.sha256()
    with opened(path) as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()
