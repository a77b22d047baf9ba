"""Packaging holds together: setup.cfg, the lock files, the registry, the Makefile."""

from __future__ import annotations

import re
import subprocess
import sys
from configparser import ConfigParser
from email.message import Message
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from inference.registry import Entry, entries
from tests.check_core_imports import CheckError, check_absent, check_not_loaded
from tests.check_licenses import license_of, not_allowed
from tests.complete_bill import completed, locked_hashes
from tests.execute_notebooks import execute, main, notebooks_in

ROOT = Path(__file__).resolve().parents[1]

IN_NO_EXTRA = {"pgmax"}
"""Packages of the lock that no extra asks for; setup.cfg says why."""

NOT_IN_ALL = {"dense"}
"""Extras that neither `all` nor the lock holds; setup.cfg says why."""

DISTRIBUTIONS = {"pyro": "pyro-ppl", "absl": "absl-py"}
"""Names of distributions that differ from the names of what they install."""


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def setup_cfg() -> ConfigParser:
    config = ConfigParser(delimiters=("=",))
    config.read_string(text("setup.cfg"))
    return config


def requirements(block: str) -> list[Requirement]:
    return [Requirement(line) for line in block.splitlines() if line.strip()]


def core_requirements() -> list[Requirement]:
    return requirements(setup_cfg()["options"]["install_requires"])


def extras() -> dict[str, list[Requirement]]:
    section = setup_cfg()["options.extras_require"]
    return {name: requirements(block) for name, block in section.items()}


def pins(lock: str) -> dict[str, Version]:
    """Return the pinned version of each package of a lock file; any other line is an error."""
    pinned: dict[str, Version] = {}
    lines = (line for line in text(lock).splitlines() if not line.startswith("#"))
    # A line that ends in a backslash goes on: a pin, then its hashes.
    for line in "\n".join(lines).replace("\\\n", "").splitlines():
        match = re.fullmatch(
            r"([A-Za-z0-9._-]+)==([A-Za-z0-9.]+)(\s+--hash=sha256:[0-9a-f]{64})+\s*", line
        )
        assert match, f"{lock}: {line!r} is no pin of a release with its hashes"
        name = canonicalize_name(match[1])
        assert name not in pinned, f"{lock}: {name} is pinned twice"
        pinned[name] = Version(match[2])
    return pinned


def unmet(wanted: list[Requirement], pinned: dict[str, Version]) -> list[str]:
    return [
        str(requirement)
        for requirement in wanted
        if (version := pinned.get(canonicalize_name(requirement.name))) is None
        or version not in requirement.specifier
    ]


def test_the_lock_holds_what_setup_cfg_asks_for() -> None:
    wanted = core_requirements()
    for name, extra in extras().items():
        if name not in {"all", *NOT_IN_ALL}:
            wanted += extra
    assert unmet(wanted, pins("requirements.lock")) == []


def test_nothing_is_installed_that_may_not_be_used() -> None:
    assert list(not_allowed(distribution.metadata for distribution in distributions())) == []


@pytest.mark.parametrize(
    ("headers", "license", "allowed"),
    [
        ({"License-Expression": "LGPL-3.0-only OR MIT"}, "LGPL-3.0-only OR MIT", True),
        ({"License-Expression": "MIT AND (GPL-2.0-only OR BSD-3-Clause)"}, None, True),
        ({"License-Expression": "MIT AND GPL-2.0-only"}, None, False),
        ({"License-Expression": "Apache-2.0 WITH LLVM-exception"}, None, True),
        ({"License-Expression": "(MIT"}, None, False),
        ({"Classifier": "License :: OSI Approved :: MIT License"}, "MIT", True),
        (
            {"Classifier": "License :: OSI Approved :: GNU Affero General Public License v3"},
            "GPL",
            0,
        ),
        ({"License": "The MIT License (MIT)\n Permission is ..."}, "MIT", True),
        ({"License": "Apache 2.0"}, "Apache-2.0", True),
        ({"License": "My own"}, "My-own", False),
        ({}, "", False),
    ],
)
def test_the_license_of_a_package_is_compared_with_the_list(
    headers: dict[str, str], license: str | None, allowed: bool
) -> None:
    metadata: Any = Message()
    metadata["Name"] = "p"
    for name, value in headers.items():
        metadata[name] = value
    assert license is None or license_of(metadata) == license
    assert (not list(not_allowed([metadata]))) == bool(allowed)


def test_a_missing_and_an_outdated_pin_are_seen() -> None:
    wanted = requirements("numpy>=2.0\nscipy>=1.13\nnumba>=0.60")
    pinned = {"numpy": Version("1.26"), "scipy": Version("1.13")}
    assert unmet(wanted, pinned) == ["numpy>=2.0", "numba>=0.60"]


def test_the_lock_can_build_the_package_without_isolation() -> None:
    import tomllib

    needed = tomllib.loads(text("pyproject.toml"))["build-system"]["requires"]
    for lock in ("requirements.lock", "requirements-core.lock"):
        assert unmet([Requirement(line) for line in needed], pins(lock)) == []


def test_the_core_lock_is_the_core_at_the_versions_of_the_lock() -> None:
    core, everything = pins("requirements-core.lock"), pins("requirements.lock")
    assert unmet(core_requirements(), core) == []
    assert core.items() <= everything.items()
    optional = {canonicalize_name(r.name) for extra in extras().values() for r in extra}
    # What an extra asks for and a library of the core needs as well.
    optional -= {"packaging"}
    assert core.keys() & (optional | IN_NO_EXTRA) == set()


