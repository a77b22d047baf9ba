"""`--scope own` and `--documents-of`: a claim is searched for in its own response's documents."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, Literal

import pytest

from experiments import assess, fastfact, self_knowledge
from experiments.asking.own_documents import own_digest
from factormodels import Atom, Context, FactGraph
from factormodels.errors import InputError
from factormodels.extraction.language_model import Request
from factormodels.extraction.retrieval.documents import Document
from factormodels.metadata.evidence_source import evidence_sources
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.questions import sentences_of

ADA, GRACE = "The bridge of Ada is red.", "The bridge of Grace is red."
PASSAGES = {"ada": "Ada's bridge is red, and made of stone.", "grace": "Grace's bridge is long."}


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of two responses, with a folder for the one and a file for the other."""
    monkeypatch.chdir(tmp_path)
    for path, name in (
        (Path("data/notes/ada/one.txt"), "ada"),
        (Path("data/notes/grace.txt"), "grace"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PASSAGES[name])
    return table(Path("data/answers.csv"), ["notes/ada", "notes/grace.txt"])


def table(path: Path, places: list[str]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "response", "place"])
        writer.writerows(zip(("ada", "grace"), (ADA, GRACE), places, strict=True))
    return path


def found(findings: Any) -> dict[str, list[str]]:
    """Return the texts of the contexts of each response."""
    return {graph.id: [each.text for each in graph.contexts] for graph in findings.graphs}


OWN = {name: [text] for name, text in PASSAGES.items()}


def test_a_row_names_the_documents_of_its_response(rows: Path) -> None:
    by_own = assess(rows, documents_of="place")
    assert found(by_own) == OWN
    assert found(assess(rows, documents_of="place", scope="own")) == OWN
    every = assess(rows, documents_of="place", scope="all")
    assert found(every) == found(assess(rows, documents=Path("data/notes")))
    assert all(len(texts) == 2 for texts in found(every).values())
    # The evidence of the one is not that of the other, and a judge must not take it for the same.
    sources = [evidence_sources(each.graphs) for each in (by_own, every)]
    assert [source.retriever for (source,) in sources] == ["local, own documents", "local"]


def test_findings_name_the_files_of_a_response_that_are_not_searched(rows: Path) -> None:
    Path("data/notes/ada/two.docx").write_text("Ada's bridge is blue.")
    unread = "1 file not read as documents: two.docx"
    scopes: tuple[Literal["own", "all"], ...] = ("own", "all")
    for findings in (
        *(assess(rows, documents_of="place", scope=scope) for scope in scopes),
        assess(rows, documents=Path("data/notes"), scope="own"),
    ):
        assert sum(f"ada: {unread}." in each for each in findings.sentences) == 1
    # Beyond four, only their number is shown.
    folders = [f"notes/{number}" for number in range(6)]
    for folder in folders:
        (Path("data") / folder).mkdir()
        (Path("data") / folder / "one.txt").write_text("A bridge.")
        (Path("data") / folder / "two.docx").write_text("")
    responses = [{"id": folder, "response": ADA, "place": f"data/{folder}"} for folder in folders]
    sentences = assess(responses, documents_of="place").sentences
    assert sum(unread in each for each in sentences) == 4
    assert any("2 further remarks on files of other responses" in each for each in sentences)


def test_documents_are_named_after_responses(rows: Path) -> None:
    assert found(assess(rows, documents=Path("data/notes"), scope="own")) == OWN
    assert found(assess(rows, documents=PASSAGES, scope="own")) == OWN
    lines = "".join(f'{{"title": "{name}", "text": "{text}"}}\n' for name, text in PASSAGES.items())
    Path("all.jsonl").write_text(lines)
    assert found(assess(rows, documents=Path("all.jsonl"), scope="own")) == OWN


