"""Checks of dataset files: their format, content, missing parts and errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.claim_records import ClaimRecord, Setting
from factormodels.io.formats.format import Format
from factormodels.io.formats.items import AtomPassages, Item, JudgedPair, Prompt
from factormodels.io.formats.registry import (
    format_named,
    format_of,
    nearest_format,
    record_format,
)
from factormodels.io.json import element_line
from factormodels.io.not_used import UnusedKey, note_unused
from factormodels.io.reading import is_dataset, records_of
from factormodels.io.source.opening import exists, read_whole
from factormodels.io.source.places import location
from factormodels.io.tables.records import (
    Content,
    Record,
    binary_records,
    column_names,
    is_binary,
)
from factormodels.metadata.recorded_verdicts import recorded_verdicts
from factormodels.nouns import counted

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".arrow", ".xlsx")
"""Suffixes of the files of a folder that are checked, with or without gzip compression."""

_NOT_UTF8 = re.compile("[\\udc80-\\udcff]")
_LINE = re.compile(r"line (\d+), ")
_ELEMENT = re.compile(r"(\w+)\[(\d+)\]")
_STEP = re.compile(r"(\[\]|\{\})?\.")


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a file.

    Attributes:
        line: the line, from 1; None for the file as a whole.
        message: the error and its fix.
    """

    line: int | None
    message: str


@dataclass(frozen=True)
class FileReport:
    """Result of the check of a file.

    Attributes:
        path: the file.
        format: its format; None if unknown.
        records: number of its records, including invalid ones.
        counts: numbers of its contents by name, without zeros.
        missing: parts of its format that it lacks.
        problems: errors, in the order of lines.
        not_used: keys of its records that its format does not read, by path.
        items: its contents.
    """

    path: Path
    format: Format | None
    records: int
    counts: Mapping[str, int]
    missing: tuple[str, ...]
    problems: tuple[Problem, ...]
    not_used: Mapping[str, UnusedKey] = field(default_factory=dict)
    items: tuple[Item, ...] = field(default=(), repr=False)


def check_paths(
    paths: Sequence[Path], name: str | None = None
) -> tuple[tuple[FileReport, ...], tuple[Path, ...]]:
    """Return the reports of files and of the data files of folders, and the skipped files.

    Args:
        paths: files and folders.
        name: format of all of them; None detects it from the content.

    Raises:
        InputError: for an unknown format, a path that does not exist, or a folder without data.
    """
    known = None if name is None else format_named(name)
    files: list[Path] = []
    passed: list[Path] = []
    for path in paths:
        if not exists(path) or not path.is_dir():
            if not exists(path):
                raise InputError(f"{path}: there is no such file; check the path")
            files.append(path)
            continue
        inside = sorted(file for file in path.rglob("*") if file.is_file())
        data = [file for file in inside if _suffix(file) in SUFFIXES]
        if not data:
            raise InputError(
                f"{path}: the folder contains no data file ({', '.join(SUFFIXES)}); name another"
            )
        files += data
        passed += [file for file in inside if file not in data]
    reports = [check_file(file, known) for file in dict.fromkeys(files)]
    return tuple(_with_companion(report, reports) for report in reports), tuple(passed)


def check_file(path: Path, known: Format | None = None) -> FileReport:
    """Return the report of a file.

    Args:
        path: the file.
        known: its format; None detects it from the content.
    """
    content: Content
    text = ""
    try:
        encoded = read_whole(path)
        if is_binary(encoded):
            content = binary_records(encoded, path)
        else:
            content = text = encoded.decode("utf-8-sig", "surrogateescape")
    except InputError as error:
        return FileReport(path, known, 0, {}, (), (_problem(error, path, None),))
    problems = _encoding_problems(text)
    garbled = {problem.line for problem in problems}
    if isinstance(content, str) and not content.strip():
        return FileReport(path, known, 0, {}, (), (Problem(None, "the file is empty; fill it"),))
    if known is None and not is_dataset(content):
        return _unknown(path, content, problems)
    records = list(records_of(content, path))
    if not records:
        problems.append(Problem(None, "it holds no record; name another file"))
    problems += [
        _problem(record.error, path, record.line)
        for record in records
        if record.error is not None and record.line not in garbled
    ]
    good = [r for r in records if r.error is None and r.line not in garbled]
    of_file = known or _most_common(good)
    if of_file is None:
        report = _unknown(path, content, problems)
        return replace(report, records=len(records))
    read = [r for r in good if isinstance(r.value, dict)]
    items, refused = _parsed(read, path, of_file, forced=known is not None)
    problems += refused
    problems += [
        Problem(r.line, f"{shown(r.value)} is not an object; give one object per record")
        for r in good
        if not isinstance(r.value, dict)
    ]
    problems += _repeated(items)
    if text:
        problems = [_placed(problem, text) for problem in problems]
    in_order = sorted(problems, key=lambda problem: problem.line or 0)
    in_file = tuple(item for item, _ in items)
    missing = (*_missing_fields([r.value for r in read], of_file), *_missing(in_file))
    not_used: dict[str, UnusedKey] = {}
    for record in read:
        form = of_file if known is not None else record_format(record.value, of_file) or of_file
        if form.used_keys is not None:
            note_unused(record.value, form.used_keys, not_used)
    return FileReport(
        path,
        of_file,
        len(records),
        _counts(in_file),
        missing,
        tuple(in_order),
        not_used,
        in_file,
    )


