"""The command `factormodels`, and `python -m factormodels`."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from factormodels.garbage_collection import no_collection

_INTERRUPTED = 130
_PACKAGES = ("inference", "calibration", "experiments")


def main() -> None:
    """Run the command line and exit with its code.

    Exit with code 2 and one sentence if another package or module shadows one of this project's.
    """
    hidden = shadowed()
    if hidden:
        sys.stderr.write(
            f"factormodels: {hidden[0]} hides the package {Path(hidden[0]).stem!r} of this "
            "project; rename it, or start elsewhere\n"
        )
        raise SystemExit(2)
    # Without this, pydantic searches every installed package for plugins of other programs.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        with no_collection():
            from experiments.cli.main import main as command
    except KeyboardInterrupt:
        # From here on, the command itself reports an interrupt.
        sys.stderr.write("factormodels: interrupted\n")
        raise SystemExit(_INTERRUPTED) from None
    command()


def shadowed() -> list[str]:
    """Return the paths that shadow this project's other packages; usually none."""
    home = Path(__file__).resolve().parents[1]
    specs = {name: find_spec(name) for name in _PACKAGES}
    places = []
    for name, spec in specs.items():
        if spec is None:
            continue
        locations = list(spec.submodule_search_locations or [spec.origin or name])
        if Path(locations[0]).resolve() != home / name:
            places.append(str(Path(locations[0])))
    return places


if __name__ == "__main__":
    main()
