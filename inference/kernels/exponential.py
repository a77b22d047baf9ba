"""The exponential function, in steps that fit vector instructions (compiled)."""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import contracting_kernel, inlined_kernel

_LOG2_E = 1.4426950408889634

# ln 2 in two parts: products of the first with whole numbers up to 2**11 are exact.
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10

_SHIFT = 1.5 * 2.0**52
"""A number that is added to this is rounded to a whole number, which the last bits then contain."""

_LEAST = -708.0
"""Below it results are no longer normal numbers."""


@inlined_kernel
def exponential(x):
    """exp(x) for x up to 709, to one unit in the last place; 0 below -708.

    The function of C is called for one number at a time. A loop over this function handles as many
    numbers as a vector register holds, and is about eight times as fast. With k the whole number
    next to x / ln 2, exp(x) is 2**k exp(r), and of the series of exp(r), |r| <= ln 2 / 2, terms
    after the thirteenth are below rounding (Cody & Waite 1980, "Software manual for the elementary
    functions"). Do not use it in a kernel that may reassociate sums, which would undo the rounding.
    """
    shifted = x * _LOG2_E + _SHIFT
    k = shifted - _SHIFT
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    series = 1 / 6227020800
    series = series * r + 1 / 479001600
    series = series * r + 1 / 39916800
    series = series * r + 1 / 3628800
    series = series * r + 1 / 362880
    series = series * r + 1 / 40320
    series = series * r + 1 / 5040
    series = series * r + 1 / 720
    series = series * r + 1 / 120
    series = series * r + 1 / 24
    series = series * r + 1 / 6
    series = (series * r + 0.5) * r * r + r + 1.0
    # k is added to the exponent, in the bits of the number.
    power = np.float64(shifted).view(np.int64) << np.int64(52)
    value = np.int64(np.float64(series).view(np.int64) + power).view(np.float64)
    # Not a number, which infinity minus itself is, is not above anything either.
    return value if x > _LEAST else 0.0


@contracting_kernel
def exponentials(logs, shift, out):
    """Write exp(x - shift) of all `logs` to `out`.

    Args:
        logs: float64 (n,), natural logarithms, -inf for 0.
        shift: natural logarithm of the common divisor; entries of `logs` are at most 709 above it.
        out: float64 (n,), written; it may be `logs`.
    """
    # An unsigned index needs no check for negative ones, which would prevent vectors.
    for i in range(np.uintp(len(logs))):
        out[i] = exponential(logs[i] - shift)
