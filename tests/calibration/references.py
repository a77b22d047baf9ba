"""The numbers of other libraries that tests compare with."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


@cache
def of_r() -> dict[str, Any]:
    """Claims of two methods, and by R's package what it gives (`make_r_references.py`)."""
    content: dict[str, Any] = json.loads((HERE / "r_references.json").read_text(encoding="utf-8"))
    return content


def r_values(package: str, name: str) -> list[float]:
    """Numbers of one name that a package of R gave."""
    packages = of_r()["packages"]
    (reference,) = (values for key, values in packages.items() if key.startswith(f"R: {package} "))
    numbers: list[float] = reference[name]
    return numbers


def r_claims() -> tuple[Any, Any, Any, Any]:
    """Probabilities of two methods, labels and responses of those claims, (128,) each."""
    data = of_r()
    return np.array(data["p"]), np.array(data["q"]), np.array(data["y"]), data["response"]
