"""The documentation: complete, and every block of it runs; `make docs` builds it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest
from pydantic import Field

from experiments.networks import runner
from experiments.networks.measure import Clocking
from experiments.settings.keyed import Keyed
from tests.pages import Block, blocks, faults, run_page, unprinted

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

GETTING_STARTED = DOCS / "tutorials" / "first-posterior.md"
"""The page that has a test of its own, which runs it and looks at what it says."""

PARTS = (
    *("tutorials", "how-to", "reference", "explanation", "appendix", "results", "development"),
)
"""Folders of the documentation; `docs/generated` has pages made from the code."""

PAGES = [page for part in PARTS for page in sorted((DOCS / part).glob("*.md"))]

WITHOUT_A_PAGE = {"kernels", "commands"}
"""Packages that the reference leaves out; docs/generated_pages.py says why."""


@pytest.fixture
def helper(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import a module of the folder `docs`."""
    monkeypatch.syspath_prepend(str(DOCS))

    def load(name: str) -> ModuleType:
        import importlib

        return importlib.import_module(name)

    yield load
    for name in ("docstrings", "generated_pages", "command_line", "study_keys", "math_markup"):
        sys.modules.pop(name, None)


def test_every_formula_has_its_mathml(helper: Any) -> None:
    convert = helper("math_markup").mathml
    formulas = {
        formula
        for page in (DOCS / "index.md", *PAGES)
        for pair in re.findall(
            r"\$\$(.+?)\$\$|(?<![\\$\w])\$(?=\S)([^$]{1,200}?)(?<=\S)\$",
            re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S),
            re.S,
        )
        for formula in pair
        if formula
    }
    # There are a hundred and some; an expression that missed those in lines would find thirty.
    assert len(formulas) > 90
    for formula in sorted(formulas):
        assert "<math" in convert(formula), formula
    # What the builder would stop at is found here.
    with pytest.raises(Exception, match="dots"):
        convert(r"1 > \dots > 0")


