"""The command of a script that derives an embedded dataset from its owner's files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence

from factormodels.errors import FactormodelsError


def run_derivation(
    module: str,
    description: str,
    sources: Mapping[str, str],
    derive: Callable[..., int],
    arguments: Sequence[str] | None = None,
) -> int:
    """Run the command and return its exit code: 2 for bad input.

    Args:
        module: name of the script, with its packages.
        description: what it does.
        sources: the arguments that name the owner's files, with what each is.
        derive: given the paths of these and of the file to write, writes it and returns the number
            of responses.
        arguments: words of the command line; those of the process if None.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    for name, what in {**sources, "out": "the file to write"}.items():
        parser.add_argument(name, help=what)
    chosen = parser.parse_args(arguments)
    try:
        count = derive(*(getattr(chosen, name) for name in sources), chosen.out)
    except FactormodelsError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(f"{chosen.out}: {count} responses\n")
    return 0