def test_a_response_is_searched_for_in_its_own_passages() -> None:
    graphs = [
        FactGraph(
            name,
            (Atom("a1", text),),
            (Context("c1", PASSAGES[name]),) if name != "mary" else (),
            response=text,
        )
        for name, text in (("ada", ADA), ("grace", GRACE), ("mary", "The bridge of Mary is red."))
    ]
    by_own = assess(graphs, retriever="local", scope="own")
    assert found(by_own) == OWN | {"mary": []}
    assert any("1 of 3 responses has no passages to search" in each for each in by_own.sentences)
    bare = FactGraph("anne", (Atom("a1", "The bridge of Anne is red."),))
    with pytest.raises(InputError, match="there is no source of evidence; give"):
        assess([bare], scope="own")
    with pytest.raises(InputError, match="there is no table; leave it out"):
        assess(graphs, documents_of="place")


def test_a_dry_run_counts_own_passages(rows: Path) -> None:
    calls_by_scope: dict[Literal["all", "own"], int] = {"own": 2, "all": 4}
    for scope, calls in calls_by_scope.items():
        counted = assess(rows, documents_of="place", scope=scope, dry_run=True)["calls"]
        of_stage = dict(zip(counted["stage"], counted["calls"], strict=True))
        assert of_stage["relations FR2"] == calls


def test_fastfact_verifies_by_own_documents(rows: Path) -> None:
    def answer(request: Request) -> str:
        if request.stage == "fastfact":
            return "Verdict: supported"
        return f"1 | {ADA if ADA in request.messages[-1].content else GRACE} | unsure"

    model = AnsweringModel(answer)
    assert found(fastfact(rows, model=model, documents_of="place")) == OWN
    every = found(fastfact(rows, model=model, documents=Path("data/notes")))
    assert all(len(texts) == 2 for texts in every.values())


def test_claims_of_a_model_are_labeled_by_own_documents(rows: Path) -> None:
    shown: list[str] = []

    def answer(request: Request) -> str:
        text = request.messages[-1].content
        if request.stage == "atomizer":
            listed = [{"sentence": number, "claim": each} for number, each in sentences_of(text)]
            return json.dumps(listed)
        if request.stage == "refusals":
            return '{"declines": false}'
        if request.stage == "factscore":
            shown.append(text)
            return "true" if ADA in text else "false"
        return "true"

    self_knowledge(
        rows,
        model=AnsweringModel(answer),
        extract=True,
        documents_of="place",
        setting="direct_asking",
    )
    assert len(shown) == 2
    for text in shown:
        assert (PASSAGES["ada"] in text) == (ADA in text)
        assert (PASSAGES["grace"] in text) == (GRACE in text)


@pytest.mark.parametrize(
    ("places", "message"),
    [
        (["notes/ada", "notes/grce.txt"], "line 3, column 'place': there is no folder or file"),
        (["notes/ada", ""], "line 3, column 'place': the cell is empty"),
        (["notes/ada", "empty"], "response 'grace': data/empty: it holds no text"),
    ],
)
def test_a_row_without_its_documents_is_named(rows: Path, places: list[str], message: str) -> None:
    Path("data/empty").mkdir()
    table(rows, places)
    refused = invoke("assess", str(rows), "--documents-of", "place", code=2)
    assert message in " ".join(refused.output.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"documents_of": "palce"}, "there is no such column .did you mean 'place'"),
        ({"documents": PASSAGES, "documents_of": "place"}, "both name documents to search"),
        ({"documents": {"ada": "x"}, "scope": "own"}, "no document with the title 'grace'"),
        ({"retriever": "wikipedia", "documents_of": "place"}, "applies to `retriever` local"),
        ({"retriever": "wikipedia", "scope": "own"}, "applies to `retriever` local"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    rows: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        assess(rows, **options)


def test_an_id_does_not_lead_out_of_the_folder(rows: Path) -> None:
    Path("secret.txt").write_text("a secret")
    with pytest.raises(InputError, match="it has no folder or file for the response"):
        assess({"id": "../../secret", "response": ADA}, documents=Path("data/notes"), scope="own")
    assert rows.exists()


def test_the_digest_of_documents_tells_whose_they_are() -> None:
    first, second = Document("", "", "x"), Document("", "", "y")
    digests = {
        own_digest(each)
        for each in (
            {"a": [first, second], "b": []},
            {"a": [first], "b": [second]},
            {"a": [second], "b": [first]},
            {"a": [first]},
        )
    }
    assert len(digests) == 4
