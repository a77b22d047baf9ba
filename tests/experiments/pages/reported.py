"""A run whose data have content that could break a report, and a reader of its pages."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tests.experiments.conftest import invoke, study_file

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)> & | {{ 7 * 7 }}'
"""A text that would run, fetch or compute if a page took it for anything but text."""


def atom(name: str, label: bool | None = None, text: str = "") -> dict[str, Any]:
    node: dict[str, Any] = {"id": name, "type": "atom", "probability": 0.5, "text": text}
    return node if label is None else {**node, "label": label}


def context(name: str, text: str = "", **more: Any) -> dict[str, Any]:
    return {"id": name, "type": "context", "probability": 0.9, "text": text, **more}


def edge(source: str, target: str, relation: str, probability: float) -> dict[str, Any]:
    return {
        "source": source,
        "target": target,
        "relation": relation,
        "probability": probability,
    }


GRAPHS: list[dict[str, Any]] = [
    {
        "id": "labeled",
        "topic": "rivers",
        "nodes": [
            atom("a1", True, "The river is long."),
            atom("a2", False, "The river is short."),
            atom("a3", None, "The river is cold."),
            context("c1", "A long river."),
            context("c2", "No short river."),
            context("c3", "Much the same as the first."),
        ],
        "edges": [
            edge("c1", "a1", "entailment", 0.9),
            edge("c2", "a2", "contradiction", 0.8),
            edge("c1", "a2", "contradiction", 0.7),
            edge("c3", "a1", "entailment", 0.6),
            edge("c1", "c3", "equivalence", 0.75),
        ],
    },
    {
        "id": HOSTILE,
        "topic": HOSTILE,
        "query": HOSTILE,
        "response": HOSTILE,
        "nodes": [
            atom("a|1", True, HOSTILE),
            context("c<1>", HOSTILE, title=HOSTILE, link="javascript:alert(1)"),
            context("c2", "word " * 300, link="https://example.org/?a=1&b=2"),
        ],
        "edges": [
            edge("c<1>", "a|1", "entailment", 0.9),
            edge("c2", "a|1", "contradiction", 0.6),
        ],
    },
    {"id": "without atoms", "nodes": [context("c1", "Alone.")], "edges": []},
    {
        "id": "without labels",
        "nodes": [atom("a1", text="nul \x00 bell \x07 half \ud83d"), atom("a2")],
        "edges": [],
    },
]
"""Of these the enumeration below answers those of at most 4 states: the last two."""

STUDY = """
study: odd
description: "What <b>might</b> go wrong."
datasets: [{name: mine, path: graphs.jsonl}]
variants: [FR1, FR3]
strengths: [1.0, 0.5]
backends:
  - exact
  - lbp
  - {backend: enumeration, label: '$odd_{name$', settings: {max_states: 4}}
significance: {pairs: [[{variant: FR3}, {variant: FR1}]], resamples: 50}
outputs: [report]
"""


def write_data(folder: Path, graphs: list[dict[str, Any]] = GRAPHS) -> None:
    """Write responses as `graphs.jsonl`."""
    text = "".join(f"{json.dumps(graph)}\n" for graph in graphs)
    (folder / "graphs.jsonl").write_text(text, encoding="utf-8")


def run_study(folder: Path, text: str = STUDY, *arguments: str, out: str = "out") -> Path:
    """Run a study of `folder` and return the folder of its results."""
    path = study_file(folder, text)
    # What the enumeration does not answer has no posterior, and the code says so.
    invoke("run", path, *arguments, "--out", folder / out, code=int("max_states" in text))
    return folder / out


def listed(path: Path) -> dict[str, Any]:
    """Return what a page holds of the responses that it lists."""
    text = path.read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="listed-data">(.*?)</script>', text)
    content: dict[str, Any] = json.loads(data)
    return content


VOID = {"meta", "input", "br", "img", "link", "hr", "source"}


@dataclass
class Element:
    """An element of a page, with the text in it and in what it holds."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        """Return the elements within, by tag and attributes (`class_` for class)."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        elements = []
        for child in self.children:
            if (not tag or child.tag == tag) and all(
                child.attributes.get(name) == value for name, value in wanted.items()
            ):
                elements.append(child)
            elements += child.all(tag, **attributes)
        return elements

    def only(self, tag: str = "", **attributes: str) -> Element:
        """Return the only such element."""
        elements = self.all(tag, **attributes)
        assert len(elements) == 1, (tag, attributes, len(elements))
        return elements[0]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.here = Element("", {}, None)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute of <{tag}> twice: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs}, self.here)
        self.here.children.append(element)
        if tag not in VOID:
            self.here = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.here.tag == tag, f"</{tag}> where <{self.here.tag}> is open"
        assert self.here.parent is not None
        self.here = self.here.parent

    def handle_data(self, data: str) -> None:
        element: Element | None = self.here
        while element is not None:
            element.text += data
            element = element.parent


def read_page(path: Path) -> Element:
    """Return a page whose tags are balanced, which is asserted."""
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    assert reader.here is reader.root, f"<{reader.here.tag}> is never closed"
    return reader.root
