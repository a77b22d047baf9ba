"""What is tried: every reader and command, with whole inputs to begin from."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import chdir, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from factormodels.io.result_store import STORE
from tests.factormodels.io.published import release_records
from tests.factormodels.io.published import test_evaluation_logs as evaluation_logs
from tests.fuzz import others

Run = Callable[[Path], object]
"""Tries the file at a path, in a folder of its own that it may fill."""


@dataclass(frozen=True)
class Target:
    """Something that takes a file.

    Attributes:
        name: what a report calls it.
        file: the name of the file.
        seeds: whole inputs.
        run: tries a file.
        share: how often it is tried beside the others.
    """

    name: str
    file: str
    seeds: tuple[bytes, ...]
    run: Run
    share: int = 10


GRAPH: dict[str, Any] = {
    "format": "factormodels/fact-graph",
    "version": 1,
    "id": "figure-1",
    "query": "Who?",
    "response": "A claim. Another one.",
    "topic": "t",
    "metadata": {"sentences": 2, "k": [1, None, {"x": 0.5}]},
    "nodes": [
        {
            "id": "a1",
            "type": "atom",
            "probability": 0.5,
            "text": "A claim.",
            "label": False,
            "sentence": 1,
        },
        {
            "id": "a2",
            "type": "atom",
            "probability": 0.5,
            "text": "B.",
            "label": True,
            "sentence": 2,
        },
        {"id": "c1", "type": "context", "probability": 0.99, "text": "For it.", "title": "T"},
    ],
    "edges": [
        {"source": "c1", "target": "a1", "relation": "entailment", "probability": 0.8},
        {"from": "a1", "to": "a2", "relation": "contradiction", "probability": 0.9},
    ],
}
UAI = """MARKOV
3
2 3 2
3
1 0
2 0 1
2 1 2

2 0.4 0.6
6 0.1 0.2 0.7 0.5 0.25 0.25
6 0.9 0.1 0.5 0.5 0.2 0.8
"""
BAYES = "BAYES\n2\n2 2\n2\n1 0\n2 0 1\n\n2 0.4 0.6\n4 0.1 0.9 0.5 0.5\n"
BIF = """network small {
}
variable a {
  type discrete [ 2 ] { no, yes };
}
variable b {
  type discrete [ 3 ] { x, y, z };
}
probability ( a ) {
  table 0.4, 0.6;
}
probability ( b | a ) {
  (no) 0.1, 0.2, 0.7;
  (yes) 0.5, 0.25, 0.25;
}
"""
STUDY = """study: s
description: tried
datasets:
  - {name: demonstration, limit: 2}
  - path: graph.json
