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
"""Lists whose entries may name a file or folder, and the keys that do."""

_PLACE = re.compile(r"[^.\[\]]+|\[\d+\]")


@dataclass(frozen=True)
class Source:
    """Source of a study's values.

    Attributes:
        steps: the place that it set.
        name: what errors call it: a file, or an override.
    """

    steps: tuple[Step, ...]
    name: str


@dataclass(frozen=True)
class LoadedStudy:
    """A study with where it came from.

    Attributes:
        study: the study.
        folder: where its relative paths start.
        where: what errors call its configuration.
        sources: what set its places, later ones over earlier ones.
    """

    study: Study
    folder: Path
    where: str
    sources: tuple[Source, ...] = ()

    def blame(self, key: str) -> str:
        """Beginning of an error at a place: its source, then the place."""
        return _blame(self.sources, key, self.where)


@dataclass(frozen=True)
class RawStudy:
    """A study as it was written, with its base below it and the overrides laid over it.

    Attributes:
        raw: what it says.
        before: what it says without the overrides.
        overrides: the overrides.
        where: what errors call its configuration.
        folder: where its relative paths start.
        sources: what set its places, later ones over earlier ones.
    """

    raw: dict[str, Any]
    before: dict[str, Any]
    overrides: tuple[str, ...]
    where: str
    folder: Path
    sources: tuple[Source, ...]

    def blame(self, key: str) -> str:
        """Beginning of an error at a place: its source, then the place."""
        return _blame(self.sources, key, self.where)

    def checked(self, check: Callable[[dict[str, Any]], Checked]) -> Checked:
        """Result of a check of the study's values.

        Args:
            check: raises StudyError for what does not fit.

        Raises:
            InputError: for what does not fit; the message begins with the file or the override that
                said so.
        """
        try:
            return check(self.raw)
        except StudyError as error:
            blamed = _blamed(self.sources, error.steps, self.where)
            # An error between several keys has no single place.
            if blamed == self.where and self.overrides and self._fits_without_overrides(check):
                # The file alone is a study, so that it is what the overrides make of it.
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
"""A study: the name of an embedded one, the path of a YAML file, or what such a file would say."""

Overrides = Iterable[str] | Mapping[str, Any]
"""Values at places such as "priors" or "backends[1].label": by place, or as "key=value"."""

_GIVEN = "the study"
"""Name in errors of a study that is not a file."""


def load_study(config: Configuration, overrides: Overrides = ()) -> LoadedStudy:
    """A study, checked: its keys are fields of `study`, with every default filled in.

    from experiments import load_study
    load_study("compare").study.backends

    Args:
        config: a name without folder and suffix for an embedded study, the path of a file, or a
            dict with the keys of one, whose paths start in the current folder.
        overrides: what replaces values of it.

    Raises:
        InputError: for an unknown name, a bad file, or a key or value that a study cannot have; the
            message begins with the file or the override that said so.
    """
    raw = read_raw(config, overrides)
    if is_analysis(raw):
        raise InputError(
            f"{raw.where}: it asks for the analysis {raw.raw['analysis']!r}, which has tables and "
            "no posteriors; run it with `factormodels run`"
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
        InputError: if some are and others are not, or a file cannot be read.
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
            f"{raw.blame(f'datasets[{flags.index(True)}]')} is of networks and "
            f"datasets[{flags.index(False)}] is not; a study compares backends on networks or on "
            "claims, so make two studies"
        )
    return any(flags)


def read_raw(config: Configuration, overrides: Overrides = ()) -> RawStudy:
    """Read a configuration as plain data.

    Args:
        config: a name of an embedded study, the path of a file, or a dict.
        overrides: what replaces values of it.

    Raises:
        InputError: for an unknown name, a file that is not YAML, or an override of no place.
    """
    # Kept unchanged beside the edited copy, to distinguish errors of the file from errors of
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
        # After each one, since a later override may name a place within a text of an earlier one.
        changed = written_out(changed)
        sources.append(Source(steps, name))
    return RawStudy(changed, raw, texts, where, folder, tuple(sources))


def validated(raw: RawStudy) -> LoadedStudy:
    """Validate plain data and return the study.

    Raises:
        InputError: for a key or value that a study cannot have.
    """
    study = raw.checked(lambda plain: model_of(Study, plain, with_named_conventions(plain)))
    return LoadedStudy(study, raw.folder, raw.where, raw.sources)


def study_of_plain(raw: Mapping[str, Any], where: str) -> Study:
    """Return the study of the plain form of `experiments.study.config.as_plain`.

    Args:
        raw: the plain form.
        where: what an error begins with.

    Raises:
        InputError: if it is none, as of another version.
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
        raw: the data as they were written, which errors show.
        plain: the same with keys that are filled in; None: there are none.
        beneath: the place of the data in their file.
        defaults_written: whether the data have every default, so that no key counts as given.

    Raises:
        StudyError: for a key or value that the settings cannot have.
    """
    try:
        # Strict JSON mode: a text is never taken for a number, a list is a tuple.
        text = json.dumps(in_full(raw if plain is None else plain, model))
        context = {WRITTEN_OUT: defaults_written}
        return model.model_validate_json(text, strict=True, context=context)
    except ValidationError as error:
        raise study_error(in_full(raw, model), error.errors(), model, beneath) from None


