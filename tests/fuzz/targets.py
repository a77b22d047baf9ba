"""Targets: every reader and command, with valid inputs to start from.

Two kinds of files: what people write, and what others write and we only read, such as binary
tables, caches, answers of servers and sets of files.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import chdir, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import httpx
import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
from jsonschema import Draft202012Validator
from pyarrow import feather

import factormodels
from experiments import run as run_study
from experiments.analyses.schemas_by_name import schema
from experiments.analyses.user_data import VARIABLE, user_data
from experiments.asking.relation_correction import read_correction
from experiments.columns.labeled_relations import read_labeled_relations
from experiments.columns.placed_claims import load_claims
from experiments.columns.responses import load_responses
from experiments.findings.markup import csv_records, read_csv
from experiments.settings.inputs import with_evidence
from experiments.study.design import algorithms, cells
from experiments.study.files import read_manifest
from experiments.study.reading import LoadedStudy, load_study
from experiments.study.report.frame import read_judgments
from experiments.study.rows import RowsFile, read_rows
from factormodels import Atom, Context, FactGraph
from factormodels.errors import FactormodelsError, InputError
from factormodels.extraction import language_model as lm
from factormodels.extraction.asking.table import ASSESSORS
from factormodels.extraction.http.requests import RequestFailed
from factormodels.extraction.language_model.cache import AnswerCache
from factormodels.extraction.prompts import parse_prompt, prompt_text
from factormodels.extraction.prompts.replaced import read_prompts as read_prompt_files
from factormodels.extraction.relation_models.prompted import PromptedRelationModel
from factormodels.extraction.retrieval.documents import read_documents
from factormodels.extraction.retrieval.google import GoogleRetriever
from factormodels.extraction.retrieval.wikipedia import WikipediaRetriever
from factormodels.extraction.stages import (
    assessors,
    atomizer,
    queries,
    relations,
    reviser,
    summarizer,
)
from factormodels.io import read_each, read_judged_pairs, read_prompts
from factormodels.io.fact_graph_json import looks_like_fact_graph
from factormodels.io.formats.factscore_passages import with_passages
from factormodels.io.networks.uai import parse_uai
from factormodels.io.networks.uai_results import read_evidence, read_log10_partition, read_marginals
from factormodels.io.relation_record import (
    RecordedAnswer,
    RecordOrigin,
    read_relation_record,
    record_text,
)
from factormodels.io.source.files import read_text
from factormodels.io.store.results import STORE, open_store
from factormodels.io.tables.data_table import read_table
from factormodels.io.yaml import parse_yaml
from factormodels.metadata.prompt_identity import PromptIdentity
from factormodels.selection.bleached import read_templates
from tests.commands import called
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.retrieval.test_chroma import DOCUMENTS, database
from tests.factormodels.io.formats import release_records
from tests.factormodels.io.formats import test_evaluation_logs as evaluation_logs
from tests.factormodels.io.networks import test_bif, test_uai

Run = Callable[[Path], object]
"""Tries the file at a path, in a folder of its own that it may fill.

