"""Likeness of two texts: shared words, and the cosine of embeddings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from experiments import coherence
from experiments.evaluators.calls.likeness import likeness_of_pairs
from factormodels import datasets
from factormodels.extraction.relation_models.base import TextPair
from tests.refusals import refused


def test_words_are_those_of_the_claim_that_the_passage_has() -> None:
    pairs = [
        TextPair("The mill closed in 1902, to visitors.", "The mill closed in 1902."),
        TextPair("Nothing of this.", "The mill closed in 1902."),
    ]
    assert likeness_of_pairs("words")(pairs).tolist() == [1.0, 0.0]
    assert likeness_of_pairs("words")([]).shape == (0,)


class _Model:
    """A model of sentence-transformers in the form of one: letters that texts have."""

    def encode(self, texts: Sequence[str], **_: Any) -> Any:
        letters = "abcdefghijklmnopqrstuvwxyz"
        rows = [[text.casefold().count(letter) for letter in letters] for text in texts]
        return np.array(rows, dtype=np.float32)


@pytest.fixture
def folder_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = lambda *_, **__: _Model()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    model_folder = tmp_path / "model"
    model_folder.mkdir()
    (model_folder / "weights").write_text("none", "utf-8")
    monkeypatch.chdir(tmp_path)
    return f"meaning:{model_folder}"


def test_meaning_is_the_cosine_of_embeddings_that_are_kept(
    folder_model: str, tmp_path: Path
) -> None:
    alike = likeness_of_pairs(folder_model, tmp_path)
    likenesses = alike([TextPair("aab", "ab"), TextPair("aa", "bb"), TextPair("b", "b", title="a")])
    assert likenesses == pytest.approx([3 / (5 * 2) ** 0.5, 0.0, 0.5**0.5], abs=1e-6)
    assert list((tmp_path / ".embeddings").glob("*.sqlite"))


def test_pairs_of_claims_are_chosen_by_meaning(folder_model: str) -> None:
    graph = datasets.load("at-odds").graphs[0]
    # The two pairs whose letters are most alike, of all of the response.
    related: Any = coherence([graph], relations="lexical", most=2, by=folder_model)
    assert related.graphs[0].metadata["claim_relations"]["asked"] == 2
    assert any(
        "2 of 55 pairs of claims were asked about" in sentence for sentence in related.sentences
    )


def test_input_that_does_not_fit_is_refused() -> None:
    refused("the likeness 'letter'", likeness_of_pairs, "letter")
    refused("none: there is no such folder", likeness_of_pairs, "meaning:none")
