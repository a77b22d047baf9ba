"""Types of settings and keys: numbers with limits, and names from registries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from experiments.settings import USUAL, Option, Settings
from factormodels.encodings import ENCODINGS
from factormodels.texts.languages import checked_language
from factormodels.variants import VARIANTS


def _named_path(value: Any) -> Any:
    """Refuse an empty path, which pathlib reads as the current folder."""
    if value == "":
        raise ValueError("give a path that is not empty")
    return value


def _web_address(value: str) -> str:
    """Refuse an address without http:// or https://."""
    if not re.match(r"https?://[^\s/]", value, re.I):
        raise ValueError(
            "give an address that begins with http:// or https://, such as http://127.0.0.1:8000/v1"
        )
    return value


def _language(value: str | None) -> str | None:
    """Return the code of a language without its region, or None if none is given."""
    return None if value is None else checked_language(value)


def _k_policy(value: int | str) -> int | str:
    """Check how K of F1@K is chosen; convert digits to a number."""
    # isdigit alone would let other scripts' digits through, hence isascii.
    number = value.removeprefix("fixed:") if isinstance(value, str) else str(value)
    if number.isascii() and number.isdigit() and int(number) > 0:
        return value if str(value).startswith("fixed:") else int(number)
    if value in ("median", "half", "half-down"):
        return value
    raise ValueError("use median, half, half-down, or a whole number above 0")


Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Calls = Annotated[int, Field(ge=0)]
# A seed is a column of 64-bit integers; more than ten million of anything is a slip.
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]
Folds = Annotated[int, Field(ge=2)]
ErrorBins = Annotated[int, Field(ge=1, le=1000)]
FilePath = Annotated[Path, BeforeValidator(_named_path)]
WebAddress = Annotated[str, AfterValidator(_web_address)]
ObjectiveName = Literal["log_loss", "likelihood", "brier"]

if TYPE_CHECKING:
    EncodingName = str
    VariantName = str
else:
    # From the registries, so that new names there become choices here.
    EncodingName = Literal[tuple(ENCODINGS)]
    VariantName = Literal[tuple(VARIANTS)]

Language = Annotated[
    str | None,
    AfterValidator(_language),
    Field(
        description="Language code of the texts, such as de, which determines sentence "
        "boundaries and negations. Detected in each response by default."
    ),
    Option("CODE"),
]
"""Language of responses and claims, with its description."""

K_MEANING = (
    "K of F1@K: median (of the claims per response), half (of a response's claims), half-down "
    "(rounded down), or a number."
)
KPolicy = Annotated[int | str, AfterValidator(_k_policy), Field(description=K_MEANING), Option("K")]
"""Choice of K, with its description."""

Gamma = Annotated[
    float,
    Field(gt=0, allow_inf_nan=False, description="Rate at which recall decreases away from K'."),
]
"""Rate of F1@K', with its description."""

Replicates = Annotated[
    int,
    Field(ge=1, le=10_000_000, description="Replicates of the bootstrap over responses."),
    Option("N", "bootstrap"),
]
"""Number of bootstrap samples, with its description."""

Encoding = Annotated[EncodingName, Field(description="Encoding of relations as tables.")]
"""Name of an encoding, with its description."""

Least = Annotated[
    float,
    Field(ge=0, le=1, description="Smallest probability at which a relation counts."),
    Option("P"),
]
"""Least probability of a relation, with its description."""


Openness = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="Largest share of a relation's probability that unlisted tokens may leave open "
        "before the model is asked to state its confidence.",
    ),
    Option("WIDTH"),
]
"""Widest interval of a relation's probability from log-probabilities, with its description."""

DaskAddress = Annotated[
    str | None,
    Field(
        description="Compute on the Dask cluster at this address, such as tcp://head:8786; models "
        "are still queried from this machine."
    ),
    Option("ADDRESS"),
]
"""Address of the scheduler of a cluster, with its description."""

BleachedDomain = Annotated[
    str,
    Field(
        description="Domain of the bleached (generic) claims against which informativeness is "
        "measured, such as people or things."
    ),
    Option("NAME"),
]
"""Domain of the bleached claims, with its description."""

PEOPLE = "people"
"""Default domain of the bleached claims, from Core's own data."""

DryRun = Annotated[
    bool,
    Field(description="Check everything and show the planned calls or units. Nothing is run."),
    USUAL,
]
"""True to plan without calls or runs, with its description."""


class DrawnSettings(Settings):
    """Random draws.

    The seed of random draws.
    """

    seed: Seed = 0
    """Seed of all random draws: folds, intervals, tests, samples."""
