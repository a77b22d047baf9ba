"""What 200 responses cost: calls that were asked beside those that the dry run predicts, and time.

Every answer of the provider takes a second, and 64 calls may be under way: less than calls / 64
seconds no assessment can take.

    python -m tests.endurance.two_hundred_responses
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.endurance.hostile_day import write_batch
from tests.endurance.provider import Provider
from tests.experiments.conftest import environment

SLACK = 1.1
"""Time of the calls, as a multiple of the least that is possible."""


@dataclass(frozen=True)
class Measured:
    """What an assessment took.

    Attributes:
        calls: calls that the provider was asked.
        predicted: those that the dry run says.
        seconds: from the first call to the last.
        least: calls / limit, in units of the latency.
        wall: seconds from the start of the command to its end.
    """

    calls: int
    predicted: int
    seconds: float
    least: float
    wall: float


def measure(
    responses: int, variant: str, atoms: str, *, latency: float = 1.0, concurrency: int = 64
) -> Measured:
    """Assess responses, three passages for each claim, with a provider of some latency."""
    with tempfile.TemporaryDirectory() as place, Provider(latency) as provider:
        folder = Path(place)
        write_batch(folder, responses)
        arguments = ["batch.jsonl", "--documents", "notes", "--variant", variant, "--atoms", atoms]
        arguments += ["--stride", "1", "--model", "openai/scripted", "--api-base", provider.url]
        arguments += ["--concurrency", str(concurrency), "--out", "out.jsonl"]
        dry = _assess(folder, *arguments, "--dry-run")
        rows = dict(
            re.findall(r"^(atomizer|reviser|relations FR\d) +(?:about )?([\d,]+) ", dry, re.M)
        )
        start = time.monotonic()
        _assess(folder, *arguments)
        wall = time.monotonic() - start
        calls = list(provider.calls)
    seconds = max(call.ended or 0.0 for call in calls) - min(call.began for call in calls)
    return Measured(
        len(calls),
        sum(int(count.replace(",", "")) for count in rows.values()),
        seconds,
        len(calls) * latency / concurrency,
        wall,
    )


def _assess(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "experiments", "assess", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**environment(), "OPENAI_API_KEY": "sk-scripted-and-secret"},
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def main() -> int:
    """Measure FR1 and FR2, with each sentence a claim and with claims that a model lists."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=int, default=200)
    given = parser.parse_args()
    slow = False
    for variant, atoms in (("FR1", "sentences"), ("FR2", "sentences"), ("FR1", "model")):
        found = measure(given.responses, variant, atoms)
        slow |= found.seconds > SLACK * found.least
        sys.stdout.write(
            f"{variant}, claims: {atoms}: {found.calls:,} calls, {found.predicted:,} predicted, "
            f"{found.seconds:.1f} s for the calls (least {found.least:.1f}), {found.wall:.1f} s in "
            "all\n"
        )
        sys.stdout.flush()
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
