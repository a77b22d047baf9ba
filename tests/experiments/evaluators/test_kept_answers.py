"""The file of answers after every end of a command: one file, which alone is enough."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from factormodels.extraction.language_model.cache import AnswerCache
from tests.experiments.conftest import environment, invoke, write_batch
from tests.experiments.evaluators.test_assess_model import provider, stage_of
from tests.factormodels.extraction.questions import question_of
from tests.factormodels.extraction.server import Reply, ScriptedServer

pytestmark = [pytest.mark.service, pytest.mark.kill]

INTERRUPTIBLE = """
import signal
from experiments.cli.main import main
# A test run in the background of a shell ignores interrupts, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""

RESPONSES = [f"Train {i} crosses the bridge. Car {i} crosses it." for i in range(16)]


def slow_provider(request: dict[str, Any], number: int) -> Reply:
    time.sleep(0.02)
    return provider(request, number)


def command(url: str) -> tuple[str, ...]:
    model = ("--model", "openai/scripted", "--api-base", url, "--concurrency", "8")
    return ("assess", "batch.jsonl", "--documents", "notes", *model)


def stopped(
    folder: Path, server: ScriptedServer, sent: signal.Signals, *more: str
) -> tuple[int, str]:
    """Send a signal to the command after 20 calls; how it ended, and what it wrote to stderr."""
    running = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *command(server.url), *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment(),
    )  # fmt: skip
    deadline = time.monotonic() + 120.0
    while len(server.requests) < 20 and time.monotonic() < deadline:
        time.sleep(0.005)
    running.send_signal(sent)
    _, errors = running.communicate(timeout=600)
    return running.returncode, errors


@pytest.mark.parametrize(
    "sent",
    [None, pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGTERM],
    ids=str,
)
def test_one_file_holds_every_answer_however_the_command_ends(
    keyed: Path, sent: signal.Signals | None
) -> None:
    # Enough that calls are left after the first 20 and the 8 under way.
    write_batch(keyed, RESPONSES[:8], {"a.txt": "Only trains cross the bridge."})
    with ScriptedServer(slow_provider) as server:
        if sent is None:
            errors = invoke(*command(server.url), "--out", "o").stderr
        else:
            code, errors = stopped(keyed, server, sent, "--out", "o")
            assert code == {signal.SIGINT: 130, signal.SIGTERM: 143}[sent], errors
        asked = len(server.requests)
        assert "Traceback" not in errors
        if sent == signal.SIGTERM:
            sentence = "factormodels: stopped by the system (SIGTERM)"
            # Threads that are still at work may have a remark of their own after it.
            stopped_lines = [line for line in errors.splitlines() if line.startswith(sentence)]
            assert len(stopped_lines) == 1, errors
        assert sorted(keyed.glob("answers.sqlite*")) == [keyed / "answers.sqlite"]
        copied = keyed / "copied.sqlite"
        shutil.copyfile(keyed / "answers.sqlite", copied)
        kept = AnswerCache(copied, read_only=True)
        # All that came but what was under way, at most 8 calls.
        assert asked - 8 * (sent is not None) <= len(kept) <= asked
        finished = len(kept)
        kept.close()
        invoke(*command(server.url), "--out", "again", "--cache", "copied.sqlite")
        whole = len(server.requests) - asked + finished
        # Nothing that the copy holds is asked for again.
        assert whole == len(AnswerCache(copied, read_only=True))


@pytest.mark.nightly
def test_interrupted_few_calls_go_on_where_they_were(keyed: Path) -> None:
    """In `test_few_calls.py` a limit of calls ends the command in place of a signal."""
    write_batch(keyed, RESPONSES, {f"{n}.txt": f"Train {n} crosses bridges." for n in range(3)})
    more = ("--few-calls", "--atoms", "sentences")
    with ScriptedServer(slow_provider) as server:
        code, errors = stopped(keyed, server, signal.SIGINT, *more, "--out", "o")
        assert code == 130, errors
        before = len(server.requests)
        kept = len(AnswerCache(keyed / "answers.sqlite", read_only=True))
        invoke(*command(server.url), *more, "--out", "o")
        asked = [question_of(each) for each in server.requests if stage_of(each) == "relations"]
        # Only what was under way is asked for again, at most 8 calls.
        assert len(asked) - len(set(asked)) <= before - kept <= 8
        calm = ("--out", "calm", "--cache", "calm.sqlite")
        invoke(*command(server.url), *more, *calm)
    assert (keyed / "o/graphs.jsonl").read_bytes() == (keyed / "calm/graphs.jsonl").read_bytes()
