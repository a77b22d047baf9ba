"""Reading a study: a YAML file or an embedded one, the file it is based on, and overrides.

A configuration becomes plain data in which every mapping is written out, and then settings. The
origin of every value is kept, so that an error begins with the file or override.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from calibration.scores.registry import DEFAULT_MEASURES
from experiments.settings.keyed import WRITTEN_OUT, Keyed, in_full
from experiments.study.config import Study
from experiments.study.earlier_keys import rename_earlier_keys
from experiments.study.errors import Step, StudyError, study_error
from experiments.study.network_files import names_networks
from factormodels.conventions import DEFAULT, PRESETS
from factormodels.decoded_values import shown
from factormodels.errors import InputError, unknown_name
from factormodels.io.source.files import read_text
from factormodels.io.source.opening import exists
from factormodels.io.yaml import parse_assignment, parse_yaml

Checked = TypeVar("Checked")
Chosen = TypeVar("Chosen", bound=Keyed)

_HOLDERS = ("datasets", "relation_models", "assessors", "selections")
_PATHS = ("path", "templates", "cache")
"""Lists whose entries may name a file or folder, with the keys of these names."""

_PLACE = re.compile(r"[^.\[\]]+|\[\d+\]")


@dataclass(frozen=True)
class Source:
    """Source of a study's values.

    Attributes:
        steps: the path that it sets.
        name: name in errors: a file, or an override.
    """

    steps: tuple[Step, ...]
    name: str


@dataclass(frozen=True)
class LoadedStudy:
    """A study with its origin.

    Attributes:
        study: the study.
        folder: base folder of its relative paths.
        where: name of its configuration in errors.
        sources: sources of its values; later ones override earlier ones.
    """

    study: Study
    folder: Path
    where: str
    sources: tuple[Source, ...] = ()

    def blame(self, key: str) -> str:
        """Beginning of an error at a path: its source, then the path."""
        return _blame(self.sources, key, self.where)


@dataclass(frozen=True)
class RawStudy:
    """A study as written, with its base and overrides applied.

    Attributes:
        raw: its plain data.
        before: its plain data without the overrides.
        overrides: the overrides.
        where: name of its configuration in errors.
        folder: base folder of its relative paths.
        sources: sources of its values; later ones override earlier ones.
    """

    raw: dict[str, Any]
    before: dict[str, Any]
    overrides: tuple[str, ...]
    where: str
    folder: Path
    sources: tuple[Source, ...]

    def blame(self, key: str) -> str:
        """Beginning of an error at a path: its source, then the path."""
        return _blame(self.sources, key, self.where)

    def checked(self, check: Callable[[dict[str, Any]], Checked]) -> Checked:
        """Result of a check of the study's values.

        Args:
            check: raises StudyError for invalid values.

        Raises:
            InputError: for invalid values; the message begins with the file or override that set
                them.
        """
        try:
            return check(self.raw)
        except StudyError as error:
            blamed = _blamed(self.sources, error.steps, self.where)
            # An error between several keys has no single path.
            if blamed == self.where and self.overrides and self._fits_without_overrides(check):
                # The file is valid without the overrides, so the overrides cause the error.
                several = "s" if len(self.overrides) > 1 else ""
                blamed = f"override{several} {', '.join(map(repr, self.overrides))}"
            raise InputError(f"{blamed}: {error.sentence}") from None

    def _fits_without_overrides(self, check: Callable[[dict[str, Any]], object]) -> bool:
        try:
            check(self.before)
        except StudyError:
            return False
        return True


def embedded_studies() -> dict[str, str]:
    """Text of every embedded study by name, such as compare or papers/NAME."""
    return dict(_texts(resources.files("experiments") / "configs", ""))


def _texts(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    # Files before folders: the studies of this level are listed first.
    entries = sorted(folder.iterdir(), key=lambda entry: (entry.is_dir(), entry.name))
    for entry in entries:
        if entry.is_dir():
            yield from _texts(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".yaml"):
            yield f"{prefix}{entry.name.removesuffix('.yaml')}", entry.read_text(encoding="utf-8")


Configuration = str | os.PathLike[str] | Mapping[str, Any]
"""A study: the name of an embedded study, the path of a YAML file, or the content of such a file.
"""

Overrides = Iterable[str] | Mapping[str, Any]
"""Values at paths such as "priors" or "backends[1].label": by path, or as "key=value"."""

_GIVEN = "the study"
"""Name in errors for a study that is not a file."""


def load_study(config: Configuration, overrides: Overrides = ()) -> LoadedStudy:
    """Load and check a study: its keys are fields of `study`, with every default.

    from experiments import load_study
    load_study("compare").study.backends

    Args:
        config: the name of an embedded study, the path of a file, or a dict with a study's keys,
            whose paths are relative to the current folder.
        overrides: values that replace values of the configuration.

    Raises:
        InputError: for an unknown name, an invalid file, or an invalid key or value; the message
            begins with the file or override that set it.
    """
    raw = read_raw(config, overrides)
    if is_analysis(raw):
        raise InputError(
            f"{raw.where}: this is the analysis {raw.raw['analysis']!r}, which has tables and no "
            "posteriors; run it with `factormodels run`"
        )
    if is_of_networks(raw):
        raise InputError(
            f"{raw.where}: its datasets are networks, which have no claims; run it with "
            "`factormodels run`"
        )
    return validated(raw)


def is_analysis(raw: RawStudy) -> bool:
    """Return True if a configuration requests an analysis instead of posteriors."""
    return "analysis" in raw.raw


def is_of_networks(raw: RawStudy) -> bool:
    """Return True if the data of a study are networks.

    Raises:
        InputError: if only some datasets are networks, or a file cannot be read.
    """
    entries = raw.raw.get("datasets")
    if not isinstance(entries, list) or is_analysis(raw):
        return False
    flags = []
    for position, entry in enumerate(entries):
        try:
            flags.append(names_networks(entry, raw.folder))
        except InputError as error:
            raise InputError(f"{raw.blame(f'datasets[{position}]')}: {error}") from None
    if any(flags) and not all(flags):
        raise InputError(
            f"{raw.blame(f'datasets[{flags.index(True)}]')} contains networks and "
            f"datasets[{flags.index(False)}] does not; a study compares backends on networks or "
            "on claims, so split it into two studies"
        )
    return any(flags)


def read_raw(config: Configuration, overrides: Overrides = ()) -> RawStudy:
    """Read a configuration as plain data.

    Args:
        config: a name of an embedded study, the path of a file, or a dict.
        overrides: values that replace values of the configuration.

    Raises:
        InputError: for an unknown name, a file that is not YAML, or an override of an unknown path.
    """
    # Keep the original besides the edited copy, to distinguish errors of the file from errors of
    # overrides.
    if isinstance(config, Mapping):
        raw, where, folder, sources = _based(_plain(config), _GIVEN, Path(), ())
    else:
        raw, where, folder, sources = _read(os.fspath(config), Path(), ())
    texts = _as_texts(overrides)
    changed = copy.deepcopy(raw)
    for override in texts:
        name = f"override {shown(override)}"
        key, value = parse_assignment(override, "override")
        steps = _assign(changed, key, value, name)
        # Repeat after each override, since a later one may set a path within a text of an earlier
        # one.
        changed = written_out(changed)
        sources.append(Source(steps, name))
    return RawStudy(changed, raw, texts, where, folder, tuple(sources))


def validated(raw: RawStudy) -> LoadedStudy:
    """Validate plain data and return the study.

    Raises:
        InputError: for an invalid key or value.
    """
    study = raw.checked(lambda plain: model_of(Study, plain, with_named_conventions(plain)))
    return LoadedStudy(study, raw.folder, raw.where, raw.sources)


def study_of_plain(raw: Mapping[str, Any], where: str) -> Study:
    """Return the study of the plain form of `experiments.study.config.as_plain`.

    Args:
        raw: the plain form.
        where: beginning of errors.

    Raises:
        InputError: if it is not a valid study, such as one of another version.
    """
    try:
        plain = with_named_conventions(written_out(raw))
        return model_of(Study, raw, plain, defaults_written=True)
    except StudyError as error:
        raise InputError(f"{where}: {error.sentence}") from None


def model_of(
    model: type[Chosen],
    raw: Any,
    plain: Any = None,
    beneath: tuple[Step, ...] = (),
    *,
    defaults_written: bool = False,
) -> Chosen:
    """Validate plain data and return the settings.

    Args:
        model: the class of settings.
        raw: the written data, which errors show.
        plain: the data with filled-in keys; None if there are none.
        beneath: the path of the data in their file.
        defaults_written: True if the data have every default, so that no key counts as given.

    Raises:
        StudyError: for an invalid key or value.
    """
    try:
        # Strict JSON mode: a text is never read as a number, a list becomes a tuple.
        text = json.dumps(in_full(raw if plain is None else plain, model))
        context = {WRITTEN_OUT: defaults_written}
        return model.model_validate_json(text, strict=True, context=context)
    except ValidationError as error:
        raise study_error(in_full(raw, model), error.errors(), model, beneath) from None


def written_out(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Expand texts to mappings, and rename earlier keys, in a study as written.

    Overrides can then find their paths, and mappings can be merged.
    """
    plain: dict[str, Any] = in_full(copy.deepcopy(dict(raw)), Study)
    rename_earlier_keys(plain)
    return plain


