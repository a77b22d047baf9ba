"""What else befalls a run: a full disk, a folder that is closed, a clock that jumps, two at once.

    python -m tests.endurance.disturbances

Each ends in one sentence and exit code 2, or in the tables of a calm run.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from factormodels.io.result_store import STORE
from tests.experiments.conftest import environment
from tests.experiments.killed_run import kept

STUDY = """
study: s
datasets:
  - name: made
    synthetic: {n_responses: 300, n_atoms: [1, 4], contexts_per_atom: 2, density: 0.2}
backends: [exact, {backend: gibbs, settings: {draws: 2000}}]
outputs: [csv, latex, markdown]
"""
RUN = ("run", "s.yaml", "--workers", "1", "--out", "made")
TABLES = ("summary.csv", "table.tex", "table.md")
_DROP_CAPABILITY, _DAC_OVERRIDE, _DAC_READ_SEARCH = 24, 1, 2

_JUMPING = """
import sys, time
true, calls = time.time, [0]
def jumping():
    # A year ahead and back, every few calls.
    calls[0] += 1
    return true() + (calls[0] // 3 % 3 - 1) * 31_536_000
time.time = jumping
from experiments.cli.main import main
sys.argv = ["factormodels", *sys.argv[1:]]
main()
"""


def main() -> int:
    """Try each, print the table, and return 1 if one went otherwise than it should."""
    sys.stdout.write("| disturbance | what came of it | as it should |\n| --- | --- | --- |\n")
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "s.yaml").write_text(STUDY)
        calm = _call(folder, (*RUN[:-1], "calm"))
        if calm.returncode:
            raise SystemExit(calm.stderr)
        for trial in (full_disk, closed_folder, jumping_clock, two_at_once, changed_code):
            shutil.rmtree(folder / "made", ignore_errors=True)
            told, right = trial(folder)
            failed |= not right
            title = (trial.__doc__ or "").rstrip(".")
            sys.stdout.write(f"| {title} | {told} | {'yes' if right else 'no'} |\n")
            sys.stdout.flush()
    return 1 if failed else 0


def full_disk(folder: Path) -> tuple[str, bool]:
    """A disk that is full after so many bytes, then has room again."""
    sentences = set()
    right = True
    for limit in (0, 100, 3_000, 20_000, 60_000):
        shutil.rmtree(folder / "made", ignore_errors=True)

        def full(limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        stopped = _call(folder, RUN, preexec_fn=full)
        right &= _refused(stopped)
        sentences.add(stopped.stderr.strip().splitlines()[-1])
        right &= _call(folder, (*RUN, "--resume")).returncode == 0 and _same(folder)
    return f"{'; '.join(sorted(sentences))}; then the tables of a calm run", right


def closed_folder(folder: Path) -> tuple[str, bool]:
    """A folder that may not be written."""
    (folder / "made").mkdir()
    (folder / "made").chmod(0o555)

    def without_privileges() -> None:
        import ctypes

        # Root may write everywhere by these two capabilities, which the command is not given.
        for capability in (_DAC_OVERRIDE, _DAC_READ_SEARCH):
            ctypes.CDLL(None).prctl(_DROP_CAPABILITY, capability, 0, 0, 0)

    stopped = _call(folder, RUN, preexec_fn=without_privileges)
    return stopped.stderr.strip(), _refused(stopped)


def jumping_clock(folder: Path) -> tuple[str, bool]:
    """A clock that jumps a year ahead and back."""
    done = subprocess.run(
        [sys.executable, "-c", _JUMPING, *RUN],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    same = done.returncode == 0 and _same(folder)
    return "the tables of a calm run" if same else done.stderr[-200:], same


def two_at_once(folder: Path) -> tuple[str, bool]:
    """Two runs into one folder."""
    first = _begun(folder)
    while not (folder / "made" / STORE).exists() and first.poll() is None:
        time.sleep(0.01)
    second = _call(folder, (*RUN, "--resume"))
    right = first.wait() == 0 and _refused(second) and _same(folder)
    return second.stderr.strip().splitlines()[-1], right


def changed_code(folder: Path) -> tuple[str, bool]:
    """Code that is another one when a killed run goes on."""
    first = _begun(folder)
    while not kept(folder / "made") and first.poll() is None:
        time.sleep(0.01)
    first.kill()
    first.wait()
    root = Path(__file__).resolve().parents[2]
    for package in ("factormodels", "inference", "calibration", "experiments"):
        # With what is compiled, which goes by the times of the files.
        shutil.copytree(root / package, folder / "code" / package)
    # Of no repository, so that it is told by its version alone.
    done = _call(folder, (*RUN, "--resume"), {"PYTHONPATH": str(folder / "code")})
    import json

    manifest = json.loads((folder / "made" / "manifest.json").read_text())
    codes = len(manifest["code_of_units"])
    right = done.returncode == 0 and codes == 2 and _same(folder)
    return f"the tables of a calm run; the manifest names {codes} versions of the code", right


def _begun(folder: Path) -> subprocess.Popen[bytes]:
    """A run that goes on by itself."""
    return subprocess.Popen(
        [sys.executable, "-m", "experiments", *RUN],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _call(
    folder: Path,
    arguments: Sequence[str],
    variables: Mapping[str, str] = MappingProxyType({}),
    preexec_fn: Callable[[], Any] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "experiments", *arguments],
        cwd=folder,
        env=environment() | {"PYTHONDONTWRITEBYTECODE": "1"} | dict(variables),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=preexec_fn,
    )


def _refused(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 2 and "Traceback" not in done.stderr


def _same(folder: Path) -> bool:
    return all(
        (folder / "calm" / name).read_bytes() == (folder / "made" / name).read_bytes()
        for name in TABLES
    )


if __name__ == "__main__":
    sys.exit(main())
