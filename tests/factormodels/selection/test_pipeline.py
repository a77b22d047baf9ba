"""Core as a stage of the pipeline, before graph-based and prompt-based assessors."""

from __future__ import annotations

from factormodels import Atom, FactGraph
from factormodels.extraction.pipeline import relation_stage, retrieval_stage, run_stages
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.retrieval.bm25 import build_collection
from factormodels.extraction.retrieval.documents import Document
from factormodels.extraction.stages.assessors import assess, posteriors
from factormodels.selection import CachedRelations, Core
from factormodels.selection.pipeline import METADATA_KEY, selection_stage
from inference import infer
from tests.factormodels.extraction.models import AnsweringModel

TEXT = "The Xanadu bridge opened in 1890. The Xanadu bridge opened in 1890. Trains cross it."
GRAPH = FactGraph(
    "g",
    (
        Atom("a1", "The Xanadu bridge opened in 1890.", sentence=1),
        Atom("a2", "The Xanadu bridge opened in 1890.", sentence=2),
        Atom("a3", "Steam engines pull carriages over Kubla river.", sentence=3),
    ),
    response=TEXT,
    topic="Xanadu bridge",
    metadata={"note": 1},
)


def test_selection_goes_before_the_search_and_any_assessor() -> None:
    core = Core(CachedRelations(LexicalRelations()))
    documents = [Document("Bridges", "", "The Xanadu bridge opened in 1890 for trains.")]
    retriever = build_collection(documents)
    graph = run_stages(
        GRAPH,
        [
            selection_stage(core),
            retrieval_stage(retriever),
            relation_stage(LexicalRelations(), "FR2"),
        ],
    )
    assert graph.atom_ids == ("a1", "a3")
    facts = graph.metadata[METADATA_KEY]
    assert (facts["atoms"], facts["dropped"], facts["status"]) == (3, ["a2"], "optimal")
    assert (facts["relations"], facts["missing"], graph.metadata["note"]) == ("lexical", 0, 1)
    posterior = infer(graph.to_factor_graph(), "exact")
    assert posterior.marginals["a1"][1] > 0.5
    model = AnsweringModel(lambda _: "true")
    assert posteriors(assess(graph, "factscore", model)) == {"a1": 1.0, "a3": 1.0}
    assert len(model.asked) == 2
