"""The store of results: whatever of it is torn off or damaged, no wrong record is read back."""

from __future__ import annotations

import math
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from factormodels.errors import InputError
from factormodels.io.store.results import STORE, open_store, read_store, remove_store
from tests.experiments.conftest import environment
from tests.memory import writing_at_most
from tests.refusals import refused

pytestmark = pytest.mark.kill

RECORDS = [b"first", b"", b"the third one" * 500, b"\0" * 9]
VALUES = {"a": [0.1 + 0.2], "b": "text " * 300, "c": None}
MEND = "mend it"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of `RECORDS` and `VALUES`."""
    file = tmp_path / STORE
    with open_store(file, MEND) as store:
        for record in RECORDS:
            store.append("units", record)
        for key, value in VALUES.items():
            store.put("answers", key, value)
    return file


def records(path: Path) -> list[bytes]:
    with read_store(path, MEND) as store:
        return list(store.records("units"))


def values(path: Path) -> dict[str, object]:
    with read_store(path, MEND) as store:
        return dict(store.items("answers"))


def test_a_closed_store_is_one_file_whose_records_come_back_in_order(path: Path) -> None:
    assert [file.name for file in path.parent.iterdir()] == [STORE]
    assert records(path) == RECORDS
    assert values(path) == VALUES
    with open_store(path, MEND) as store:
        store.append("units", b"later")
        # A reader needs no lock, and sees at once what was kept.
        assert records(path) == [*RECORDS, b"later"]
        assert (store.n_records("units"), store.n_records()) == (5, 8)
    assert records(path.with_name("absent")) == []
    assert not path.with_name("absent").exists()


def test_values_come_back_as_they_were_and_a_later_one_counts(tmp_path: Path) -> None:
    path = tmp_path / STORE
    value = {"theta": [0.1 + 0.2, 5e-324, 1e308, -0.0], "none": None, "text": "a\n\u2028ü\ud800"}
    with open_store(path, MEND) as store:
        kept = store.values("answers")
        assert kept.get("a") is None
        kept.put("a", 1)
        kept.put("b", {"nan": math.nan, "inf": math.inf})
        kept.put("a", value)
        store.put("other", "a", 2)
    # In the order in which the keys came, so that what was asked again stands where it stood.
    assert list(values(path)) == ["a", "b"]
    with open_store(path, MEND) as store:
        kept = store.values("answers")
        assert kept.get("a") == value
        assert math.copysign(1.0, kept.get("a")["theta"][3]) == -1.0
        assert math.isnan(kept.get("b")["nan"])
        assert (kept.get("c"), store.value("other", "a")) == (None, 2)
        store.clear()
    assert values(path) == {}


def test_two_processes_do_not_share_a_store(path: Path) -> None:
    for anew in (False, True):
        with (
            open_store(path, MEND),
            pytest.raises(InputError, match="another process is at work in this folder"),
            open_store(path, MEND, anew=anew),
        ):
            pass
    assert records(path) == RECORDS
    with open_store(path, MEND, anew=True):
        pass
    assert records(path) == []


@pytest.mark.parametrize("text", [b"something else, and longer", b"factormodels journal 2\n", b"x"])
def test_another_file_is_no_store_and_is_kept(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / STORE
    path.write_bytes(text)
    refused("not a store of results, or one of another version; mend it", records, path)
    with pytest.raises(InputError, match="not a store"), open_store(path, MEND):
        pass
    assert path.read_bytes() == text


def test_another_database_is_no_store_and_is_kept(tmp_path: Path) -> None:
    path = tmp_path / STORE
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE kept (kind, key, value, checksum)")
    before = path.read_bytes()
    refused("not a store of results", records, path)
    with pytest.raises(InputError, match="not a store"), open_store(path, MEND):
        pass
    assert path.read_bytes() == before


def test_a_name_of_its_table_that_is_no_text_is_damage(path: Path) -> None:
    # What SQLite says of it quotes the bytes, which no text can hold.
    content = path.read_bytes().replace(b"tablekeptkept", b"tablek\x80ptkept")
    path.write_bytes(content.replace(b"CREATE TABLE kept", b"CREATX TABLE kept"))
    sentence = r"cannot be used as a store of results \(a text in it is not UTF-8\); mend it"
    refused(sentence, records, path)
    with pytest.raises(InputError, match=sentence), open_store(path, MEND):
        pass


KILLED = """
import os, signal, sys
from pathlib import Path
from factormodels.io.store.results import open_store
with open_store(Path(sys.argv[1]), "mend it") as store:
    for number in range(2000):
        store.append("units", b"%d " % number * 100)
        store.put("answers", str(number % 50), number)
        print(number, flush=True)
