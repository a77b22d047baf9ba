"""`factormodels assess` without a language model: inputs, outputs, refusals, resumption."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import assess
from experiments.evaluators.display.assess_tables import stage_remarks
from experiments.evaluators.response import AssessmentView, assess_graph
from experiments.findings.claim_scores import LabeledAtoms, scores_with_intervals
from factormodels import (
    FactGraph,
    InputError,
    RelationKind,
    datasets,
    read,
    read_many,
    variant,
    write_many,
)
from factormodels.extraction.pipeline import run_stages
from factormodels.extraction.stages.duplicates import every_atom
from inference import get_backend, infer
from tests.experiments.conftest import EXAMPLE, invoke
from tests.pages import agree, findings, table_rows
from tests.refusals import refused

RESPONSE = "The bridge opened in 1890. Bananas ripen in the sun."
NOTE = "The red bridge opened in 1890 for trains."


@pytest.fixture
def notes(folder: Path) -> Path:
    """A folder of one document, and a response beside it."""
    (folder / "notes").mkdir()
    (folder / "notes" / "bridge.txt").write_text(NOTE)
    (folder / "answer.txt").write_text(f"{RESPONSE}\n")
    return folder


def some(folder: Path, n: int = 4) -> str:
    """A file of the first responses of the demonstration."""
    write_many(datasets.load("demonstration").graphs[:n], folder / "some.jsonl")
    return "some.jsonl"


def metadata(path: Path) -> dict[str, Any]:
    (graph,) = read_many(path)
    return dict(graph.metadata)


def test_a_response_of_the_corpus_offline(folder: Path) -> None:
    arguments = ["demonstration", "--response", "demo-01-marie-curie", "--retriever", "local"]
    result = invoke("assess", *arguments, "--out", "out")
    assert "entailment" in result.stdout
    assert "Biographical dictionary" in result.stdout
    assert "9 labeled" in result.stdout
    (graph,) = read_many(folder / "out/graphs.jsonl")
    assert graph.metadata["retrieval"]["queries"] == 9
    assert graph.metadata["relations"]["missing"] == []
    view = graph.metadata["assessment"]["FR2"]
    # What is written is what the graph gives when it is read again.
    again = get_backend("exact").infer(variant(graph, "FR2").to_factor_graph())
    p = again.marginals.of_state(1, graph.atom_ids)
    assert [atom["p"] for atom in view["atoms"].values()] == pytest.approx(p.tolist(), abs=1e-12)


def test_plain_text_is_taken_apart_and_searched(notes: Path) -> None:
    invoke("assess", "answer.txt", "--query", "The bridge?", "--documents", "notes", "--out", "o")
    (graph,) = read_many(notes / "o/graphs.jsonl")
    assert (graph.id, graph.query, graph.response) == ("answer", "The bridge?", RESPONSE)
    assert [atom.text for atom in graph.atoms] == RESPONSE.replace(". ", ".\n").splitlines()
    assert [(c.text, c.title, c.retrieved_for) for c in graph.contexts] == [
        (NOTE, "bridge", ("a1",))
    ]
    assert [r.kind for r in graph.relations] == [RelationKind.ENTAILMENT, RelationKind.NEUTRAL]
    atoms = graph.metadata["assessment"]["FR2"]["atoms"]
    assert atoms["a1"]["p"] > 0.5
    assert atoms["a2"] == {"p": 0.5, "evidence": []}


@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize(
    ("text", "n"),
    [
        (RESPONSE, 1),
        (json.dumps({"response": RESPONSE, "id": "x"}), 1),
        (f"{json.dumps({'response': RESPONSE})}\n{json.dumps({'response': RESPONSE})}\n", 2),
        (f"[1] {RESPONSE}", 1),
        (json.dumps({**EXAMPLE, "response": RESPONSE}), 1),
    ],
)
def test_standard_input(text: str, n: int) -> None:
    arguments = ["--documents", "notes", "--atoms", "sentences", "--out", "o"]
    invoke("assess", "-", *arguments, input=text)
    assert len(read_many("o/graphs.jsonl")) == n


def test_the_change_of_a_context_is_the_posterior_without_it() -> None:
    graph = datasets.load("demonstration").graphs[0]
    views = [
        AssessmentView(name, "conditional", get_backend("exact")) for name in ("FR1", "FR2", "FR3")
    ]
    for name, view in assess_graph(graph, views).items():
        seen = variant(graph, name)
        for atom, facts in view["atoms"].items():
            for item in facts["evidence"]:
                copies = {item["context"], f"{item['context']}@{atom}"}
                left = FactGraph(
                    "left",
                    seen.atoms,
                    tuple(c for c in seen.contexts if c.id not in copies),
                    tuple(r for r in seen.relations if not copies & {r.source, r.target}),
                )
                posterior = get_backend("exact").infer(left.to_factor_graph("conditional"))
                without = posterior.marginals[atom][1]
                # Two exact computations in another order of sums.
                assert item["change"] == pytest.approx(facts["p"] - without, abs=1e-9)


def test_one_run_compares_variants_and_asks_each_pair_once(notes: Path) -> None:
    names = [part for name in ("FR1", "FR2", "FR3") for part in ("--variant", name)]
    result = invoke("assess", some(notes), *names, "--out", "o")
    assert re.findall(r"^(FR\d) ", result.stdout, re.M) == ["FR1", "FR2", "FR3"]
    for graph in read_many(notes / "o/graphs.jsonl"):
        n, m = len(graph.atoms), len(graph.contexts)
        assert graph.metadata["relations"]["asked"] == n * m + m * (m - 1)
        assert list(graph.metadata["assessment"]) == ["FR1", "FR2", "FR3"]


def test_recorded_relations_give_the_recorded_graph_back(notes: Path) -> None:
    graph = datasets.load("demonstration").graphs[0]
    texts = {atom.id: atom.text for atom in graph.atoms}
    texts |= {context.id: context.text for context in graph.contexts}
    lines = {
        (texts[r.source], texts[r.target]): json.dumps(
            {
                "premise": texts[r.source],
                "hypothesis": texts[r.target],
                "relation": r.kind,
                "probability": r.probability,
            }
        )
        for r in graph.relations
    }
    (notes / "relations.jsonl").write_text("\n".join(lines.values()))
    arguments = ["--response", graph.id, "--relations", "recorded:relations.jsonl"]
    # Nobody recorded anything of most pairs: the numbers are printed with what that leaves open.
    result = invoke("assess", "demonstration", *arguments, "--out", "o", code=1)
    assert "96 of 117 relations missing" in result.stdout
    assert "the assessment is incomplete.\n" in result.stdout
    (recorded_graph,) = read_many(notes / "o/graphs.jsonl")
    backend = get_backend("exact")
    expected = backend.infer(variant(graph, "FR2").to_factor_graph())
    atoms = recorded_graph.metadata["assessment"]["FR2"]["atoms"]
    assert [atoms[name]["p"] for name in graph.atom_ids] == pytest.approx(
        expected.marginals.of_state(1, graph.atom_ids).tolist(), abs=1e-12
    )


def test_a_backend_and_its_settings(notes: Path) -> None:
    options = ["--backend", "lbp,damping=0.5", "--encoding", "conditional"]
    invoke("assess", some(notes, 1), *options, "--out", "o")
    view = read_many(notes / "o/graphs.jsonl")[0].metadata["assessment"]["FR2"]
    assert (view["backend"], view["encoding"]) == ("lbp", "conditional")


@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("absent.txt --documents notes", "absent.txt: there is no such file"),
        ("answer.txt", "there is no source of evidence"),
        ("answer.txt --documents absent", "absent: there is no such folder"),
        ("answer.txt --documents notes --variant FR4", "'FR4' is unknown"),
        ("answer.txt --documents notes --variant given", "'given' is unknown"),
        ("demonstration --variant FR1 --variant FR1", "given twice"),
        ("answer.txt --documents notes --encoding x", "encoding x is unknown"),
        ("answer.txt --documents notes --backend x", "'x' is unknown"),
        ("answer.txt --documents notes --relations x", "--relations 'x'"),
        ("answer.txt --documents notes --relations recorded:no", "no such file"),
        ("answer.txt --documents notes --relations model", "--model"),
        ("answer.txt --documents notes --atoms given", "contains no claims"),
        ("answer.txt --documents notes --atoms model", "--model"),
        ("answer.txt --documents notes --revise", "--model"),
        ("answer.txt --documents notes --stride 0", "--stride '0' is not"),
        ("answer.txt --retriever google --replay", "no such cache"),
        ("answer.txt --documents notes --replay --model x/y", "no such cache"),
        ("answer.txt --retriever x", "--retriever 'x'"),
        ("answer.txt --retriever local", "--documents"),
        ("answer.txt --retriever given", "contains no passages"),
        ("answer.txt --retriever google", "SERPER_API_KEY is not set"),
        ("answer.txt --retriever wikipedia --documents notes", "leave one out"),
        ("answer.txt --retriever wikipedia --reading all", "'all' of pages"),
        ("demonstration --response x", "no response 'x'"),
        ("demonstration --atoms sentences --retriever given", "--retriever local"),
        ("demonstration --out answer.txt", "answer.txt"),
        ("demonstration --passages answer.txt", "answer.txt, line 1"),
        ("empty.txt --documents notes", "the file is empty"),
        (
            "bad.jsonl --documents notes",
            "line 2, column 'response': the row has no such key ('respons' is another",
        ),
        ("list.json --documents notes", "[1, 2] is not a JSON object"),
        ("twice.jsonl --documents notes", "two responses have the id 'x'"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(
    arguments: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SERPER_API_KEY", raising=False)
    Path("empty.txt").write_text(" \n")
    good = json.dumps({"id": "x", "response": "It is red."})
    Path("bad.jsonl").write_text(f'{good}\n{{"respons": "x"}}\n')
    Path("list.json").write_text("[1, 2]")
    Path("twice.jsonl").write_text(f"{good}\n{good}\n")
    before = sorted(Path().iterdir())
    assert message in invoke("assess", *arguments.split(), code=2).stderr
    assert sorted(Path().iterdir()) == before


def batch_of(folder: Path, n: int) -> None:
    lines = [json.dumps({"id": f"r{i}", "response": f"Bridge {i} is red."}) for i in range(n)]
    (folder / "batch.jsonl").write_text("\n".join(lines))


BATCH = ("assess", "batch.jsonl", "--documents", "notes", "--out", "o")


def test_a_response_that_fails_is_reported_and_tried_again(notes: Path) -> None:
    batch_of(notes, 2)
    with (notes / "batch.jsonl").open("a") as file:
        file.write('\n{"id": "r2", "response": "..."}')
    assert "r2 failed: there is no sentence in the response" in invoke(*BATCH, code=1).stdout
    assert [graph.id for graph in read_many(notes / "o/graphs.jsonl")] == ["r0", "r1"]
    assert (notes / "o/store.sqlite").exists()
    batch_of(notes, 3)
    assert "2 responses were finished by an earlier run" in invoke(*BATCH).stdout
    assert [graph.id for graph in read_many(notes / "o/graphs.jsonl")] == ["r0", "r1", "r2"]
    assert not (notes / "o/store.sqlite").exists()


def test_a_batch_is_continued_with_its_own_settings_only(notes: Path) -> None:
    batch_of(notes, 1)
    with (notes / "batch.jsonl").open("a") as file:
        file.write('\n{"id": "r2", "response": "..."}')
    invoke(*BATCH, code=1)
    for other in (
        ["--variant", "FR1"],
        ["--top-k", "5"],
        ["--encoding", "conditional"],
    ):
        assert "started with other settings" in invoke(*BATCH, *other, code=2).stderr
    (notes / "notes" / "more.txt").write_text("More.")
    assert "started with other settings" in invoke(*BATCH, code=2).stderr


def test_a_file_that_is_no_store_is_kept(notes: Path) -> None:
    batch_of(notes, 1)
    (notes / "o").mkdir()
    (notes / "o/store.sqlite").write_text("mine\n")
    assert "is not a store of results" in invoke(*BATCH, code=2).stderr
    assert (notes / "o/store.sqlite").read_text() == "mine\n"


def test_intact_records_of_a_damaged_store_are_kept(notes: Path) -> None:
    batch_of(notes, 3)
    with (notes / "batch.jsonl").open("a") as file:
        file.write('\n{"id": "r3", "response": "..."}')
    invoke(*BATCH, code=1)
    with closing(sqlite3.connect(notes / "o/store.sqlite")) as connection, connection:
        connection.execute("UPDATE kept SET checksum = 0 WHERE rowid = 3")
    result = invoke(*BATCH, code=1)
    assert "store.sqlite: parts of it are damaged" in result.stderr
    assert "2 responses were finished by an earlier run" in result.stdout


def test_an_interrupted_batch_keeps_what_is_finished(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import experiments.evaluators.batches.batch as module

    batch_of(notes, 4)
    invoke(*BATCH)
    expected = (notes / "o/graphs.jsonl").read_bytes()
    (notes / "o/graphs.jsonl").unlink()
    run = run_stages
    calls: list[str] = []

    def interrupted(graph: FactGraph, stages: Any) -> FactGraph:
        calls.append(graph.id)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(graph, stages)

    monkeypatch.setattr(module, "run_stages", interrupted)
    invoke(*BATCH, code=130)
    assert not (notes / "o/graphs.jsonl").exists()
    invoke(*BATCH)
    assert calls == ["r0", "r1", "r2", "r2", "r3"]
    assert (notes / "o/graphs.jsonl").read_bytes() == expected


def test_two_processes_do_not_share_a_folder(notes: Path) -> None:
    import fcntl

    batch_of(notes, 1)
    (notes / "o").mkdir()
    with (notes / "o/store.sqlite").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = invoke(*BATCH, code=2)
    assert "another process is at work" in result.stderr


def test_a_dry_run_counts_what_a_run_asks(notes: Path) -> None:
    names = [part for name in ("FR1", "FR2", "FR3") for part in ("--variant", name)]
    options = [some(notes), "--retriever", "local", "--top-k", "2", *names]
    dry = invoke("assess", *options, "--dry-run", "--out", "o")
    assert not (notes / "o/graphs.jsonl").exists()
    invoke("assess", *options, "--out", "o")
    graphs = read_many(notes / "o/graphs.jsonl")
    asked = sum(graph.metadata["relations"]["asked"] for graph in graphs)
    searches = sum(graph.metadata["retrieval"]["queries"] for graph in graphs)
    shown = dict(re.findall(r"^(\S.+?)  +([\d,]+) ", dry.stdout, re.M))
    assert int(shown["relations FR3"].replace(",", "")) == asked
    assert int(shown["searches (local)"]) == searches == sum(len(g.atoms) for g in graphs)
    served = sum(len(c.retrieved_for) for graph in graphs for c in graph.contexts)
    assert int(shown["(relations FR1)"]) == served


def stages_of(shown: str) -> dict[str, str]:
    """The rows of a dry run by stage, a space between two cells."""
    return {line.split("  ")[0]: " ".join(line.split()) for line in shown.splitlines()}


@pytest.mark.slow
def test_a_dry_run_with_a_model_sends_and_writes_nothing(notes: Path) -> None:
    batch_of(notes, 7)
    before = sorted(notes.rglob("*"))
    options = ["--model", "openai/gpt-4o-mini", "--api-base", "http://127.0.0.1:9/v1"]
    result = invoke(*BATCH[:-2], *options, "--revise", "--queries", "--dry-run")
    assert sorted(notes.rglob("*")) == before
    rows = stages_of(result.stdout)
    assert re.search(r"^atomizer 7 ", rows["atomizer"])
    # 4.2 claims are assumed of a sentence: 4 of each response; the one note is the one passage.
    assert "about 28 " in rows["reviser"]
    assert "about 28 " in rows["relations FR2"]
    assert "about 28 " in rows["(relations FR1)"]
    assert "about 28 " in rows["(relations FR3)"]
    # Of four notes three are found for each claim, and no response has more than these four.
    for number in range(3):
        (notes / "notes" / f"more{number}.txt").write_text(f"Bridge {number} is red.")
    rows = stages_of(invoke(*BATCH, *options, "--dry-run").stdout)
    assert "about 112 " in rows["relations FR2"]
    assert "about 84 " in rows["(relations FR1)"]
    assert f"about {112 + 7 * 4 * 3} " in rows["(relations FR3)"]
    # The web has no end: three passages for each claim, none twice.
    rows = stages_of(
        invoke(*("assess", "batch.jsonl", "--retriever", "wikipedia", *options, "--dry-run")).stdout
    )
    assert f"about {28 * 12} " in rows["relations FR2"]
    assert f"about {28 * 12 + 7 * 12 * 11:,} " in rows["(relations FR3)"]


def test_the_output_is_read_by_other_commands(notes: Path) -> None:
    invoke("assess", "answer.txt", "--documents", "notes", "--out", "o")
    invoke("infer", "o/graphs.jsonl", "--variant", "FR1")
    graph = read(notes / "o/graphs.jsonl")
    assert isinstance(graph, FactGraph)


ENDS = ("", "_lower", "_upper")


@pytest.mark.slow
def test_the_biographies_with_the_lexical_baseline(folder: Path, shared_data: Path) -> None:
    data = shared_data / "factscore_dev"
    passages = str(data / "passages_bm25.jsonl")
    options = ("--passages", passages, "--variant", "FR1", "--variant", "FR2")
    result = invoke("assess", data / "ChatGPT.jsonl", *options, "--out", "out")
    heading, *rows = (
        re.split(r"  +", line.strip())
        for line in result.stdout.splitlines()
        if line.startswith(("name", "FR"))
    )
    table = {row[0]: dict(zip(heading, row, strict=True)) for row in rows}
    section = findings().split("## How weak is the lexical baseline?\n")[1].split("\n### ")[0]
    measures = {row["variant"]: row for row in table_rows(section)}
    graphs = [graph for graph in read_many(folder / "out/graphs.jsonl") if graph.atoms]
    every = [every_atom(graph) for graph in graphs]
    labels = np.array([a.label for atoms in every for a, _ in atoms if a.label is not None])
    names = np.repeat(
        [graph.id for graph in graphs],
        [sum(a.label is not None for a, _ in atoms) for atoms in every],
    )
    prose = " ".join(section.split())
    assert f"({sum(map(len, every))} claims, {len(labels)} labeled S or NS)" in prose
    kept = np.ones(len(labels), dtype=np.bool_)
    judged = LabeledAtoms(labels.astype(np.float64), names, kept)
    for name, row in table.items():
        posteriors = [
            infer(variant(graph, name).to_factor_graph("implication")).marginals for graph in graphs
        ]
        p = np.array(
            [
                marginals[same][1]
                for marginals, atoms in zip(posteriors, every, strict=True)
                for atom, same in atoms
                if atom.label is not None
            ]
        )
        scores = scores_with_intervals(p, judged, ("auroc", "ece"), 0)
        auroc, ece = (
            "{:.3f} [{:.3f}, {:.3f}]".format(*(scores[each + end] for end in ENDS))
            for each in ("auroc", "ece")
        )
        for column in ("Pr", "F1", "MAE", "Brier", "accuracy"):
            assert agree(measures[name][column], row[column])
        assert agree(measures[name]["AUROC [95%]"], auroc), auroc
        if name == "FR1":
            stated = re.search(r"ECE is ([\d., \[\]]+\])", section)
            assert stated is not None
            assert agree(stated[1], ece), ece
            even = 100 * np.mean(p == 0.5)
            assert f" {even:.0f}% of the labeled" in prose
            kinds = [r.kind for graph in graphs for r in variant(graph, name).relations]
            entailments = kinds.count(RelationKind.ENTAILMENT)
            assert RelationKind.CONTRADICTION not in kinds
            assert f"Of {len(kinds):,} pairs it calls {entailments} entailments" in section
    # Constants: every claim true, and the share of true claims as the probability of each.
    share = labels.mean()
    by_response = np.array([labels[names == each].mean() for each in dict.fromkeys(names)])
    constants = (
        (measures["every claim true"], 2 * share / (1 + share), (1 - by_response).mean(),
         1 - share),
        (measures["the share of true claims for each"], None, abs(by_response - share).mean(),
         share * (1 - share)),
    )  # fmt: skip
    for row, f1, mae, brier in constants:
        assert (row["F1"], row["MAE"], row["Brier"]) == (
            "" if f1 is None else f"{f1:.3f}", f"{mae:.3f}", f"{brier:.3f}"
        )  # fmt: skip
    assert measures["every claim true"]["accuracy"] == f"{share:.3f}"


def test_the_bar_counts_responses_calls_and_what_is_missing() -> None:
    from rich.console import Console

    from experiments.cli.progress import TerminalWatcher
    from experiments.evaluators.response import AssessedResponse
    from factormodels.extraction.language_model import Completion
    from factormodels.extraction.language_model.accounting import Ledger

    ledger = Ledger()
    console = Console(force_terminal=True, width=200, record=True)
    with TerminalWatcher(console).responses(3, ledger) as report:
        ledger.add("relations", Completion("neutral"))
        ledger.add("relations", Completion("neutral", cached=True))
        report(AssessedResponse("r1", (None,), {}, missing=2, failures=1))
        report(None)
    shown = console.export_text()
    assert "2/3" in shown
    assert "1 call, 1 from the cache" in shown
    assert "1 failed, 2 relations missing, 1 failure in stages" in shown


@pytest.mark.parametrize("width", [80, 100])
def test_numbers_are_whole_in_a_narrow_table(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = invoke("assess", "demonstration", "--response", "demo-01-marie-curie")
    lines = result.stdout.split("\n\n")[0].splitlines()
    # A sentence below the table is as long as it is; the terminal wraps it.
    assert max(len(line) for line in lines if not line.startswith("Conventions")) == width
    atoms = [line for line in lines if line.startswith("a")]
    assert atoms
    assert all(re.match(r"a\d+ +[01]\.\d{3} ", line) for line in atoms)


@pytest.mark.parametrize("count", [1, 2])
def test_remarks_of_stages_count_in_the_singular_and_plural(count: int) -> None:
    several: list[Any] = ["x"] * count
    graph = FactGraph(
        "r",
        (),
        metadata={
            "retrieval": {
                **{"retriever": "local", "queries": count, "passages": count, "contexts": count},
                **{"dropped": several, "failures": several},
            },
            "summaries": {"model": "m", "passages": several, "dropped": [], "failures": several},
            "assessors": {"safe": {"verdicts": several, "missing": [], "model": "m"}},
        },
    )
    s, query = ("", "query") if count == 1 else ("s", "queries")
    assert stage_remarks(graph) == [
        f"local: {count} {query}, {count} passage{s}, {count} context{s} after duplicates, "
        f"{count} page{s} left out, {count} failure{s}",
        f"m: {count} passage{s} summarized, 0 dropped as irrelevant, {count} failure{s}",
        f"safe: {count} verdict{s} of m, 0 missing",
    ]


def test_a_stated_language_decides_on_sentences_and_stays_with_the_response() -> None:
    texts = [FactGraph("r", (), response="Am 19. Maria kam. Er ging.")]
    sentences_in = {
        language: assess(texts, documents=["Maria kam."], language=language).graphs[0]
        for language in ("de-AT", "en")
    }
    assert [atom.text for atom in sentences_in["de-AT"].atoms] == ["Am 19. Maria kam.", "Er ging."]
    assert [atom.text for atom in sentences_in["en"].atoms] == ["Am 19.", "Maria kam.", "Er ging."]
    assert sentences_in["de-AT"].metadata["language"] == "de"
    message = "'german' is not a language code"
    refused(message, assess, texts, documents=["Maria kam."], language="german")


def test_one_order_of_two_passages_moves_no_verdict_of_the_demonstration() -> None:
    graphs = datasets.load("demonstration").graphs
    assessed = [
        assess(graphs, relations="lexical", variant=["FR3"], orders=orders)
        for orders in ("both", "needed")
    ]
    asked = [sum(g.metadata["relations"]["asked"] for g in each.graphs) for each in assessed]
    p: list[Any] = [each["claims"]["p"] for each in assessed]
    # docs/explanation/variants.md says so.
    assert asked == [5951, 4124]
    assert ((p[0] > 0.5) == (p[1] > 0.5)).all()
    assert 1e-6 < (p[0] - p[1]).abs().max() < 0.0003


def test_asking_again_needs_a_record_of_what_failed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name it with `out`, or leave `retry_failed` out"):
        assess("demonstration", retry_failed=True)
    result = assess("demonstration", retry_failed=True, variant="FR1", out=tmp_path / "out")
    assert len(result.graphs) == 14