The folder lies in the one that `prepare` filled.
"""


@dataclass(frozen=True)
class Target:
    """Something that takes a file.

    Attributes:
        name: what a test is called by.
        file: the name of the file.
        seeds: whole inputs, or where in the folder that `prepare` filled they are.
        run: tries a file.
        share: how often it is tried beside the others.
    """

    name: str
    file: str
    seeds: tuple[bytes | str, ...]
    run: Run
    share: int = 10

    def whole(self, begun: Path) -> list[bytes]:
        """The whole inputs, given the folder that `prepare` filled."""
        return [
            seed if isinstance(seed, bytes) else (begun / seed).read_bytes() for seed in self.seeds
        ]


def prepare(folder: Path) -> None:
    """Fill a folder with what targets begin from: a finished run, a store, caches."""
    (folder / "graph.json").write_bytes(_json(GRAPH))
    (folder / "study.yaml").write_bytes(STUDY)
    run_study(folder / "study.yaml", out=folder / "out")
    with open_store(folder / "kept.sqlite", "mend it") as store:
        for number in range(4):
            store.put("answers", f"key {number}", {"value": [number] * 4})
            store.append("units", bytes([number]) * 20)
    answer = lm.Completion("yes", (lm.Token("yes", -0.1, (("no", -2.5),)),), lm.Usage(3, 1, 0.25))
    for name, answers in (("answers.sqlite", 0), ("filled.sqlite", 40)):
        with closing(AnswerCache(folder / name)) as kept:
            for number in range(answers):
                kept.put(f"{number:064x}", "m", _REQUEST, answer)
                kept.note_failure(f"{number:064x}", lm.Failure("it is busy", lm.Usage(1, 0)))
                kept.note_lacking("m", ["seed"], refused=True)
    files = {name: (folder / "out" / name).read_bytes() for name in _RUN_FILES}
    (folder / "packed.json").write_bytes(_packed(files))


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


# Whole inputs.

_ATOM = {"type": "atom", "probability": 0.5}
GRAPH: dict[str, Any] = {
    **{"format": "factormodels/fact-graph", "version": 1, "id": "figure-1", "query": "Who?"},
    **{"response": "A claim. Another one.", "topic": "t"},
    "metadata": {"sentences": 2, "k": [1, None, {"x": 0.5}]},
    "nodes": [
        {"id": "a1", **_ATOM, "text": "A claim.", "label": False, "sentence": 1},
        {"id": "a2", **_ATOM, "text": "B.", "label": True, "sentence": 2},
        {"id": "c1", "type": "context", "probability": 0.99, "text": "For it.", "title": "T"},
    ],
    "edges": [
        {"source": "c1", "target": "a1", "relation": "entailment", "probability": 0.8},
        {"from": "a1", "to": "a2", "relation": "contradiction", "probability": 0.9},
    ],
}
_GRAPH = _json(GRAPH)
_LINES = _GRAPH + b"\n" + _json(GRAPH | {"id": "r2"}) + b"\n"
UAI, BAYES, BIF = (text.encode() for text in (test_uai.MARKOV, test_uai.BAYES, test_bif.BIF))
_RESULTS = (b"MAR\n1 2 0.5 0.5\n", b"PR\n-0.5\n", b"1 0 1")
_EVIDENCE = (*_RESULTS[2:], b"0", b"1\n1 0 1\n", b'{"0": 1, "2": [0.1, 0.2, 0.7]}', b'{"1": true}')
STUDY = b"""study: s
description: tried
datasets:
  - {name: demonstration, limit: 2}
  - path: graph.json
