"""A user's prompts in place of ours: by name, with checked slots, another hash, their own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from factormodels import Atom, Context, FactGraph
from factormodels.extraction.asking.table import RELATION
from factormodels.extraction.language_model import Completion, Request, Token
from factormodels.extraction.language_model.cache import cache_key
from factormodels.extraction.prompts import load_prompt, prompt_names, prompt_text
from factormodels.extraction.prompts.replaced import (
    OURS,
    WithPrompts,
    prompts_of,
    read_prompts,
)
from factormodels.extraction.relation_models.prompted import PromptedRelationModel
from factormodels.extraction.self_judgment import judge_own_claims
from factormodels.extraction.stages.assessors import assess
from factormodels.extraction.stages.atomizer import atomize
from factormodels.extraction.stages.relations import ask, relation_pairs
from tests.factormodels.extraction.models import AnsweringModel
from tests.refusals import refused

GRAPH = FactGraph(
    "r",
    atoms=(Atom("a1", "The hut has forty beds."),),
    contexts=(Context("c1", "There are forty.", title="The hut", retrieved_for=("a1",)),),
    query="How large is the hut?",
)


def replaced(folder: Path, **texts: str) -> Path:
    """Write a folder of prompts."""
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def copied(folder: Path) -> Path:
    """Write our own prompts to a folder."""
    return replaced(folder, **{name: prompt_text(name) for name in prompt_names()})


def asked(model: AnsweringModel) -> list[str]:
    return [request.messages[-1].content for request in model.asked]


def test_a_replaced_prompt_is_asked_and_named_by_its_own_hash(tmp_path: Path) -> None:
    folder = replaced(tmp_path, atomizer="question: 'Break this down: {{sentences}}'")
    answering = AnsweringModel(lambda _: "[]")
    atomize("It is red.", answering)
    atomize("It is red.", WithPrompts(answering, read_prompts(folder)))
    ours, changed = answering.asked
    assert [message.content for message in changed.messages] == ["Break this down: 1: It is red."]
    assert ours.prompt.name == changed.prompt.name == "atomizer"
    assert ours.prompt.digest != changed.prompt.digest == read_prompts(folder).digests()["atomizer"]
    assert cache_key("m", ours) != cache_key("m", changed)
    # Those that the folder does not have stay ours.
    assert read_prompts(folder)["reviser"] is load_prompt("reviser")
    assert prompts_of(answering) is OURS


def test_only_the_wording_that_changed_changes_the_hash(tmp_path: Path) -> None:
    file = copied(tmp_path) / "reviser.yaml"
    file.write_text(file.read_text().replace("Rewrite this claim", "Reword this claim"))
    digests = read_prompts(tmp_path).digests()
    assert {name for name in prompt_names() if digests[name] != OURS.digests()[name]} == {"reviser"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("relation", "question: '{{premise}}'", "relation.yaml: the slot 'hypothesis' is missing; "
         "write {{hypothesis}} into the question where it belongs .the claim."),
        ("relation", "question: '{{premise}} {{hypothesis}} {{contxt}}'",
         "relation.yaml: the slot 'contxt' is unknown; use one of question, title, premise"),
        ("reviser", "question: '{{claims}}'", "'claims' is unknown .did you mean 'claim'"),
        ("reviser", "name: other\nquestion: '{{claim}}'", "'name' differs from the prompt"),
        ("reviser", "slots: {x: y}\nquestion: '{{claim}}'", "'slots' differs from the prompt"),
        ("reviser", "system: x", "reviser.yaml: the key 'question' is missing"),
        ("reviser", "- x", "reviser.yaml: the key 'question' is missing"),
        ("reviser", "question: 7", "reviser.yaml: 'question' is 7; give text"),
        ("revisor", "question: x", "revisor.yaml: the prompt 'revisor' is unknown .did you mean"),
        ("reviser", "question: '{{claim}}'\nexamples: [x]", "an example is 'x'; give each"),
        ("reviser", "question: '{{claim}}'\nlabels: [x]", "'labels' is .'x'.; give a text"),
    ],
)  # fmt: skip
def test_a_bad_template_is_one_sentence(tmp_path: Path, name: str, text: str, message: str) -> None:
    refused(message, read_prompts, replaced(tmp_path, **{name: text}))


def test_a_bad_folder_is_one_sentence(tmp_path: Path) -> None:
    refused("there is no such folder of prompts; .*--out", read_prompts, tmp_path / "none")
    refused("it holds no prompt; add a file such as atomizer.yaml", read_prompts, tmp_path)
    (tmp_path / "relation.yml").write_text("question: x")
    refused("relation.yml: prompts end in .yaml; rename it", read_prompts, tmp_path)


def test_a_template_has_words_of_its_own_for_labels(tmp_path: Path) -> None:
    text = """
        question: "KNOWLEDGE: {{passages}} STATEMENT: {{claim}}"
        after: "###"
        labels: {insufficient: not enough evidence, conflicting: conflicting evidence}
    """
    prompts = read_prompts(replaced(tmp_path, assess_fastfact=text))

    def label(answer: str) -> str:
        model = WithPrompts(AnsweringModel(lambda _: answer), prompts)
        (verdict,) = assess(GRAPH, "fastfact", model)
        return verdict.label or verdict.missing

    assert label("It says little. ###Not Enough Evidence") == "insufficient"
    assert label("Two disagree. ###conflicting evidence.") == "conflicting"
    assert label("###refuted###") == "refuted"
    assert "gives no single one of supported, refuted, conflicting ev" in label("I say refuted")
    wrong = replaced(tmp_path, assess_fastfact=text.replace("{insufficient", "{insuficient"))
    model = WithPrompts(AnsweringModel(lambda _: "x"), read_prompts(wrong))
    refused("the label 'insuficient' is unknown .did you mean", assess, GRAPH, "fastfact", model)


def test_a_template_in_brackets_is_read_with_its_log_probabilities(tmp_path: Path) -> None:
    """FactReasoner's table 32 and 34 put the answer in square brackets, after reasoning."""
    text = 'question: "{{passages}} {{claim}}"\nafter: "["'
    prompts = read_prompts(replaced(tmp_path, assess_evidence_and_knowledge=text))
    tokens = tuple(
        Token(word, -0.5, ((word, -0.5),)) for word in ("It [is]. ", "[", "Supported", "]")
    )
    model = AnsweringModel(lambda _: Completion("It [is]. [Supported]", tokens))
    (verdict,) = assess(GRAPH, "evidence-and-knowledge", WithPrompts(model, prompts))
    assert (verdict.label, verdict.p_true) == ("supported", 1.0)
    assert "The hut: There are forty." in asked(model)[0]


