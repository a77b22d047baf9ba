"""A program that plays an external solver: it enumerates, or misbehaves as it is told to.

python playing_solver.py MODE MODEL [EVIDENCE [OUT]]
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import time
from pathlib import Path


def solve(model: str, evidence: str | None) -> tuple[list[int], float, list[list[float]]]:
    """Return cardinalities, Z and marginals of a UAI model."""
    words = iter(Path(model).read_text().split()[1:])
    states = [int(next(words)) for _ in range(int(next(words)))]
    scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    tables = [[float(next(words)) for _ in range(int(next(words)))] for _ in scopes]
    seen = [int(word) for word in Path(evidence).read_text().split()[1:]] if evidence else []
    observed = dict(zip(seen[::2], seen[1::2], strict=True))
    weights = [[0.0] * count for count in states]
    total = 0.0
    for assignment in itertools.product(*map(range, states)):
        if any(assignment[variable] != state for variable, state in observed.items()):
            continue
        weight = 1.0
        for scope, table in zip(scopes, tables, strict=True):
            at = 0
            for variable in scope:
                at = at * states[variable] + assignment[variable]
            weight *= table[at]
        total += weight
        for variable, state in enumerate(assignment):
            weights[variable][state] += weight
    return states, total, [[w / total for w in row] for row in weights]


def main(mode: str, model: str, evidence: str | None = None, out: str = "out") -> int:
    """Solve and write in the form that `mode` names."""
    states, z, marginals = solve(model, evidence)
    vectors = " ".join(f"{len(row)} {' '.join(map(repr, row))}" for row in marginals)
    mar = f"MAR\n{len(states)} {vectors}\n"
    if mode == "competition":
        Path(f"{out}.MAR").write_text(mar)
        Path(f"{out}.PR").write_text(f"PR\n{math.log10(z)}\n")
    elif mode == "old":
        Path(f"{out}.MAR").write_text(mar.replace("MAR\n", "MAR\n1\n"))
        Path(f"{out}.PR").write_text(f"PR\n1\n{math.log10(z)}\n")
    elif mode == "merlin":
        head = f"PR\n{math.log(z):.6f} ({z:.6e})\nSTATUS\ntrue: Consistent evidence\n"
        Path(f"{out}.MAR").write_text(head + mar)
    elif mode == "json":
        entries = [
            {"variable": at, "states": len(row), "probabilities": row}
            for at, row in enumerate(marginals)
        ]
        document = {"value": math.log(z), "status": "true", "marginals": entries}
        Path(f"{out}.json").write_text(json.dumps(document))
    elif mode == "print":
        sys.stdout.write(f"reading {model}\n{mar}")
    elif mode == "underflow":
        Path(f"{out}.json").write_text(
            '{"value": -inf, "status": "false", "message": "Underflow", "marginals": []}'
        )
    elif mode == "empty":
        Path(f"{out}.json").write_text('{"value": -800.0, "status": "true", "marginals": []}')
    elif mode == "short":
        Path(f"{out}.MAR").write_text("MAR\n2 2 0.5 0.5\n")
    elif mode == "wrong":
        Path(f"{out}.MAR").write_text("MAR\n1 2 0.5 0.4\n")
    elif mode == "other":
        Path(f"{out}.MAR").write_text("MAR\n1 2 0.5 0.5\n")
    elif mode == "crash":
        sys.stderr.write("warming up\nout of luck\n")
        return 3
    elif mode == "sleep":
        time.sleep(60.0)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
