"""Relation models by name, with what results depend on of each."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

from factormodels.errors import InputError
from factormodels.extraction.asking import identity_of
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.relation_models.base import RelationModel

Method = Literal["logprobs", "verbalised", "samples"]


def build_relation_model(
    kind: str,
    *,
    path: Path | None = None,
    model: LanguageModel | None = None,
    method: Method = "logprobs",
    samples: int = 5,
) -> RelationModel:
    """A relation model, loaded and ready.

    Args:
        kind: lexical, prompted, recorded or nli.
        path: file of recorded judgements, or folder of an NLI model.
        model: the language model of "prompted".
        method: where its probabilities come from.
        samples: its answers per pair, for the method "samples".

    Raises:
        InputError: for a model that is not there.
        MissingDependencyError: if it needs a library that is not installed.
    """
    if kind == "prompted" and model is not None:
        from factormodels.extraction.relation_models.prompted import PromptedRelationModel

        return PromptedRelationModel(model, method, samples=samples)
    if kind == "recorded" and path is not None:
        from factormodels.extraction.relation_models.recorded import read_recorded

        return read_recorded(path)
    if kind == "nli" and path is not None:
        from factormodels.extraction.relation_models.nli import load_nli

        return load_nli(path)
    if kind == "lexical":
        from factormodels.extraction.relation_models.lexical import LexicalRelations

        return LexicalRelations()
    raise InputError(f"the relation model {kind!r} lacks its path or language model; give it")


def relation_model_facts(
    kind: str, *, path: Path | None = None, method: Method = "logprobs", samples: int = 5
) -> dict[str, Any]:
    """What the answers of a relation model depend on, as JSON values; nothing is loaded.

    Of a file or folder it is the hash of the content, of a language model the prompts with theirs.

    Raises:
        InputError: if there is no such file or folder.
    """
    if kind == "nli" and path is not None and not path.is_dir():
        raise InputError(f"{path}: there is no such folder; name the folder of an NLI model")
    if path is not None:
        return {"sha256": content_hash(path)}
    if kind != "prompted":
        return {}
    prompts = ["relation_verbalised"] if method == "verbalised" else ["relation"]
    if method == "logprobs":
        prompts.append("relation_verbalised")  # where answers come without log-probabilities
    asked = {"method": method, "prompts": [identity_of(prompt) for prompt in prompts]}
    return {**asked, "samples": samples} if method == "samples" else asked


def content_hash(path: Path) -> str:
    """The SHA-256 of a file, or of the names and hashes of all that a folder holds.

    Raises:
        InputError: if a file is not there or cannot be read.
    """
    if path.is_dir():
        # Names are part of it, since models look files up by name; the folder's own name is not.
        parts = [f"{one.name} {content_hash(one)}\n" for one in sorted(path.iterdir())]
        return hashlib.sha256("".join(parts).encode()).hexdigest()
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; check the path") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check its rights") from None
