"""Files of the project whose code is entered when a small graph is read, compiled and solved."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from factormodels import FactGraph
from factormodels.io import read
from inference import infer
from inference.exact.plans import forget_plans
from inference.exact.small import end_interpretation
from tests.endurance import Row
from tests.entered_files import entered_by

THREE_LINES = """\
{"format": "factormodels/fact-graph", "version": 1, "id": "example", "edges": [
{"source": "c", "target": "a", "relation": "entailment", "probability": 0.8}], "nodes": [
{"id": "a", "type": "atom", "probability": 0.5}, {"id": "c", "type": "context", "probability": 1}]}
"""


def entered() -> Iterator[Row]:
    """Number and names of the files for each step, where all of them are imported already."""
    end_interpretation()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.json"
        path.write_text(THREE_LINES, encoding="utf-8")
        # The first round imports, and compiles.
        for _ in range(2):
            forget_plans()
            facts, reading = entered_by(partial(read, path))
            assert isinstance(facts, FactGraph)
            graph, compiling = entered_by(facts.to_factor_graph)
            _, solving = entered_by(partial(infer, graph, "exact"))
            _, again = entered_by(partial(infer, graph, "exact"))
    steps = {"reading": reading, "compiling": compiling, "solving": solving, "again": again}
    for step, files in steps.items():
        yield {"step": step, "files": len(files), "names": ", ".join(f"`{name}`" for name in files)}
