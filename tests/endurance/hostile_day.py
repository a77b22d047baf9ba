"""A hostile day: a provider that refuses, stalls and answers badly, and a batch killed many times.

The batch must end with the result of a calm day, byte for byte but for what it cost, and no call
that was answered well may have been made twice, but for those under way at a kill.

    python -m tests.endurance.hostile_day
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.endurance.provider import Hostility, Provider
from tests.experiments.conftest import environment

PATIENCE = 900.0
"""Seconds that a run may take that is not killed."""

_COSTS = "consumption"


@dataclass(frozen=True)
class Day:
    """What came of a day.

    Attributes:
        output: the lines of the result, without what they cost.
        answered: good answers that the provider gave.
        questions: different questions among them.
        repeated: answers to questions that had been answered well before.
        most_repeated: the most that may be: at each kill, calls under way up to the limit.
        kills: how often the batch was killed.
        runs: how often it was started after the last kill until nothing was missing.
        seconds: from the first start to the end.
        faults: how often the provider did what.
    """

    output: list[str]
    answered: int
    questions: int
    repeated: int
    most_repeated: int
    kills: int
    runs: int
    seconds: float
    faults: dict[str, int]


def write_batch(folder: Path, responses: int) -> None:
    """Write responses and documents to search."""
    lines = [
        json.dumps(
            {
                "id": f"r{i:03}",
                "query": f"What is known of bridge {i}?",
                "response": f"Bridge {i} was opened in {1800 + i}. Bridge {i} carries trains. "
                f"Bridge {i} is painted red. Bridge {i} crosses a river.",
            }
        )
        for i in range(responses)
    ]
    (folder / "batch.jsonl").write_text("\n".join(lines))
    (folder / "notes").mkdir(exist_ok=True)
    subjects = ("was opened early", "carries trains", "is painted red", "crosses a river")
    for i, what in enumerate(subjects * 3):
        (folder / "notes" / f"{i:02}.txt").write_text(f"In town {i} a bridge {what}, note {i}.")


def command(url: str, concurrency: int) -> list[str]:
    """The command that assesses the batch."""
    arguments = ["assess", "batch.jsonl", "--documents", "notes", "--stride", "1", "--model"]
    arguments += ["openai/scripted", "--api-base", url, "--concurrency", str(concurrency)]
    return [*arguments, "--variant", "FR1", "--variant", "FR2", "--out", "out"]


def begin(folder: Path, url: str, concurrency: int, *more: str) -> subprocess.Popen[str]:
    """Start the batch."""
    return subprocess.Popen(
        [sys.executable, "-m", "experiments", *command(url, concurrency), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**environment(), "OPENAI_API_KEY": "sk-scripted-and-secret"},
    )


def live(
    folder: Path,
    responses: int,
    *,
    kills: int = 0,
    concurrency: int = 64,
    hostility: Hostility | None = None,
    latency: float = 0.0,
    seed: int = 0,
    forgetting: bool = False,
) -> Day:
    """Live through a day.

    Args:
        folder: an empty folder.
        responses: how many are assessed.
        kills: how often the batch is killed.
        concurrency: its limit on calls under way.
        hostility: of the provider; None on a calm day.
        latency: of its answers, in seconds.
        seed: of the numbers of calls after which it is killed.
        forgetting: whether every kill also loses what was stored: a day that must fail.
    """
    write_batch(folder, responses)
    chance = random.Random(seed)
    killed = 0
    start = time.monotonic()
    with Provider(latency, hostility) as provider:
        while killed < kills:
            before = len(provider.calls)
            process = begin(folder, provider.url, concurrency)
            # So many calls and not so many seconds, which a busy machine would spend on the start.
            reached = before + chance.randint(1, 10 * concurrency)
            while len(provider.calls) < reached and process.poll() is None:
                time.sleep(0.01)
            if process.poll() is not None:
                break
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            killed += 1
            if forgetting:
                for stored in (*folder.glob("answers.sqlite*"), *folder.glob("out/graphs.jsonl.*")):
                    stored.unlink()
        runs, said = 0, ""
        while True:
            runs += 1
            process = begin(folder, provider.url, concurrency, "--retry-failed")
            try:
                said, _ = process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
            if process.returncode == 0 and "missing" not in said.split("stage ")[-1]:
                break
            if process.returncode not in (0, 1) or runs > 10:
                raise RuntimeError(f"the batch does not end: {said}")
        seconds = time.monotonic() - start
        calls = list(provider.calls)
    good = [call for call in calls if call.answered]
    questions = {call.question for call in good}
    return Day(
        output=without_costs(folder / "out/graphs.jsonl"),
        answered=len(good),
        questions=len(questions),
        repeated=len(good) - len(questions),
        most_repeated=killed * concurrency,
        kills=killed,
        runs=runs,
        seconds=seconds,
        faults=dict(provider.faults),
    )


def without_costs(path: Path) -> list[str]:
    """The lines of a result without what the answers took."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        graph = json.loads(line)
        graph["metadata"].pop(_COSTS, None)
        lines.append(json.dumps(graph, ensure_ascii=False))
    return lines


def main() -> int:
    """Compare a hostile day with a calm one; 1 if they differ or a call was made twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    hostility = Hostility(pause_after=given.responses)
    with tempfile.TemporaryDirectory() as calm, tempfile.TemporaryDirectory() as hostile:
        quiet = live(Path(calm), given.responses, concurrency=given.concurrency)
        loud = live(
            Path(hostile),
            given.responses,
            kills=given.kills,
            concurrency=given.concurrency,
            hostility=hostility,
            latency=given.latency,
            seed=given.seed,
        )
    same = quiet.output == loud.output
    faults = ", ".join(f"{name} {count:,}" for name, count in sorted(loud.faults.items()))
    lines = [
        f"calm day: {quiet.answered:,} calls answered, {quiet.seconds:.0f} s",
        f"hostile day: {loud.answered:,} calls answered, {loud.kills} kills and then {loud.runs} "
        f"runs, {loud.seconds:.0f} s",
        f"faults: {faults}",
        f"answered twice: {loud.repeated:,}; {loud.most_repeated:,} may have been under way when "
        "killed",
        f"results equal but for costs: {'yes' if same else 'no'} ({len(loud.output)} responses)",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if same and loud.repeated <= loud.most_repeated else 1


if __name__ == "__main__":
    sys.exit(main())
