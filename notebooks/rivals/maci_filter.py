"""Filter claims by maci-conformal 0.2.2 on splits that `kept_groups.py --export` wrote.

    python -m venv rival && rival/bin/pip install maci-conformal==0.2.2
    rival/bin/python notebooks/rivals/maci_filter.py claims.json kept.json 400

It runs in an environment of its own, which needs nothing of this project. The filter by one score
takes all splits, the whole method the first ones of the given number. Each method of each data set
is written when it is finished, and not filtered again. The groups are the terciles of the
number of claims, of which the package learns the edges; its own grouper reads texts of prompts,
which these data lack.
"""

from __future__ import annotations

import importlib
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ONE, ALL = "MACI, one score", "MACI, two scores, by length"


class NumberOfClaims:
    """Grouper of the package by the number of claims of a response."""

    name = "number_of_claims"

    def compute_values(self, dataset: list[Any], **_: Any) -> Any:
        """Number of claims of each response, (n,)."""
        return np.array([float(len(sample["atomic_facts"])) for sample in dataset])


def entries_of(data: Any) -> list[Any]:
    """Responses in the form of the package, labeled claims only."""
    return [
        {
            "sample": {
                "prompt": "",
                "response": "",
                "atomic_facts": [{"atom": "", "is_supported": bool(y)} for y in response["y"]],
            },
            "scores": {
                name: np.array(values)
                for name, values in zip(data["names"], response["values"], strict=True)
            },
        }
        for response in data["responses"]
    ]


def one_score(package: Any, data: Any, alpha: float, seed: int) -> Callable[..., Any]:
    """Adaptive filter by the first score, calibrated on all given responses."""

    def kept(known: list[Any], new: list[Any]) -> list[Any]:
        model = package.MACIAdaptiveConformal(
            score_function=lambda entries: [each["scores"][data["names"][0]] for each in entries],
            random_state=seed,
        )
        filtered, _ = model.fit_on_calib(known, alpha=alpha).predict(new)
        return [each["kept_mask"] for each in filtered]

    return kept


def all_scores(package: Any, data: Any, alpha: float, seed: int) -> Callable[..., Any]:
    """The whole method: weights of scores and a threshold for each group."""

    def kept(known: list[Any], new: list[Any]) -> list[Any]:
        model = package.SubgroupOptimizedMACI(
            data["names"], NumberOfClaims(), n_bins=3, random_state=seed, solver="osqp"
        )
        filtered, _ = model.fit(known, alpha=alpha).predict(new)
        return [each["sample"]["kept_mask"] for each in filtered]

    return kept


def main(source: Path, target: Path, most: int) -> None:
    """Filter the splits of the source, and write the kept claims of their second halves.

    Args:
        source: claims and splits.
        target: file of the kept claims.
        most: number of splits that the whole method takes.
    """
    logging.disable(logging.CRITICAL)
    package = importlib.import_module("maci_conformal.adaptive")
    content = json.loads(source.read_text("utf-8"))
    done: dict[str, Any] = json.loads(target.read_text("utf-8")) if target.exists() else {}
    for method, make, number in ((ONE, one_score, None), (ALL, all_scores, most)):
        for name, data in content["data"].items():
            if method in done.get(name, {}):
                continue
            entries = entries_of(data)
            masks = []
            for seed, first in enumerate(data["splits"][:number]):
                inside = set(first)
                known = [each for position, each in enumerate(entries) if position in inside]
                new = [each for position, each in enumerate(entries) if position not in inside]
                filtering = make(package, data, 1 - content["confidence"], seed)
                masks.append([[int(each) for each in mask] for mask in filtering(known, new)])
            done.setdefault(name, {})[method] = masks
            target.write_text(json.dumps(done), "utf-8")
            sys.stdout.write(f"{name}: {method}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