def written_out(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A study as written, each text that stands for a mapping written out, keys spelled as today.

    Overrides then find their places, and mappings are laid over mappings.
    """
    plain: dict[str, Any] = in_full(copy.deepcopy(dict(raw)), Study)
    rename_earlier_keys(plain)
    return plain


def with_named_conventions(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A study with the keys that its named conventions set.

    That is the encoding, K and what unlabeled claims are where none is given, and which F1 the
    measure f1 is.
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
    """A study that was written in Python as a file would have it: lists for tuples, no objects."""

    def text(value: object) -> str:
        if isinstance(value, os.PathLike):
            return str(value)
        raise InputError(
            f"{_GIVEN}: {value!r} is nothing that a file could hold; give texts, numbers, lists "
            "and dicts"
        )

    plain: dict[str, Any] = json.loads(json.dumps(dict(config), default=text))
    return plain


def _as_texts(overrides: Overrides) -> tuple[str, ...]:
    if isinstance(overrides, Mapping):
        return tuple(f"{key}={json.dumps(value, default=str)}" for key, value in overrides.items())
    if isinstance(overrides, str):
        raise InputError(
            f"overrides are a list, and {overrides!r} is a single one; put it in a list"
        )
    return tuple(overrides)


def _read(
    config: str, beside: Path, seen: tuple[str, ...]
) -> tuple[dict[str, Any], str, Path, list[Source]]:
    """The raw study that `config` names, on top of the one that it is based on."""
    path = beside / config
    embedded = embedded_studies()
    parts = Path(config).parts
    # A path such as papers/datasets may be an embedded study; a folder that no embedded study is in
    # means a file.
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
    # A cycle of bases would otherwise never end.
    if where in seen:
        raise InputError(f"{where}: the study is based on itself; correct 'base' of {seen[-1]}")
    study = parse_yaml(text, where)
    if not isinstance(study, dict):
        raise InputError(f"{where}: a study is a mapping of keys to values; write study: NAME, ...")
    return _based(study, where, folder, seen)


def _based(
    study: dict[str, Any], where: str, folder: Path, seen: tuple[str, ...]
) -> tuple[dict[str, Any], str, Path, list[Source]]:
    """A raw study on top of the one that it is based on, if any."""
    base = study.pop("base", None)
    # Before it is merged, so that mappings meet mappings.
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
    # The base is to blame for every place that nobody above it sets.
    sources = sources or [Source((), base_name)]
    _merge(raw, study, (), where, sources)
    return raw, where, folder, sources


def _move_paths(raw: dict[str, Any], before: Path, after: Path) -> None:
    """Have the relative paths of a study start in another folder."""
    lists = [raw[key] for key in _HOLDERS if isinstance(raw.get(key), list)]
    parts = itertools.chain([raw.get("language_model")], *lists)
    for part, key in itertools.product(parts, _PATHS):
        if isinstance(part, dict) and isinstance(path := part.get(key), str):
            # relpath may step out of a folder with "..", which Path.relative_to refuses.
            part[key] = os.path.relpath(before / path, after)


def _merge(
    target: dict[str, Any],
    overlay: Mapping[str, Any],
    steps: tuple[Step, ...],
    name: str,
    sources: list[Source],
) -> None:
    """Lay `overlay` over `target`: mappings key by key, everything else whole."""
    for key, value in overlay.items():
        path = (*steps, key)
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value, path, name, sources)
        else:
            target[key] = value
            sources.append(Source(path, name))


def _assign(raw: dict[str, Any], key: str, value: Any, where: str) -> tuple[Step, ...]:
    """Set the value of a place of `raw`, and return the steps to it."""
    texts = _PLACE.findall(key)
    # The pattern skips unreadable text; lost characters show that the place is malformed.
    if "".join(texts) != key.replace(".", "") or not texts:
        raise InputError(
            f"{where}: {key!r} is not a place in a study; write reliability.bins or "
            "backends[1].label"
        )
    steps = tuple(int(text[1:-1]) if text.startswith("[") else text for text in texts)
    if steps[0] == "base":
        raise InputError(f"{where}: 'base' is for files; name the other file instead")
    target: Any = raw
    for position, step in enumerate(steps):
        last = position == len(steps) - 1
        if isinstance(step, int):
            if not isinstance(target, list) or step >= len(target):
                count = len(target) if isinstance(target, list) else 0
                raise InputError(f"{where}: there is no entry [{step}]; it has {count}, from [0]")
        elif not isinstance(target, dict):
            raise InputError(f"{where}: {step!r} is not a key there; check the place")
        # A key without a value in YAML is null, and is filled like one that is absent.
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
    """The last source that set a place, a part of it, or a whole that contains it."""
    blamed = where
    for source in sources:
        # Either the source set the place or something above it, or it set a part of it.
        if source.steps == steps[: len(source.steps)] or (
            steps and source.steps[: len(steps)] == steps
        ):
            blamed = source.name
    return blamed
