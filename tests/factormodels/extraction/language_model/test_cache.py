"""The cache keeps what was answered, through anything, and nothing else."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from factormodels.errors import LimitReachedError
from factormodels.extraction.concurrency import each
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    Message,
    PromptIdentity,
    Request,
    Token,
    Usage,
)
from factormodels.extraction.language_model.accounting import Account, Ledger, MeteredModel
from factormodels.extraction.language_model.cache import AnswerCache, CachedModel, cache_key
from factormodels.extraction.language_model.prices import Prices
from tests.refusals import refused

ROOT = Path(__file__).resolve().parents[4]

REQUEST = Request((Message("user", "Who?"),), PromptIdentity("p", 1, "0" * 64), "stage")

ANSWER = Completion(
    "yes ✓",
    (Token("yes", -0.1, (("yes", -0.1), ("no", -2.5))),),
    Usage(3, 1, 0.25),
    finish="length",
)


class Fake:
    """A model that counts its calls and gives scripted answers."""

    name = "fake"

    def __init__(self, answer: Completion | Failure = ANSWER, delay: float = 0.0) -> None:
        self.answer = answer
        self.delay = delay
        self.calls = 0

    async def complete(self, _request: Request) -> Completion | Failure:
        self.calls += 1
        await asyncio.sleep(self.delay)
        return self.answer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c.db"


def asked(model: CachedModel, request: Request = REQUEST) -> Completion | Failure:
    return asyncio.run(model.complete(request))


def replay(path: Path) -> CachedModel:
    return CachedModel(None, AnswerCache(path, read_only=True), name="fake")


CACHED = replace(ANSWER, cached=True)


def test_failures_are_asked_again(path: Path) -> None:
    failed = Failure("busy", Usage(3, 1, 0.25), outage=True)
    fake, cache = Fake(failed), AnswerCache(path)
    model = CachedModel(fake, cache)
    assert asked(model) == failed
    assert len(cache) == 0
    # A replay fails where the run did.
    again = replay(path)
    assert asked(again) == replace(failed, cached=True)
    fake.answer = ANSWER
    assert asked(model) == ANSWER
    assert fake.calls == 2
    assert asked(again) == CACHED
    assert cache.failure(cache_key("fake", REQUEST)) is None


def test_equal_requests_under_way_are_sent_once(path: Path) -> None:
    fake = Fake(delay=0.01)
    answers = asyncio.run(each(CachedModel(fake, AnswerCache(path)).complete, [REQUEST] * 20, 20))
    assert fake.calls == 1
    assert answers.count(ANSWER) == 1
    assert answers.count(CACHED) == 19


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (Message("user", "What?"),)},
        {"messages": (Message("system", "Who?"),)},
        {"prompt": PromptIdentity("p", 2, "0" * 64)},
        {"prompt": PromptIdentity("p", 1, "1" * 64)},
        *({"temperature": 0.5}, {"max_tokens": 7}, {"top_logprobs": 5}, {"seed": 0}, {"sample": 1}),
        {"schema": '{"type": "object"}'},
    ],
)
def test_whatever_an_answer_depends_on_is_in_the_key(change: dict[str, object]) -> None:
    assert cache_key("m", REQUEST) != cache_key("m", replace(REQUEST, **change))  # type: ignore[arg-type]


def test_the_stage_and_the_reading_are_not_in_the_key_and_the_model_is() -> None:
    assert cache_key("m", REQUEST) != cache_key("n", REQUEST)
    for change in ({"stage": "another"}, {"fault": unreadable}):
        assert cache_key("m", REQUEST) == cache_key("m", replace(REQUEST, **change))
    # The value, so that a cache of before is of use.
    assert cache_key("m", REQUEST).startswith("77bcfc4da64bc8bd")


def test_a_replay_names_the_first_missing_request(path: Path) -> None:
    cache = AnswerCache(path)
    asked(CachedModel(Fake(), cache))
    cache.close()
    again = replay(path)
    assert asked(again) == CACHED
    unknown = replace(REQUEST, messages=(Message("user", "And who\nelse?"),))
    refused(
        r"no answer of 'fake' to prompt 'p' version 1, asked by stage "
        r"'stage' \(key \w{12}; 'And who else\?'\); run without replay",
        *(asked, again, unknown),
    )
    absent = path.with_name("absent.db")
    refused("there is no such cache", AnswerCache, absent, read_only=True)
    assert not absent.exists()


def test_files_that_are_no_cache_are_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("These are my notes, and they are longer than a header of SQLite." * 20)
    refused(r"notes.txt: this is not a cache of answers", AnswerCache, text)
    assert text.read_text().startswith("These are my notes")
    other = tmp_path / "other.db"
    for mode in ("delete", "wal"):
        with closing(sqlite3.connect(other)) as connection:
            connection.execute(f"PRAGMA journal_mode = {mode}")
            connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
        refused("this is not a cache of answers, or one of another version", AnswerCache, other)
        gc.collect()
        # It stays in its mode.
        with closing(sqlite3.connect(other)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == (mode,)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_closed_cache_is_one_file_that_can_be_copied(tmp_path: Path, path: Path) -> None:
    first, second = AnswerCache(path), AnswerCache(path)
    first.put("one", "fake", REQUEST, ANSWER)
    second.put("two", "fake", REQUEST, ANSWER)
    first.close()
    # The other one has it open; closing twice is no error.
    second.put("three", "fake", REQUEST, ANSWER)
    second.close()
    second.close()
    assert files(tmp_path) == {"c.db"}
    copied = tmp_path / "copied.db"
    copied.write_bytes(path.read_bytes())
    copied.chmod(0o444)
    # In the mode that needs nothing beside it, as in a folder that cannot be written to.
    with closing(sqlite3.connect(copied)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    again = AnswerCache(copied, read_only=True)
    assert [again.get(key) for key in ("one", "two", "three")] == [ANSWER] * 3
    again.close()
    assert files(tmp_path) == {"c.db", "copied.db"}


def test_a_cache_in_use_is_a_whole_file_and_closed_when_nobody_holds_it(path: Path) -> None:
    cache = AnswerCache(path)
    cache.put("one", "fake", REQUEST, ANSWER)
    assert len(files(path.parent)) > 1
    # Without what is beside it, as a backup would take it: as it was within the last second.
    copied = path.with_name("copied.db")
    copied.write_bytes(path.read_bytes())
    assert AnswerCache(copied, read_only=True).get("one") == ANSWER
    copied.unlink()
    del cache
    assert files(path.parent) == {"c.db"}


OPEN = """
import sys, time
from factormodels.extraction.language_model.cache import AnswerCache
from tests.factormodels.extraction.language_model.test_cache import ANSWER, REQUEST

