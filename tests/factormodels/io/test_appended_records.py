"""The journal: whatever of it is torn off or damaged, no wrong record is read back."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from factormodels.errors import InputError
from factormodels.io.appended_records import (
    JournalErrors,
    open_journal,
    open_keyed_journal,
    read_journal,
    read_keyed_journal,
)
from tests.memory import at_most
from tests.refusals import refused

RECORDS = [b"first", b"", b"the third one", b"\0" * 9]
HEADER = 16
"""Bytes before each record: mark, length, checksum."""

ERRORS = JournalErrors(busy="it is busy", foreign="it is foreign", damaged="it is damaged")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of `RECORDS`."""
    file = tmp_path / "units.bin"
    with open_journal(file, ERRORS) as journal:
        for record in RECORDS:
            journal.append(record)
    return file


def records(path: Path) -> list[bytes]:
    return list(read_journal(path, ERRORS))


def test_records_come_back_in_order(path: Path) -> None:
    assert records(path) == RECORDS
    with open_journal(path, ERRORS) as journal:
        start = journal.append(b"later")
        assert journal.read(start) == b"later"
        assert [record for _, record in journal.records()] == [*RECORDS, b"later"]
    assert records(path) == [*RECORDS, b"later"]
    assert records(path.with_name("absent")) == []


def test_a_record_is_there_at_once(tmp_path: Path) -> None:
    with open_journal(tmp_path / "units.bin", ERRORS) as journal:
        journal.append(b"one")
        assert records(tmp_path / "units.bin") == [b"one"]


def test_a_torn_end_is_cut_off_wherever_it_was_torn(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        before = records(path)
        assert before == RECORDS[: len(before)]
        with open_journal(path, ERRORS) as journal:
            journal.append(b"next")
        assert records(path) == [*before, b"next"]


def test_zeros_that_a_loss_of_power_leaves_at_the_end_are_cut_off(path: Path) -> None:
    with path.open("ab") as file:
        file.write(bytes(100))
    assert records(path) == RECORDS


def test_damage_before_the_last_record_is_named_wherever_it_is(path: Path) -> None:
    whole = path.read_bytes()
    last = whole.rindex(RECORDS[-1]) - HEADER
    first = whole.index(RECORDS[0]) - HEADER
    for at in range(first, last):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        refused("it is damaged", records, path)
        damaged = path.read_bytes()
        with pytest.raises(InputError, match="it is damaged"), open_journal(path, ERRORS):
            pass
        assert path.read_bytes() == damaged, "what is refused is left as it is"
    with open_journal(path, ERRORS, anew=True) as journal:
        journal.append(b"new")
    assert records(path) == [b"new"]


def test_damage_of_the_last_record_drops_it_alone(path: Path) -> None:
    whole = path.read_bytes()
    last = whole.rindex(RECORDS[-1]) - HEADER
    for at in range(last, len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert records(path) == RECORDS[:-1]


def test_two_processes_do_not_share_a_journal(path: Path) -> None:
    with (
        open_journal(path, ERRORS),
        pytest.raises(InputError, match="it is busy"),
        open_journal(path, ERRORS, anew=True),
    ):
        pass
    assert records(path) == RECORDS
    with open_journal(path, ERRORS) as journal:
        journal.clear()
    assert records(path) == []


@pytest.mark.parametrize("text", [b"something else, and longer", b"factormodels units 1\n", b"x"])
def test_another_file_is_no_journal_and_is_kept(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "units.bin"
    path.write_bytes(text)
    refused("it is foreign", records, path)
    with pytest.raises(InputError, match="it is foreign"), open_journal(path, ERRORS):
        pass
    with pytest.raises(InputError, match="it is foreign"), open_keyed_journal(path, ERRORS):
        pass
    assert path.read_bytes() == text


def test_values_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "kept.bin"
    value = {"theta": [0.1 + 0.2, 5e-324, 1e308, -0.0], "none": None, "text": "a\n\u2028ü\ud800"}
    with open_keyed_journal(path, ERRORS) as kept:
        assert kept.get("a") is None
        assert not kept
        kept.put("a", 1)
        kept.put("b", {"nan": math.nan, "inf": math.inf})
        kept.put("a", value)
        assert kept["a"] == value
        assert read_keyed_journal(path, ERRORS)["a"] == value
    with open_keyed_journal(path, ERRORS) as kept:
        assert list(kept) == ["a", "b"]
        assert "c" not in kept
        assert kept["a"] == value
        assert math.copysign(1.0, kept["a"]["theta"][3]) == -1.0
        assert math.isnan(kept["b"]["nan"])
        assert kept["b"]["inf"] == math.inf


def test_a_torn_value_is_dropped_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "kept.bin"
    with open_keyed_journal(path, ERRORS) as kept:
        kept.put("a", 1)
        kept.put("b", 2)
    path.write_bytes(path.read_bytes()[:-1])
    with open_keyed_journal(path, ERRORS) as kept:
        assert dict(kept) == {"a": 1}
        kept.put("b", 3)
    assert read_keyed_journal(path, ERRORS) == {"a": 1, "b": 3}


def test_a_value_that_is_changed_from_outside_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "kept.bin"
    with open_keyed_journal(path, ERRORS) as kept:
        kept.put("a", "aaa")
        with path.open("r+b") as file:
            file.seek(-3, 2)
            file.write(b"b")
        with pytest.raises(InputError, match="it is damaged"):
            kept["a"]


def test_values_beside_a_damaged_one_are_kept(tmp_path: Path, caplog: Any) -> None:
    path = tmp_path / "kept.bin"
    with open_keyed_journal(path, ERRORS) as kept:
        for number in range(4):
            kept.put(f"k{number}", number)
    whole = path.read_bytes()
    values = {f"k{number}": number for number in range(4)}
    for at in range(whole.index(b"\x89"), len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        caplog.clear()
        with open_keyed_journal(path, ERRORS) as kept:
            assert len(kept) == 3
            assert kept.items() <= values.items()
            kept.put("k9", 9)
        # Of the last value nobody knows whether it was ever whole.
        assert ("kept.bin: 1 places in it are damaged" in caplog.text) == ("k3" in kept)
        assert len(read_keyed_journal(path, ERRORS)) == 4


def test_a_damaged_length_asks_for_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "kept.bin"
    with open_keyed_journal(path, ERRORS) as kept:
        kept.put("a", 1)
        kept.put("b", 2)
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"\x89") + 11] ^= 0x80  # The highest byte of the first length: two gigabytes.
    path.write_bytes(whole)
    with at_most(2**20), open_keyed_journal(path, ERRORS) as kept:
        assert dict(kept) == {"b": 2}


def test_a_journal_of_another_kind_is_foreign(path: Path) -> None:
    with pytest.raises(InputError, match="it is foreign"), open_keyed_journal(path, ERRORS):
        pass
    refused("it is foreign", read_keyed_journal, path, ERRORS)
