"""What 200 responses cost: calls that were asked beside those that the dry run predicts, and time.

Every answer of the provider takes a second, and 64 calls may be under way: less than calls / 64
seconds no assessment can take.

    python -m tests.endurance.two_hundred_responses
"""

from __future__ import annotations

import argparse
import re
import resource
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
        predicted: those that the dry run says: of the claims that the model listed, where these
            are the model's.
        expected: those that it said before the claims were known.
        seconds: from the first call to the last.
        least: calls / limit, in units of the latency.
        wall: seconds from the start of the command to its end.
        processor: seconds of processor time that it took.
    """

    calls: int
    predicted: int
    expected: int
    seconds: float
    least: float
    wall: float
    processor: float


def measure(
    responses: int, variant: str, atoms: str, *, latency: float = 1.0, concurrency: int = 64
) -> Measured:
    """Assess responses, three passages for each claim, with a provider of some latency."""
    with tempfile.TemporaryDirectory() as place, Provider(latency) as provider:
        folder = Path(place)
        write_batch(folder, responses)
        arguments = ["batch.jsonl", "--documents", "notes", "--variant", variant, "--atoms", atoms]
        arguments += ["--stride", "1", "--model", "openai/scripted", "--api-base", provider.url]
        arguments += ["--concurrency", str(concurrency), "--out", "out"]
        expected = _predicted(_assess(folder, *arguments, "--dry-run"))
        before, start = _processor(), time.monotonic()
        _assess(folder, *arguments)
        wall, processor = time.monotonic() - start, _processor() - before
        calls = list(provider.calls)
        predicted = dict(expected)
        if atoms == "model":
            known = [
                "out/graphs.jsonl",
                *arguments[1 : arguments.index("--out")],
                "--dry-run",
                "--revise",
            ]
            known[known.index("--atoms") + 1] = "given"
            predicted |= _predicted(_assess(folder, *known))
    seconds = max(call.ended or 0.0 for call in calls) - min(call.began for call in calls)
    return Measured(
        len(calls),
        sum(predicted.values()),
        sum(expected.values()),
        seconds,
        len(calls) * latency / concurrency,
        wall,
        processor,
    )


def _processor() -> float:
    """Seconds of processor time of the commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _predicted(dry: str) -> dict[str, int]:
    """Calls of the stages that are chosen, as a dry run tells them."""
    rows = re.findall(r"^(atomizer|reviser|relations FR\d) +(?:about )?([\d,]+) ", dry, re.M)
    return {name: int(count.replace(",", "")) for name, count in rows}


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
    """Measure FR1 and FR2, with each sentence a claim and with claims that a model lists.

    Returns 1 if other calls were made than predicted, or they took longer than they should.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=int, default=200)
    given = parser.parse_args()
    failed = False
    sys.stdout.write(
        "| variant | claims | calls | predicted | before claims were known | seconds of calls | "
        "least | in all | of the processor |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    )
    for atoms in ("sentences", "model"):
        for variant in ("FR1", "FR2"):
            found = measure(given.responses, variant, atoms)
            failed |= found.seconds > SLACK * found.least
            failed |= not found.calls == found.predicted <= found.expected
            sys.stdout.write(
                f"| {variant} | {atoms} | {found.calls:,} | {found.predicted:,} | "
                f"{found.expected:,} | {found.seconds:.1f} | {found.least:.1f} | {found.wall:.1f} "
                f"| {found.processor:.1f} |\n"
            )
            sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
