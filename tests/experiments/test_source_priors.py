"""--prior and --prior-by: what they may be, and posteriors of commands and studies under them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments import assess, infer, run
from experiments.settings.source_priors import as_prior
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.io.fact_graph_json import write_fact_graphs
from factormodels.passage_sources import SOURCES_KEY
from tests.experiments.conftest import invoke
from tests.refusals import refused

_P = 0.9


def responses() -> list[FactGraph]:
    """Return one response with two claims, entailed by an encyclopedia and by a blog."""
    links = ("https://en.wikipedia.org/wiki/Ulm", "https://blog.example/ulm")
    return [
        FactGraph(
            "r",
            (Atom("a1", "Ulm is old.", label=True), Atom("a2", "Ulm is new.", label=False)),
            tuple(
                Context(f"c{n}", f"passage {n}", link=link, retrieved_for=(f"a{n}",))
                for n, link in enumerate(links, 1)
            ),
            tuple(Relation(f"c{n}", f"a{n}", RelationKind.ENTAILMENT, _P) for n in (1, 2)),
            metadata={SOURCES_KEY: {"c2": "Diary"}},
        )
    ]


def by_hand(prior: float) -> float:
    """Return P(claim) of an entailment of 0.9 from a passage of a prior (implication)."""
    return _P / (_P + prior * (1 - _P) + (1 - prior) * _P)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_fact_graphs(responses(), tmp_path / "linked.jsonl")
    return Path("linked.jsonl")


@pytest.mark.parametrize(
    ("options", "priors"),
    [
        ({"prior": 0.8}, (0.8, 0.8)),
        ({"prior": "wikipedia.org=.95,blog.example=.6"}, (0.95, 0.6)),
        ({"prior": {"wikipedia.org": 0.95}}, (0.95, 0.99)),
        ({"prior": "wikipedia.org=.95,*=.5"}, (0.95, 0.5)),
        ({"prior": "wikipedia.org=.95", "context_prior": 0.7}, (0.95, 0.7)),
        ({"prior": "diary=.4,en.wikipedia.org=.9", "prior_by": "source"}, (0.9, 0.4)),
        (
            {"like": "fact-reasoner-0.8", "prior": "blog.example=.6", "encoding": "implication"},
            (0.9, 0.6),
        ),
    ],
)
def test_posteriors_are_those_of_the_priors(
    options: Mapping[str, Any], priors: tuple[float, float]
) -> None:
    frame = infer(responses(), **options)["posteriors"]
    p = dict(zip(frame["variable"], frame["p"], strict=True))
    assert [p["a1"], p["a2"]] == pytest.approx([by_hand(prior) for prior in priors], abs=1e-12)


@pytest.mark.usefixtures("file")
def test_a_table_and_a_text_are_the_same() -> None:
    Path("priors.csv").write_text("Domain,Reliability\nwikipedia.org,0.95\nblog.example,0.6\n")
    listed = "blog.example=0.6,wikipedia.org=0.95"
    assert as_prior("priors.csv") == as_prior(Path("priors.csv")) == as_prior(listed) == listed


def test_priors_of_sources_are_options_one_by_one(file: Path) -> None:
    def tables(*options: str) -> Any:
        return json.loads(invoke("infer", file, *options, "--json").output)["tables"]

    repeated = ("--prior", "wikipedia.org=.95", "--prior", "blog.example=.6")
    Path("priors.csv").write_text("source,prior\nwikipedia.org,0.95\nblog.example,0.6\n")
    Path("named.yaml").write_text("prior: {wikipedia.org: .95, blog.example: .6}\n")
    expected = tables("--prior", "priors.csv")["posteriors"]
    assert tables(*repeated)["posteriors"] == expected
    assert tables("--config", "named.yaml")["posteriors"] == expected
    packed = "wikipedia.org=.95,blog.example=.6"
    errors = invoke("infer", file, "--prior", packed, code=2).stderr
    # The advice is the options that work.
    assert f"--prior {packed}: give one source at a time: {' '.join(repeated)}\n" in errors
    mixed = invoke("infer", file, "--prior", "wikipedia.org=.95", "--prior", ".8", code=2).stderr
    assert ".8 is not a prior of one source" in mixed


def test_sources_and_priors_that_nothing_uses_are_said() -> None:
    sentences = infer(responses(), prior="wikipedia.org=.9,nature.com=.9").sentences
    assert any("1 of 2 passages is of sources that `prior` does not name" in s for s in sentences)
    assert any("No passage is of these sources in `prior`: nature.com." in s for s in sentences)
    # A declared prior is not taken for one that the data state.
    assert not any("prior of their own" in s for s in infer(responses(), prior=0.8).sentences)


def test_assess_records_the_priors_and_a_note_names_them(file: Path) -> None:
    text = "blog.example=0.6,wikipedia.org=0.95"
    assessed = assess(file, prior=text, retriever="given", variant="FR1", relations="lexical")
    (graph,) = assessed.graphs
    declared = graph.metadata["assessment"]["FR1"]["conventions"]
    assert declared == {"prior": text}
    assert (
        "passages of blog.example at 0.6, wikipedia.org at 0.95" in assessed.tables["claims"].notes
    )


def test_a_study_has_priors_by_source(file: Path) -> None:
    study: dict[str, Any] = {
        "study": "sources",
        "datasets": [{"name": "mine", "path": str(file)}],
        "variants": ["FR1"],
        "backends": ["exact"],
        "outputs": ["csv"],
    }
    priors = {"prior": {"diary": 0.4}, "prior_by": "source"}
    by_key = run(study | {"conventions": priors}, out="key")
    overrides = ["conventions.prior=diary=.4", "conventions.prior_by=source"]
    by_option = run(study, overrides, out="option")
    plain = run(study, out="plain")
    for name in ("brier", "precision"):
        values = [each["summary"][name].iloc[0] for each in (by_key, by_option, plain)]
        assert values[0] == values[1]
    brier = ((1 - by_hand(0.99)) ** 2 + by_hand(0.4) ** 2) / 2
    assert by_key["summary"]["brier"].iloc[0] == pytest.approx(brier, abs=1e-9)
    assert plain["summary"]["brier"].iloc[0] != by_key["summary"]["brier"].iloc[0]
    # Other priors are another run.
    refused("", run, study | {"conventions": {"prior": "diary=.5", "prior_by": "source"}},
            out="key", resume=True)  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": 1.5}, "the probability 1.5 is not between 0 and 1"),
        ({"prior": "wikipedia.org"}, "wikipedia.org: there is no such file; give a number"),
        ({"prior": "wikipedia.org=high"}, "'high' of wikipedia.org is not a number"),
        ({"prior": {"a": "b"}}, "the prior of a is 'b'"),
        ({"prior": True}, "True is not a prior"),
        ({"prior_by": "source"}, "`prior_by` applies to names in `prior`"),
        ({"prior": 0.8, "prior_by": "source"}, "`prior_by` applies to names in `prior`"),
        ({"prior": 0.8, "context_prior": 0.8}, "set the same number; leave one out"),
    ],
)
def test_priors_that_are_none_are_refused(options: dict[str, Any], message: str) -> None:
    refused(message, infer, responses(), **options)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("host,weight\na,.5\n", "it has no column of priors; call one 'prior'"),
        ("name of it,prior\na,.5\n", "it has no column of sources; call one 'source'"),
        ("source,prior\na,.5\n,.6\n", "line 3, column 'source': the source is missing"),
        (
            "source,prior\na,.5\nA,.6\n",
            "line 3, column 'prior': the source 'A' is in an earlier row",
        ),
        ("source,prior\na,high\n", "line 2, column 'prior': 'high' is not a probability"),
        ('source,prior\n"a, b",.5\n', "the source 'a, b' is empty or holds a comma"),
    ],
)
def test_a_table_of_priors_says_what_is_wrong(
    table: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("priors.csv").write_text(table)
    refused(message, infer, responses(), prior="priors.csv")


def test_priors_learned_with_one_encoding_are_refused_with_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = "source,prior,encoding\nwikipedia.org,.95,implication\nblog.example,.6,{}\n"
    Path("priors.csv").write_text(table.format("implication"))
    expected = infer(responses(), prior="wikipedia.org=.95,blog.example=.6")["posteriors"]
    for encoding in (None, "implication"):
        made = infer(responses(), prior="priors.csv", encoding=encoding)["posteriors"]
        assert made["p"].tolist() == expected["p"].tolist()
    message = (
        "priors.csv, line 2, column 'encoding': the priors were learned with the encoding "
        "implication and have another effect with conditional; use the encoding implication"
    )
    for other in ({"encoding": "conditional"}, {"like": "fact-reasoner-0.8"}):
        refused(message, infer, responses(), prior="priors.csv", **other)
        refused(message, assess, responses(), prior=["priors.csv"], retriever="given",
                variant="FR1", relations="lexical", **other)  # fmt: skip
    write_fact_graphs(responses(), tmp_path / "linked.jsonl")
    options = ("--prior", "priors.csv", "--encoding", "conditional")
    assert message in invoke("infer", "linked.jsonl", *options, code=2).stderr
    study: dict[str, Any] = {
        "study": "sources",
        "datasets": [{"path": "linked.jsonl"}],
        "variants": ["FR1"],
        "backends": ["exact"],
        "encodings": ["implication", "conditional"],
        "conventions": {"prior": "priors.csv"},
    }
    refused(message, run, study, out="study")
    Path("priors.csv").write_text(table.format("conditional"))
    refused("line 3, column 'encoding': 'conditional' differs from 'implication'", infer,
            responses(), prior="priors.csv")  # fmt: skip
