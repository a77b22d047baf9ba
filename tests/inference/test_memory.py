"""What tables may take: a limit, or a share of what the machine and its control groups leave."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from factormodels.synthetic import grid
from inference import TooLargeError, infer
from inference.memory import SHARE, _left_in_groups, allowance, memory_size


def groups(folder: Path, own: str, files: dict[str, str]) -> list[int]:
    """What groups with these files leave to a process of the group `own`."""
    for name, text in files.items():
        path = folder / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "own").write_text(own)
    return list(_left_in_groups(folder / "own", folder / "cgroup"))


def test_a_limit_is_what_is_allowed() -> None:
    assert allowance(123).bytes == 123
    assert str(allowance(2**30)) == "1 GiB are allowed (by memory_limit)"


def test_without_a_limit_caches_count_as_available() -> None:
    found = allowance(None)
    # Other processes take and give back memory between the two looks.
    assert found.bytes <= 1.3 * SHARE * psutil.virtual_memory().available
    if "machine" in found.reason:
        assert found.bytes >= 0.7 * SHARE * psutil.virtual_memory().available


def test_every_group_above_a_process_counts(tmp_path: Path) -> None:
    files = {
        "a/memory.max": "1000\n",
        "a/memory.current": "600\n",
        "a/memory.stat": "anon 500\ninactive_file 100\n",
        "a/b/memory.max": "max\n",
        "a/b/memory.current": "10\n",
        "a/b/memory.stat": "inactive_file 0\n",
    }
    assert groups(tmp_path, "0::/a/b\n", files) == [500]
    # In a container the path is the host's: the limit stands at the root.
    at_root = {"memory.max": "70", "memory.current": "90", "memory.stat": "inactive_file 0"}
    assert groups(tmp_path, "0::/host/only\n", at_root) == [0]


def test_groups_of_the_first_version(tmp_path: Path) -> None:
    files = {
        "memory/a/memory.limit_in_bytes": "1000",
        "memory/a/memory.usage_in_bytes": "300",
        "memory/a/memory.stat": "total_inactive_file 50\n",
    }
    assert groups(tmp_path, "7:cpu,cpuacct:/a\n4:memory:/a\n", files) == [750]


def test_no_groups_no_limits(tmp_path: Path) -> None:
    assert list(_left_in_groups(tmp_path / "none", tmp_path)) == []
    assert groups(tmp_path, "0::/\n", {"memory.max": "much"}) == []


def test_a_refusal_says_which_limit_binds() -> None:
    graph = grid(12, 12, coupling=1.0, field=1.0, seed=0)
    with pytest.raises(TooLargeError, match=r"width 1\d.* 0.125 MiB are allowed .by memory_limit"):
        infer(graph, "exact", memory_limit=2**17)
    wide = grid(60, 60, coupling=1.0, field=1.0, seed=0)
    with pytest.raises(TooLargeError, match=r"GiB are allowed \(three quarters of"):
        infer(wide, "exact", search_seconds=0.1)


def test_sizes_in_words() -> None:
    assert memory_size(3 * 2**29) == "1.5 GiB"
    assert memory_size(2.0**19) == "0.5 MiB"
    assert memory_size(2.0**130) == "2^100 GiB"
