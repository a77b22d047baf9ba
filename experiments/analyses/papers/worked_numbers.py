"""Numbers that follow from other printed numbers of the papers, computed again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from calibration.scores.measures import entropy_measure, f1_at_k, factual_precision
from experiments.analyses.context import AnalysisContext
from experiments.findings.artifacts import Artifacts
from experiments.findings.table import Table, columns_as, data_frame
from experiments.settings.keyed import Keyed
from experiments.settings.limits import EncodingName
from factormodels import datasets
from factormodels.claims import Context, Relation, RelationKind
from factormodels.fact_graph import FactGraph
from factormodels.selection.program import Program, solve

Number = tuple[str, float, str]
"""Description, our number, and its derivation; the paper's number is in `published.csv`."""


class Settings(Keyed):
    """Settings of the analysis."""

    encoding: EncodingName = "implication"
    """Encoding of the relations of FactReasoner's example, as in the paper."""


def run(settings: Settings, _context: AnalysisContext) -> Artifacts:
    """A table of the numbers."""
    rows = [*_factreasoner(settings.encoding), *_core(), *_fastfact()]
    columns = columns_as("number | ours> we get | how", ours=lambda value: f"{value:.6g}")
    frame = data_frame(rows, columns=["number", "ours", "how"])
    caption = "Printed numbers that follow from other printed numbers."
    return Artifacts({"numbers": Table(frame, columns, caption)})


def _factreasoner(encoding: str) -> Iterator[Number]:
    from scipy.optimize import brentq

    graphs = {graph.id: graph for graph in datasets.load("worked-examples").graphs}
    example = graphs["factreasoner-example-1"]

    def with_third(strength: float) -> float:
        """P(a1) beside a third context that contradicts the second, as in figure 2."""
        third = Context("c3", prior=example.contexts[0].prior)
        contradiction = Relation("c3", "c2", RelationKind.CONTRADICTION, strength)
        graph = replace(
            example,
            contexts=(*example.contexts, third),
            relations=(*example.relations, contradiction),
        )
        return _posterior(graph, encoding)

    def strength_of(wanted: float) -> float:
        return float(brentq(lambda p: with_third(p) - wanted, 0.6, 0.9999, xtol=1e-10))

    first = _posterior(example, encoding)
    yield "FactReasoner, figure 1: P(a1)", first, "48/151, encoding implication"
    yield "FactReasoner, figure 1: P(not a1)", 1 - first, "103/151"
    for strength in (0.98, 0.99):
        how = f"a third context contradicts the second with {strength}, which only a figure shows"
        name = f"FactReasoner, figure 2: P(a1), strength {strength}"
        yield name, with_third(strength), how
    yield "FactReasoner, figure 2: least strength", strength_of(0.585), "that rounds to 0.59"
    yield "FactReasoner, figure 2: largest strength", strength_of(0.595), "that rounds to 0.59"
    entropy = entropy_measure([0.5] * 7)
    yield "FactReasoner, section 3.2: E of undecided atoms", entropy, "-0.5 log10 0.5"
    six_of_14 = [1.0] * 6 + [0.0] * 8
    how = "6 of 14 atoms supported, K = 7"
    yield "FactReasoner, figure 5: Pr", factual_precision(six_of_14), how
    yield "FactReasoner, figure 5: F1@7", f1_at_k(six_of_14, 7), how
    yield "FactReasoner, table 2: Pr* of Biographies", 20 / 31, "ratio of the printed means"


def _core() -> Iterator[Number]:
    split = Program((1.0,) * 4, ((1, 2), (1, 3)))
    chained = Program((1.0,) * 4, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)))
    how = "uniform weights, the conflicts of the figure's entailments"
    yield "Core, figure 3, up: claims selected", len(solve(split).chosen), how
    yield "Core, figure 3, down: claims selected", len(solve(chained).chosen), how


def _fastfact() -> Iterator[Number]:
    how = "difference of the two printed means, not the mean of differences"
    for benchmark, people, pipeline in (("Overall", 0.792, 0.780), ("FActScore_bio", 0.522, 0.677)):
        name = f"FaStfact, table 2: |difference of F1@K'|, {benchmark}"
        yield name, abs(people - pipeline), how
    # Refuted, without enough evidence, with conflicting evidence, others.
    parts = (23.95, 10.88, 1.75, 1.11)
    yield "FaStfact, table 7: % non-supported, FActScore", sum(parts), "sum of its four parts"
    for benchmark, kinds in (
        ("FActScore", (45.97, 37.69, 0.09)),
        ("FaStfact-Bench", (76.23, 18.54, 0.22)),
    ):
        how = "supported, non-supported and irrelevant"
        yield f"FaStfact, table 7: % in all, {benchmark}", sum(kinds), how
    for model, scores in (
        ("gemini-2.0-flash-thinking-exp", (0.783, 0.851, 0.711, 0.879, 0.789)),
        ("gpt-4o", (0.741, 0.847, 0.796, 0.839, 0.708)),
    ):
        yield f"FaStfact, table 8: mean F1@K', {model}", sum(scores) / 5, "mean over benchmarks"
    yield "FaStfact, section 3.2: % of failures of SAFE", 100 * 39 / 57, "39 of 57 claims"


def _posterior(graph: FactGraph, encoding: str) -> float:
    from inference import infer

    factors = graph.to_factor_graph(encoding)
    return float(infer(factors, "exact").marginals.of_state(1, ["a1"])[0])
