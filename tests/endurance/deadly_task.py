"""A task that ends its process, in a module that imports little, so that workers start quickly."""

from __future__ import annotations

import os
import time


def task(number: int) -> int:
    """Return a number, or end the process."""
    if number == 3:
        os._exit(1)
    time.sleep(0.05)
    return number
