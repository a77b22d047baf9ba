"""Files of the project whose code is entered when a small graph is read, compiled and solved."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import factormodels
from factormodels.io import read
from inference import infer
from inference.exact.plans import forget_plans
from inference.exact.small import end_interpretation
from tests.endurance import Row

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
            facts, reading = _entered(partial(read, path))
            graph, compiling = _entered(facts.to_factor_graph)
            _, solving = _entered(partial(infer, graph, "exact"))
            _, again = _entered(partial(infer, graph, "exact"))
    steps = {"reading": reading, "compiling": compiling, "solving": solving, "again": again}
    for step, files in steps.items():
        yield {"step": step, "files": len(files), "names": ", ".join(f"`{name}`" for name in files)}


def _entered(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Return the result of a call, and the files of the packages whose functions ran."""
    root = Path(factormodels.__file__).parents[1]
    packages = [f"{root / name}/" for name in ("factormodels", "inference")]
    files: set[str] = set()

    def note(frame: Any, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(tuple(packages)):
            files.add(str(Path(name).relative_to(root)))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = call()
    finally:
        sys.setprofile(before)
    return result, sorted(files)