variants: [given, FR2]
encodings: implication
priors: {atom: [0.5, null]}
strengths: [1.0, 0.5]
backends: [exact, {backend: lbp, label: l, settings: {damping: 0.5}}]
seed: 3
k: median
measures: [brier]
reliability: {bins: 5, strategy: quantile}
significance: {pairs: [[exact, l]], resamples: 20}
outputs: [csv]
"""
USER_DATA = "datasets:\n  core-responses: file.jsonl\n  self-judged: {GPT-4: file.jsonl}\n"
RELATIONS = """response;claim;passage;relation;probability;label
r1;a1;c1;entailment;0,9;1.0
r1;a2;c1;contradiction;80 %;NS
r2;a1;;;;
"""

FEW_LABELS = "response,p,label\n" + "".join(
    f"r{response},0.{claim},{label if response < 4 else ''}\n"
    for response in range(6)
    for claim, label in ((2, "0"), (9, "1"), (7, ""))
)

TEXT = "The bridge was opened in 1890. It is red, and 300 metres long.\n"


def targets(finished: Path) -> tuple[Target, ...]:
    """Every target; `finished` is the folder that `prepare` filled."""
    graph, lines = _json(GRAPH), _json(GRAPH) + b"\n" + _json(GRAPH | {"id": "r2"}) + b"\n"
    results = {"factuality_score": 0.5, **release_records.RESULTS}
    own_tests = (release_records.FACTREASONER, results)
    records = tuple(_json(record) for record in (*release_records.RECORDS.values(), *own_tests))
    models = (graph, json.dumps(GRAPH, indent=1).encode(), UAI.encode(), BAYES.encode())
    many = (lines, b"[" + graph + b"]", *records, *(record + b"\n" + record for record in records))
    tables = (
        RELATIONS.encode(),
        *(
            _table(record, delimiter)
            for record in release_records.RECORDS.values()
            for delimiter in ",\t"
        ),
    )
    evidence = (b"1 0 1", b"0", b"1\n1 0 1\n", b'{"0": 1, "1": [0.1, 0.2, 0.7]}', b'{"2": true}')
    claims = ("\n".join(_claim_records()) + "\n").encode()
    own = finished / "out"
    return (
        Target("read", "model", (*models, BIF.encode(), *records), _read, 40),
        Target("read_many", "many.jsonl", many, _reader("read_many"), 40),
        Target("read_each", "each.jsonl", many, _each, 20),
        Target("tables", "table.csv", tables, _reader("read_many"), 30),
        Target("workbook", "book.xlsx", (_workbook(),), _sheet, 10),
        Target("bif", "network.bif", (BIF.encode(),), _reader("read"), 10),
        Target("uai", "model.uai", (UAI.encode(), BAYES.encode()), _reader("read"), 30),
        Target("uai names", "m.uai.names", (b"a\nb\nc\n",), _names, 10),
        Target(
            "uai results", "r.uai", (b"MAR\n1 2 0.5 0.5\n", b"PR\n-0.5\n", b"1 0 1"), _results, 20
        ),
        Target("evidence", "evidence.json", evidence, _evidence, 20),
        Target("prompts", "prompts.jsonl", records, _prompts, 10),
        Target("passages", "p.jsonl", (_json(release_records.PASSAGES),), _passages, 10),
        Target("claim records", "claims.jsonl", (claims,), _claims, 10),
        Target(
            "templates",
            "t.json",
            (b'{"people": ["{topic} was born.", "{topic} died."]}',),
            _templates,
            5,
        ),
        Target(
            "documents", "d.jsonl", (b'{"text": "a", "title": "b", "link": "c"}\n',), _documents, 10
        ),
        Target(
            "page",
            "d.html",
            (b"<html><title>t</title><body><p>Some text here.</p>",),
            _documents,
            3,
        ),
        Target(
            "responses",
            "r.jsonl",
            (*many, TEXT.encode(), b'{"response": "A b.", "id": "x"}\n'),
            _responses,
            20,
        ),
        Target("sampled answers", "answers.jsonl", (ANSWERS.encode(),), _answers, 10),
        Target("Chroma", "chroma.sqlite3", (_chroma(),), _documents, 10),
        Target("study", "study.yaml", (STUDY.encode(), b"base: compare\nseed: 2\n"), _study, 60),
        Target(
            "override", "override.txt", tuple(line.encode() for line in _OVERRIDES), _override, 60
        ),
        Target("user data", "data.yaml", (USER_DATA.encode(),), _user_data, 20),
        Target("manifest", "manifest.json", ((own / "manifest.json").read_bytes(),), _manifest, 30),
        Target("rows", "rows.parquet", ((own / "rows.parquet").read_bytes(),), _rows, 40),
        Target("table of a run", "t.csv", ((own / "summary.csv").read_bytes(),), _table_of_run, 20),
        Target("store", STORE, ((finished / "kept.sqlite").read_bytes(),), _store, 30),
        Target(
            "cache", "answers.sqlite", ((finished / "answers.sqlite").read_bytes(),), _cache, 20
        ),
        *(Target(*parts) for parts in others.targets(finished)),
        *_commands(finished, models, lines, tables),
    )


def prepare(folder: Path) -> None:
    """Fill a folder with what targets begin from: a finished run, a store, a cache."""
    from experiments import run
    from factormodels.extraction.language_model.cache import AnswerCache
    from factormodels.io.result_store import open_store

    if (folder / "prepared").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.json").write_bytes(_json(GRAPH))
    (folder / "study.yaml").write_text(STUDY)
    run(folder / "study.yaml", out=folder / "out", overwrite=True)
    with open_store(folder / "kept.sqlite", "mend it", anew=True) as store:
        for number in range(4):
            store.put("answers", f"key {number}", {"value": [number] * 4})
            store.append("units", bytes([number]) * 20)
    (folder / "answers.sqlite").unlink(missing_ok=True)
    AnswerCache(folder / "answers.sqlite").close()
    others.fill_cache(folder / "filled.sqlite")
    (folder / "prepared").touch()


def _commands(
    finished: Path, models: Sequence[bytes], lines: bytes, tables: Sequence[bytes]
) -> Iterable[Target]:
    own = finished / "out"
    manifest = (own / "manifest.json").read_bytes()
    rows = (own / "rows.parquet").read_bytes()
    study = STUDY.encode()
    command = _command
    yield Target("infer", "m", tuple(models), command("infer", "FILE"), 12)
    yield Target("infer --json", "m", tuple(models), command("infer", "FILE", "--json"), 8)
    yield Target("infer lbp", "m", tuple(models), command("infer", "FILE", "--backend", "lbp"), 8)
    yield Target("infer auto", "m", tuple(models), command("infer", "FILE", "--backend", "auto"), 4)
    yield Target("draw", "g.json", (models[0],), command("draw", "FILE", "g.dot"), 6)
    yield Target("draw svg", "g.json", (models[0],), command("draw", "FILE", "g.svg"), 1)
    yield Target("convert", "g.json", tuple(models), command("convert", "FILE", "o.uai"), 6)
    yield Target("check", "d.jsonl", (lines, *tables), command("datasets", "FILE"), 12)
    for name, *more in (("self-knowledge",), ("select",), ("select", "--append", "20")):
        yield Target(" ".join((name, *more)), "g.jsonl", (lines,), command(name, "FILE", *more), 3)
    for name in ("coherence", "revise"):
        yield Target(name, "g.json", (models[0],), command(name, "FILE"), 3)
    few = FEW_LABELS.encode()
    logs = tuple(map(_json, (evaluation_logs.INSPECT, evaluation_logs.PROMPTFOO)))
    logs += (b"\n".join(map(_json, evaluation_logs.HARNESS)),)
    yield Target("estimate", "t", (few, *logs), command("estimate", "FILE", "--choose", "1"), 4)
    yield Target("fit", "g.jsonl", (lines,), command("fit", "FILE", "--set", "folds=0"), 2)
    yield Target(
        "assess", "r.txt", (TEXT.encode(),), command("assess", "FILE", "--documents", "d"), 1
    )
    yield Target("run --dry-run", "s.yaml", (study,), command("run", "FILE", "--dry-run"), 6)
    yield Target("run", "s.yaml", (study,), command("run", "FILE", "--out", "o"), 1)
    damaged = {"manifest.json": manifest, "rows.parquet": rows}
    for name, content in damaged.items():
        yield Target(f"diff {name}", name, (content,), _folder("diff", finished, name), 3)
        yield Target(f"report {name}", name, (content,), _folder("report", finished, name), 1)
    yield Target("run --resume", STORE, ((own / STORE).read_bytes(),), _resume(finished), 1)


def _reader(name: str) -> Run:
    def run(path: Path) -> object:
        import factormodels

        return getattr(factormodels, name)(path)

    return run


def _read(path: Path) -> object:
    from factormodels import read
    from factormodels.io.fact_graph_json import looks_like_fact_graph

    model = read(path)
    with suppress(ValueError):
        plain = json.loads(path.read_text("utf-8-sig"))
        if looks_like_fact_graph(plain):
            _validate("fact-graph", plain)
    return model


def _validate(name: str, value: object) -> None:
    """What we accept is valid by its schema, as the command `schema` says."""
    if not _validator(name).is_valid(value):
        raise AssertionError(f"the schema of {name} refuses what was read")


@cache
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator

    from experiments.analyses.schemas_by_name import schema

    return Draft202012Validator(schema(name))


def _each(path: Path) -> object:
    from factormodels.io import read_each

    return list(read_each(path))


def _workbook() -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for row in (("response", "p", "label"), ("r1", 0.5, 1), ("r2", "12,5 %", None)):
        book.active.append(row)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def _sheet(path: Path) -> object:
    from factormodels.io.tables import read_table

    return read_table(path)


def _names(path: Path) -> object:
    from factormodels import read

    model = path.with_suffix("")
    model.write_text(UAI)
    return read(model)


def _results(path: Path) -> object:
    from factormodels.io.networks.uai_results import (
        read_evidence,
        read_log10_partition,
        read_marginals,
    )

    return _whichever((read_evidence, read_log10_partition, read_marginals), path)


def _evidence(path: Path) -> object:
    from experiments.settings.inputs import with_evidence

    return with_evidence(_network(), path)


@cache
def _network() -> Any:
    from factormodels.io.networks.uai import parse_uai

    return parse_uai(UAI, "model.uai")


def _prompts(path: Path) -> object:
    from factormodels.io import read_judged_pairs, read_prompts

    return _whichever((read_prompts, read_judged_pairs), path)


def _passages(path: Path) -> object:
    from factormodels.claims import Atom
    from factormodels.fact_graph import FactGraph
    from factormodels.io.published.factscore import with_passages

    atoms = (Atom("a1", release_records.PASSAGES["sent"]),)
    return with_passages((FactGraph("r", atoms, topic=release_records.PASSAGES["name"]),), path)


def _claims(path: Path) -> object:
    from experiments.settings.labelled_claims import load_claims

    return load_claims(path)


def _templates(path: Path) -> object:
    from factormodels.selection.bleached import read_templates

    return read_templates(path)


ANSWERS = (
    '{"response": "r", "source": "c", "target": "a", "verbalised": [0.9, 0.05, 0.05], '
    '"answers": [{"temperature": 0.3, "relation": "entailment", "text": "It says so."}]}\n'
    '{"premise": "p", "hypothesis": "h", "answers": [{"temperature": 1, "relation": "neutral"}]}\n'
)


def _answers(path: Path) -> object:
    from factormodels.extraction.relation_models.recorded_answers import read_recorded_answers

    return read_recorded_answers(path)


def _chroma() -> bytes:
    from tests.factormodels.extraction.retrieval.test_chroma import DOCUMENTS, database

    with TemporaryDirectory() as folder:
        return database(Path(folder) / "chroma.sqlite3", DOCUMENTS).read_bytes()


def _documents(path: Path) -> object:
    from factormodels.extraction.retrieval.documents import read_documents

    return read_documents(path)


def _responses(path: Path) -> object:
    from experiments.evaluators.inputs import load_responses

    return load_responses(path)


def _study(path: Path) -> object:
    from experiments.study.design import algorithms, cells
    from experiments.study.reading import load_study
    from factormodels.io.plain_yaml import parse_yaml

    loaded = load_study(path)
    _validate("study", parse_yaml(path.read_text("utf-8-sig"), path.name))
    return cells(loaded.study, algorithms(loaded))


_OVERRIDES = (
    *("seed=3", "backends[0].settings.damping=0.5", "priors.atom=[0.5, 0.6]", "k=half"),
    *("datasets=[{name: demonstration, limit: 2}]", "reliability={bins: 3}", "seeds=[1, 2]"),
    *("significance.resamples=100", "variants=[given, FR1]", "outputs=[]", "study=name"),
)


def _override(path: Path) -> object:
    from experiments.study.design import algorithms, cells
    from experiments.study.reading import load_study
    from factormodels.io.files import read_text

    loaded = load_study("compare", [read_text(path)])
    return cells(loaded.study, algorithms(loaded))


def _user_data(path: Path) -> object:
    from experiments.analyses.user_data import VARIABLE, user_data

    (path.parent / "file.jsonl").touch()
    with patch.dict(os.environ, {VARIABLE: str(path)}):
        return user_data()


def _manifest(path: Path) -> object:
    from experiments.study.files import read_manifest

    return read_manifest(path.parent)


def _rows(path: Path) -> object:
    from experiments.study.judgements import read_judgements
    from experiments.study.rows import RowsFile, read_rows

    rows = RowsFile(path)
    for cell in rows.cells():
        read_judgements(rows, cell)
    return read_rows(path)


def _table_of_run(path: Path) -> object:
    from experiments.findings.markup import csv_records, read_csv

    return read_csv(path), csv_records(path)


def _store(path: Path) -> object:
    from factormodels.io.result_store import open_store

    with open_store(path, "mend it") as store:
        return [*store.items("answers"), *store.records("units")]


def _cache(path: Path) -> object:
    from factormodels.extraction.language_model.cache import AnswerCache

    cache = AnswerCache(path)
    try:
        return cache.get("0" * 64)
    finally:
        cache.close()


def _command(*arguments: str) -> Run:
    """Runs a command on the file, in its folder; an exit code of 0, 1 or 2 is right."""

    def run(path: Path) -> object:
        (path.parent / "graph.json").write_bytes(_json(GRAPH))
        (path.parent / "d").mkdir()
        (path.parent / "d" / "note.txt").write_text("The bridge was opened in 1890.")
        return _invoke(path.parent, *(path.name if word == "FILE" else word for word in arguments))

    return run


def _folder(command: str, finished: Path, name: str) -> Run:
    """Runs a command on a finished run in which one file is damaged."""

    def run(path: Path) -> object:
        folder = path.parent / "run"
        shutil.copytree(finished / "out", folder)
        path.replace(folder / name)
        shutil.copy(finished / "graph.json", path.parent)
        files = ["--set", "data=graph=graph.json"] if command == "report" else []
        others = [str(finished / "out")] if command == "diff" else ["pages", *files]
        return _invoke(path.parent, command, "run", *others)

    return run


def _resume(finished: Path) -> Run:
    def run(path: Path) -> object:
        folder = path.parent / "o"
        shutil.copytree(finished / "out", folder)
        path.replace(folder / STORE)
        for name in ("graph.json", "study.yaml"):
            shutil.copy(finished / name, path.parent)
        return _invoke(path.parent, "run", "study.yaml", "--out", "o", "--resume")

    return run


def _invoke(folder: Path, *arguments: str) -> object:
    from factormodels.errors import InputError
    from tests.commands import called

    with chdir(folder):
        result = called(*arguments)
    shown = result.stdout + result.stderr
    if result.exit_code not in (0, 1, 2) or "\x1b" in shown or "Traceback" in shown:
        raise AssertionError(f"code {result.exit_code}: {shown[-200:]!r}")
    if result.exit_code == 2:
        raise InputError(shown)
    return result.exit_code


def _whichever(readers: Iterable[Callable[[Path], object]], path: Path) -> object:
    from factormodels.errors import InputError

    refusal: InputError | None = None
    read = 0
    for reader in readers:
        try:
            reader(path)
            read += 1
        except InputError as error:
            refusal = error
    if refusal is not None and not read:
        raise refusal
    return read


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _table(record: Mapping[str, Any], delimiter: str) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(record)
    writer.writerow(
        value if isinstance(value, str) else json.dumps(value) for value in record.values()
    )
    return text.getvalue().encode()


def _claim_records() -> list[str]:
    record = {
        **{"response": "r1", "sentence": 1, "sentences": 2, "claim": "a1", "label": "S"},
        "judgements": {"direct_asking": "true", "none_of_the_above": "neither"},
        "log_probabilities": {"direct_asking": {"true": -0.1, "false": -2.4}},
    }
    return [json.dumps(record), json.dumps(record | {"sentence": 2, "claim": "a2"})]
