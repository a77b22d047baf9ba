"""Commands and code in the README work as shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import faults, run_command, run_page

pytestmark = [pytest.mark.slow, pytest.mark.longest]

ROOT = Path(__file__).resolve().parents[1]

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder in which every block of the README was run, in order, and every output compared."""
    made = tmp_path_factory.mktemp("readme")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        run_page(ROOT / "README.md")
        yield made


def test_every_block_is_run_or_says_why_not() -> None:
    assert faults(README) == []


def test_every_command_of_the_first_three_shows_its_output(folder: Path) -> None:
    assert len(re.findall(r"```sh\nfactormodels [^`]*```\n\n<!-- output -->", README)) == 3
    written = {path.suffix for path in (folder / "results" / "first").iterdir()}
    assert {".parquet", ".csv", ".tex", ".html", ".json"} <= written


def test_the_command_of_the_picture_draws_it(folder: Path) -> None:
    (command,) = re.findall(r"`(factormodels draw [^`]+)`", README)
    run_command(command)
    assert (folder / "claims.png").stat().st_size > 1000


def test_the_readme_fits_a_page_and_a_half() -> None:
    assert len(README.split()) < 600


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "experiments/README.md"]
)
def test_links_within_the_repository_lead_somewhere(name: str) -> None:
    path = ROOT / name
    targets = re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8"))
    assert [t for t in targets if "://" not in t and not (path.parent / t).exists()] == []
