"""Compilation of the kernels of scores ahead of their first use."""

from __future__ import annotations

from tests.processes import run_python

COMPILED = """
from calibration.compile_kernels import compile_kernels
from calibration.scores.kernels import samples
assert not samples.score_samples.has_machine_code
compile_kernels()
print(samples.score_samples.has_machine_code, samples.isotonic_gains.has_machine_code)
"""


def test_every_kernel_that_python_calls_is_compiled() -> None:
    assert run_python(COMPILED)[0] == "True True\n"
