"""What others write and we only read: binary tables, caches, answers of servers, sets of files."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from factormodels.errors import FactormodelsError, InputError

Named = tuple[str, str, tuple[bytes, ...], Callable[[Path], object], int]
"""Name, file, seeds, what tries a file, and share, as a `Target` has them."""

CLAIMS = {
    "response": ["r1", "r1", "r2", "r2"],
    "claim": ["It is red.", "It is 300 metres long.", "It is old.", "It is new."],
    "p": [0.25, None, 0.5, 0.75],
    "label": [True, False, None, True],
}

ANSWERS = (
    '[{"sentence": 1, "claims": ["It is red.", "It is long."]}]',
    "1: It is red.\n- It is long.\n- It was opened in 1890.",
    "[entailment]",
    "Reasoning: it says so. **Final answer:** contradiction",
    "The passage does not say it. ###Supported###",
    '```json\n{"summary": "It is red.", "relevant": true}\n```',
    '{"label": "supported", "reason": "it is"}',
    "Yes.",
    "Verdict: not supported",
)

SEARCHES = (
    {"organic": [{"title": "T", "link": "http://example.org/a", "snippet": "It is <b>red</b>."}]},
    {"organic": [{"title": "T", "link": "https://xn--bcher-kva.example/a?b=c#d", "snippet": "x"}]},
    {"query": {"search": [{"title": "Bridge", "pageid": 1, "snippet": "It is red."}]}},
    {"query": {"pages": {"1": {"pageid": 1, "title": "Bridge", "extract": "It is red. " * 20}}}},
)


def targets(finished: Path) -> Iterable[Named]:
    """Yield what is tried; `finished` is the folder that `tests.fuzz.targets.prepare` filled."""
    from factormodels.extraction.prompts import prompt_text

    binary = tuple(tables().values())
    prompts = tuple(prompt_text(name).encode() for name in ("reviser", "relation", "atomizer"))
    searches = tuple(json.dumps(answer).encode() for answer in SEARCHES)
    yield "binary table", "table.arrow", binary, _table, 60
    yield "filled cache", "a.sqlite", ((finished / "filled.sqlite").read_bytes(),), _cache, 30
    yield "prompt", "reviser.yaml", prompts, _prompt, 20
    yield "answers", "answer.txt", tuple(text.encode() for text in ANSWERS), _answer, 60
    yield "searches", "search.json", searches, _search, 30
    yield "saved dataset", "set.json", (_packed(saved_dataset()),), _files(_read_folder), 20
    own = {
        name: (finished / "out" / name).read_bytes()
        for name in ("manifest.json", "rows.parquet", "summary.csv")
    }
    yield "files of a run", "set.json", (_packed(own),), _files(_read_run), 15
    copies = {f"{name}.yaml": prompt_text(name).encode() for name in ("reviser", "relation")}
    yield "prompts in a folder", "set.json", (_packed(copies),), _files(_read_prompts), 10


def fill_cache(path: Path) -> None:
    """Write a cache that has everything that one can have."""
    from factormodels.extraction.language_model import Completion, Failure, Token, Usage
    from factormodels.extraction.language_model.cache import AnswerCache

    path.unlink(missing_ok=True)
    answer = Completion("yes", (Token("yes", -0.1, (("no", -2.5),)),), Usage(3, 1, 0.25))
    with closing(AnswerCache(path)) as cache:
        for number in range(40):
            cache.put(f"{number:064x}", "m", _request(), answer)
            cache.note_failure(f"{number:064x}", Failure("it is busy", Usage(1, 0)))
        cache.note_lacking("m", ["seed"], refused=True)


def tables() -> dict[str, bytes]:
    """A table in every binary form."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import feather

    table = pa.table({**CLAIMS, "kind": pa.array(["a", None, "b", "a"]).dictionary_encode()})
    written = {name: io.BytesIO() for name in ("file", "stream", "feather", "parquet", "plain")}
    with pa.ipc.new_file(written["file"], table.schema) as writer:
        writer.write_table(table)
    with pa.ipc.new_stream(written["stream"], table.schema) as writer:
        writer.write_table(table)
    feather.write_feather(table, written["feather"], compression="zstd")
    pq.write_table(table, written["parquet"])
    pq.write_table(table, written["plain"], compression="none", use_dictionary=False)
    return {name: out.getvalue() for name, out in written.items()} | {"manager": _manager()}


def _manager() -> bytes:
    """What LM-Polygraph's manager saves: an archive with a pickle."""
    texts = {"input_texts": ["Who?", "What?"], "greedy_texts": ["It is red.", "It is old."]}
    estimations = {("sequence", "LexicalSimilarity"): [-0.9, -0.25]}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        saved = {"estimations": estimations, "stats": texts}
        archive.writestr("manager/data.pkl", pickle.dumps(saved, 2))
    return packed.getvalue()


def saved_dataset() -> dict[str, bytes]:
    """The files of a folder as `save_to_disk` writes one."""
    state = {"_data_files": [{"filename": "data-0.arrow"}], "_split": "train"}
    return {
        "dataset_dict.json": b'{"splits": ["train"]}',
        "train/state.json": json.dumps(state).encode(),
        "train/data-0.arrow": tables()["stream"],
    }