folder, start, name = sys.argv[1:]
for number in range(20):
    # All processes open a new file at the same time, which is when they would trip one another.
    at = float(start) + 0.05 * number
    time.sleep(max(0.0, at - time.time() - 0.002))
    while time.time() < at:
        pass
    cache = AnswerCache(f"{folder}/{number}.db")
    cache.put(name, "fake", REQUEST, ANSWER)
    cache.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("names", ["ab", pytest.param("abcdefgh", marks=pytest.mark.nightly)])
def test_processes_may_open_a_new_cache_at_the_same_time(names: str, tmp_path: Path) -> None:
    start = str(time.time() + 3.0)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, str(tmp_path), start, name],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for name in names
    ]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    for number in range(20):
        assert len(AnswerCache(tmp_path / f"{number}.db")) == len(running)


def unreadable(answer: Completion) -> str:
    return "" if answer.text == ANSWER.text else "it is not the word asked for"


def test_unreadable_answers_are_neither_kept_nor_replayed(path: Path) -> None:
    unread = replace(ANSWER, text="Well, let me think.")
    fake, cache = Fake(unread), AnswerCache(path)
    model = CachedModel(fake, cache)
    strict = replace(REQUEST, fault=unreadable)
    assert asked(model, strict) == unread
    assert len(cache) == 0
    # An entry of a time when all was kept.
    cache.put(cache_key("fake", REQUEST), "fake", REQUEST, unread)
    refused("the replay has no answer", asked, replay(path), strict)
    fake.answer = ANSWER
    assert [asked(model, strict), asked(model, strict)] == [ANSWER, CACHED]
    assert fake.calls == 2


def test_a_kept_answer_costs_what_it_took_at_the_prices_of_today(path: Path) -> None:
    cache = AnswerCache(path)
    asked(CachedModel(Fake(), cache))
    ledger = Ledger()
    dear = MeteredModel(CachedModel(Fake(), cache, prices=Prices(1.0, 10.0)), ledger)
    for _ in range(2):
        asyncio.run(dear.complete(REQUEST))
    total = ledger.total
    assert (total.calls, total.cached, total.cost) == (0, 2, 0.0)
    # Three tokens asked and one answered, twice.
    assert total.taken == Usage(6, 2, 26.0)


