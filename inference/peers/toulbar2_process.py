"""Run a search of toulbar2 in a separate process, since its options and clock are global.

    python toulbar2_process.py TASK.npz ANSWER.json

`toulbar2_search` writes the task and reads the answer. This script imports no module of the
project, so that a search starts quickly.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np


def main(task_path: str, answer_path: str) -> None:
    """Search, and write the best states found, the bound, and statistics."""
    import pytoulbar2

    with np.load(task_path) as task:
        cardinalities, scope_starts = task["cardinalities"].tolist(), task["scope_starts"].tolist()
        scopes, table_starts = task["scope_variables"].tolist(), task["table_starts"].tolist()
        costs = task["costs"].tolist()
        seconds, digits, seed = task["settings"].tolist()
    network = pytoulbar2.CFN(resolution=digits, seed=seed, verbose=-1)
    for variable, count in enumerate(cardinalities):
        network.AddVariable(f"v{variable}", range(count))
    for factor in range(len(scope_starts) - 1):
        scope = scopes[scope_starts[factor] : scope_starts[factor + 1]]
        if scope:
            network.AddFunction(scope, costs[table_starts[factor] : table_starts[factor + 1]])
    began = time.process_time()
    solution = network.Solve(timeLimit=seconds)
    answer = {
        "states": None if solution is None else [int(state) for state in solution[0]],
        "lowest_cost": network.GetDDualBound(),
        "ended": time.process_time() - began < seconds,
        "nodes": network.GetNbNodes(),
        "backtracks": network.GetNbBacktracks(),
    }
    Path(answer_path).write_text(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
