"""Targets with a fault of each kind, which a campaign must find."""

from __future__ import annotations

import time
from pathlib import Path

from factormodels.errors import InputError
from tests.fuzz.campaign import Target


def prepare(folder: Path) -> None:
    """Make the folder; nothing is needed in it."""
    folder.mkdir(exist_ok=True)


def _broken(path: Path) -> None:
    if path.read_bytes() != b"broken":
        raise KeyError("x")


def _slow(path: Path) -> None:
    if path.read_bytes() != b"slow":
        time.sleep(60)


def _greedy(path: Path) -> int:
    return 0 if path.read_bytes() == b"greedy" else len(bytearray(600 * 2**20))


def _refused(path: Path) -> None:
    raise InputError(f"{path}: nothing is read")


TARGETS = (
    Target("sound", "f", (b"sound",), Path.read_bytes),
    Target("broken", "f", (b"broken",), _broken),
    Target("slow", "f", (b"slow",), _slow, 1),
    Target("greedy", "f", (b"greedy",), _greedy, 1),
)
DEAF = Target("deaf", "f", (b"x",), _refused)