def test_the_extra_all_names_every_other() -> None:
    by_name = extras()
    (everything,) = by_name.pop("all")
    assert everything.name == setup_cfg()["metadata"]["name"]
    assert everything.extras == by_name.keys() - NOT_IN_ALL


@pytest.mark.parametrize("entry", entries().values(), ids=lambda entry: entry.name)
def test_the_extra_of_a_backend_installs_what_it_requires(entry: Entry) -> None:
    if not entry.requires:
        assert entry.extra == ""
        return
    installed = {canonicalize_name(r.name) for r in extras()[entry.extra]} | IN_NO_EXTRA
    assert {DISTRIBUTIONS.get(name, name) for name in entry.requires} <= installed


def test_make_alone_lists_the_targets() -> None:
    result = subprocess.run(
        ["make", "-s"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    listed = re.findall(r"^ +make ([\w-]+) +\w", result.stdout, re.M)
    assert listed == [
        *(
            "help",
            "install",
            "run",
            "test",
            "test-shared",
            "nightly",
            "quick",
            "real-model",
            "lint",
            "docs",
            "newest-numba",
            "bench",
            "draft",
            "notebooks",
            "fuzz",
            "mutants",
            "endurance",
            "core",
            "sbom",
            "licenses",
            "release",
            "lock",
        ),
    ]


def test_optional_libraries_are_refused_where_they_should_be_absent() -> None:
    with pytest.raises(CheckError, match="pytest can be imported here"):
        check_absent(["pytest", "no_such_library"])
    with pytest.raises(CheckError, match="pytest was loaded"):
        check_not_loaded(["pytest", "no_such_library"])
    assert "no_such_library" not in sys.modules


def test_an_assessment_by_words_needs_the_core_alone() -> None:
    optional = ("litellm", "openai", "httpx", "tenacity", "trafilatura", "pypdf", "torch", "jax")
    code = (
        f"import sys; sys.modules |= dict.fromkeys({optional}); "
        "from tests.check_core_imports import check_offline_assessment as check; check()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.notebook
def test_a_notebook_is_executed_from_its_own_folder(tmp_path: Path) -> None:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (folder / "data.txt").write_text("41")
    (folder / "one.py").write_text("# %%\nint(open('data.txt').read()) + 1\n")
    (notebook,) = notebooks_in(folder)
    executed = execute(notebook, tmp_path / "results")
    assert executed.name == "one.ipynb"
    assert "42" in executed.read_text(encoding="utf-8")


@pytest.mark.notebook
def test_a_notebook_that_fails_is_an_error(tmp_path: Path) -> None:
    from nbclient.exceptions import CellExecutionError

    notebook = tmp_path / "one.py"
    notebook.write_text("# %%\n1 / 0\n")
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        execute(notebook, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_the_absence_of_notebooks_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        main(tmp_path, tmp_path / "results")
    assert "nothing was executed" in caplog.text


def test_every_hint_to_install_names_this_distribution() -> None:
    """Another project has the name of our first package on the index."""
    ours = setup_cfg()["metadata"]["name"]
    hints = [
        (path.name, name)
        for folder in ("factormodels", "inference", "calibration", "experiments", "docs")
        for path in sorted((ROOT / folder).rglob("*.[pm][yd]"))
        for name in re.findall(r"'([a-z-]+)\[[a-z,{]", path.read_text(encoding="utf-8"))
        if name in ("factormodels", ours)
    ]
    assert len(hints) > 8
    assert {name for _, name in hints} == {ours}


LOCK = f"""# made
numpy==1.0 \\
    --hash=sha256:{"a" * 64} \\
    --hash=sha256:{"b" * 64}
pytest==2.0 \\
    --hash=sha256:{"c" * 64}
"""


def component(name: str, version: str, **others: object) -> dict[str, object]:
    return {"type": "library", "name": name, "version": version, "bom-ref": name, **others}


def test_the_bill_of_materials_has_a_root_hashes_and_licenses() -> None:
    mit = [{"license": {"id": "MIT"}}]
    parts = [component("factorfacts", "0.1.0"), component("NumPy", "1.0"), component("pip", "3")]
    bill = {"components": [*parts, component("pytest", "9", licenses=mit)], "metadata": {}}
    whole, lacking = completed(bill, locked_hashes(LOCK))
    assert whole["metadata"]["component"]["name"] == "factorfacts"
    assert whole["metadata"]["component"]["licenses"] == [{"expression": "Apache-2.0"}]
    numpy, pip, pytest_ = whole["components"]
    (reference,) = numpy["externalReferences"]
    assert [each["content"] for each in reference["hashes"]] == ["a" * 64, "b" * 64]
    assert numpy["licenses"]
    assert "externalReferences" not in pip
    assert pytest_["licenses"] == mit
    assert lacking == ["pytest 9: the lock has another version"]
    assert completed({"components": [], "metadata": {}}, {})[1] == [
        "factorfacts: it is not installed, so that the bill has no root"
    ]


@pytest.mark.parametrize(
    "lock",
    [
        "requirements.lock",
        "requirements-core.lock",
        "tests/real_model/requirements.lock",
        "tests/real_model/requirements-embeddings.lock",
        "tests/real_model/requirements-large.lock",
    ],
)
def test_every_release_of_a_lock_has_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text()
    hashes = locked_hashes(text)
    assert len(hashes) == len(re.findall("^[^# ].*==", text, re.MULTILINE))
    assert all(hashes.values())
