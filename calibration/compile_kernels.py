"""Compile the kernels of scores ahead of their first use.

    python -m calibration.compile_kernels

`make install` runs this command. The machine code is stored on disk beside the kernels.
"""

from __future__ import annotations

import sys
import time

from calibration.scoring import score
from inference.warm_up import unannounced


def compile_kernels() -> float:
    """Compile the kernels of all scores and their intervals; return the elapsed seconds."""
    start = time.perf_counter()
    with unannounced():
        # An interval needs two responses with labels of both kinds.
        score([0.2, 0.7, 0.4, 0.8], [False, True, False, True], ["a", "a", "b", "b"])
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.stdout.write(f"compiled the kernels of scores in {compile_kernels():.0f} s\n")
