"""Replacement of prompts by a user's templates, and the language model that uses them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from factormodels.errors import InputError, unknown_name
from factormodels.extraction.language_model import (
    LanguageModel,
    WrappedModel,
)
from factormodels.extraction.prompts import (
    PromptTemplate,
    load_prompt,
    parse_prompt,
    prompt_names,
)
from factormodels.io.source.files import read_text

_SUFFIX = ".yaml"


@dataclass(frozen=True)
class Prompts:
    """The prompts of this package, some of them replaced.

    Attributes:
        replaced: the user's templates by name of the replaced one.
    """

    replaced: Mapping[str, PromptTemplate] = field(default_factory=dict)

    def __getitem__(self, name: str) -> PromptTemplate:
        """Return the template of a name.

        Raises:
            InputError: if no template has this name.
        """
        return self.replaced.get(name) or load_prompt(name)

    def identity_of(self, name: str) -> dict[str, Any]:
        """Return name, version and digest of a template as JSON values.

        Raises:
            InputError: if no template has this name.
        """
        return asdict(self[name].identity)

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every template, by name."""
        return {name: self[name].identity.digest for name in prompt_names()}


OURS = Prompts()


def read_prompts(folder: str | os.PathLike[str] | None) -> Prompts:
    """Read the prompts; a file NAME.yaml in a folder replaces the prompt of that name.

    Args:
        folder: the folder; None replaces none.

    Raises:
        InputError: if the folder does not exist or replaces nothing, or a file is not a template.
    """
    if folder is None:
        return OURS
    path = Path(folder)
    if not path.is_dir():
        raise InputError(
            f"{path}: there is no such folder of prompts; `factormodels list prompts --out "
            f"{path}` writes one"
        )
    replaced = {}
    for file in sorted(path.iterdir()):
        if file.suffix == ".yml":
            raise InputError(f"{file}: prompts end in {_SUFFIX}; rename it")
        if file.suffix != _SUFFIX:
            continue
        if file.stem not in prompt_names():
            raise InputError(
                f"{file}: {unknown_name(f'the prompt {file.stem!r}', file.stem, prompt_names())}"
            )
        replaced[file.stem] = parse_prompt(read_text(file), str(file), load_prompt(file.stem))
    if not replaced:
        raise InputError(f"{path}: it holds no prompt; add a file such as atomizer{_SUFFIX}")
    return Prompts(replaced)


class WithPrompts(WrappedModel):
    """A language model with replaced prompts.

    Args:
        model: the model.
        prompts: the prompts.
    """

    def __init__(self, model: LanguageModel, prompts: Prompts) -> None:
        super().__init__(model)
        self.prompts = prompts


def prompts_of(model: LanguageModel | None) -> Prompts:
    """Return the prompts of a language model: the package's, unless it has replacements."""
    return model.prompts if isinstance(model, WithPrompts) else OURS
