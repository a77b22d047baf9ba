"""A batch continues only under settings with the same results, which `facts` of its plan record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from experiments.asking.session import asking
from experiments.evaluators.assess import AssessSettings
from experiments.evaluators.setup import make_plan
from factormodels.datasets import load
from factormodels.extraction import prompts
from tests.factormodels.extraction.models import AnsweringModel

GRAPHS = load("demonstration").graphs[:2]

LOCAL = MappingProxyType({"retriever": "local"})
MODEL = MappingProxyType({"retriever": "local", "model": AnsweringModel(lambda _: "")})
CORE = MappingProxyType({"retriever": "local", "domain": "things", "faithfulness": False})

RECORDED: Mapping[str, tuple[Mapping[str, Any], Any]] = {
    "assessors": (MODEL, ("factscore",)),
    "atoms": (LOCAL, "sentences"),
    "backend": (LOCAL, "lbp"),
    "backend_settings": ({**LOCAL, "backend": "lbp"}, {"damping": 0.5}),
    "context_prior": (LOCAL, 0.7),
    "core": (CORE, True),
    "core_relations": ({**CORE, **MODEL, "core": True}, "model"),
    "core_relevance": ({**CORE, **MODEL, "core": True}, True),
    "decisive": ({**LOCAL, "few_calls": True}, 0.95),
    "documents": (LOCAL, {"Hut": "The hut has forty beds."}),
    "domain": ({**CORE, "core": True}, "places"),
    "early_exit": (LOCAL, "unlike"),
    "encoding": (LOCAL, "conditional"),
    "equivalence": (LOCAL, "larger"),
    "faithfulness": ({**CORE, "core": True}, True),
    "few_calls": (LOCAL, True),
    "language": (LOCAL, "de"),
    "least": (LOCAL, 0.7),
    "like": (LOCAL, "paper"),
    "method": (MODEL, "verbalized"),
    "model": (LOCAL, MODEL["model"]),
    "openness": (MODEL, 0.3),
    "orders": (LOCAL, "needed"),
    "prior": (LOCAL, 0.3),
    "prior_by": ({**LOCAL, "prior": {"book": 0.9}}, "kind"),
    "prompts": (MODEL, "FOLDER"),
    "queries": (MODEL, True),
    "question_contexts": (LOCAL, True),
    "reading": ({"retriever": "wikipedia"}, "snippet"),
    "relation_prompt": (MODEL, "relation_bare"),
    "relations": (MODEL, "lexical"),
    "retriever": ({}, "local"),
    "revise": (MODEL, True),
    "samples": (MODEL, 3),
    "scope": (LOCAL, "own"),
    "search_base": ({"retriever": "wikipedia"}, "https://wiki.example/w/api.php"),
    "shared_passage": (LOCAL, "one"),
    "stride": ({**MODEL, "atoms": "model"}, "1"),
    "summarize": (MODEL, True),
    "top_k": (LOCAL, 2),
    "variant": (LOCAL, ("FR1",)),
    "weak_relations": (LOCAL, "kept"),
    "window": (MODEL, 50),
}
"""By setting on which graphs or posteriors depend: other settings, and another value of it."""

FREE = frozenset(
    (
        # Responses, each of which is compared with the recorded one.
        *("id_column", "passages", "query", "question_column", "response", "text", "text_column"),
        "topic",
        # Measures, which are computed from posteriors at the end.
        *("claim_window", "coherence", "f1", "irrelevant_claims", "k", "logarithm", "unlabeled"),
        # How answers are obtained, and where results are computed and written.
        *("api_base", "cache", "concurrency", "contact", "allow_private_hosts", "dask", "dry_run"),
        *("embeddings_base", "max_calls", "max_cost", "max_wait", "out", "partial"),
        *("price_embeddings", "price_in", "price_out", "price_search", "replay"),
        *("requests_per_minute", "retry_failed", "timeout", "tokens_per_minute"),
        # What the probe measures of a model is recorded by `with_correction`.
        *("probe", "relation_correction"),
        # Recorded by retrievers that need a library, or documents for each response.
        *("documents_of", "embeddings"),
    )
)
"""Settings on which neither graphs nor posteriors depend, or that are recorded elsewhere."""


def facts(**options: Any) -> dict[str, Any]:
    settings = AssessSettings(**options).resolved()
    with asking(settings) as session:
        return make_plan(GRAPHS, settings, session).facts


def test_every_setting_is_recorded_or_free() -> None:
    unsaid = AssessSettings.model_fields.keys() ^ (RECORDED.keys() | FREE)
    assert not unsaid, (
        f"{', '.join(sorted(unsaid))}: if graphs or posteriors depend on it, record it in `facts` "
        "of make_plan and give another value in RECORDED of this file; else name it in FREE"
    )
    assert not RECORDED.keys() & FREE


@pytest.mark.parametrize("name", RECORDED)
def test_another_value_is_another_plan(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Answers are cached in the current folder.
    monkeypatch.chdir(tmp_path)
    options, value = RECORDED[name]
    if value == "FOLDER":
        template = Path(prompts.__file__).with_name("atomizer.yaml").read_text(encoding="utf-8")
        changed = template.replace("system: |\n", "system: |\n  Be exact.\n")
        assert changed != template
        (tmp_path / "atomizer.yaml").write_text(changed, encoding="utf-8")
        value = tmp_path
    assert facts(**options) != facts(**{**options, name: value})
