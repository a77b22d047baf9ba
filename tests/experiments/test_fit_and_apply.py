"""`fit`, `apply` and `score`: a judge from labels to the scores of others, by commands alone."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from calibration.learned_potentials.judge import NAME
from experiments import apply, fit, score
from experiments.columns.frame import LONG
from experiments.findings.findings import Findings
from experiments.findings.table import Table
from factormodels import Relation, RelationKind, datasets
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io import read_many, write_many
from factormodels.metadata.recorded_match import TEXT_MATCH_KEY
from factormodels.metadata.recorded_verdicts import recorded_verdicts
from factormodels.samples import with_samples
from tests.commands import called
from tests.refusals import refused

pytest.importorskip("torch")


@cache
def embedded() -> tuple[FactGraph, ...]:
    """The embedded biographies, which no test changes: they are read once."""
    return datasets.load("factscore").graphs


def biographies(first: int, last: int) -> list[FactGraph]:
    """Some of the embedded biographies."""
    return list(embedded()[first:last])


def made_by(graphs: list[FactGraph], model: str) -> list[FactGraph]:
    """Return the same, their evidence recorded as a relation model's."""
    metadata = {"relations": {"model": model}, "retrieval": {"retriever": "local", "top_k": 5}}
    return [replace(graph, metadata={**graph.metadata, **metadata}) for graph in graphs]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judge of the first twenty."""
    path = tmp_path_factory.mktemp("judge") / "judge.json"
    fit(biographies(0, 20), penalty=30.0, folds=0, save=path)
    return path


def test_three_commands_judge_other_responses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Boosted trees are named here: how well they are chosen does not matter.
    monkeypatch.setattr("calibration.learned_potentials.methods._INNER_FOLDS", 2)
    write_many(biographies(30, 60), tmp_path / "a.jsonl")
    write_many(biographies(60, 90), tmp_path / "b.jsonl")
    judge, judged = tmp_path / "judge.json", tmp_path / "b.judged.jsonl"
    arguments = ("--penalty", "30", "--folds", "2", "--save", judge)
    printed = called(*map(str, ("fit", tmp_path / "a.jsonl", *arguments))).stdout
    assert "field" in printed
    assert "boosted trees" in printed
    # Posteriors as given have the default conventions, whatever an assessment declared.
    assert "Conventions: priors of passages as in the data" in " ".join(printed.split())
    kept = json.loads(judge.read_text(encoding="utf-8"))
    assert [cause["level"] for cause in kept["causes"]] == ["sentence", "response"]
    assert kept["scores"][0]["model"] == "field"
    called(*map(str, ("apply", judge, tmp_path / "b.jsonl", "--out", judged)))
    assert [graph.id for graph in read_many(judged)] == [g.id for g in biographies(60, 90)]
    scores = score(judged, scores="brier", n_bootstrap=20)["scores"]
    given = score(tmp_path / "b.jsonl", scores="brier", n_bootstrap=20)["scores"]
    assert scores["model"].tolist() == ["judge"]
    assert given["model"].tolist() == ["as given"]
    # .172 and .198; .174 after the first forty, which take twice as long to learn from.
    assert scores["brier"][0] < given["brier"][0] - 0.02


def test_sampled_answers_that_no_column_reads_are_reported(judge: Path) -> None:
    plain = biographies(0, 4)
    sampled = [with_samples(graph, ["She was a pilot.", "He was a singer."]) for graph in plain]
    note = "8 sampled answers are not used"
    options: dict[str, Any] = {"penalty": 30.0, "folds": 0}
    assert note in " ".join(fit(sampled, **options).sentences)
    read = fit(sampled, columns=("evidence", "samples"), **options).sentences
    assert note not in " ".join(read)
    assert note not in " ".join(fit(plain, **options).sentences)
    assert note in " ".join(apply(judge, sampled).sentences)
    assert note not in " ".join(apply(judge, plain).sentences)


def test_labels_play_no_part(judge: Path) -> None:
    new = biographies(20, 30)
    bare = [replace(g, atoms=tuple(replace(a, label=None) for a in g.atoms)) for g in new]
    first, second = (apply(judge, each, n_bootstrap=50) for each in (new, bare))
    assert first["responses"].equals(second["responses"])
    assert first.frame.equals(first["claims"])
    assert [*first.frame] == [*LONG, "p_learned_from"]
    assert first.frame["p"].equals(second.frame["p"])


def test_evidence_made_otherwise_is_refused_unless_asked(tmp_path: Path) -> None:
    judge = tmp_path / "judge.json"
    fit(made_by(biographies(0, 20), "lexical"), penalty=30.0, folds=0, save=judge)
    other = made_by(biographies(20, 30), "nli")
    refused("relation model nli, not lexical", apply, judge, other)
    assert apply(judge, other, other_evidence=True, n_bootstrap=20)["responses"].shape[0] == 10
    same = made_by(biographies(20, 30), "lexical")
    assert apply(judge, same, n_bootstrap=20)["responses"].shape[0] == 10


def test_evidence_of_which_nobody_says_what_made_it_is_said_to_be_so(judge: Path) -> None:
    new = biographies(20, 30)
    assert not any("recorded" in text for text in apply(judge, new, n_bootstrap=20).sentences)
    strangers = [replace(graph, metadata={}) for graph in new]
    sentence = apply(judge, strangers, n_bootstrap=20).sentences[-1]
    assert sentence.startswith("Not all sources of the evidence here are recorded")


def test_other_evidence_is_reported_with_what_to_do_and_never_moves_the_prior(
    tmp_path: Path,
) -> None:
    # Passages say a tenth of what they say for claims, as those of another topic would.
    def fainter(graph: FactGraph) -> FactGraph:
        relations = []
        for relation in graph.relations:
            for_it, against, same, _ = relation.distribution or ()
            rest = 1.0 - 0.1 * for_it - against - same
            relations.append(
                Relation(
                    relation.source,
                    relation.target,
                    RelationKind.NEUTRAL,
                    rest,
                    (0.1 * for_it, against, same, rest),
                )
            )
        return replace(graph, relations=tuple(relations))

    judge = tmp_path / "judge.json"
    fit(biographies(0, 60), penalty=30.0, folds=0, save=judge)
    new = [fainter(graph) for graph in biographies(60, 85)]
    applied = apply(judge, new, adapt=True, n_bootstrap=200)
    assert applied["shift"]["status"].tolist() == ["other evidence"]
    bounds = applied["harm"].iloc[0]
    # Faint evidence of true claims looks like that of false ones: only labels tell.
    assert bounds["largest_rise"] > 0.1
    assert bounds["share_lower"] < 0.5 < bounds["share_upper"]
    assert (
        f"Labels of {bounds['n_to_label']:.0f} responses here determine it" in applied.sentences[1]
    )
    # Both bounds and number rest on the training data, which a shift may leave behind.
    assert "if losses vary over responses as in the training data" in applied.sentences[1]
    assert f"labels of {bounds['n_in_any_case']:.0f} do so in any case" in applied.sentences[1]
    assert bounds["n_in_any_case"] == 25
    assert "as learned, the share of true claims here is in" in applied.sentences[0]
    assert applied.sentences[2].startswith("The learned prior stays")
    as_learned = apply(judge, new, n_bootstrap=20)
    assert applied["responses"]["mean"].equals(as_learned["responses"]["mean"])


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (
            0,
            "No claim here states the sentence that it is from: each counts as a separate sentence",
        ),
        (
            1,
            " claims do not state the sentence that they are from: each counts as a separate "
            "sentence",
        ),
    ],
)
def test_claims_without_a_sentence_are_said_to_be_alone(
    judge: Path, stated: int, message: str
) -> None:
    new = biographies(20, 30)
    bare = [
        replace(
            g, atoms=(*g.atoms[:stated], *(replace(a, sentence=None) for a in g.atoms[stated:]))
        )
        for g in new
    ]
    assert not any("sentence that" in each for each in apply(judge, new, n_bootstrap=20).sentences)
    sentences = apply(judge, bare, n_bootstrap=20).sentences
    assert any(message in sentence for sentence in sentences)


def test_claims_without_relations_are_counted(judge: Path) -> None:
    new = biographies(20, 30)
    lost = {(g.id, g.atoms[0].id) for g in new}
    fewer = [
        replace(g, relations=tuple(r for r in g.relations if (g.id, r.target) not in lost))
        for g in new
    ]
    n = sum(len(g.atoms) for g in new)
    sentences = apply(judge, fewer, n_bootstrap=20).sentences
    counted = f"10 of {n} claims have no relation with a retrieved passage"
    assert any(counted in each for each in sentences)
    assert not any("no relation" in each for each in apply(judge, new, n_bootstrap=20).sentences)


def test_responses_without_texts_are_judged_without_their_columns(tmp_path: Path) -> None:
    graphs, judge = biographies(0, 20), tmp_path / "judge.json"
    silent = [
        replace(g, metadata={k: v for k, v in g.metadata.items() if k != TEXT_MATCH_KEY})
        for g in biographies(20, 30)
    ]
    fitted = fit(graphs, penalty=30.0, folds=0, save=judge)
    assert "names found" in set(fitted["columns"]["column"])
    assert not any("lack texts" in each for each in fitted.sentences)
    lone = fit([*graphs, *silent], penalty=30.0, folds=0)
    assert "names found" not in set(lone["columns"]["column"])
    assert any("10 of 30 responses with claims lack texts" in each for each in lone.sentences)
    applied = apply(judge, silent, n_bootstrap=20)
    assert any("10 responses with claims lack texts" in each for each in applied.sentences)
    plain = tmp_path / "plain.json"
    fit(graphs, penalty=30.0, folds=0, columns=("evidence", "position"), save=plain)
    wanted = apply(plain, silent, n_bootstrap=20)["responses"]["mean"]
    assert applied["responses"]["mean"].tolist() == pytest.approx(wanted.tolist(), abs=1e-9)
    with pytest.raises(InputError, match="lacks texts of claims or passages"):
        fit(silent, penalty=30.0, folds=0, columns=("texts",))


def posteriors_of(findings: Findings) -> list[float | None]:
    """Posteriors of a judge, claim by claim."""
    verdicts = [recorded_verdicts(graph).get(NAME, {}) for graph in findings.graphs]
    return [verdict.p_true for each in verdicts for verdict in each.values()]


def test_texts_missing_elsewhere_in_a_file_do_not_change_a_response(judge: Path) -> None:
    lone, *others = biographies(20, 30)
    silent = replace(lone, metadata={})
    mixed = apply(judge, [silent, *others], n_bootstrap=20)
    apart = [apply(judge, each, n_bootstrap=20)["responses"] for each in ([silent], others)]
    wanted = [mean for table in apart for mean in table["mean"]]
    assert mixed["responses"]["mean"].tolist() == pytest.approx(wanted, abs=1e-12)
    assert any("1 of 10 responses with claims lack texts" in each for each in mixed.sentences)
    # One without claims has nothing to judge, by this judge or the other.
    empty = replace(lone, id="empty", atoms=(), relations=(), contexts=())
    silent_all = [replace(each, metadata={}) for each in others]
    for rest in (others, silent_all):
        with_empty = apply(judge, [empty, *rest], n_bootstrap=20)
        alone = apply(judge, rest, n_bootstrap=20)
        assert len(with_empty.graphs) == 10
        assert posteriors_of(with_empty) == pytest.approx(posteriors_of(alone), abs=1e-12)


def test_responses_with_texts_and_no_topic_are_counted(judge: Path) -> None:
    new = biographies(20, 30)
    named = [
        replace(
            g,
            topic="Somebody",
            atoms=tuple(replace(atom, text="They sang.") for atom in g.atoms),
            contexts=tuple(replace(c, text="They sang.") for c in g.contexts),
        )
        for g in new
    ]
    nameless = [replace(named[0], topic=""), *named[1:]]
    sentences_of = [apply(judge, each, n_bootstrap=20).sentences for each in (nameless, named, new)]
    counted = [
        any("1 of 10 responses name no topic" in each for each in some) for some in sentences_of
    ]
    assert counted == [True, False, False]


def test_a_judge_is_a_page_for_readers(judge: Path) -> None:
    lines = judge.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 200
    # All that is said of a column stands in its line.
    (line,) = (each for each in lines if '"names found"' in each)
    assert '"weight"' in line
    assert '"standard_error"' in line


@pytest.mark.parametrize("columns", ["evidence", "others", "passages"])
def test_columns_of_which_nothing_is_recorded_are_refused(columns: str) -> None:
    graphs = biographies(0, 20)
    if columns != "passages":
        graphs = [replace(graph, relations=()) for graph in graphs]
    refused(f"which the columns '{columns}' read", fit, graphs, columns=(columns,), folds=0)


def test_a_share_that_may_be_the_old_one_moves_nothing(tmp_path: Path) -> None:
    # Every other biography: its people are like those of the others.
    graphs = biographies(0, 80)
    fit(graphs[::2], penalty=30.0, folds=0, save=tmp_path / "judge.json")
    stays, asked = (
        apply(tmp_path / "judge.json", graphs[1::2], adapt=adapt, n_bootstrap=200)
        for adapt in (False, True)
    )
    assert asked["shift"]["status"].tolist() == ["same share"]
    assert any("may equal the training share" in each for each in asked.sentences)
    assert asked["responses"].equals(stays["responses"])


def test_responses_in_the_place_of_the_judge_are_named(tmp_path: Path) -> None:
    write_many(biographies(0, 2), tmp_path / "b.jsonl")
    with pytest.raises(InputError, match=r"b\.jsonl: this is not a judge; give the file"):
        apply(tmp_path / "b.jsonl", tmp_path / "b.jsonl")


@pytest.mark.usefixtures("unsaved")
def test_few_responses_are_said_to_tell_little(judge: Path, tmp_path: Path) -> None:
    ten = apply(judge, biographies(20, 30), n_bootstrap=50)
    assert ten["harm"]["n_responses"].tolist() == [10]
    written = {path.name for path in ten.save(tmp_path / "kept")}
    assert {"shift.csv", "evidence.pdf", "graphs.jsonl", "findings.json"} <= written
    two = apply(judge, biographies(20, 22), adapt=True, n_bootstrap=50)
    assert "is unknown: fewer than 8 responses" in two.sentences[0]
    assert any(text.startswith("The learned prior stays: fewer than 8") for text in two.sentences)


def own_table(path: Path, graphs: list[FactGraph], *more: str) -> Path:
    """Write a number and a group of every claim, and return the path."""
    rows = ["response,claim,chance,part"]
    for graph in graphs:
        rows += [
            f"{graph.id},{a.id},{n % 3},p{n // 9}{graph.id}" for n, a in enumerate(graph.atoms)
        ]
    path.write_text("\n".join([*rows, *more]) + "\n", encoding="utf-8")
    return path


def test_columns_of_ones_own(tmp_path: Path) -> None:
    graphs, judge = biographies(0, 20), tmp_path / "judge.json"
    table = own_table(tmp_path / "mine.csv", graphs)
    numbers: dict[str, Any] = {"table": table, "numbers": ("chance",)}
    other_columns: dict[str, Any] = {**numbers, "groups": ("part",)}
    fitted = fit(
        graphs,
        penalty=30.0,
        folds=0,
        causes=("part", "response"),
        columns=(),
        save=judge,
        **other_columns,
    )
    assert fitted["columns"]["column"].tolist() == ["chance"]
    refused("the judge reads these columns of the user: chance, part", apply, judge, graphs)
    assert apply(judge, graphs, n_bootstrap=20, **other_columns)["responses"].shape[0] == 20
    refused("no column is named; give `numbers` COLUMN", fit, graphs, table=table)
    refused("cause 'part' is unknown.*if `groups` names it", fit, graphs, causes="part", **numbers)
    # A group that no cause joins is not asked for, and does no harm.
    fit(
        graphs, penalty=30.0, folds=0, causes=("response",), columns=(), save=judge, **other_columns
    )
    first, second = (
        apply(judge, graphs, n_bootstrap=20, **options) for options in (numbers, other_columns)
    )
    assert first["responses"].equals(second["responses"])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{response},{claim},1,p", "the claim '{claim}' of response '{response}' occurs a"),
        ("{response},other,nan,p", "'nan' is not a finite number"),
        ("{response},other,inf,p", "'inf' is not a finite number"),
        ("{response},other,many,p", "'many' is not a finite number"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_with_its_line(
    tmp_path: Path, row: str, message: str
) -> None:
    graphs = biographies(0, 2)
    words = {"response": graphs[0].id, "claim": graphs[0].atoms[0].id}
    table = own_table(tmp_path / "mine.csv", graphs, row.format(**words))
    line = 2 + sum(len(graph.atoms) for graph in graphs)
    with pytest.raises(InputError) as error:
        fit(graphs, folds=0, table=table, numbers=("chance",))
    assert f"mine.csv, line {line}" in str(error.value)
    assert message.format(**words) in str(error.value)


def test_columns_that_are_named_twice_are_refused() -> None:
    with pytest.raises(InputError, match="the column 'support 1' occurs twice; name every fam"):
        fit(biographies(0, 5), folds=0, columns=("evidence", "evidence"))


@pytest.mark.parametrize(
    ("responses", "folds", "mend"),
    [(5, 6, "give 2 to 5, or 0 for none"), (5, 1, "give 2 to 5, or 0"), (1, 5, "give 0 for none")],
)
def test_folds_that_labeled_responses_cannot_fill_are_refused(
    responses: int, folds: int, mend: str
) -> None:
    message = f"`folds` {folds} does not fit {responses} response.*; {mend}"
    refused(message, fit, biographies(0, responses), folds=folds)


def test_no_option_loses_its_dashes_where_no_judge_is_given(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError) as error:
        apply(tmp_path / "b.json", biographies(0, 2))
    assert "save" not in str(error.value)


VOTES = Path(__file__).with_name("votes_of_pairs.csv")
"""Of 112 pairs of the demonstration whether the passage entails the claim, and what imitated
answers of a language model say: share of eight votes, stated confidence, log-probability."""


@pytest.mark.usefixtures("without_rivals")
def test_several_models_are_combined_from_a_table_alone(tmp_path: Path) -> None:
    judge = tmp_path / "votes.json"
    names = ("votes", "stated", "log_probabilities")
    fitted = fit(VOTES, numbers=names, penalty=3.0, save=judge)
    scores = fitted["scores"].set_index("model")
    # A law of weighed votes at four temperatures, made for these answers, had .0528 and .980.
    assert scores.brier["field"] < 0.0528
    assert scores.auroc["field"] > 0.98
    curves = [name for name in scores.index if name.startswith("isotonic curve of ")]
    assert curves == [f"isotonic curve of {name}" for name in names]
    assert scores.brier["field"] < scores.brier[curves].min()
    # Nothing else is known of these claims, so that no posterior is a rival.
    assert not scores.index.str.contains("as given").any()
    assert "Conventions" not in fitted.tables["scores"].notes
    assert fitted["columns"]["column"].tolist() == list(names)
    # Elsewhere labels are not needed, and the columns are those that the judge knows.
    bare = tmp_path / "bare.csv"
    rows = [line.split(",") for line in VOTES.read_text().splitlines()]
    bare.write_text("".join(",".join((*row[:2], *row[3:])) + "\n" for row in rows))
    claims = apply(judge, bare)["claims"]
    assert len(claims) == len(rows) - 1
    unlabeled = "no column is recognized as the label; rename the column to 'label'; it has"
    refused(unlabeled, fit, bare, numbers=names)
    refused("`numbers` gpt: there is no such column", fit, VOTES, numbers=("gpt",))
    refused("To read a table of labeled claims, give `numbers` COLUMN", fit, VOTES)
    # Their names may be others that leave no doubt, which is then said.
    named = tmp_path / "named.csv"
    head, *lines = VOTES.read_text().splitlines()
    renamed = head.replace("response", "questionId").replace("label", "Human Label")
    named.write_text("\n".join([renamed, *lines]) + "\n")
    again = fit(named, numbers=names, penalty=3.0, folds=0)
    assert "response 'questionId', label 'Human Label'" in " ".join(again.sentences)


@pytest.mark.usefixtures("without_rivals")
def test_a_frame_teaches_what_its_file_does(tmp_path: Path) -> None:
    frame = pd.read_csv(VOTES)
    how: dict[str, Any] = {"numbers": ["votes"], "penalty": 3.0, "folds": 2}
    expected = fit(VOTES, **how, save=tmp_path / "judge.json").frame
    findings = Findings("x", (), {"claims": Table(frame, ())}, command="c")
    several: tuple[Any, ...] = (frame, frame.to_dict("records"), findings)
    for data in several:
        pd.testing.assert_frame_equal(fit(data, **how).frame, expected)
    of_frame, of_file = (apply(tmp_path / "judge.json", data)["claims"] for data in (frame, VOTES))
    pd.testing.assert_frame_equal(of_frame, of_file)
    refused("To read a table of labeled claims, give `numbers` COLUMN", fit, frame)
