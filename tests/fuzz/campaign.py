"""A campaign: mutants by number, each tried in a process of its own kind, counted and resumed."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from factormodels.errors import FactormodelsError
from factormodels.io.files import write_text
from tests.fuzz.mutations import mutant
from tests.limited_process import Child, ChildError, limit_memory, status_bytes

ACCEPTED, REFUSED, TRACEBACK, HANG, GROWTH = "accepted", "refused", "traceback", "hang", "growth"
FAILURES = (TRACEBACK, HANG, GROWTH)

MOST_SECONDS = 20.0
"""Of processor time; a machine that is busy makes nothing a hang."""

_PATIENCE = 6
"""So many times as many seconds pass by the clock before an input that waits is given up."""

MOST_GROWTH = 512 * 2**20
"""Bytes that a process may grow by over one input; what its limit lets it have is twice that."""

_SAVED_EVERY = 200

Run = Callable[[Path], object]
"""Tries the file at a path, in a folder of its own that it may fill.

The folder lies in the one that `prepare` filled.
"""


@dataclass(frozen=True)
class Target:
    """Something that takes a file.

    Attributes:
        name: what a report calls it.
        file: the name of the file.
        seeds: whole inputs, or where in the folder that `prepare` filled they are.
        run: tries a file.
        share: how often it is tried beside the others.
    """

    name: str
    file: str
    seeds: tuple[bytes | str, ...]
    run: Run
    share: int = 10

    def whole(self, begun: Path) -> list[bytes]:
        """The whole inputs, given the folder that `prepare` filled."""
        return [
            seed if isinstance(seed, bytes) else (begun / seed).read_bytes() for seed in self.seeds
        ]


@dataclass
class Tally:
    """What has come of the mutants so far.

    Attributes:
        seed: seed of the mutants.
        tried: number of them.
        by_target: for each target how often it ended how.
        longest: seconds of processor time of the slowest, and its target and number.
        largest: bytes by which a process grew most, likewise.
        failures: target, number, outcome and reason of each failure.
    """

    seed: int
    tried: int = 0
    by_target: dict[str, dict[str, int]] = field(default_factory=dict)
    longest: list[Any] = field(default_factory=lambda: [0.0, "", 0])
    largest: list[Any] = field(default_factory=lambda: [0, "", 0])
    failures: list[list[Any]] = field(default_factory=list)

    def add(
        self, name: str, number: int, outcome: str, seconds: float, growth: int, reason: str
    ) -> None:
        """Count one mutant."""
        self.tried += 1
        counts = self.by_target.setdefault(name, {})
        counts[outcome] = counts.get(outcome, 0) + 1
        self.longest = max(self.longest, [seconds, name, number])
        self.largest = max(self.largest, [growth, name, number])
        if outcome in FAILURES:
            self.failures.append([name, number, outcome, reason])

    def text(self) -> str:
        """The table of a report."""
        ends = (ACCEPTED, REFUSED, *FAILURES)
        lines = [
            f"| target | tried | {' | '.join(ends)} |",
            "| --- |" + " ---: |" * (1 + len(ends)),
        ]
        total: Counter[str] = Counter()
        for counts in self.by_target.values():
            total.update(counts)
        for name, counts in [*sorted(self.by_target.items()), ("all", total)]:
            cells = (sum(counts.values()), *(counts.get(end, 0) for end in ends))
            lines.append(f"| {name} | {' | '.join(f'{cell:,}' for cell in cells)} |")
        (seconds, *slow), (growth, *large) = self.longest, self.largest
        lines.append(f"\nlongest: {seconds:.2f} s ({slow[0]}, {slow[1]})")
        lines.append(f"most memory: {growth / 2**20:.0f} MiB ({large[0]}, {large[1]})")
        return "\n".join(lines)


def run(
    folder: Path,
    mutants: int,
    *,
    seed: int = 0,
    only: Sequence[str] = (),
    table: str = "tests.fuzz.targets",
) -> Tally:
    """Try mutants up to a number; those that an earlier call with the folder tried are kept.

    Args:
        folder: where the tally, the inputs that failed and what targets begin from are.
        mutants: how many are tried in all.
        seed: seed of the mutants.
        only: names of the targets; all if none.
        table: the module whose `TARGETS` are tried, and whose `prepare` fills a folder for them.
    """
    begun = folder / "begun"
    import_module(table).prepare(begun)
    kept = folder / "tally.json"
    tally = Tally(**json.loads(kept.read_text())) if kept.exists() else Tally(seed)
    if tally.seed != seed:
        raise SystemExit(f"{kept}: these mutants have the seed {tally.seed}; give another --out")
    known = [target for target in _targets(table) if not only or target.name in only]
    child: Child | None = None
    try:
        for number in range(tally.tried, mutants):
            drawn = Random(f"{seed} {number}")
            (target,) = drawn.choices(known, [target.share for target in known])
            content = mutant(target.whole(begun), drawn)
            if child is None or not child.alive:
                child = _started(begun, table)
            since = time.monotonic()
            try:
                outcome, seconds, growth, reason = child.call(
                    _measured, table, target.name, content, begun, limit=_PATIENCE * MOST_SECONDS
                )
            except ChildError as error:
                child.close()
                outcome, growth = GROWTH if error.kind == "out of memory" else HANG, 0
                seconds, reason = time.monotonic() - since, str(error)
            tally.add(target.name, number, outcome, seconds, growth, reason)
            if outcome in FAILURES:
                (folder / "failures").mkdir(exist_ok=True)
                name = f"{number}-{target.name.replace(' ', '_')}-{target.file}"
                (folder / "failures" / name).write_bytes(content)
            if tally.tried % _SAVED_EVERY == 0 or tally.tried == mutants:
                write_text(kept, json.dumps(asdict(tally)))
                sys.stderr.write(f"{tally.tried:,} tried, {len(tally.failures):,} failed\n")
    finally:
        if child is not None:
            child.close()
    return tally


def _targets(table: str) -> Sequence[Target]:
    targets: Sequence[Target] = import_module(table).TARGETS
    return targets


def _started(begun: Path, table: str) -> Child:
    child = Child()
    refused = child.call(_deaf, table, begun, limit=600.0)
    if refused:
        child.close()
        raise SystemExit(f"no whole input is taken by {', '.join(refused)}; mend its seeds")
    # Everything is loaded by now, so that what is allowed is growth alone.
    child.call(limit_memory, 2 * MOST_GROWTH)
    return child


def _deaf(_: dict[str, Any], table: str, begun: Path) -> list[str]:
    """Names of targets that take none of their inputs, mutants of which would show nothing."""
    return [
        target.name
        for target in _targets(table)
        if all(tried(target, whole, begun)[0] != ACCEPTED for whole in target.whole(begun))
    ]


def _measured(
    _: dict[str, Any], table: str, name: str, content: bytes, begun: Path
) -> tuple[str, float, int, str]:
    """How an input ended, its seconds, the bytes by which the process grew, and why it failed."""
    (target,) = (target for target in _targets(table) if target.name == name)
    before, since = _peak_anew(), time.process_time()
    outcome, reason = tried(target, content, begun)
    seconds = time.process_time() - since
    growth = max((status_bytes("VmHWM") or 0) - before, 0)
    if outcome not in FAILURES and seconds > MOST_SECONDS:
        outcome, reason = HANG, f"{seconds:.0f} s"
    if outcome not in FAILURES and growth > MOST_GROWTH:
        outcome, reason = GROWTH, f"{growth / 2**20:.0f} MiB"
    return outcome, seconds, growth, reason


def tried(target: Target, content: bytes, begun: Path) -> tuple[str, str]:
    """How an input ended, and why it failed, if it did."""
    folder = Path(tempfile.mkdtemp(dir=begun))
    (folder / target.file).write_bytes(content)
    try:
        target.run(folder / target.file)
    except FactormodelsError as error:
        # A sentence for the user: not empty, and not the whole of the input.
        if not str(error).strip() or len(str(error)) > 20_000:
            return TRACEBACK, f"no sentence: {str(error)[:200]!r}"
        return REFUSED, ""
    except MemoryError:
        return GROWTH, "MemoryError"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return TRACEBACK, f"{type(error).__name__} at {place}: {error}"[:300]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return ACCEPTED, ""


def _peak_anew() -> int:
    """Have the peak of this process's memory counted from now on, and return its memory."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return status_bytes("VmHWM") or 0
    return status_bytes("VmRSS") or 0