def with_named_conventions(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A study with the keys that its named conventions set.

    These are the encoding, K and the treatment of unlabeled claims if absent, and the definition of
    the measure f1.
    """
    plain: dict[str, Any] = copy.deepcopy(dict(raw))
    stated = plain.get("conventions")
    if not isinstance(stated, dict):
        return plain
    preset = PRESETS.get(str(stated.get("like")))
    if preset is not None:
        plain.setdefault("encodings", [preset.encoding])
        plain.setdefault("k", preset.k)
        plain.setdefault("unlabeled", preset.unlabeled)
    if (stated.get("f1") or (DEFAULT if preset is None else preset).f1) == "pooled":
        return plain
    plain.setdefault("measures", list(DEFAULT_MEASURES))
    significance = plain.get("significance")
    for holder in (plain, significance):
        if isinstance(holder, dict) and isinstance(names := holder.get("measures"), list):
            holder["measures"] = ["f1_by_response" if name == "f1" else name for name in names]
    return plain


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a study from Python to the form of a file: lists instead of tuples, no objects."""

    def text(value: object) -> str:
        if isinstance(value, os.PathLike):
            return str(value)
        raise InputError(
            f"{_GIVEN}: {value!r} has no representation in a file; use texts, numbers, lists and "
            "dicts"
        )

    plain: dict[str, Any] = json.loads(json.dumps(dict(config), default=text))
    return plain


def _as_texts(overrides: Overrides) -> tuple[str, ...]:
    if isinstance(overrides, Mapping):
        return tuple(f"{key}={json.dumps(value, default=str)}" for key, value in overrides.items())
    if isinstance(overrides, str):
        raise InputError(
            f"overrides must be a list, and {overrides!r} is a single override; put it in a list"
        )
    return tuple(overrides)


def _read(
    config: str, beside: Path, seen: tuple[str, ...]
) -> tuple[dict[str, Any], str, Path, list[Source]]:
    """The raw study of `config`, merged into its base."""
    path = beside / config
    embedded = embedded_studies()
    parts = Path(config).parts
    # A path such as papers/datasets may be an embedded study; in any other folder it means a file.
    in_folder = len(parts) > 1 and any(name.startswith(f"{parts[0]}/") for name in embedded)
    if exists(path) or path.suffix or not (len(parts) == 1 or in_folder):
        text, where, folder = read_text(path), str(path), path.parent
    else:
        if config not in embedded:
            unknown = unknown_name(f"the study {config!r}", config, embedded)
            raise InputError(
                f"{unknown}; `factormodels list studies` lists all, or name a YAML file"
            )
        text, where, folder = embedded[config], f"{config}.yaml", Path()
    # Detect a cycle of bases, which would never end.
    if where in seen:
        raise InputError(f"{where}: the study is based on itself; correct 'base' of {seen[-1]}")
    study = parse_yaml(text, where)
    if not isinstance(study, dict):
        raise InputError(
            f"{where}: the content is not a mapping of keys to values; write study: NAME, ..."
        )
    return _based(study, where, folder, seen)


def _based(
    study: dict[str, Any], where: str, folder: Path, seen: tuple[str, ...]
) -> tuple[dict[str, Any], str, Path, list[Source]]:
    """A raw study, merged into its base, if any."""
    base = study.pop("base", None)
    # Expand before merging, so that mappings meet mappings.
    study = written_out(study)
    if base is None:
        return study, where, folder, []
    if not isinstance(base, str):
        raise InputError(
            f"{where}: base: {base!r} is not a study; name a file or an embedded study"
        )
    try:
        raw, _, base_folder, sources = _read(base, folder, (*seen, where))
    except InputError as error:
        raise InputError(f"{where}: base: {error}") from None
    # The base's paths are relative to its folder, which may differ from the study's.
    _move_paths(raw, base_folder, folder)
    base_name = str(folder / base) if exists(folder / base) else f"{base}.yaml"
    # Errors name the base for every path that only the base sets.
    sources = sources or [Source((), base_name)]
    _merge(raw, study, (), where, sources)
    return raw, where, folder, sources


def _move_paths(raw: dict[str, Any], before: Path, after: Path) -> None:
    """Change the base folder of a study's relative paths."""
    lists = [raw[key] for key in _HOLDERS if isinstance(raw.get(key), list)]
    parts = itertools.chain([raw.get("language_model")], *lists)
    for part, key in itertools.product(parts, _PATHS):
        if isinstance(part, dict) and isinstance(path := part.get(key), str):
            # relpath can leave a folder with "..", which Path.relative_to refuses.
            part[key] = os.path.relpath(before / path, after)


def _merge(
    target: dict[str, Any],
    overlay: Mapping[str, Any],
    steps: tuple[Step, ...],
    name: str,
    sources: list[Source],
) -> None:
    """Merge `overlay` into `target`: mappings key by key, everything else as a whole."""
    for key, value in overlay.items():
        path = (*steps, key)
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value, path, name, sources)
        else:
            target[key] = value
            sources.append(Source(path, name))


