"""Complete the bill of materials with a root, hashes and licenses, which its tool leaves out.

    python -m tests.complete_bill requirements.lock results/sbom.cdx.json

adds them in place: this package as the root, on which what it requires hangs; to every component
the hashes of the files of its release, from the lock that it was installed by; and its license, as
`tests/check_licenses.py` reads it, where the tool found none. It ends with 1 if a component has no
license, or is not at the version of the lock; what the lock leaves open, such as the libraries of
one build of torch, has no hash.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from tests.check_licenses import license_of

ROOT = "factorfacts"
"""The name of this package's distribution."""


def main(lock: str, bill: str) -> int:
    """Complete a bill of materials, and return the exit code."""
    path = Path(bill)
    whole, lacking = completed(json.loads(path.read_text()), locked_hashes(Path(lock).read_text()))
    path.write_text(json.dumps(whole, indent=2, sort_keys=True) + "\n")
    sys.stderr.writelines(f"{line}\n" for line in lacking)
    return 1 if lacking else 0


def locked_hashes(lock: str) -> dict[str, list[str]]:
    """The SHA-256 of the files of each release of a lock, by name and version, such as "a==1"."""
    return {
        f"{plain(name)}=={version}": re.findall(r"--hash=sha256:([0-9a-f]{64})", rest)
        for name, version, rest in re.findall(
            r"^([\w.-]+)==(\S+)((?:.*\\\n)*.*)", lock, re.MULTILINE
        )
    }


def plain(name: str) -> str:
    """The one spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def completed(
    bill: Mapping[str, Any], hashes: Mapping[str, list[str]]
) -> tuple[dict[str, Any], list[str]]:
    """The bill with what it lacked, and a line for each thing that it still lacks."""
    components, lacking = [], []
    locked = {release.partition("==")[0] for release in hashes}
    root: dict[str, Any] | None = None
    for given in bill["components"]:
        component = dict(given)
        name, version = component["name"], component["version"].partition("+")[0]
        if not component.get("licenses"):
            license = license_of(distribution(name).metadata)
            component["licenses"] = [{"expression": license}] if license else []
        if not component["licenses"]:
            lacking.append(f"{name}: it has no license")
        if plain(name) == ROOT:
            root = component
            continue
        known = hashes.get(f"{plain(name)}=={version}", [])
        if known:
            # Of all files of the release: which of them fits a machine is not the bill's to say.
            component["externalReferences"] = [
                *component.get("externalReferences", []),
                {
                    "type": "distribution",
                    "url": f"https://pypi.org/project/{plain(name)}/{version}/#files",
                    "hashes": [{"alg": "SHA-256", "content": content} for content in known],
                },
            ]
        elif plain(name) in locked:
            lacking.append(f"{name} {version}: the lock has another version")
        components.append(component)
    if root is None:
        lacking.append(f"{ROOT}: it is not installed, so that the bill has no root")
        return {**bill, "components": components}, lacking
    metadata = {**bill["metadata"], "component": root}
    return {**bill, "components": components, "metadata": metadata}, lacking


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