"""


@pytest.mark.parametrize("n_written", [0, 1, 700])
def test_answers_before_a_kill_are_kept(tmp_path: Path, n_written: int) -> None:
    path = tmp_path / STORE
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        last = max(int(process.stdout.readline()) for _ in range(n_written + 1))
        process.kill()
        last = max([last, *map(int, process.stdout.read().split())])
    with open_store(path, MEND) as store:
        kept = list(store.records("units"))
        assert last < len(kept) <= last + 2
        assert kept == [b"%d " % number * 100 for number in range(len(kept))]
        assert store.value("answers", str(last % 50)) == last
        store.append("units", b"next")
    assert records(path)[-1] == b"next"
    assert [file.name for file in tmp_path.iterdir()] == [STORE]


def test_a_log_that_is_torn_loses_its_end_alone(path: Path) -> None:
    """The state after a loss of power."""
    log = path.with_name(f"{STORE}-wal")
    with open_store(path, MEND) as store:
        store.append("units", b"one more" * 1000)
        whole = {file: file.read_bytes() for file in (path, log)}
    for length in range(0, len(whole[log]), 997):
        for file, content in whole.items():
            file.write_bytes(content[:length] if file == log else content)
        log.with_name(f"{STORE}-shm").unlink(missing_ok=True)
        before = records(path)
        assert before[:4] == RECORDS
        assert before[4:] in ([], [b"one more" * 1000])
        with open_store(path, MEND) as store:
            store.append("units", b"next")
        assert records(path) == [*before, b"next"]


def test_no_flipped_bit_makes_a_record_another(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = path.read_bytes()
    generator = random.Random(0)
    outcomes: Counter[str] = Counter()
    for _ in range(150):
        changed = bytearray(whole)
        changed[generator.randrange(len(whole))] ^= 1 << generator.randrange(8)
        path.write_bytes(changed)
        caplog.clear()
        try:
            with open_store(path, MEND) as store:
                kept = [*store.records("units"), *store.items("answers")]
                store.append("units", b"next")
            assert records(path)[-1:] == [b"next"]
        except InputError as error:
            outcomes["named"] += 1
            assert str(error).startswith(f"{path}: ")  # noqa: PT017
            assert str(error).endswith("; mend it")  # noqa: PT017
            continue
        # What is left is what was kept, in its order, and what is gone was told of.
        rest = iter([*RECORDS, *VALUES.items()])
        assert all(record in rest for record in kept)
        outcomes["less" if len(kept) < 7 else "whole"] += 1
        assert ("parts of it are damaged" in caplog.text) or len(kept) == 7
    # Most of the file is free space, and all is lost with a few bytes at its beginning alone.
    assert outcomes["whole"] > outcomes["less"] > 10 > outcomes["named"]


def test_a_damaged_page_costs_what_is_on_it(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with open_store(path, MEND) as store:
        for number in range(200):
            store.append("units", b"%03d" % number * 200)
    whole = bytearray(path.read_bytes())
    assert len(whole) > 30 * 4096
    whole[20 * 4096 : 21 * 4096] = bytes(4096)
    path.write_bytes(whole)
    with open_store(path, MEND) as store:
        records = list(store.records("units"))[4:]
        assert 180 < len(records) < 200
        assert all(row == row[:3] * 200 for row in records)
    assert "parts of it are damaged and left out" in caplog.text
    caplog.clear()
    with open_store(path, MEND) as store:
        assert list(store.records("units"))[4:] == records
    assert caplog.text == "", "it was put in order"


def test_a_value_that_is_changed_from_outside_is_not_taken(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE kept SET value = x'31' WHERE key = 'a'")
    with open_store(path, MEND) as store:
        assert store.value("answers", "a") is None
        store.put("answers", "a", 5)
        assert store.value("answers", "a") == 5


def test_a_full_disk_names_the_store_and_loses_nothing(path: Path) -> None:
    with open_store(path, MEND) as store:
        with writing_at_most(20_000), pytest.raises(OSError, match=rf"{STORE}'$"):
            store.append("units", b"x" * 40_000)
        kept = list(store.records("units"))
        store.append("units", b"next")
    assert kept[:4] == RECORDS
    assert records(path) == [*kept, b"next"]


def test_a_removed_store_leaves_nothing(path: Path) -> None:
    with open_store(path, MEND) as store:
        store.append("units", b"x")
        remove_store(path)
    assert list(path.parent.iterdir()) == []
