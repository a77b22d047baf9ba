"""Ways to run a paper's study, without a file that says where data are and with a small one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.analyses.papers.shared.sources import DATA_FILE, SOURCES, VARIABLE
from experiments.analyses.study import AnalysisResults, load_analysis, run_analysis
from experiments.study.reading import embedded_studies, read_raw
from factormodels import datasets
from factormodels.extraction.language_model import Request
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import fact_graph_text
from tests.factormodels.io.published import release_records

GRAPHS = datasets.load("demonstration").graphs

PAPER_STUDIES = tuple(name for name in embedded_studies() if name.startswith("papers/"))

WITHOUT_DATA = ("papers/datasets", "papers/factreasoner-printed-tests", "papers/worked-numbers")
"""Studies that need no data of the user's."""


@pytest.fixture(autouse=True)
def bare_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, as the current one, and no variable that names a file of data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


def frames_of(study: str, folder: Path, *overrides: str) -> dict[str, Any]:
    """Run an embedded study and return the frames of its tables by stem."""
    tables = run_study(study, folder, *overrides).artefacts.tables
    return {stem: table.frame for stem, table in tables.items()}


SELF_JUDGED = (
    *("ChatGPT", "Gemini-1.5-pro", "Gemini-1.5-pro with retrieval", "Claude-3-opus"),
    *("Mixtral-8x7b", "Mistral-Large", "GPT-4", "GPT-4 with retrieval", "Llama-3-70B-Instruct"),
)
"""The models of Self-Known's studies, each of which needs records."""


def run_study(study: str, folder: Path, *overrides: str) -> AnalysisResults:
    """Run an embedded study, or a file, and return what it wrote."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    return run_analysis(load_analysis(read_raw(study, overrides)), out)


def write_lines(path: Path, records: Iterable[object]) -> None:
    """Write records as JSON Lines."""
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")


def write_graphs(path: Path, graphs: Iterable[FactGraph]) -> None:
    """Write fact graphs, one per line."""
    path.write_text("".join(fact_graph_text(graph) + "\n" for graph in graphs), encoding="utf-8")


def say_where(folder: Path, text: str) -> None:
    """Write the file that says where data are."""
    (folder / DATA_FILE).write_text(text, encoding="utf-8")


def small_files(folder: Path) -> None:
    """Write a small file in the form of every dataset of the papers, and say where they are."""
    write_graphs(folder / "graphs.jsonl", GRAPHS[:4])
    # What people counted, without which there is no F1@K'.
    counted = [replace(graph, metadata={**graph.metadata, "k_prime": 7}) for graph in GRAPHS[:4]]
    write_graphs(folder / "counted.jsonl", counted)
    refusal = replace(GRAPHS[5], response="I am sorry, but I do not have information on this.")
    write_graphs(folder / "biographies.jsonl", [*GRAPHS[:3], refusal])
    write_lines(
        folder / "factor.jsonl",
        (
            {**release_records.FACTOR, "completion": f"She wrote {n} letters.", "doc_id": n}
            for n in range(12)
        ),
    )
    write_lines(folder / "factscore.jsonl", (_biography(name) for name in ("Ada", "Bea", "Cora")))
    write_lines(folder / "judged.jsonl", map(_record, range(40)))
    models = {
        "self-judged": "{" + ", ".join(f"{name}: judged.jsonl" for name in SELF_JUDGED) + "}",
        "fastfact-pipelines": "{FaStfact: graphs.jsonl, VeriScore: graphs.jsonl}",
        "fastfact-models": "{gemini-2.0-flash-thinking-exp: counted.jsonl, mine: counted.jsonl}",
        "generations": "{GPT-4: biographies.jsonl}",
        "factor-expert": "factor.jsonl",
        "factor-news": "factor.jsonl",
        "factscore-labelled": "factscore.jsonl",
    }
    by_model = {
        name: "{llama-3.1-70b-instruct: graphs.jsonl}"
        for name in SOURCES
        if name.endswith(("-wikipedia", "-google")) or name == "conflicts"
    }
    files = dict.fromkeys(SOURCES, "graphs.jsonl") | by_model | models
    lines = [f"  {name}: {file}" for name, file in files.items()]
    say_where(folder, "datasets:\n" + "\n".join(lines) + "\n")


def _biography(name: str) -> dict[str, Any]:
    labels = (("S", "S"), ("S", "NS"), ("NS",), ("S", "IR"))
    facts = [[{"text": f"{name} {at}.", "label": at} for at in sentence] for sentence in labels]
    return {
        "input": f"Question: Tell me a bio of {name}.",
        "output": "Some text.",
        "topic": name,
        "cat": ["rare"],
        "annotations": [
            {"text": "A sentence.", "is-relevant": True, "human-atomic-facts": each}
            for each in facts
        ],
    }


def _record(n: int) -> dict[str, Any]:
    yes, third = "true" if n % 2 else "false", "true" if n % 2 and n % 5 else "neither"
    return {
        "response": f"r{n}",
        "sentence": 1 + n % 4,
        "sentences": 4,
        "claim": f"c{n}",
        "label": "S" if n % 3 else "NS",
        "judgements": {"question_answering": yes, "none_of_the_above": third},
    }


def answer_by_rule(request: Request) -> str:
    """An answer to any prompt of the papers' studies that follows from the question alone.

    Every claim is true to `factscore` and unknown to `veriscore`, to `factverify` it is supported
    where its number of letters is even. The claims of sentences are the sentences.
    """
    question = request.messages[-1].content
    name = request.prompt.name
    if name == "assess_factscore":
        return "true"
    if name == "assess_factverify":
        even = len(_within(question, "claim")) % 2 == 0
        return f"By its length.\nVerdict: {'supported' if even else 'contradicted'}"
    if name == "assess_veriscore":
        return "undecided"
    if name in ("assess_fastfact", "assess_evidence_and_knowledge"):
        return f"Verdict: {'supported' if name == 'assess_fastfact' else 'undecided'}"
    sentences = re.findall(
        r"^(\d+): (.*)$", _within(question.rsplit("<sentences>", 1)[-1], "sentences"), re.M
    )
    if name == "atomizer":
        return json.dumps([{"sentence": int(at), "claim": text} for at, text in sentences])
    assert name == "preverify", name
    return "\n".join(f"{at} | {text} | unsure" for at, text in sentences) or "none"


def _within(text: str, tag: str) -> str:
    return text.split(f"<{tag}>", 1)[-1].rsplit(f"</{tag}>", 1)[0].strip()
