"""Grids of datasets, variants, backends and judges in Python: a study without a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from experiments.findings.findings import Findings
from experiments.methods.run import run
from experiments.settings import Option, Settings, front_door
from experiments.settings.inputs import is_dataset
from factormodels.io.source.opening import exists


class GridSettings(Settings):
    """Dimensions of a grid, each a list or a single value, as in a study.

    `keys` has the other keys of a study, such as `priors`, `measures` or `language_model`.
    """

    writes_several_files = True

    variants: Any = "FR2"
    """Views of the fact graphs: given, FR1, FR2, FR3."""

    relation_models: Any = None
    """Source of relations; the data's relations by default."""

    encodings: Any = None
    """Encodings of relations as factors; the default encoding if not given."""

    backends: Any = "auto"
    """Algorithms, by name or with settings as in a study."""

    judges: Any = ()
    """Assessors that judge claims by prompts, without a graph: the `assessors` of a study."""

    seeds: Any = ()
    """Seeds of sampling backends; one cell per seed."""

    keys: Mapping[str, Any] = {}
    """Further keys of the study, by name."""

    name: str = "grid"
    """Name of the study."""

    out: Annotated[Path | None, Option(writes=True)] = None
    """Folder of the results; by default results/NAME-HASH, which differs for every grid."""

    workers: int | None = None
    """Number of processes; by default as for `run`."""


@front_door
def grid(datasets: Any, settings: GridSettings) -> Findings:
    """Run every combination of datasets, variants, encodings, backends and seeds, and every judge.

    from experiments import grid
    result = grid("demonstration", variants=["FR1", "FR2"], backends=["exact", "lbp"])
    result["rows"].groupby(["variant", "backend"])["p"].mean()

    Finished units are not computed again: the same grid in the same folder returns the same
    findings at once, and an interrupted grid continues.

    Args:
        datasets: names of embedded datasets, paths of files, or datasets as in a study, such as
            {"path": "graphs.jsonl", "name": "ours"}; a list or a single dataset.
        settings: the other dimensions of the grid.

    Returns:
        As `run`: `rows`, a row per claim and cell, `summary`, a row per cell, and the tables;
            `texts["study.yaml"]` is the study as a file for `factormodels run`.

    Raises:
        InputError: as `run`.
    """
    from experiments.study.config import config_hash
    from experiments.study.reading import load_study
    from factormodels.io.yaml import yaml_text

    sides = {
        "variants": settings.variants,
        "relation_models": settings.relation_models,
        "encodings": settings.encodings,
        "backends": settings.backends,
        "assessors": settings.judges,
        "seeds": settings.seeds,
    }
    chosen = {key: _several(value) for key, value in sides.items() if value not in (None, (), [])}
    data = [_dataset(each) for each in _several(datasets)]
    study = {"study": settings.name, "datasets": data, **chosen, **settings.keys}
    loaded = load_study(study)
    # Every grid has a folder of its own, so that results are never mixed up.
    digest = config_hash(loaded.study)[:8]
    folder = settings.out or Path("results") / f"{settings.name}-{digest}"
    findings = run(loaded, out=folder, resume=folder.exists(), workers=settings.workers)
    return replace(findings, command="grid", texts={"study.yaml": yaml_text(study)})


def _several(values: Any) -> list[Any]:
    """Values as a list, as in a study; a single value becomes a list."""
    return list(values) if isinstance(values, list | tuple) else [values]


def _dataset(dataset: Any) -> Any:
    """A dataset as in a study: a name unchanged, and a path as a mapping."""
    if not isinstance(dataset, str | os.PathLike):
        return dataset
    path = Path(dataset)
    if is_dataset(path) or not (path.suffix or len(path.parts) > 1 or exists(path)):
        return str(dataset)
    return {"path": str(dataset)}