def _parsed(
    records: Sequence[Record], path: Path, of_file: Format, *, forced: bool
) -> tuple[list[tuple[Item, int | None]], list[Problem]]:
    """Return the items of valid records with their lines, and the errors of the others."""
    items: list[tuple[Item, int | None]] = []
    problems: list[Problem] = []
    gathered: dict[str, tuple[Format, list[Any], int | None]] = {}
    for record in records:
        record_form = None if forced else record_format(record.value, of_file)
        form = record_form or of_file
        try:
            parsed = form.read(record.value, path, record.line)
            if form.gather is None:
                items += [(item, record.line) for item in form.items([parsed])]
            else:
                gathered.setdefault(form.name, (form, [], record.line))[1].append(parsed)
        except InputError as error:
            problems.append(_problem(error, path, record.line))
    for form, values, line in gathered.values():
        items += [(item, line) for item in form.items(values)]
    return items, problems


def _most_common(records: Sequence[Record]) -> Format | None:
    forms = [form for record in records if (form := format_of(record.value)) is not None]
    if not forms:
        return None
    name = Counter(form.name for form in forms).most_common(1)[0][0]
    return format_named(name)


def _encoding_problems(text: str) -> list[Problem]:
    problems: dict[int, Problem] = {}
    line = counted = 0
    for match in _NOT_UTF8.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        byte = ord(match[0]) - 0xDC00
        message = f"byte {byte:#04x} is not UTF-8; save the file as UTF-8"
        problems.setdefault(line + 1, Problem(line + 1, message))
    return list(problems.values())


def _repeated(items: Sequence[tuple[Item, int | None]]) -> Iterator[Problem]:
    lines: dict[str, int | None] = {}
    for item, line in items:
        if isinstance(item, AtomPassages):
            continue
        if item.id in lines:
            first = f" (line {lines[item.id]})" if lines[item.id] else ""
            yield Problem(line, f"the id {item.id!r} is given twice{first}; give each its own")
        lines.setdefault(item.id, line)


def _counts(items: Sequence[Item]) -> dict[str, int]:
    graphs = [item for item in items if isinstance(item, FactGraph)]
    atoms = [atom for graph in graphs for atom in graph.atoms]
    relations = Counter(str(r.kind) for graph in graphs for r in graph.relations)
    passages = [item for item in items if isinstance(item, AtomPassages)]
    claims = [item for item in items if isinstance(item, ClaimRecord)]
    counts = {
        "responses": len(graphs) or len({claim.response for claim in claims}),
        "atoms": len(atoms),
        "true": sum(atom.label is True for atom in atoms),
        "false": sum(atom.label is False for atom in atoms),
        "unlabeled": sum(atom.label is None for atom in atoms),
        "contexts": sum(len(graph.contexts) for graph in graphs),
        "relations": relations.total(),
        **dict(sorted(relations.items())),
        **Counter(
            f"judged by {name}"
            for graph in graphs
            for name, verdicts in recorded_verdicts(graph).items()
            for _ in verdicts
        ),
        "claims": len(claims),
        "judged": sum(any(map(claim.judgment, Setting)) for claim in claims),
        "prompts": sum(isinstance(item, Prompt) for item in items),
        "pairs": sum(isinstance(item, JudgedPair) for item in items),
        "atoms with passages": len(passages),
        "passages": sum(len(item.passages) for item in passages),
    }
    return {name: count for name, count in counts.items() if count}


def _missing(items: Sequence[Item]) -> Iterator[str]:
    """Yield a sentence on each missing part of responses: judgments, labels, texts, contexts,
    atoms.
    """
    graphs = [item for item in items if isinstance(item, FactGraph)]
    atoms = [atom for graph in graphs for atom in graph.atoms]
    contexts = [context for graph in graphs for context in graph.contexts]
    served = sum(len(_served(graph)) for graph in graphs)
    claims = [item for item in items if isinstance(item, ClaimRecord)]
    unjudged = sum(not any(map(claim.judgment, Setting)) for claim in claims)
    lacks = (
        ("judgments", unjudged, len(claims), "claims"),
        ("labels", sum(atom.label is None for atom in atoms), len(atoms), "atoms"),
        ("texts", sum(not atom.text.strip() for atom in atoms), len(atoms), "atoms"),
        ("contexts", len(atoms) - served, len(atoms), "atoms"),
        ("texts", sum(not context.text.strip() for context in contexts), len(contexts), "contexts"),
        ("atoms", sum(not graph.atoms for graph in graphs), len(graphs), "responses"),
    )
    words = Counter(a.annotation for a in atoms if a.label is None and a.annotation is not None)
    by_word = ", ".join(f"{count:,} {word}" for word, count in words.most_common())
    for what, lacking, total, whose in lacks:
        if lacking:
            inner = f" ({by_word})" if what == "labels" and by_word else ""
            yield f"{what}: {lacking:,} of {total:,} {whose} have none{inner}"


