"""Check that the license of every installed package is on the list.

    python tests/check_licenses.py

names each package that is not and exits with 1. The license comes from the package itself: an SPDX
expression, else the classifiers of its metadata, else the text of its field. If there are several
classifiers, all must be allowed, since they may describe its parts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageMetadata, distributions

ALLOWED = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CNRI-Python"),
    *("ISC", "LLVM-exception", "MIT", "MIT-CMU", "PSF-2.0", "Unlicense", "Zlib"),
    # Weak copyleft, of files that are used as they are.
    *("MPL-1.1", "MPL-2.0"),
}
"""Licenses of SPDX that ask for no more than their own text to be kept, and the exceptions."""

EXCEPTIONS = {
    # Its GPL is that of one file for the editor Emacs, which is not installed.
    "docutils": "Public Domain AND BSD-2-Clause AND GPL-3.0-or-later",
}
"""Packages whose metadata say more than what is used of them."""

_NAMES = (
    # As classifiers and fields of text name them, the longer before those that are part of them.
    (r"mpl.?2|mozilla public license 2", "MPL-2.0"),
    (r"apache", "Apache-2.0"),
    (r"lesser general public|lgpl", "LGPL"),
    (r"general public|\bgpl", "GPL"),
    (r"bsd", "BSD-3-Clause"),
    (r"\bmit\b", "MIT"),
    (r"isc license", "ISC"),
    (r"python software foundation", "PSF-2.0"),
    (r"zlib", "Zlib"),
    (r"unlicense", "Unlicense"),
)


def main() -> int:
    """Tell of what may not be used, and return the exit code."""
    refused = list(not_allowed(distribution.metadata for distribution in distributions()))
    for name, license in refused:
        sys.stderr.write(
            f"{name}: {license} is not among the licenses of tests/check_licenses.py\n"
        )
    return 1 if refused else 0


def not_allowed(packages: Iterable[PackageMetadata]) -> Iterator[tuple[str, str]]:
    """Yield (name, license) of the packages whose license is not on the list."""
    for metadata in packages:
        name = metadata["Name"]
        license = license_of(metadata)
        if name.lower() not in EXCEPTIONS and not is_allowed(license):
            yield name, license or "no license that is told"


def license_of(metadata: PackageMetadata) -> str:
    """License of a package as an SPDX expression; empty if it states none."""
    if expression := _field(metadata, "License-Expression"):
        return expression
    classified = [
        line.rpartition("::")[2].strip()
        for line in metadata.get_all("Classifier") or []
        if line.startswith("License ::")
    ]
    text = _field(metadata, "License")
    if not classified and re.fullmatch(r"[\w.-]+( (AND|OR|WITH) [\w.-]+)+", text):
        return text
    # Of the whole text of a license the beginning names it.
    named = [_name(line) for line in classified or ([text[:60]] if text else [])]
    return " AND ".join(named)


def _field(metadata: PackageMetadata, name: str) -> str:
    return str((metadata.get_all(name) or [""])[0]).strip()


def is_allowed(expression: str) -> bool:
    """Return True if allowed licenses satisfy an SPDX expression."""
    words = re.findall(r"[()]|[\w.+-]+", expression)
    met, rest = _either(words)
    return met and not rest


def _either(words: list[str]) -> tuple[bool, list[str]]:
    met, words = _both(words)
    while words[:1] == ["OR"]:
        other, words = _both(words[1:])
        met = met or other
    return met, words


def _both(words: list[str]) -> tuple[bool, list[str]]:
    met, words = _one(words)
    # An exception adds rights to the license before it; it is on the list by itself.
    while words[:1] in (["AND"], ["WITH"]):
        other, words = _one(words[1:])
        met = met and other
    return met, words


def _one(words: list[str]) -> tuple[bool, list[str]]:
    if words[:1] == ["("]:
        met, rest = _either(words[1:])
        return met and rest[:1] == [")"], rest[1:]
    return words[:1] != [] and words[0] in ALLOWED, words[1:]


def _name(text: str) -> str:
    for pattern, name in _NAMES:
        if re.search(pattern, text.lower()):
            return name
    return re.sub(r"\W+", "-", text.strip()) or "unknown"


if __name__ == "__main__":
    sys.exit(main())
