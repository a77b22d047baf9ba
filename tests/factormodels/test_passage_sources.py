"""Priors of passages by source: which source a passage has, and which prior its view gets."""

from __future__ import annotations

import pytest

from factormodels import Atom, Context, FactGraph, Relation, RelationKind, read_many
from factormodels.conventions import GraphConventions, meaning_of
from factormodels.passage_sources import (
    SOURCES_KEY,
    domain_of,
    name_in,
    parse_priors,
    priors_text,
    source_of,
)
from factormodels.variants import variant
from tests.refusals import refused


@pytest.mark.parametrize(
    ("link", "domain"),
    [
        ("https://en.Wikipedia.org/wiki/Ulm", "en.wikipedia.org"),
        ("http://www.blog.example:8080/x?y=www", "blog.example"),
        ("https://www.example.org.", "example.org"),
        ("notes/ulm.txt", ""),
        ("", ""),
        ("http://[broken", ""),
        ("https://wikipedia.org@blog.example/x", "blog.example"),
        ("https://blog.example\\@wikipedia.org/x", "blog.example"),
        ("https://", ""),
    ],
)
def test_the_domain_of_an_address(link: str, domain: str) -> None:
    assert domain_of(link) == domain


def test_a_source_is_what_the_record_states_or_else_the_domain() -> None:
    context = Context("c1", link="https://www.blog.example/1")
    assert source_of(context, "source", {}) == "blog.example"
    assert source_of(context, "source", {SOURCES_KEY: {"c1": " Post "}}) == "Post"
    assert source_of(context, "domain", {SOURCES_KEY: {"c1": "Post"}}) == "blog.example"
    # Metadata are unchecked: a text that is not a name is none.
    for stated in ({"c1": 3}, ["c1"], {"c1": ""}):
        assert source_of(context, "source", {SOURCES_KEY: stated}) == "blog.example"


def test_a_domain_goes_by_the_nearest_name_above_it() -> None:
    priors = parse_priors("wikipedia.org=.95, en.wikipedia.org=.9,org=.5")
    for source, name in (
        ("en.wikipedia.org", "en.wikipedia.org"),
        ("de.Wikipedia.org", "wikipedia.org"),
        ("example.org", "org"),
        ("example.com", None),
        ("", None),
    ):
        assert name_in(source, "domain", priors) == name
    # A source is no domain: its name is one word.
    assert name_in("de.wikipedia.org", "source", priors) is None
    assert name_in("", "source", parse_priors("*=.5")) == "*"


def test_priors_as_text_are_read_back() -> None:
    priors = {"wikipedia.org": 0.95, "blog": 0.6, "*": 1 / 3}
    assert parse_priors(priors_text(priors)) == priors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=.5,b", "'b' is not a prior of a source"),
        ("=.5", "'=.5' is not a prior of a source"),
        ("a=high", "the prior 'high' of a is not a number"),
        ("a=.5,A=.6", "the source 'A' has two priors"),
        ("a=1.5", "the prior of a: the probability 1.5 is not between 0 and 1"),
    ],
)
def test_priors_that_cannot_be_read(text: str, message: str) -> None:
    refused(message, parse_priors, text)


def test_names_that_no_text_can_hold() -> None:
    refused("holds a comma or '='", priors_text, {"Smith, J.": 0.5})
    refused("no priors are given", priors_text, {})


def graph() -> FactGraph:
    """Two claims, and passages of an encyclopedia, a blog, a forum, and one with its own prior."""
    links = ("https://en.wikipedia.org/a", "https://blog.example/b", "https://forum.example/c")
    contexts = [
        Context(f"c{number}", f"text {number}", link=link, retrieved_for=("a1", "a2"))
        for number, link in enumerate(links, 1)
    ]
    contexts.append(Context("c4", "text 4", 0.7, link=links[0], retrieved_for=("a1",)))
    relations = [
        Relation(context.id, atom, RelationKind.ENTAILMENT, 0.9)
        for context in contexts
        for atom in context.retrieved_for
    ]
    return FactGraph("r", (Atom("a1", "x"), Atom("a2", "y")), tuple(contexts), tuple(relations))


@pytest.mark.parametrize("view", ["given", "FR1", "FR2", "FR3"])
def test_views_have_the_priors_of_their_sources(view: str) -> None:
    conventions = GraphConventions(context_prior=0.8, prior="blog.example=0.6,wikipedia.org=0.95")
    seen = variant(graph(), view, conventions)
    wanted = {"c1": 0.95, "c2": 0.6, "c3": 0.8, "c4": 0.7}
    assert {c.id.partition("@")[0]: c.prior for c in seen.contexts} == wanted
    # FR1 copies a passage of two claims, and a copy has its source.
    assert len(seen.contexts) == (7 if view == "FR1" else 4)


def test_stated_sources_hold_for_copies_too() -> None:
    stated = FactGraph(
        "r", graph().atoms, graph().contexts, graph().relations,
        metadata={SOURCES_KEY: {"c1": "encyclopedia"}},
    )  # fmt: skip
    seen = variant(stated, "FR1", GraphConventions(prior="encyclopedia=0.3", prior_by="source"))
    priors = {(c.id.partition("@")[0], c.prior) for c in seen.contexts}
    assert priors == {("c1", 0.3), ("c2", 0.99), ("c3", 0.99), ("c4", 0.7)}


def test_a_note_names_the_first_sources() -> None:
    text = priors_text({"*": 0.5, **{f"s{number}": 0.6 for number in range(5)}})
    words = "passages of others at 0.5, s0 at 0.6, s1 at 0.6, s2 at 0.6 and 2 more"
    assert meaning_of("prior", text) == words


TABLE = """response,claim,passage,relation,probability,link,source
r,a1,p1,entailment,0.9,https://www.example.org/x,Gazette
r,a2,p1,neutral,0.9,https://www.example.org/x,Gazette
r,a2,p2,entailment,0.9,,
"""


def test_a_table_of_relations_states_links_and_sources(tmp_path: object) -> None:
    path = f"{tmp_path}/relations.csv"
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(TABLE)
    (read,) = read_many(path)
    assert [context.link for context in read.contexts] == ["https://www.example.org/x", ""]
    assert read.metadata[SOURCES_KEY] == {"p1": "Gazette"}
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(
            TABLE.replace("0.9,https://www.example.org/x,Gazette\nr,a2,p2", "0.9,,Post\nr,a2,p2")
        )
    refused("line 3, column 'link': the passage 'p1' has", read_many, path)
