"""A batch that is killed in the middle: no finished call is repeated, and nothing is different."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from factormodels import read_many
from factormodels.io.appended_records import JournalErrors, read_journal
from tests.experiments.conftest import environment, invoke, write_batch
from tests.factormodels.extraction.server import Reply, ScriptedServer, label_reply

pytestmark = [pytest.mark.service, pytest.mark.kill]

N_RESPONSES = 70
FINISHED_AT_THE_KILL = 90
PATIENCE = 120.0

LABELS = ("entailment", "contradiction", "neutral")


class Provider:
    """A script of a language model that can stop answering, and knows what it answered."""

    def __init__(self) -> None:
        self.answered: Counter[str] = Counter()
        self.limit = 10**9
        self.go_on = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, request: dict[str, Any], _: int) -> Reply:
        question = request["messages"][-1]["content"]
        with self._lock:
            held = self.answered.total() >= self.limit
            if not held:
                self.answered[question] += 1
        if held:
            self.go_on.wait(PATIENCE)
            return Reply(status=500)
        if "<sentences>" in question:
            number = question.rpartition("<sentences>")[2].split()[0].rstrip(":")
            digest = hashlib.sha256(question.encode()).hexdigest()
            claim = {"sentence": int(number), "claim": f"Trains cross bridge {digest[:6]}."}
            return Reply(json.dumps([claim]))
        byte = hashlib.sha256(question.encode()).digest()[0]
        label = LABELS[byte % 3]
        share = 0.5 + byte / 600
        others = {other: (1 - share) / 2 for other in LABELS if other != label}
        return label_reply(label, share, others)


def command(url: str, name: str) -> list[str]:
    arguments = ["assess", "batch.jsonl", "--documents", "notes", "--top-k", "1", "--no-revise"]
    arguments += ["--model", "openai/scripted", "--api-base", url, "--concurrency", "8"]
    return [*arguments, "--out", f"{name}.jsonl", "--cache", f"{name}.sqlite"]


def start(url: str, name: str) -> subprocess.Popen[str]:
    """Begin the batch in a process of its own, which can be killed."""
    return subprocess.Popen(
        [sys.executable, "-m", "experiments", *command(url, name)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def stored(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        count: int = connection.execute("SELECT COUNT(*) FROM answers").fetchone()[0]
    return count


def wait_until_all_is_stored(
    path: Path, provider: Provider, process: subprocess.Popen[str]
) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(sqlite3.Error):
            if provider.answered.total() == provider.limit == stored(path):
                return
        time.sleep(0.02)
    process.kill()
    answered = provider.answered.total()
    pytest.fail(f"{answered} calls were answered and not stored: {process.communicate()}")


@pytest.fixture
def batch(keyed: Path) -> Path:
    """The current folder, with responses and some notes."""
    notes = {"a.txt": "A bridge is red.", "b.txt": "Trains cross it.", "c.txt": "Cars do."}
    write_batch(keyed, [f"Bridge {i} is red." for i in range(N_RESPONSES)], notes)
    return keyed


def test_a_killed_batch_goes_on_without_repeating_a_finished_call(batch: Path) -> None:
    undisturbed = Provider()
    with ScriptedServer(undisturbed) as server:
        invoke(*command(server.url, "whole"))
    assert max(undisturbed.answered.values()) == 1

    provider = Provider()
    provider.limit = FINISHED_AT_THE_KILL
    with ScriptedServer(provider) as server:
        process = start(server.url, "killed")
        wait_until_all_is_stored(batch / "killed.sqlite", provider, process)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        journal = batch / "killed.jsonl.partial"
        sentences = JournalErrors(
            busy="it is busy", foreign="it is foreign", damaged="it is damaged"
        )
        # The settings are a record too.
        records = list(read_journal(journal, sentences))
        finished = len(records) - 1
        assert 0 < finished < N_RESPONSES
        assert not (batch / "killed.jsonl").exists()
        # A record that the kill cut off is the worst that may be left.
        written = journal.read_bytes()
        with journal.open("ab") as file:
            file.write(written[-len(records[-1]) - 16 : -20])
        provider.limit = 10**9
        provider.go_on.set()
        resumed = invoke(*command(server.url, "killed"))
    assert f"{finished} responses were finished by an earlier run" in resumed.stderr
    assert max(provider.answered.values()) == 1
    assert provider.answered == undisturbed.answered
    assert (batch / "killed.jsonl").read_bytes() == (batch / "whole.jsonl").read_bytes()
    assert not journal.exists()
    graphs = read_many(batch / "killed.jsonl")
    assert [graph.id for graph in graphs] == [f"r{i}" for i in range(N_RESPONSES)]
    assert b"secret" not in b"".join(path.read_bytes() for path in batch.glob("*.*"))