variants: [given, FR2]
encodings: [implication]
priors: [{atom: [0.5, null]}]
strengths: [1.0, 0.5]
backends: [exact, {backend: lbp, label: l, settings: {damping: 0.5}}]
seed: 3
k: median
measures: [brier]
reliability: {bins: 5, strategy: quantile}
significance: {pairs: [[exact, l]], resamples: 20}
outputs: [csv]
"""
_OVERRIDES = (
    *(b"seed=3", b"backends[0].settings.damping=0.5", b"priors[0].atom=[0.5, 0.6]", b"k=half"),
    *(b"datasets=[{name: demonstration, limit: 2}]", b"reliability={bins: 3}", b"seeds=[1, 2]"),
    *(b"significance.resamples=100", b"variants=[given, FR1]", b"outputs=[]", b"study=name"),
)
_RELATION_RECORD = record_text(
    RecordOrigin("factcheck-bench", "m", 2, prompts=(PromptIdentity("relation", 2, "ab"),)),
    (
        RecordedAnswer("r1", "c1", "a1", "relation", (-0.5, -1.5, -2.0), "", (40, 20, 2), 0.5),
        RecordedAnswer("r1", "c2", "a1", "relation", None, "it says nothing"),
    ),
).encode()
_CORRECTION = _json(
    {
        **{"format": "factormodels/relation-correction", "version": 1},
        "weights": {"entailment": 0.5, "contradiction": 1, "neutral": 0.75},
        "constants": {"entailment": 0.25, "contradiction": -1.5, "neutral": 1.25},
        **{"relations": "lexical", "pairs": 40, "log_loss": 1.25, "corrected_log_loss": None},
        "labelled_responses": {
            **{"ids": ["r1"], "texts": ["0123456789ab"]},
            **{"claims": ["0123456789ab fedcba987654"], "evidence": [""]},
        },
    }
)
_PAIRS = (
    b"response;claim;passage;p_entailment;p_contradiction;p_neutral;human relation\n"
    b"r1;It is red.;p1;0,2;80 %;0;supports\nr2;It is old.;p2;.1;.1;.8;neutral\n"
)
_USER_DATA = b"datasets:\n  core-responses: file.jsonl\n  self-judged: {GPT-4: file.jsonl}\n"
_RELATIONS = b"""response;claim;passage;relation;probability;label
r1;a1;c1;entailment;0,9;1.0
r1;a2;c1;contradiction;80 %;NS
r2;a1;;;;
"""
_FEW_LABELS = "response,p,label\n" + "".join(
    f"r{response},0.{claim},{label if response < 4 else ''}\n"
    for response in range(6)
    for claim, label in ((2, "0"), (9, "1"), (7, ""))
)
_TEXT = b"The bridge was opened in 1890. It is red, and 300 metres long.\n"
_CLAIM = {
    **{"response": "r1", "sentence": 1, "sentences": 2, "claim": "a1", "label": "S"},
    "judgments": {"direct_asking": "true", "none_of_the_above": "neither"},
    "log_probabilities": {"direct_asking": {"true": -0.1, "false": -2.4}},
}
_CLAIMS = _json(_CLAIM) + b"\n" + _json(_CLAIM | {"sentence": 2, "claim": "a2"}) + b"\n"
_TEMPLATES = b'{"people": ["{topic} was born.", "{topic} died."]}'
_DOCUMENT = b'{"text": "a", "title": "b", "link": "c"}'
_RESPONSE = b'{"response": "A b.", "id": "x"}'
_RECORDS = tuple(
    _json(record)
    for record in (
        *release_records.RECORDS.values(),
        release_records.FACTREASONER,
        {"factuality_score": 0.5, **release_records.RESULTS},
    )
)
_MODELS = (_GRAPH, json.dumps(GRAPH, indent=1).encode(), UAI, BAYES)
_MANY = (_LINES, b"[" + _GRAPH + b"]", *_RECORDS, *(record + b"\n" + record for record in _RECORDS))


def _separated(record: Mapping[str, Any], delimiter: str) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(record)
    writer.writerow(x if isinstance(x, str) else json.dumps(x) for x in record.values())
    return text.getvalue().encode()


_TABLES = (
    _RELATIONS,
    *(_separated(record, sign) for record in release_records.RECORDS.values() for sign in ",\t"),
)
_LOGS = (
    *(_json(evaluation_logs.INSPECT), _json(evaluation_logs.PROMPTFOO)),
    b"\n".join(map(_json, evaluation_logs.HARNESS)),
)


def _workbook() -> bytes:
    book = openpyxl.Workbook()
    for row in (("response", "p", "label"), ("r1", 0.5, 1), ("r2", "12,5 %", None)):
        book.active.append(row)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def _binary_tables() -> dict[str, bytes]:
    """A table in every binary form."""
    columns = {
        "response": ["r1", "r1", "r2", "r2"],
        "claim": ["It is red.", "It is 300 metres long.", "It is old.", "It is new."],
        "p": [0.25, None, 0.5, 0.75],
        "label": [True, False, None, True],
        "kind": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    }
    table = pa.table(columns)
    names = ("file", "stream", "feather", "parquet", "plain")
    written = {name: io.BytesIO() for name in names}
    for name, new in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
        with new(written[name], table.schema) as writer:
            writer.write_table(table)
    feather.write_feather(table, written["feather"], compression="zstd")
    pq.write_table(table, written["parquet"])
    pq.write_table(table, written["plain"], compression="none", use_dictionary=False)
    return {name: out.getvalue() for name, out in written.items()}


def _chroma() -> bytes:
    with TemporaryDirectory() as folder:
        return database(Path(folder) / "chroma.sqlite3", DOCUMENTS).read_bytes()


def _packed(files: Mapping[str, bytes]) -> bytes:
    """Files as one text, whose structure mutants change: names, contents, which there are."""
    return _json({name: content.decode("latin-1") for name, content in files.items()})


_BINARY = _binary_tables()
_PROMPTS = {name: prompt_text(name).encode() for name in ("reviser", "relation", "atomizer")}
_SAVED_DATASET = {
    "dataset_dict.json": b'{"splits": ["train"]}',
    "train/state.json": b'{"_data_files": [{"filename": "data-0.arrow"}], "_split": "train"}',
    "train/data-0.arrow": _BINARY["stream"],
}
_ANSWERS = (
    b'[{"sentence": 1, "claims": ["It is red.", "It is long."]}]',
    b"1: It is red.\n- It is long.\n- It was opened in 1890.",
    b"[entailment]",
    b"Reasoning: it says so. **Final answer:** contradiction",
    b"The passage does not say it. ###Supported###",
    b'```json\n{"summary": "It is red.", "relevant": true}\n```',
    b'{"label": "supported", "reason": "it is"}',
    b"Yes.",
    b"Verdict: not supported",
)
_FOUND = {"title": "T", "link": "http://example.org/a", "snippet": "It is <b>red</b>."}
_ELSEWHERE = {"title": "T", "link": "https://xn--bcher-kva.example/a?b=c#d", "snippet": "x"}
_PAGE = {"pageid": 1, "title": "Bridge"}
_SEARCHES = (
    _json({"organic": [_FOUND]}),
    _json({"organic": [_ELSEWHERE]}),
    _json({"query": {"search": [_PAGE | {"snippet": "It is red."}]}}),
    _json({"query": {"pages": {"1": _PAGE | {"extract": "It is red. " * 20}}}}),
)
_REQUEST = lm.Request((lm.Message("user", "Who?"),), lm.PromptIdentity("p", 1, "0" * 64), "stage")


# Readers.


def _whichever(*readers: Run) -> Run:
    """Reads with all of them; raises a refusal if none takes the file."""

    def run(path: Path) -> object:
        refusals = []
        for reader in readers:
            try:
                reader(path)
            except FactormodelsError as error:
                refusals.append(error)
        if len(refusals) == len(readers):
            raise refusals[-1]
        return None

    return run


_results = _whichever(read_evidence, read_log10_partition, read_marginals)


def _read(path: Path) -> object:
    model = factormodels.read(path)
    with suppress(ValueError):
        plain = json.loads(path.read_text("utf-8-sig"))
        if looks_like_fact_graph(plain):
            _validate("fact-graph", plain)
    return model


def _validate(name: str, value: object) -> None:
    """Accepted input is valid by its schema, as the command `schema` says."""
    if not Draft202012Validator(schema(name)).is_valid(value):
        raise AssertionError(f"the schema of {name} refuses what was read")


def _names(path: Path) -> object:
    model = path.with_suffix("")
    model.write_bytes(UAI)
    return factormodels.read(model)


def _evidence(path: Path) -> object:
    return with_evidence(parse_uai(UAI.decode(), "model.uai"), path)


def _passages(path: Path) -> object:
    atoms = (Atom("a1", release_records.PASSAGES["sent"]),)
    return with_passages((FactGraph("r", atoms, topic=release_records.PASSAGES["name"]),), path)


def _correction(path: Path) -> object:
    corrected = read_correction(path).corrected(np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]]))
    if not (np.isfinite(corrected).all() and np.allclose(corrected.sum(axis=1), 1.0)):
        raise AssertionError(f"corrected probabilities are none: {corrected}")
    return corrected


def _cells(loaded: LoadedStudy) -> object:
    return cells(loaded.study, algorithms(loaded))


def _study(path: Path) -> object:
    loaded = load_study(path)
    _validate("study", parse_yaml(path.read_text("utf-8-sig"), path.name))
    return _cells(loaded)


def _override(path: Path) -> object:
    return _cells(load_study("compare", [read_text(path)]))


def _user_data(path: Path) -> object:
    (path.parent / "file.jsonl").touch()
    with patch.dict(os.environ, {VARIABLE: str(path)}):
        return user_data()


def _rows(path: Path) -> object:
    rows = RowsFile(path)
    for cell in rows.cells():
        read_judgments(rows, cell)
    return read_rows(path)


def _store(path: Path) -> object:
    with open_store(path, "mend it") as store:
        return [*store.items("answers"), *store.records("units")]


def _cache(path: Path) -> object:
    with closing(AnswerCache(path)) as kept:
        read = [(kept.get(f"{n:064x}"), kept.failure(f"{n:064x}")) for n in range(40)]
        stored = [answer for answer, _ in read if answer is not None]
        kept.put("new", "m", _REQUEST, stored[0] if stored else lm.Completion("x"))
        kept.note_failure("new", None)
        kept.remove("new")
        return len(kept), kept.lacking("m")


def _prompt(path: Path) -> object:
    prompt = parse_prompt(read_text(path), path.name)
    return prompt.render(**dict.fromkeys(prompt.slots, "text"))


def _answer(path: Path) -> object:
    """Every stage, and every assessor, asks a model that answers all with the one text."""
    # What a server sends may be any text that JSON can hold, halves of characters too.
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    model = AnsweringModel(lambda _: text)
    graph = FactGraph(
        "r",
        atoms=(Atom("a1", "It is red."), Atom("a2", "It is long.")),
        contexts=(Context("c1", "It is red.", title="T", retrieved_for=("a1",)),),
        query="What is it?",
        response="It is red. It is long.",
    )
    atomizer.atomize(graph.response, model)
    reviser.revise(graph.atoms, graph.response, model, query=graph.query)
    queries.ask_queries(graph.atoms, model)
    summarizer.summarize_contexts(graph, model)
    pairs = relations.relation_pairs(graph, "FR2")
    asked = relations.ask(PromptedRelationModel(model), pairs)
    return asked, [
        assessors.assess(graph, assessor, model)
        for assessor in ASSESSORS.values()
        if not assessor.searches
    ]


def _search(path: Path) -> object:
    content = path.read_bytes()

    async def asked() -> list[object]:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, content=content))
        fetched: list[object] = []
        async with httpx.AsyncClient(transport=transport) as client:
            for retriever in (GoogleRetriever(), WikipediaRetriever()):
                try:
                    hits = await retriever.hits(client, {}, "a bridge", 3)
                    fetched += [await retriever.page(client, hit) for hit in hits]
                except RequestFailed as error:
                    fetched.append(error)
        return fetched

    passages = asyncio.run(asked())
    if all(isinstance(each, RequestFailed) for each in passages):
        raise InputError(str(passages))
    return passages


_LONGEST_NAME = 255
"""Bytes of a file's name: what the file systems of Linux take."""