def public_modules() -> Iterator[str]:
    for package in ("factormodels", "inference", "calibration", "experiments"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            private = any(part.startswith("_") for part in name.split("."))
            within = WITHOUT_A_PAGE & set(name.split("."))
            if not private and not within and re.match(r'(#.*\n|\s)*r?"""', path.read_text()):
                yield name


def test_every_public_module_is_in_the_reference(helper: Any) -> None:
    pages = helper("generated_pages")
    text = "\n".join(map(pages.reference_page, pages.documented_packages()))
    listed = re.findall(r"^\.\. automodule:: (\S+)$", text, re.M)
    assert sorted(listed) == sorted(public_modules())
    index = pages.reference_index()
    assert all(f"\n{name}\n" in index for name in pages.documented_packages())


def test_the_command_line_page_has_every_command_and_option(helper: Any) -> None:
    from experiments.cli.front import described
    from experiments.cli.main import COMMANDS, function_named

    text = helper("command_line").page()
    for name in COMMANDS:
        section = text.partition(f"## factormodels {name}\n")[2].partition("\n## ")[0]
        assert section, name
        for taken, _ in described(function_named(name))[1]:
            assert f"| `{taken}` |" in section, (name, taken)


def test_every_convention_names_commands_that_follow_it(helper: Any) -> None:
    from experiments.cli.main import COMMANDS

    page = helper("command_line")
    text = page.page()
    options_of = {
        name: [each.split()[0] for each, _ in page.described_command(name)[1]] for name in COMMANDS
    }
    for convention, tool, which in page.CONVENTIONS:
        commands = page.followers(which)
        assert commands, convention
        assert set(commands) <= set(COMMANDS), convention
        assert f"| {convention} | {tool} | " in text
        # An option that a convention speaks of is one of these commands.
        for option in re.findall(r"--[a-z-]+", convention):
            for name in commands:
                assert option in options_of[name], (convention, name)


def schema_keys(part: dict[str, Any], definitions: dict[str, Any], path: str) -> Iterator[str]:
    """Yield the paths of the keys that a JSON Schema names within one of its places."""
    if "$ref" in part:
        part = definitions[part["$ref"].rpartition("/")[2]]
    for name, inner in part.get("properties", {}).items():
        here = f"{path}.{name}".removeprefix(".")
        yield here
        yield from schema_keys(inner, definitions, here)
    for several in ("anyOf", "oneOf", "allOf"):
        for inner in part.get(several, ()):
            yield from schema_keys(inner, definitions, path)
    if isinstance(entries := part.get("items"), dict):
        yield from schema_keys(entries, definitions, f"{path}[]")


def test_the_tables_of_keys_have_every_key_of_a_study(helper: Any) -> None:
    from experiments.analyses.schemas_by_name import schema

    definitions = schema("study")["$defs"]
    expected = {*schema_keys(definitions["Study"], definitions, "")}
    listed = re.findall(r"^\| `(\S+)` \|", helper("study_keys").study_keys(), re.M)
    assert sorted(listed) == sorted(expected)


def test_the_table_of_scores_has_every_score_with_its_meaning(helper: Any) -> None:
    from calibration.scores import REGISTRY

    table = helper("generated_pages").scores_table()
    assert re.findall(r"^\| `(\S+)` \|", table, re.M) == list(REGISTRY)
    assert "| `brier` | Brier | mean of (p - y)\\^2 | lower | delta |" in table
    assert "| mean over responses of \\|Pr - Pr\\*\\| | lower |" in table


def test_the_table_of_functions_has_every_function_with_its_purpose(helper: Any) -> None:
    import experiments

    table = helper("generated_pages").functions_table()
    named = re.findall(r"^\| `(\w+)` \| [A-Z].*[.?] \|$", table, re.M)
    assert named == list(experiments.__all__)
    assert "\n| `run` | Run a study: datasets x variants" in table


def test_a_key_is_reported_with_its_type_default_and_meaning(helper: Any) -> None:
    keys = helper("study_keys")
    text = keys.study_keys() + keys.network_keys() + keys.analysis_keys()
    for row in (
        "| `variants` | list of `given`, `FR1`, `FR2` or `FR3` | `[FR2]` | views of",
        "| `backends[].backend` | name of a backend | required | name of the",
        "| `priors[].learned.penalty` | number above 0 | none | standard deviation of",
        "| `relation_models[].replay` | true or false | `false` | use only cached answers",
        "| `datasets[].subset` | mapping | `{}` | subset of the responses |",
        "| `settings.datasets` | list of mappings; a text is short for `{name: text}`, as `dat",
        "| `datasets[].shape.density` | number from 0 to 1 | `0.1` | probability of a",
    ):
        assert f"\n{row}" in text, row


def test_a_key_without_a_meaning_is_refused(helper: Any) -> None:
    class Undescribed(Keyed):
        """Keys."""

        stated: Annotated[int, Field(description="It has a meaning.")] = 0
        unstated: int = 0

    with pytest.raises(LookupError, match="'unstated'"):
        list(helper("study_keys").keys_of(Undescribed))


SLOW = {
    DOCS / "how-to" / f"{name}.md"
    for name in ("covariates", "recalibrate-on-covariates", "power", "posterior-of-priors")
}
"""Pages that run at night: they spend their time within other libraries."""


@pytest.mark.longest
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.nightly) if page in SLOW else page
        for page in PAGES
        if page != GETTING_STARTED
    ],
    ids=lambda page: page.stem,
)
def test_every_block_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert faults(page.read_text(encoding="utf-8")) == []
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    # Pages time each backend on a network, with repeated calls for a second.
    monkeypatch.setattr(runner, "Clocking", clocking_of_a_twentieth)
    before = set(sys.modules)
    try:
        run_page(page)
    finally:
        for name in set(sys.modules) - before:
            if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]
        _forget_backends()


def clocking_of_a_twentieth(rounds: int, budget: float, seed: int) -> Clocking:
    """Clocking with a twentieth of the calls."""
    return Clocking(rounds, budget / 20.0, seed)


def _forget_backends() -> None:
    from inference import builtin_backends, entries, unregister

    for name in set(entries()) - {entry.name for entry in builtin_backends.ENTRIES}:
        unregister(name)


def test_promises_of_getting_started_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GETTING_STARTED.read_text(encoding="utf-8")
    assert faults(text) == []
    monkeypatch.chdir(tmp_path)
    run_page(GETTING_STARTED)
    printed = capsys.readouterr().out
    # What the comments of the page say that its code prints.
    promised = re.findall(r"^# (.+? 0\.\d+)$|  # (0\.\d+ 1\.0)$", text, re.M)
    assert len(promised) == 4
    assert all((first or second) in printed for first, second in promised)
    for name in ("reliability", "demonstration"):
        assert (tmp_path / f"{name}.pdf").stat().st_size > 1000
    assert (tmp_path / "results" / "bridge" / "manifest.json").is_file()