def _request() -> Any:
    from factormodels.extraction.language_model import Message, PromptIdentity, Request

    return Request((Message("user", "Who?"),), PromptIdentity("p", 1, "0" * 64), "stage")


def _table(path: Path) -> object:
    from factormodels.io.tables import read_table

    return read_table(path)


def _cache(path: Path) -> object:
    from factormodels.extraction.language_model.cache import AnswerCache

    with closing(AnswerCache(path)) as cache:
        read = [(cache.get(f"{n:064x}"), cache.failure(f"{n:064x}")) for n in range(40)]
        stored = [answer for answer, _ in read if answer is not None]
        cache.put("new", "m", _request(), stored[0] if stored else _completion("x"))
        cache.note_failure("new", None)
        cache.remove("new")
        return len(cache), cache.lacking("m")


def _completion(text: str) -> Any:
    from factormodels.extraction.language_model import Completion

    return Completion(text)


def _prompt(path: Path) -> object:
    from factormodels.extraction.prompts import parse_prompt
    from factormodels.io.files import read_text

    prompt = parse_prompt(read_text(path), path.name)
    return prompt.render(**dict.fromkeys(prompt.slots, "text"))


def _answer(path: Path) -> object:
    """Every stage, and every assessor, asks a model that answers all with the one text."""
    from factormodels import Atom, Context, FactGraph
    from factormodels.extraction.relation_models.prompted import PromptedRelationModel
    from factormodels.extraction.stages import relations
    from factormodels.extraction.stages.assessors import ASSESSORS, assess
    from factormodels.extraction.stages.atomizer import atomize
    from factormodels.extraction.stages.queries import ask_queries
    from factormodels.extraction.stages.reviser import revise
    from factormodels.extraction.stages.summariser import summarise_contexts
    from tests.factormodels.extraction.models import AnsweringModel

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
    atomize("It is red. It is long.", model)
    revise(graph.atoms, graph.response, model, query=graph.query)
    ask_queries(graph.atoms, model)
    summarise_contexts(graph, model)
    pairs = relations.relation_pairs(graph, "FR2")
    asked = relations.ask(PromptedRelationModel(model), pairs)
    return asked, [assess(graph, name, model) for name in ASSESSORS]


def _search(path: Path) -> object:
    import asyncio
    import socket
    from unittest import mock

    import httpx

    from factormodels.extraction.retrieval.google import GoogleRetriever
    from factormodels.extraction.retrieval.http import RequestFailed
    from factormodels.extraction.retrieval.wikipedia import WikipediaRetriever

    content = path.read_bytes()

    async def asked() -> list[object]:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, content=content))
        found: list[object] = []
        async with httpx.AsyncClient(transport=transport) as client:
            for retriever in (GoogleRetriever(), WikipediaRetriever()):
                try:
                    hits = await retriever.hits(client, {}, "a bridge", 3)
                    found += [await retriever.page(client, hit) for hit in hits]
                except RequestFailed as error:
                    found.append(error)
        return found

    # No name is asked for outside: each has one address, which nobody is connected to.
    address = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", 443))
    with mock.patch("socket.getaddrinfo", return_value=[address]):
        found = asyncio.run(asked())
    if all(isinstance(each, RequestFailed) for each in found):
        raise InputError(str(found))
    return found


def _packed(files: Mapping[str, bytes]) -> bytes:
    """Files as one text, whose structure mutants change: names, contents, which there are."""
    return json.dumps({name: content.decode("latin-1") for name, content in files.items()}).encode()


_LONGEST_NAME = 255
"""Bytes of a file's name: what the file systems of Linux take."""


def _files(read: Callable[[Path], object]) -> Callable[[Path], object]:
    """Reads a folder of the files that were packed."""

    def run(path: Path) -> object:
        folder = path.parent / "folder"
        folder.mkdir()
        try:
            files = json.loads(path.read_bytes())
        except ValueError:
            raise InputError(f"{path.name}: it is no set of files") from None
        for name, content in files.items() if isinstance(files, dict) else ():
            file = folder / name
            # A set of files has plain names; what a name within a file says is another matter.
            plain = name.isprintable() and name.strip("./ ") and ".." not in name
            if not plain or len(name.encode()) > _LONGEST_NAME:
                continue
            text = content if isinstance(content, str) else json.dumps(content)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode("latin-1", "backslashreplace"))
        return read(folder)

    return run


def _read_folder(folder: Path) -> object:
    from factormodels.io.tables import read_table

    return read_table(folder)


def _read_run(folder: Path) -> object:
    from experiments.findings.markup import read_csv
    from experiments.study.files import read_manifest
    from experiments.study.rows import read_rows

    return _each(
        lambda: read_manifest(folder),
        lambda: read_rows(folder),
        lambda: read_csv(folder / "summary.csv"),
    )


def _read_prompts(folder: Path) -> object:
    from factormodels.extraction.prompts.replaced import read_prompts

    return read_prompts(folder).digests()


def _each(*readers: Callable[[], object]) -> list[object]:
    """What all of some readers give; the first refusal, once all have been tried."""
    found: list[object] = []
    refusal: FactormodelsError | None = None
    for reader in readers:
        try:
            found.append(reader())
        except FactormodelsError as error:
            refusal = refusal or error
    if refusal is not None:
        raise refusal
    return found
