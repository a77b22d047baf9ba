"""Identity of a prompt template, in manifests, cache keys and records of answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PromptIdentity:
    """Identity of a prompt template.

    Attributes:
        name: file name of the template, without suffix.
        version: the version that the template declares.
        digest: SHA-256 of the template, in hexadecimal.
    """

    name: str
    version: int
    digest: str