def _files(read: Run) -> Run:
    """Reads a folder of the files that were packed."""

    def run(path: Path) -> object:
        folder = path.parent / "folder"
        folder.mkdir()
        try:
            files = json.loads(path.read_bytes())
        except ValueError:
            raise InputError(f"{path.name}: it is no set of files") from None
        for name, content in files.items() if isinstance(files, dict) else ():
            # A set of files has plain names; what a name within a file says is another matter.
            plain = name.isprintable() and name.strip("./ ") and ".." not in name
            if not plain or len(name.encode()) > _LONGEST_NAME:
                continue
            text = content if isinstance(content, str) else json.dumps(content)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text.encode("latin-1", "backslashreplace"))
        return read(folder)

    return run


# Commands.


def _command(*arguments: str) -> Run:
    """Runs a command on the file, in its folder."""

    def run(path: Path) -> object:
        (path.parent / "graph.json").write_bytes(_GRAPH)
        (path.parent / "d").mkdir()
        (path.parent / "d" / "note.txt").write_text("The bridge was opened in 1890.")
        return _invoke(path.parent, *(path.name if word == "FILE" else word for word in arguments))

    return run


def _of_run(*arguments: str) -> Run:
    """Runs a command on a finished run, `run`, in which the file takes the place of its own."""

    def run(path: Path) -> object:
        begun = path.parents[1]
        shutil.copytree(begun / "out", path.parent / "run")
        path.replace(path.parent / "run" / path.name)
        for name in ("graph.json", "study.yaml"):
            shutil.copy(begun / name, path.parent)
        return _invoke(path.parent, *arguments)

    return run