def test_the_relation_prompt_shows_the_question_and_the_title(tmp_path: Path) -> None:
    def answer(_: Request) -> Completion:
        return Completion("neutral", (Token("neutral", -0.01, (("neutral", -0.01),)),))

    model = AnsweringModel(answer)
    ask(PromptedRelationModel(model), relation_pairs(GRAPH, "FR2"))
    bare = FactGraph("r", GRAPH.atoms, (Context("c1", "There are forty."),))
    ask(PromptedRelationModel(model), relation_pairs(bare, "FR2"))
    known, unknown = asked(model)
    assert "<question>\nHow large is the hut?\n</question>\n<title>\nThe hut\n</title>" in known
    assert "<question>\n(none)\n</question>\n<title>\n(none)\n</title>" in unknown
    folder = replaced(
        tmp_path, **{RELATION.prompt: "question: '{{title}}|{{premise}}|{{hypothesis}}'"}
    )
    ask(
        PromptedRelationModel(WithPrompts(model, read_prompts(folder))),
        relation_pairs(GRAPH, "FR2"),
    )
    assert asked(model)[2] == "The hut|There are forty.|The hut has forty beds."


def test_own_claims_are_judged_in_the_users_words(tmp_path: Path) -> None:
    prompts = read_prompts(replaced(tmp_path, self_direct="question: 'mine {{claim}}'"))
    model = AnsweringModel(lambda _: "true")
    judge_own_claims(GRAPH, WithPrompts(model, prompts), settings=["direct_asking"])
    assert asked(model) == ["mine The hut has forty beds."]