def test_tokens_of_a_prefix_cache_are_kept_and_have_a_price_of_their_own(path: Path) -> None:
    cache = AnswerCache(path)
    key = cache_key("m", REQUEST)
    cache.put(key, "m", REQUEST, replace(ANSWER, usage=Usage(10, 2, None, 8)))
    kept = cache.get(key)
    assert kept is not None
    assert kept.usage.prefix_tokens == 8
    assert Prices(1.0, 10.0, 0.25).of(kept.usage) == 2 * 1.0 + 8 * 0.25 + 2 * 10.0
    # Without one they cost what others do.
    assert Prices(1.0, 10.0).of(kept.usage) == 30.0
    account = Account()
    account.add("relations", kept)
    taken = account.take()["relations"]
    assert (taken["prompt_tokens"], taken["prefix_tokens"]) == (10, 8)


def test_answers_that_were_kept_before_prefixes_were_counted_are_read(path: Path) -> None:
    cache = AnswerCache(path)
    key = cache_key("m", REQUEST)
    cache.put(key, "m", REQUEST, ANSWER)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE answers SET answer = ?",
            ('{"text": "yes", "tokens": [], "usage": [3, 1, null], "finish": "stop"}',),
        )
    kept = cache.get(key)
    assert kept is not None
    assert kept.usage == Usage(3, 1)


def test_a_replay_knows_the_parameters_that_a_model_rejects(path: Path) -> None:
    cache = AnswerCache(path)
    cache.note_lacking("fake", ["seed"], refused=False)
    cache.note_lacking("fake", ["logprobs"], refused=True)
    assert cache.lacking("fake") == replay(path).lacking == {"seed", "logprobs"}
    assert cache.lacking("fake", refused=True) == {"logprobs"}
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE parameters")
    assert AnswerCache(path, read_only=True).lacking("fake") == frozenset()


def test_whoever_waits_for_a_call_that_ends_in_an_error_is_told_it(path: Path) -> None:
    class Limited(Fake):
        async def complete(self, _request: Request) -> Completion | Failure:
            await asyncio.sleep(0.01)
            raise LimitReachedError("enough")

    model = CachedModel(Limited(), AnswerCache(path))

    async def many() -> list[BaseException | Completion | Failure]:
        calls = (model.complete(REQUEST) for _ in range(5))
        return await asyncio.gather(*calls, return_exceptions=True)

    assert [str(error) for error in asyncio.run(many())] == ["enough"] * 5


KEYS = [f"{number:064x}" for number in range(30)]


def filled_cache(path: Path) -> None:
    with closing(AnswerCache(path)) as cache:
        for key in KEYS:
            cache.put(key, "m", REQUEST, ANSWER)
            cache.note_failure(key, Failure("it is busy", Usage(1, 0)))
        cache.note_lacking("m", ["seed"], refused=True)


@pytest.mark.parametrize("damage", [b"\0", b"\xff"])
def test_a_cache_that_is_damaged_behind_its_header_is_named(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    filled_cache(path)
    whole = path.read_bytes()
    with closing(AnswerCache(path)) as cache:
        path.write_bytes(whole[:4096] + damage * (len(whole) - 4096))
        key = KEYS[0]
        refused(r"c\.sqlite: the entry 0{12} cannot be read \(.+\); give another", cache.get, key)
        refused(r"c\.sqlite: the failure of 0{12} cannot be read", cache.failure, key)
        refused(r"c\.sqlite: its answers cannot be counted", len, cache)
        refused(r"c\.sqlite: the parameters that models lack cannot be read", cache.lacking, "m")
        full = r"c\.sqlite: an answer cannot be stored"
        refused(full, cache.put, cache_key("m", REQUEST), "m", REQUEST, ANSWER)
        refused(r"c\.sqlite: the failure of 0{12} cannot be", cache.note_failure, key, None)
        lacks = ("n", ["top_logprobs"])
        refused(r"c\.sqlite: .+ cannot be", cache.note_lacking, *lacks, refused=False)
        refused(full, cache.remove, key)


@pytest.mark.parametrize(
    "text",
    [
        *("{}", "[]", "1", "null", "", "[" * 100_000, '{"text": "yes"'),
        '{"text": 5, "tokens": [], "usage": [1, 1, null], "finish": "stop"}',
        '{"text": "yes", "tokens": [1], "usage": [1, 1, null], "finish": "stop"}',
        '{"text": "yes", "tokens": [["a", "b", []]], "usage": [1, 1, null], "finish": "stop"}',
        '{"text": "yes", "tokens": [], "usage": ["a", 1, null], "finish": "stop"}',
        '{"text": "yes", "tokens": [], "usage": [1, 1], "finish": "stop"}',
    ],
)
def test_an_entry_that_is_no_answer_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    filled_cache(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE answers SET answer = ?", (text,))
        connection.execute("UPDATE failures SET failure = ?", (text,))
    with closing(AnswerCache(path)) as cache:
        refused("the entry 0{12} cannot be read", cache.get, KEYS[0])
        refused("the failure of 0{12} cannot be read", cache.failure, KEYS[0])