def _invoke(folder: Path, *arguments: str) -> object:
    """Run a command, of which an exit code of 0, 1 or 2 is right; 2 is a refusal."""
    with chdir(folder):
        result = called(*arguments)
    shown = result.stdout + result.stderr
    if result.exit_code not in (0, 1, 2) or "\x1b" in shown or "Traceback" in shown:
        raise AssertionError(f"code {result.exit_code}: {shown[-200:]!r}")
    if result.exit_code == 2:
        raise InputError(shown)
    return result.exit_code


_REPORT = _of_run("report", "run", "--out", "page.html", "--data", "graph=graph.json")
_DIFF = _of_run("diff", "run", "../out")
_RUN_FILES = ("manifest.json", "rows.parquet", "summary.csv")

_COMMANDS: tuple[tuple[str, str, tuple[bytes, ...], int], ...] = (
    ("infer FILE", "m", _MODELS, 12),
    ("infer FILE --json", "m", _MODELS, 8),
    ("infer FILE --backend lbp", "m", _MODELS, 8),
    ("infer FILE --backend auto", "m", _MODELS, 4),
    ("draw FILE g.dot", "g.json", (_GRAPH,), 6),
    ("draw FILE g.svg", "g.json", (_GRAPH,), 1),
    ("convert FILE o.uai", "g.json", _MODELS, 6),
    ("datasets FILE", "d.jsonl", (_LINES, *_TABLES), 12),
    ("self-knowledge FILE", "g.jsonl", (_LINES,), 3),
    ("select FILE", "g.jsonl", (_LINES,), 3),
    ("coherence FILE", "g.json", (_GRAPH,), 3),
    ("revise FILE", "g.json", (_GRAPH,), 3),
    ("estimate FILE --choose 1", "t", (_FEW_LABELS.encode(), *_LOGS), 4),
    ("fit FILE --folds 0 --penalty 3", "g.jsonl", (_LINES,), 2),
    ("assess FILE --documents d", "r.txt", (_TEXT,), 1),
    ("run FILE --dry-run", "s.yaml", (STUDY,), 6),
    ("run FILE --out o", "s.yaml", (STUDY,), 1),
)
"""Commands, the names and seeds of their files, and shares."""