def _assign(raw: dict[str, Any], key: str, value: Any, where: str) -> tuple[Step, ...]:
    """Set the value at a path of `raw`, and return the steps."""
    texts = _PLACE.findall(key)
    # The pattern skips unreadable text; lost characters show that the path is malformed.
    if "".join(texts) != key.replace(".", "") or not texts:
        raise InputError(
            f"{where}: {key!r} is not a path in a study; write reliability.bins or "
            "backends[1].label"
        )
    steps = tuple(int(text[1:-1]) if text.startswith("[") else text for text in texts)
    if steps[0] == "base":
        raise InputError(f"{where}: 'base' cannot be overridden; name the other file instead")
    target: Any = raw
    for position, step in enumerate(steps):
        last = position == len(steps) - 1
        if isinstance(step, int):
            if not isinstance(target, list) or step >= len(target):
                count = len(target) if isinstance(target, list) else 0
                raise InputError(f"{where}: there is no entry [{step}]; it has {count}, from [0]")
        elif not isinstance(target, dict):
            raise InputError(f"{where}: {step!r} is not a key there; check the path")
        # A YAML key without a value is null, and is treated as absent.
        elif not last and target.get(step) is None:
            target[step] = {}
        if last:
            target[step] = value
        target = target[step]
    return steps


def _blame(sources: Iterable[Source], key: str, where: str) -> str:
    steps = tuple(int(s[1:-1]) if s[0] == "[" else s for s in _PLACE.findall(key))
    return f"{_blamed(sources, steps, where)}: {key}"


def _blamed(sources: Iterable[Source], steps: tuple[Step, ...], where: str) -> str:
    """The last source that set a path, a part of it, or a path above it."""
    blamed = where
    for source in sources:
        # The source set the path or a path above it, or a part of it.
        if source.steps == steps[: len(source.steps)] or (
            steps and source.steps[: len(steps)] == steps
        ):
            blamed = source.name
    return blamed
