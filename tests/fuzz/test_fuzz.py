"""Every reader and command on damaged inputs; `make fuzz` tries MUTANTS of them."""

from __future__ import annotations

import faulthandler
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factormodels.errors import FactormodelsError, InputError
from tests.fuzz import targets
from tests.fuzz.mutations import mutant
from tests.fuzz.targets import Target
from tests.limited_process import limit_memory, status_bytes
from tests.memory import peak_anew

pytestmark = [pytest.mark.slow]

MUTANTS = int(os.environ.get("MUTANTS", "0"))
"""How many are tried in all; without a number some of each target, always the same."""

AGAIN = "report rows.parquet"
"""A target whose whole input is that of another: the same run, all of whose files are whole."""

HEAVY = 3
"""A target whose share is at most this takes long, and is damaged once; the others more often."""

ACCEPTED, REFUSED, TRACEBACK, HANG, GROWTH = "accepted", "refused", "traceback", "hang", "growth"

MOST_SECONDS = 20.0
"""Of processor time; a machine that is busy makes nothing a hang."""

PATIENCE = 600.0
"""Seconds by the clock, after which a process that waits, or cannot be interrupted, is ended."""

MOST_GROWTH = 512 * 2**20
"""Bytes that a process may grow by over one input; its limit lets it have twice as many."""


class Overtime(BaseException):
    """An input has taken all the time that it may; no reader catches this."""


@contextmanager
def limited() -> Iterator[None]:
    """Bound the time and the memory of what is done within."""

    def too_long(*_: object) -> None:
        raise Overtime

    space = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGPROF, too_long)
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    limit_memory({}, 2 * MOST_GROWTH)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        faulthandler.cancel_dump_traceback_later()
        resource.setrlimit(resource.RLIMIT_AS, space)
        signal.signal(signal.SIGPROF, handler)


def tried(target: Target, content: bytes, begun: Path) -> tuple[str, str]:
    """Outcome of an input, and the reason if it failed."""
    folder = Path(tempfile.mkdtemp(dir=begun))
    (folder / target.file).write_bytes(content)
    before, since = peak_anew(), time.process_time()
    end = ACCEPTED
    try:
        with limited():
            target.run(folder / target.file)
    except FactormodelsError as error:
        # A sentence for the user: not empty, and not the whole of the input.
        if not str(error).strip() or len(str(error)) > 20_000:
            return TRACEBACK, f"no sentence: {str(error)[:200]!r}"
        end = REFUSED
    except Overtime:
        return HANG, f"{time.process_time() - since:.0f} s"
    except MemoryError:
        return GROWTH, "MemoryError"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        line = f"{Path(last.filename).name}:{last.lineno}"
        return TRACEBACK, f"{type(error).__name__} at {line}: {error}"[:300]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    growth = (status_bytes("VmHWM") or 0) - before
    return (GROWTH, f"{growth >> 20} MiB") if growth > MOST_GROWTH else (end, "")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that targets begin from."""
    folder = tmp_path_factory.mktemp("begun")
    targets.prepare(folder)
    return folder


@pytest.fixture(scope="module", params=targets.TARGETS, ids=lambda target: target.name)
def target(request: pytest.FixtureRequest) -> Target:
    """Each target, one after another: what it imports is loaded when it gets damaged inputs."""
    chosen: Target = request.param
    return chosen


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.nightly] if each.name == AGAIN else [])
        for each in targets.TARGETS
    ],
    indirect=True,
    scope="module",
)
def test_every_target_takes_a_whole_input(target: Target, begun: Path) -> None:
    ends = [tried(target, whole, begun) for whole in target.whole(begun)]
    assert (ACCEPTED, "") in ends
    assert {end for end, _ in ends} <= {ACCEPTED, REFUSED}, ends


def test_a_damaged_input_ends_in_a_result_or_a_sentence(target: Target, begun: Path) -> None:
    few = 1 if target.share <= HEAVY else 5
    share = target.share / sum(target.share for target in targets.TARGETS)
    seeds = target.whole(begun)

    @settings(
        max_examples=max(few, round(MUTANTS * share)),
        derandomize=not MUTANTS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False))
    def holds(drawn: Random) -> None:
        damaged = mutant(seeds, drawn)
        end, reason = tried(target, damaged, begun)
        assert end in (ACCEPTED, REFUSED), f"{end}, {reason}: {damaged[:2000]!r}"

    holds()


def _spins(_: Path) -> object:
    while True:
        pass


def _refuses_with_nothing(_: Path) -> object:
    raise InputError(" ")


@pytest.mark.parametrize(
    ("run", "end"),
    [
        (Path.read_bytes, (ACCEPTED, "")),
        (lambda path: {}[path.name], (TRACEBACK, "KeyError at test_fuzz.py:")),
        (_refuses_with_nothing, (TRACEBACK, "no sentence")),
        (_spins, (HANG, "")),
        (lambda _: bytearray(48 * 2**20), (GROWTH, "4")),
        (lambda _: bytearray(512 * 2**20), (GROWTH, "MemoryError")),
    ],
    ids=["sound", "broken", "silent", "slow", "greedy", "insatiable"],
)
def test_a_fault_of_each_kind_is_reported(
    run: targets.Run, end: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "MOST_SECONDS", 0.5)
    monkeypatch.setitem(globals(), "MOST_GROWTH", 32 * 2**20)
    kind, reason = tried(Target("planted", "f", (), run), b"x", tmp_path)
    assert (kind, reason[: len(end[1])]) == end


def test_mutants_differ_from_what_they_are_made_of_and_from_each_other() -> None:
    seeds = (b'{"a": [1, 2, {"b": "c"}]}', b"study: s\nseed: 1\n")
    assert len({mutant(seeds, Random(number)) for number in range(300)} - set(seeds)) > 250
