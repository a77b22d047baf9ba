"""Lists of available backends, prompts, studies, formats and schemas."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as
from experiments.settings import Option, Settings, front_door
from factormodels.errors import InputError, unknown_name


class ListSettings(Settings):
    """List.

    Options of `list`.
    """

    prompts: Annotated[Path | None, Option("DIR", usual=True)] = None
    """Folder of changed prompts to show in the list of prompts."""

    out: Annotated[Path | None, Option("PATH", command_line=False, writes=True)] = None
    """Write everything to this folder, or one table to this file. For prompts, write their YAML to
    this folder; existing prompts are never overwritten."""


@front_door
def list_(what: str = "", name: str = "", *, settings: ListSettings) -> Findings:
    """List names for commands and studies: backends, prompts, studies, formats or schemas.

    backends are inference algorithms, with their kind of log Z, limits and settings, and whether
    each is installed. With a name, shows the settings of that backend with types, defaults and
    meanings. Pass them to `infer` with --backend, and to a study under settings.

    prompts are the questions asked of language models, with their purposes and slots; a slot marked
    * must appear in the question. To replace prompts, write all of them with --out, delete the ones
    to keep unchanged, edit the rest, and pass the folder to a command as --prompts or to a study as
    the key prompts.

    studies lists the embedded studies with their purposes. With a name, prints the study's YAML as
    a starting point for your own.

    formats are file formats of claims and responses, recognized by keys or columns; `datasets`
    shows the format of a file, and accepts the name as --format.

    schemas are JSON Schemas (draft 2020-12) of factormodels' own formats, for editors and
    validators. Every accepted file is valid under its schema. Rules about several values, such as
    unique ids, are checked only by the reader.

    Examples::

        list_("backends")
        list_("backends", "lbp")
        list_("prompts", "relation")
        list_("prompts", out="my-prompts")
        list_("studies")
        list_("formats")
        list_("schemas", "study")

    Args:
        what: backends, prompts, studies, formats or schemas.
        name: Show only this entry.
        settings: options; in Python, pass the fields as keywords instead.

    Raises:
        InputError: if the name is unknown.
        MissingDependencyError: if a library that a backend needs is absent.
    """
    if not what:
        kinds = [{"what": kind, "holds": meaning} for kind, (meaning, _) in _KINDS.items()]
        columns = columns_as("what list | holds contents")
        return Findings("lists", tables={"kinds": Table(kinds, columns, "Lists.")})
    if what not in _KINDS:
        raise InputError(unknown_name(f"the list {what!r}", what, _KINDS))
    if settings.prompts is not None and what != "prompts":
        raise InputError(f"--prompts does not apply to {what}; leave it out")
    listed = _KINDS[what][1](name, settings)
    return replace(listed, tables={each: _of_prose(table) for each, table in listed.tables.items()})


def _of_prose(table: Table) -> Table:
    """Return a table whose texts are wrapped, since they are read and not searched."""
    return replace(table, columns=tuple(replace(each, prose=True) for each in table.columns))


# --- Backends ------------------------------------------------------------------------------------


def _backends(name: str, _: ListSettings) -> Findings:
    """Every backend: how to install it if it is missing, kind of log Z, limits, settings."""
    from experiments.settings.backend_settings import settings_described
    from inference import entries

    if name:
        return _backend(name)
    rows = []
    for entry in entries().values():
        if entry.missing:
            state = f"needs {', '.join(entry.missing)}; install it with {entry.install_command}"
        elif entry.requires:
            # Reading the defaults would import a library, which takes seconds.
            state = f"see factormodels list backends {entry.name}"
        else:
            settings = settings_described(entry.name)
            state = ", ".join(f"{each.setting}={each.default}" for each in settings)
        rows.append(
            {
                "backend": entry.name,
                "installed": "no" if entry.missing else "yes",
                "log_z": str(entry.log_z_kind),
                "summary": entry.summary,
                "for": entry.limits,
                "settings": state,
            }
        )
    columns = columns_as("backend | installed | log_z log Z | summary what it is | for | settings")
    remark = (
        "`factormodels list backends NAME` shows the settings of a backend and their meanings; "
        "commands take them as options, such as --backend lbp --damping 0.5."
    )
    return Findings(
        "backends", (remark,), {"backends": Table(rows, columns, "Inference algorithms.")}
    )


def _backend(name: str) -> Findings:
    from experiments.settings.backend_settings import settings_described
    from inference.registry import get_entry

    entry = get_entry(name)
    rows = [each._asdict() for each in settings_described(name)]
    columns = columns_as("setting | option | type | default | meaning")
    table = Table(rows, columns, f"Settings of {name}: {entry.summary}.")
    remarks = [f"log Z: {entry.log_z_kind}.", f"For: {entry.limits}."]
    if rows:
        first = rows[0]
        remarks.append(
            f"A command takes a setting as an option, such as --backend {name} {first['option']} "
            f"{first['default']}; a study and Python take it by its name."
        )
    return Findings(name, tuple(remarks), {"settings": table})


# --- Prompts -------------------------------------------------------------------------------------


def _prompts(name: str, settings: ListSettings) -> Findings:
    """Purpose, slots and hash of each prompt; for a single prompt also its text."""
    from factormodels.extraction.prompts import prompt_names, prompt_text
    from factormodels.extraction.prompts.replaced import read_prompts
    from factormodels.io.source.files import read_text

    prompts = read_prompts(settings.prompts)
    if name and name not in prompt_names():
        raise InputError(unknown_name(f"the prompt {name!r}", name, prompt_names()))
    texts = {
        f"{each}.yaml": prompt_text(each)
        if each not in prompts.replaced or settings.prompts is None
        else read_text(settings.prompts / f"{each}.yaml")
        for each in ([name] if name else prompt_names())
    }
    for file, text in texts.items() if settings.out else ():
        path = Path(settings.out or "") / file
        if path.exists() and read_text(path) != text:
            raise InputError(
                f"{path}: this file exists and would be overwritten; name another folder"
            )
    if name:
        identity = prompts[name].identity
        sentence = f"{name}, version {identity.version}, {identity.digest[:12]}"
        return Findings(name, (sentence,), texts=texts)
    rows = [
        {
            "prompt": f"{known} (yours)" if known in prompts.replaced else known,
            "version": prompts[known].identity.version,
            "hash": prompts[known].identity.digest,
            "slots": " ".join(
                f"{slot}*" if slot in prompts[known].needed else slot
                for slot in prompts[known].slots
            ),
            "purpose": prompts[known].purpose,
        }
        for known in prompt_names()
    ]
    columns = columns_as(
        "prompt | version | hash | slots | purpose what it asks for",
        hash=lambda digest: str(digest)[:12],
    )
    caption = "Questions to language models; a slot marked * is required."
    return Findings("prompts", tables={"prompts": Table(rows, columns, caption)}, texts=texts)


# --- Studies -------------------------------------------------------------------------------------


def _studies(name: str, _: ListSettings) -> Findings:
    """The embedded studies with their purposes, or the text of one study."""
    from experiments.study.reading import embedded_studies
    from factormodels.io.yaml import parse_yaml

    studies = embedded_studies()
    if name and name not in studies:
        raise InputError(unknown_name(f"the study {name!r}", name, studies))
    if name:
        return Findings(name, texts={f"{name}.yaml": studies[name]})
    rows = [
        {"study": each, "description": parse_yaml(text, each).get("description", "")}
        for each, text in studies.items()
    ]
    columns = columns_as("study | description what it is for")
    return Findings("studies", tables={"studies": Table(rows, columns, "Embedded studies.")})


# --- Formats of files ----------------------------------------------------------------------------


def _formats(name: str, _: ListSettings) -> Findings:
    """Every file format, or one format: its owner, its content and its keys."""
    from factormodels.io.formats.registry import format_named, formats

    chosen = [format_named(name)] if name else formats()
    rows = [
        {
            "format": each.name,
            "title": each.title,
            "owner": each.owner,
            "holds": each.holds,
            "keys": ", ".join(each.keys),
        }
        for each in chosen
    ]
    columns = columns_as("format | title what it is | owner | holds | keys")
    caption = "File formats of claims and responses, recognized by the keys or columns."
    return Findings(name or "formats", tables={"formats": Table(rows, columns, caption)})


# --- Schemas -------------------------------------------------------------------------------------


def _schemas(name: str, _: ListSettings) -> Findings:
    """The formats, or the JSON Schema of one."""
    from experiments.analyses.schemas_by_name import SCHEMAS, schema

    if not name:
        rows = [{"schema": each, "of": schema(each)["description"]} for each in SCHEMAS]
        table = Table(rows, columns_as("schema | of contents"), "JSON Schemas of own formats.")
        return Findings("schemas", tables={"schemas": table})
    text = json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"
    return Findings(name, texts={f"{name}.schema.json": text})


_KINDS: Mapping[str, tuple[str, Callable[[str, ListSettings], Findings]]] = MappingProxyType(
    {
        "backends": ("inference algorithms and their settings", _backends),
        "prompts": ("questions to language models", _prompts),
        "studies": ("embedded studies, which `factormodels run` takes by name", _studies),
        "formats": ("file formats of claims and responses, by tool or dataset", _formats),
        "schemas": ("JSON Schemas of our own formats", _schemas),
    }
)
"""Lists by name: a description, and the function that makes it."""