TUTORIAL = DOCS / "tutorials" / "write-a-backend.md"


def guide_tests(
    folder: Path, spoil: str = "", page: Path = TUTORIAL
) -> subprocess.CompletedProcess[str]:
    """Run the tests of a page's backend, a word of which may be replaced: "old -> new"."""
    tests = []
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.file:
            old, _, new = spoil.partition(" -> ")
            code = block.code.replace(old, new) if old else block.code
            (folder / block.file).write_text(code, encoding="utf-8")
            tests += [block.file] if block.file.startswith("test_") else []
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("page", [TUTORIAL, DOCS / "development" / "optional-methods.md"])
def test_a_backend_made_from_a_page_alone_passes_the_conformance_tests(
    tmp_path: Path, page: Path
) -> None:
    from inference.conformance import CHECKS

    result = guide_tests(tmp_path, page=page)
    assert result.returncode == 0, result.stdout
    assert f"{len(CHECKS)} passed" in result.stdout


def test_conformance_tests_catch_a_mistake_in_the_guide(tmp_path: Path) -> None:
    result = guide_tests(tmp_path, "log_weights += log_table -> log_weights += 0.5 * log_table")
    assert result.returncode == 1
    assert "ConformanceError" in result.stdout


@pytest.mark.parametrize("page", [DOCS / "index.md", *PAGES], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        made = "generated/" in target
        assert "://" in target or made or (page.parent / target).is_file(), target


def test_every_number_of_a_finding_is_in_its_record() -> None:
    lines = (DOCS / "appendix" / "findings.md").read_text("utf-8").splitlines()
    rows = [line.split("|")[1:-1] for line in lines if "](../results/" in line and line[:1] == "|"]
    assert len(rows) > 15
    for _, finding, record in rows:
        links = re.findall(r"\]\(\.\./(results/[\w-]+\.md)\)", record)
        text = "".join((DOCS / link).read_text("utf-8") for link in links)
        printed = re.findall(r"\d*\.\d+", finding)
        assert [number for number in printed if number.lstrip("0") not in text] == [], finding


def test_blocks_that_are_not_run_are_seen() -> None:
    text = (
        "```python\nx = 1\n```\n\n```sh\nfactormodels datasets  # comment\n```\n\n"
        "```sh\nmake run\n```\n\n```json\n{}\n```\n\n<!-- not run: no -->\n```sh\nmake\n```\n"
        "<!-- file: a/b.json -->\n```json\n{}\n```\n```{include} x\n```\n```\nplain\n```\n"
        "<!-- output -->\n```text\na 1\n```\n"
    )
    assert faults(text) == [
        "line 9: make run",
        "line 13: a block of json",
        "line 27: a block of no language",
    ]
    assert Block("json", "{}\n", "a/b.json", "", 21) in blocks(text)
    assert blocks(text)[-1].output


def test_an_output_that_differs_is_seen() -> None:
    printed = "claim  p\n────────\na1  0.96\na2  0.62\n\n- log Z -1.5, 1.7 ms.\n"
    assert unprinted("claim p\na1 0.96\n...\n", printed) is None
    assert unprinted("a2    0.62\n", printed) is None
    assert unprinted("a1 0.93\n", printed) == "a1 0.93"
    assert unprinted("claim p\na2 0.62\n", printed) == "a2 0.62"
    assert unprinted("claim p\n...\na2 0.62\n- log Z -1.5, 1.7 ms.", printed) is None


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Give `p` and `q`.", "Give ``p`` and ``q``."),
        ("``a@b`` stays.", "``a@b`` stays."),
        ("`Subclaim`s count |x| * 2.", "``Subclaim``\\ s count \\|x\\| \\* 2."),
        ("`python -m\nexperiments`", "``python -m\nexperiments``"),
        (
            "Text.\n\nfrom a import b\nb(1)\n    more",
            "Text.\n\n::\n\n    from a import b\n    b(1)",
        ),
    ],
)
def test_docstrings_become_markup_that_says_the_same(
    docstring: str, expected: str, helper: Any
) -> None:
    assert helper("docstrings").as_restructured(docstring).startswith(expected)
