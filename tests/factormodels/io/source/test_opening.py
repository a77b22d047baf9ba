"""The gate through which files are opened: what passes, and that nothing blocks or grows."""

from __future__ import annotations

import gzip
import io
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from factormodels import read, read_many
from factormodels.errors import InputError
from factormodels.io import read_any, read_each, read_prompts
from factormodels.io.file_report import check_file
from factormodels.io.json import decode, read_json_lines
from factormodels.io.networks.uai_results import read_evidence, read_marginals
from factormodels.io.source.files import read_text, write_text
from factormodels.io.source.opening import (
    parse_size,
    read_lines,
    read_whole,
    size_limit,
    size_text,
)
from tests.memory import at_most, bytes_read, writing_at_most
from tests.refusals import refused

READERS: tuple[Callable[[Path], object], ...] = (
    *(read_whole, read_text, read, read_many, read_any, read_prompts),
    *(read_evidence, read_marginals, lambda path: list(read_each(path))),
    lambda path: list(read_json_lines(path)),
)
LINE = '{"id": "r%d", "nodes": [{"id": "a", "type": "atom", "probability": 0.5}], "edges": []}\n'


@pytest.mark.parametrize("reader", READERS)
def test_no_reader_waits_for_a_pipe_or_reads_a_device(
    reader: Callable[[Path], object], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused("this is a pipe; name a regular file, or - for standard", reader, tmp_path / "pipe")
    refused("this is a device", reader, Path("/dev/zero"))
    refused("this is a folder; name a file in it", reader, tmp_path)
    refused("there can be no such file", reader, tmp_path / ("x" * 300))
    refused("is not a path", reader, Path("a\0b"))


def test_a_socket_is_no_file(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        refused("this is a socket", read_text, tmp_path / "s")


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """64 MiB of zeros, packed."""
    path = tmp_path_factory.mktemp("bomb") / "bomb.gz"
    with gzip.open(path, "wb") as file:
        file.write(bytes(2**26))
    assert path.stat().st_size < 2**17
    return path


@pytest.mark.parametrize("reader", READERS)
def test_the_unpacked_size_of_a_file_is_limited(
    reader: Callable[[Path], object], bomb: Path
) -> None:
    # A megabyte that may be held, another that is too much, and copies of them in the making.
    with (
        at_most(8 * 2**20),
        size_limit(2**20),
        pytest.raises(InputError, match=r"more than 1 MiB; .* --max-size"),
    ):
        reader(bomb)


def test_lines_are_read_with_flat_memory(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    filler = LINE.replace('"atom"', f'"atom", "text": "{"x" * 10_000}"')
    path.write_text("".join(filler % number for number in range(2_000)))
    # 20 MB of text pass through less than a few chunks of a megabyte each.
    with at_most(8 * 2**20):
        assert sum(len(graph.atoms) for graph in read_each(path)) == 2_000
    # What is held together is limited together, and so is a line.
    with size_limit(2**21):
        assert sum(1 for _ in read_each(path)) == 2_000
        refused("it holds more than 2 MiB", read_many, path)
    path.write_text(filler % 1)
    with size_limit(2**13), pytest.raises(InputError, match="more than 8 KiB"):
        list(read_each(path))


def test_blank_gigabytes_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "blank.jsonl").write_bytes(LINE.encode() % 1 * 2 + b"\n" * 200_000)
    refused("more than 100,000 blank lines", list, read_lines(tmp_path / "blank.jsonl"))


def test_members_of_a_packed_file_are_joined_and_damage_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "two.gz"
    packed = gzip.compress(b"one,") + gzip.compress(b"two")
    path.write_bytes(packed + bytes(512))
    assert read_whole(path) == b"one,two"
    for damaged in (packed[:-5], packed[:30], packed + b"rest", b"\x1f\x8b"):
        path.write_bytes(damaged)
        refused("gzip compression is damaged", read_whole, path)


def test_the_place_of_what_is_no_text_is_its_place_in_the_file(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf{}\nab\xffc\n"
    (tmp_path / "f").write_bytes(content)
    for reader in (read_text, lambda path: list(read_lines(path))):
        refused(rf"byte {content.index(0xFF)} \(0xff\) is not UTF-8", reader, tmp_path / "f")


def test_standard_input_is_read_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def given(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content), closed=False))

    given((LINE % 1 + LINE % 2).encode())
    assert [graph.id for graph in read_many("-")] == ["r1", "r2"]
    given(gzip.compress(b"MARKOV 1 2 0"))
    assert read("-").n_variables == 1  # type: ignore[union-attr]
    given(b'{"id": 1')
    refused("standard input: line 1, column 9 is not JSON", read_many, "-")
    given(bytes(5_000))
    with size_limit(100), pytest.raises(InputError, match="standard input: it holds more than 100"):
        read_text("-")


def test_a_check_of_a_dataset_tells_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (problem,) = check_file(tmp_path / "pipe").problems
    assert "this is a pipe" in problem.message


@pytest.mark.parametrize(
    ("text", "size"), [("17", 17), ("2K", 2048), ("3 MB", 3 * 2**20), ("4GiB", 2**32)]
)
def test_sizes_are_written_as_people_do(text: str, size: int) -> None:
    assert parse_size(text) == size
    assert parse_size(size_text(size).replace("bytes", "")) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "K", "1" * 20, "two", "²", "1 X", "1.5G"])
def test_invalid_sizes_are_refused(text: str) -> None:
    refused("is not a size", parse_size, text)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a": [1, ' + "9" * 400 + "]}", "line 1, column 11: 9"),
        ("[" + "9" * 5000 + "]", "line 1, column 2: 9"),
        ("[\n-" + "1" * 310 + "]", "line 2, column 1: -1"),
    ],
)
def test_whole_numbers_beyond_floating_point_are_refused_with_their_place(
    text: str, where: str
) -> None:
    refused(f"{where}.*too large for a number", decode, text, "f.json")


def test_a_repeated_key_among_many_is_found_in_one_pass() -> None:
    keys = ",".join(f'"k{number}": 1' for number in range(200_000))
    # By a search among the keys before each one this would take minutes.
    refused("'k199999' is given twice", decode, "{" + keys + ', "k199999": 2}', "f.json")


def test_a_pipe_is_not_replaced_by_what_is_written(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refused("pipe: this is a device or a pipe; name a regular file", write_text, pipe, "text")
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    reader: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.write((LINE % 1).encode() * 3)
        # Sixteen times what is held in memory is read line by line by some.
        file.truncate(3 * 2**30)
    before = bytes_read()
    refused("large.json: it holds more than (128 MiB|2 GiB)", reader, path)
    # A piece or two of a mebibyte, and what modules are read meanwhile.
    assert bytes_read() - before < 8 * 2**20


def test_files_that_a_full_disk_stops_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("before")
    with writing_at_most(1), pytest.raises(OSError, match=r"too large: '.*/t\.txt'$"):
        write_text(path, "much more")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
