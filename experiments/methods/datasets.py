"""Descriptions of embedded datasets, and checks of a user's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from experiments.columns.claims import claims_frame
from experiments.findings.findings import CLAIMS, Findings
from experiments.findings.table import Column, Table, columns_as
from experiments.settings import Option, Settings, front_door
from experiments.settings.inputs import is_dataset
from factormodels.claims import RelationKind
from factormodels.errors import InputError, unknown_name
from factormodels.io.not_used import not_used_records, not_used_sentence
from factormodels.io.source.opening import exists
from factormodels.nouns import counted

if TYPE_CHECKING:
    from factormodels.io.file_report import FileReport


class DatasetsSettings(Settings):
    """Files.

    Options of `datasets`.
    """

    format: Annotated[str | None, Option("NAME", usual=True)] = None
    """Format of the files; recognized by content if not given;
    `factormodels list formats` shows them."""


@front_door
def datasets(sources: Sequence[Path] = (), *, settings: DatasetsSettings) -> Findings:
    """Describe the embedded datasets, or check files: format, content, gaps and errors.

    Without SOURCES lists the embedded datasets with counts and licenses. With the name of one,
    shows its card: its content, its source, and caveats.

    SOURCES may also be files or folders. The command recognizes the published files of FActScore,
    FactReasoner, FacTool, RefChecker, ExpertQA, WiCE, UQLM, Ragas, Factcheck-Bench, FaStfact-Bench,
    LongFact, UNLI, SelfCheckGPT and conformal-factual-lm, and prompts such as those of ELI5,
    AskHistorians and Books: JSON, JSON Lines or CSV, with or without gzip. It exits with 1 if a
    line is invalid; missing contents are valid.

    Examples::

        datasets()
        datasets("factcheck-bench")
        datasets(["longfact", "veriscore.jsonl"])
        datasets("longfact", format="longfact")

    Args:
        sources: The name of an embedded dataset; or files, or folders of them.
        settings: options; in Python, pass the fields as keywords instead.

    Raises:
        InputError: if there is no such dataset or file, or no such format.
    """
    paths = [sources] if isinstance(sources, str | Path) else list(sources)
    if not paths:
        return Findings("embedded", tables={"datasets": _embedded()})
    if len(paths) == 1 and settings.format is None:
        name = str(paths[0])
        if is_dataset(Path(name)):
            return _card(name)
        if Path(name).name == name and not Path(name).suffix and not exists(Path(name)):
            from factormodels.datasets import names

            known = unknown_name(f"the dataset {name!r}", name, names())
            raise InputError(f"{known}; name another, or the path of a file")
    return _checked([Path(path) for path in paths], settings.format)


def _embedded() -> Table:
    """Table of the embedded datasets with counts and licenses."""
    from factormodels.datasets import load, names

    rows = []
    for name in names():
        dataset = load(name)
        atoms = [atom for graph in dataset.graphs for atom in graph.atoms]
        rows.append(
            {
                "dataset": name,
                "responses": len(dataset.graphs),
                "atoms": len(atoms),
                "labeled": sum(atom.label is not None for atom in atoms),
                "contexts": sum(len(graph.contexts) for graph in dataset.graphs),
                "relations": sum(len(graph.relations) for graph in dataset.graphs),
                "license": dataset.card.license,
                "title": dataset.card.title,
            }
        )
    counts = ("responses", "atoms", "labeled", "contexts", "relations")
    columns = (
        *columns_as("dataset"),
        *(Column(name, name, show="{:,}".format, right=True) for name in counts),
        *columns_as("license | title"),
    )
    return Table(rows, columns, "Embedded datasets.")


def _card(name: str) -> Findings:
    from factormodels.datasets import card

    described = card(name)
    rows = [
        {"holds": what.replace("_", " "), "count": count}
        for what, count in described.counts.items()
    ]
    columns = columns_as("holds contents | count>", count="{:,}".format)
    caption = f"{name}: {described.title}."
    sentences = (
        *(described.description, f"Source: {described.source}", f"License: {described.license}"),
        *described.notes,
    )
    return Findings(
        *(name, sentences, {"counts": Table(rows, columns, caption)}),
        frames={CLAIMS: lambda: claims_frame(name)},
    )


_PARTS = {
    "atoms": ("true", "false", "unlabeled"),
    "relations": tuple(RelationKind),
    "claims": ("judged",),
}


def _checked(paths: Sequence[Path], form: str | None) -> Findings:
    from factormodels.io.file_report import check_paths

    reports, passed = check_paths(paths, form)
    files, lines = [], []
    for report in reports:
        known = report.format
        files.append(
            {
                "file": str(report.path),
                "format": known.name if known else None,
                "what": f"{known.title} ({known.owner})" if known else "of no known format",
                "records": report.records,
                "holds": _holds(report) if report.records else "",
                "lacks": "; ".join(report.missing),
                "wrong": len(report.problems),
            }
        )
        lines += [
            {"file": str(report.path), "line": problem.line, "wrong": problem.message}
            for problem in report.problems
        ]
    wrong = sum(bool(report.problems) for report in reports)
    notes = {str(report.path): dict(report.not_used) for report in reports}
    not_used = not_used_sentence(notes)
    verdict = f"{wrong:,} with something wrong" if wrong else "nothing wrong"
    if not_used and not wrong:
        verdict += " in what is read"
    sentences = [f"{counted(len(reports), 'file')}, {verdict}."]
    sentences += [not_used] if not_used else []
    if passed:
        names = ", ".join(dict.fromkeys(path.name for path in passed))
        sentences.insert(0, f"Skipped, because they are not data files: {names}.")
    columns = columns_as(
        "file | format | what what it is | holds contents | lacks | wrong:0 wrong lines"
    )
    tables = {"files": Table(files, columns, "Files, their formats and contents.")}
    if lines:
        problem_columns = columns_as("file | line:0 | wrong")
        tables["problems"] = Table(lines, problem_columns, "Errors in the files.")
    source = ", ".join(map(str, paths))
    return Findings(
        source,
        tuple(sentences),
        tables,
        incomplete=bool(wrong),
        not_used=tuple(not_used_records(notes)),
        # Claims of several files may have one id.
        frames={CLAIMS: lambda: claims_frame(paths[0])} if len(paths) == 1 else {},
    )


def _holds(report: FileReport) -> str:
    parts = {name for names in _PARTS.values() for name in names}
    pieces = [counted(report.records, "record")]
    for name, count in report.counts.items():
        # Shown in brackets after the total that they are parts of.
        if name in parts:
            continue
        inner = [
            counted(report.counts[p], p.removesuffix("s"), p)
            for p in _PARTS.get(name, ())
            if p in report.counts
        ]
        whole = counted(count, name.removesuffix("s"), name)
        pieces.append(whole + (f" ({', '.join(inner)})" if inner else ""))
    return ", ".join(pieces)
