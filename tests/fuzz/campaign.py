"""A campaign: mutants by number, each tried in a process of its own kind, counted and resumed."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from factormodels.errors import FactormodelsError
from factormodels.io.files import write_text
from tests.fuzz.mutations import mutant
from tests.fuzz.targets import Target, prepare, targets
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
    longest: tuple[float, str, int] = (0.0, "", 0)
    largest: tuple[int, str, int] = (0, "", 0)
    failures: list[tuple[str, int, str, str]] = field(default_factory=list)

    def add(
        self, name: str, number: int, outcome: str, seconds: float, growth: int, reason: str
    ) -> None:
        """Count one mutant."""
        self.tried += 1
        counts = self.by_target.setdefault(name, {})
        counts[outcome] = counts.get(outcome, 0) + 1
        if seconds > self.longest[0]:
            self.longest = (seconds, name, number)
        if growth > self.largest[0]:
            self.largest = (growth, name, number)
        if outcome in FAILURES:
            self.failures.append((name, number, outcome, reason))

    def text(self) -> str:
        """The table of a report."""
        lines = [f"| target | tried | {' | '.join((ACCEPTED, REFUSED, *FAILURES))} |"]
        lines.append("| --- |" + " ---: |" * (2 + len(FAILURES) + 1))
        total: Counter[str] = Counter()
        for name, counts in sorted(self.by_target.items()):
            total.update(counts)
            lines.append(_row(name, counts))
        lines.append(_row("all", total))
        seconds, slow, slow_number = self.longest
        growth, large, large_number = self.largest
        lines.append(f"\nlongest: {seconds:.2f} s ({slow}, {slow_number})")
        lines.append(f"most memory: {growth / 2**20:.0f} MiB ({large}, {large_number})")
        return "\n".join(lines)


def run(
    folder: Path,
    mutants: int,
    *,
    seed: int = 0,
    only: Sequence[str] = (),
    chosen: Callable[[Path], Sequence[Target]] = targets,
    report: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """Try mutants up to a number; those that an earlier call with the folder tried are kept.

    Args:
        folder: where the tally and the inputs that failed are.
        mutants: how many are tried in all.
        seed: seed of the mutants.
        only: names of the targets; all if none.
        chosen: makes the targets.
        report: called with the tally now and then.
    """
    prepare(folder / "begun")
    tally = _kept(folder / "tally.json", seed)
    known = [one for one in chosen(folder / "begun") if not only or one.name in only]
    shares = [one.share for one in known]
    with tempfile.TemporaryDirectory() as scratch:
        child: Child | None = None
        try:
            for number in range(tally.tried, mutants):
                (position,) = random.Random(f"{seed} {number} target").choices(
                    range(len(known)), shares
                )
                target = known[position]
                content = mutant(target.seeds, seed, number)
                if child is None or not child.alive:
                    child = _started(folder, chosen)
                begun = time.monotonic()
                try:
                    outcome, seconds, growth, reason = child.call(
                        _tried, target.name, content, scratch, limit=_PATIENCE * MOST_SECONDS
                    )
                except ChildError as error:
                    child.close()
                    outcome, growth = GROWTH if error.kind == "out of memory" else HANG, 0
                    seconds, reason = time.monotonic() - begun, str(error)
                tally.add(target.name, number, outcome, seconds, growth, reason)
                if outcome in FAILURES:
                    (folder / "failures").mkdir(exist_ok=True)
                    name = f"{number}-{target.name.replace(' ', '_')}-{target.file}"
                    (folder / "failures" / name).write_bytes(content)
                if tally.tried % _SAVED_EVERY == 0 or tally.tried == mutants:
                    write_text(folder / "tally.json", json.dumps(asdict(tally)))
                    report(tally)
        finally:
            if child is not None:
                child.close()
    return tally


def _kept(path: Path, seed: int) -> Tally:
    if not path.exists():
        return Tally(seed)
    tally = Tally(**json.loads(path.read_text()))
    tally.failures = [(name, number, how, why) for name, number, how, why in tally.failures]
    if tally.seed != seed:
        raise SystemExit(f"{path}: these mutants have the seed {tally.seed}; give another --out")
    return tally


def _started(folder: Path, chosen: Callable[[Path], Sequence[Target]]) -> Child:
    child = Child()
    refused = child.call(_prepare, folder / "begun", chosen, limit=600.0)
    if refused:
        child.close()
        raise SystemExit(f"no whole input is taken by {', '.join(refused)}; mend its seeds")
    # Everything is loaded by now, so that what is allowed is growth alone.
    child.call(limit_memory, 2 * MOST_GROWTH)
    return child


def _prepare(
    kept: dict[str, Any], begun: Path, chosen: Callable[[Path], Sequence[Target]]
) -> list[str]:
    """Load libraries by whole inputs before the first mutant is measured.

    Returns:
        Names of targets that take none of theirs: mutants of these would show nothing.
    """
    kept["targets"] = {one.name: one for one in chosen(begun)}
    with tempfile.TemporaryDirectory() as scratch:
        return [
            target.name
            for target in kept["targets"].values()
            if not any(
                _tried(kept, target.name, whole, scratch)[0] == ACCEPTED for whole in target.seeds
            )
        ]


def _tried(
    kept: dict[str, Any], name: str, content: bytes, scratch: str
) -> tuple[str, float, int, str]:
    """How an input ended, its seconds, the bytes by which the process grew, and why it failed."""
    target: Target = kept["targets"][name]
    folder = Path(tempfile.mkdtemp(dir=scratch))
    path = folder / target.file
    path.write_bytes(content)
    before = _peak_anew()
    begun = time.process_time()
    outcome, reason = ACCEPTED, ""
    try:
        target.run(path)
    except FactormodelsError as error:
        outcome = REFUSED
        # A sentence for the user: not empty, on a line, and not the whole of the input.
        if not str(error).strip() or len(str(error)) > 20_000:
            outcome, reason = TRACEBACK, f"no sentence: {str(error)[:200]!r}"
    except MemoryError:
        outcome, reason = GROWTH, "MemoryError"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        outcome = TRACEBACK
        reason = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}: {error}"
        reason = reason[:300]
    seconds = time.process_time() - begun
    growth = max((status_bytes("VmHWM") or 0) - before, 0)
    shutil.rmtree(folder, ignore_errors=True)
    if outcome not in FAILURES and seconds > MOST_SECONDS:
        outcome, reason = HANG, f"{seconds:.0f} s"
    if outcome not in FAILURES and growth > MOST_GROWTH:
        outcome, reason = GROWTH, f"{growth / 2**20:.0f} MiB"
    return outcome, seconds, growth, reason


def _peak_anew() -> int:
    """Have the peak of this process's memory counted from now on, and return its memory."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return status_bytes("VmHWM") or 0
    return status_bytes("VmRSS") or 0


def _row(name: str, counts: dict[str, int] | Counter[str]) -> str:
    cells = [sum(counts.values()), *(counts.get(key, 0) for key in (ACCEPTED, REFUSED, *FAILURES))]
    return f"| {name} | {' | '.join(f'{cell:,}' for cell in cells)} |"