def _served(graph: FactGraph) -> set[str]:
    """Return the atoms that a context was retrieved for or is related to."""
    contexts, atoms = set(graph.context_ids), set(graph.atom_ids)
    served = {atom for context in graph.contexts for atom in context.retrieved_for}
    for relation in graph.relations:
        ends = {relation.source, relation.target}
        if ends & contexts:
            served |= ends & atoms
    return served


def _missing_fields(values: Sequence[Mapping[str, Any]], form: Format) -> Iterator[str]:
    for path in form.fields:
        name, *others = path.split("|")
        presence = [
            present or any(all(_present(value, other)) for other in others)
            for value in values
            for present in _present(value, name)
        ]
        absent = presence.count(False)
        if absent:
            yield f"key {name!r}: absent or null in {absent:,} of {len(presence):,}"


def _present(value: object, path: str) -> Iterator[bool]:
    """Yield, for each place of a value that matches a path, whether it has content."""
    step = _STEP.search(path)
    name = path if step is None else path[: step.start()]
    inner = value.get(name) if isinstance(value, Mapping) else None
    if step is None or inner is None:
        yield inner is not None
        return
    rest = path[step.end() :]
    many: Sequence[object] = (inner,)
    if step[1] == "[]" and isinstance(inner, list):
        many = inner
    elif step[1] == "{}" and isinstance(inner, Mapping):
        many = list(inner.values())
    for entry in many:
        yield from _present(entry, rest)


def _with_companion(report: FileReport, reports: Sequence[FileReport]) -> FileReport:
    """Return a report extended by the missing parts of its companion file."""
    form = report.format
    if form is None or not form.companion:
        return report
    beside = [other for other in reports if other.format and other.format.name == form.companion]
    if not beside:
        lacks = f"companion: no file of {form.companion} was checked with it"
    else:
        known = {
            (item.topic, item.atom)
            for other in beside
            for item in other.items
            if isinstance(item, AtomPassages)
        }
        atoms = [
            (graph.topic, atom.text)
            for graph in report.items
            if isinstance(graph, FactGraph)
            for atom in graph.atoms
        ]
        without = sum(atom not in known for atom in atoms)
        if not without:
            return report
        lacks = (
            f"companion: {without:,} of {counted(len(atoms), 'atom')} "
            f"{'has' if without == 1 else 'have'} no line of {form.companion}"
        )
    return replace(report, missing=(*report.missing, lacks))


def _unknown(path: Path, content: Content, problems: Sequence[Problem]) -> FileReport:
    """Return the report of a file of unknown format, with the nearest format."""
    value: object = None
    if is_dataset(content):
        values = [r.value for r in records_of(content, path) if r.error is None]
        value = values[0] if values else None
    else:
        value = dict.fromkeys(column_names(str(content)), "")
    near = nearest_format(value)
    has = "no key or column was found"
    if isinstance(value, dict) and value:
        has = f"its keys or columns are {shown(list(value))}"
    hint = "; choose a format with --format (`factormodels list formats` shows them)"
    if near is not None:
        lacks = ", ".join(near[1]) or "none of its keys"
        hint = f"; the nearest is {near[0].name}, of which it lacks {lacks}"
    message = f"its format is unknown: {has}{hint}"
    return FileReport(path, None, 0, {}, (), (*problems, Problem(None, message)))


def _problem(error: InputError, path: Path, line: int | None) -> Problem:
    message = str(error)
    for prefix in (
        f"{location(path, line)}: ",
        f"{location(path, line)}, ",
        f"{path}: ",
        f"{path}, ",
    ):
        if message.startswith(prefix):
            message = message[len(prefix) :]
            break
    match = _LINE.match(message)
    if line is None and match:
        return Problem(int(match[1]), message[match.end() :])
    return Problem(line, message)


def _placed(problem: Problem, text: str) -> Problem:
    """Return an error of a single-value file with the line of the element that it names."""
    if problem.line is not None:
        return problem
    named = _ELEMENT.search(problem.message)
    line = element_line(text, named[1], int(named[2])) if named else None
    return replace(problem, line=line or 1)


def _suffix(path: Path) -> str:
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