TARGETS = (
    Target("read", "model", (*_MODELS, BIF, *_RECORDS), _read, 40),
    Target("read_many", "many.jsonl", _MANY, factormodels.read_many, 40),
    Target("read_each", "each.jsonl", _MANY, lambda path: list(read_each(path)), 20),
    Target("tables", "table.csv", _TABLES, factormodels.read_many, 30),
    Target("workbook", "book.xlsx", (_workbook(),), read_table),
    Target("bif", "network.bif", (BIF,), factormodels.read),
    Target("uai", "model.uai", (UAI, BAYES), factormodels.read, 30),
    Target("uai names", "m.uai.names", (b"a\nb\nc\n",), _names),
    Target("uai results", "r.uai", _RESULTS, _results, 20),
    Target("evidence", "evidence.json", _EVIDENCE, _evidence, 20),
    Target("prompts", "prompts.jsonl", _RECORDS, _whichever(read_prompts, read_judged_pairs)),
    Target("passages", "p.jsonl", (_json(release_records.PASSAGES),), _passages),
    Target("claim records", "claims.jsonl", (_CLAIMS,), load_claims),
    Target("templates", "t.json", (_TEMPLATES,), read_templates, 5),
    Target("documents", "d.jsonl", (_DOCUMENT,), read_documents),
    Target("page", "d.html", (b"<html><title>t</title><body><p>Text.</p>",), read_documents, 3),
    Target("responses", "r.jsonl", (*_MANY, _TEXT, _RESPONSE), load_responses, 20),
    Target("Chroma", "chroma.sqlite3", (_chroma(),), read_documents),
    Target("study", "study.yaml", (STUDY, b"base: compare\nseed: 2\n"), _study, 60),
    Target("override", "override.txt", _OVERRIDES, _override, 60),
    Target("correction", "c.json", (_CORRECTION,), _correction, 20),
    Target("relation record", "r.jsonl", (_RELATION_RECORD,), read_relation_record, 20),
    Target("labeled relations", "pairs.csv", (_PAIRS,), read_labeled_relations, 20),
    Target("user data", "data.yaml", (_USER_DATA,), _user_data, 20),
    Target(
        *("manifest", "manifest.json", ("out/manifest.json",)),
        *(lambda path: read_manifest(path.parent), 30),
    ),
    Target("rows", "rows.parquet", ("out/rows.parquet",), _rows, 40),
    Target("table of a run", "t.csv", ("out/summary.csv",), _whichever(read_csv, csv_records), 20),
    Target("store", STORE, ("kept.sqlite",), _store, 30),
    Target("cache", "answers.sqlite", ("answers.sqlite",), _cache, 20),
    Target("filled cache", "a.sqlite", ("filled.sqlite",), _cache, 30),
    Target("binary table", "table.arrow", tuple(_BINARY.values()), read_table, 60),
    Target("prompt", "reviser.yaml", tuple(_PROMPTS.values()), _prompt, 20),
    Target("answers", "answer.txt", _ANSWERS, _answer, 60),
    Target("searches", "search.json", _SEARCHES, _search, 30),
    Target("saved dataset", "set.json", (_packed(_SAVED_DATASET),), _files(read_table), 20),
    Target(
        *("files of a run", "set.json", ("packed.json",)),
        _files(
            _whichever(read_manifest, read_rows, lambda folder: read_csv(folder / "summary.csv"))
        ),
        15,
    ),
    Target(
        *("prompts in a folder", "set.json"),
        (_packed({f"{name}.yaml": _PROMPTS[name] for name in ("reviser", "relation")}),),
        _files(lambda folder: read_prompt_files(folder).digests()),
    ),
    *(
        Target(words.replace(" FILE", ""), file, seeds, _command(*words.split()), share)
        for words, file, seeds, share in _COMMANDS
    ),
    *(Target(f"diff {name}", name, (f"out/{name}",), _DIFF, 3) for name in _RUN_FILES[:2]),
    *(Target(f"report {name}", name, (f"out/{name}",), _REPORT, 1) for name in _RUN_FILES[:2]),
    Target(
        *("run --resume", STORE, (f"out/{STORE}",)),
        *(_of_run("run", "study.yaml", "--out", "run", "--resume"), 1),
    ),
)
