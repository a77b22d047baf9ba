"""Batches of assessments with a provider on the same machine, calm or hostile."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from tests.commands import called
from tests.endurance import Row
from tests.endurance.provider import Hostility, Provider
from tests.experiments.conftest import KEY, begin

_LAST_LINE = "\nAccording to the passage (premise)"
"""Beginning of the last line of the relation prompt."""


@dataclass(frozen=True)
class Day:
    """Outcome of a day.

    Attributes:
        output: the lines of the result, without what they cost.
        answered: good answers that the provider gave.
        questions: different questions among them; the prompts for one relation count once.
        texts: different texts of questions among them.
        most_repeated: the most that may be asked again: at each kill, calls under way.
        kills: how often the batch was killed.
        seconds: from the first start to the end.
        faults: how often the provider did what.
    """

    output: list[str]
    answered: int
    questions: int
    texts: int
    most_repeated: int
    kills: int
    seconds: float
    faults: dict[str, int]

    @property
    def repeated(self) -> int:
        """Answers to questions that had been answered well before."""
        return self.answered - self.texts


def write_batch(folder: Path, responses: int) -> None:
    """Write responses and documents to search."""
    with (folder / "batch.jsonl").open("w") as file:
        for i in range(responses):
            text = f"Bridge {i} was opened in {1800 + i}. Bridge {i} carries trains. "
            text += f"Bridge {i} is painted red. Bridge {i} crosses a river."
            record = {"id": f"r{i:03}", "query": f"What is known of bridge {i}?", "response": text}
            file.write(json.dumps(record) + "\n")
    (folder / "notes").mkdir(exist_ok=True)
    subjects = ("was opened early", "carries trains", "is painted red", "crosses a river")
    for i, what in enumerate(subjects * 3):
        (folder / "notes" / f"{i:02}.txt").write_text(f"In town {i} a bridge {what}, note {i}.")


def command(url: str, concurrency: int, *more: str) -> list[str]:
    """The command that assesses the batch."""
    arguments = ["assess", "batch.jsonl", "--documents", "notes", "--stride", "1", "--model"]
    arguments += ["openai/scripted", "--api-base", url, "--concurrency", str(concurrency)]
    # The provider here knows no answer of the probe.
    arguments.append("--no-probe")
    return [*arguments, "--out", "out", *(more or ("--variant", "FR1", "--variant", "FR2"))]


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
    options: Sequence[str] = (),
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
        options: of the command, in place of its variants.
    """
    write_batch(folder, responses)
    chance, killed, runs, output, start = random.Random(seed), 0, 0, "missing", time.monotonic()
    with Provider(latency, hostility) as provider:
        while killed < kills:
            before = len(provider.calls)
            process = begin(
                folder, *command(provider.url, concurrency, *options), OPENAI_API_KEY=KEY
            )
            # So many calls and not so many seconds, which a busy machine would spend on the start.
            reached = before + chance.randint(1, 10 * concurrency)
            while len(provider.calls) < reached and process.poll() is None:
                time.sleep(0.01)
            if process.poll() is not None:
                break
            process.kill()
            process.wait()
            killed += 1
            if forgetting:
                for stored in (*folder.glob("answers.sqlite*"), *folder.glob("out/graphs.jsonl.*")):
                    stored.unlink()
        while "missing" in output.split("stage ")[-1]:
            runs += 1
            # What nobody kills needs no process of its own, which would import everything anew.
            with chdir(folder), patch.dict(os.environ, OPENAI_API_KEY=KEY):
                arguments = command(provider.url, concurrency, *options)
                result = called(*arguments, "--retry-failed")
            output = result.output
            if result.exit_code not in (0, 1) or runs > 10:
                raise RuntimeError(f"the batch does not end: {output}")
        good = [call.question for call in provider.calls if call.answered]
    return Day(
        output=without_costs(folder / "out/graphs.jsonl"),
        answered=len(good),
        # The fallback for an unusable answer asks about the same pair without the last line.
        questions=len({question.partition(_LAST_LINE)[0] for question in good}),
        texts=len(set(good)),
        most_repeated=killed * concurrency,
        kills=killed,
        seconds=time.monotonic() - start,
        faults=dict(provider.faults),
    )


def without_costs(path: Path) -> list[str]:
    """The lines of a result without what the answers took."""
    graphs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for graph in graphs:
        graph["metadata"].pop("consumption", None)
    return [json.dumps(graph, ensure_ascii=False) for graph in graphs]


def hostile_day(
    responses: int = 200, kills: int = 20, concurrency: int = 64, latency: float = 0.2
) -> Iterator[Row]:
    """A provider that refuses, stalls and answers badly, and a batch killed many times.

    The batch ends with the result of a calm day, but for what it cost, and no call that was
    answered well is made twice, but for those under way at a kill.
    """
    calm: Day | None = None
    for name in ("calm", "hostile"):
        hostility = Hostility(pause_after=responses) if calm else None
        with TemporaryDirectory() as folder:
            day = live(
                Path(folder),
                responses,
                kills=kills if calm else 0,
                concurrency=concurrency,
                hostility=hostility,
                latency=latency if calm else 0.0,
            )
        calm = calm or day
        yield {
            **{"day": name, "kills": day.kills},
            "faults": ", ".join(f"{what} {count:,}" for what, count in sorted(day.faults.items())),
            **{"calls answered": day.answered, "answered twice": day.repeated},
            **{"allowed": day.most_repeated, "seconds": day.seconds},
            "right": day.output == calm.output and day.repeated <= day.most_repeated,
        }
