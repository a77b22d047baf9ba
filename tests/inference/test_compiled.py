"""Machine code on disk: an edited callee must not live on in its callers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import inference.kernels.compiled

CALLEE = "from kernels.compiled import kernel\n@kernel\ndef value(x):\n    return x + {}\n"
CALLER = (
    "from kernels.compiled import kernel\nfrom kernels.callee import value\n"
    "@kernel\ndef double(x):\n    return 2 * value(x)\n"
)


def _double_of_one(folder: Path) -> tuple[int, int]:
    code = (
        "from kernels.caller import double\nprint(double(1), sum(double.stats.cache_hits.values()))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    result, hits = run.stdout.split()
    return int(result), int(hits)


def test_a_change_in_any_kernel_makes_all_machine_code_stale(tmp_path: Path) -> None:
    package = tmp_path / "kernels"
    package.mkdir()
    shutil.copy(inference.kernels.compiled.__file__, package / "compiled.py")
    (package / "__init__.py").touch()
    (package / "caller.py").write_text(CALLER)
    (package / "callee.py").write_text(CALLEE.format(1))
    assert _double_of_one(tmp_path) == (4, 0)
    assert _double_of_one(tmp_path) == (4, 1)
    (package / "callee.py").write_text(CALLEE.format(10))
    assert _double_of_one(tmp_path) == (22, 0)
