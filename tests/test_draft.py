"""The draft of four pages is made from the kept results, and its numbers are theirs."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

import pytest
from pypdf import PdfReader

from factormodels.errors import InputError

ROOT = Path(__file__).resolve().parents[1]


def test_the_draft_takes_four_pages_and_its_numbers_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import make_draft

    monkeypatch.delitem(sys.modules, "make_draft")
    pdf, latex = make_draft.write_draft(make_draft.KeptResults(), tmp_path / "draft")
    pages = PdfReader(pdf).pages
    assert 2 < len(pages) <= 4
    text = " ".join(" ".join(page.extract_text() for page in pages).split()).replace("−", "-")
    with (ROOT / "docs/results/learned-potentials/scores.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["data"] != "factscore":
                continue
            ends = (float(row[f"brier{end}"]) for end in ("", "_lower", "_upper"))
            assert "{:.4f} [{:.4f}, {:.4f}]".format(*ends) in text, row["method"]
    with (ROOT / "docs/results/core-on-biographies/gains.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["kind"].endswith("appended"):
                assert f"{float(row['plain']):.3f} [{float(row['plain_lower']):.3f}" in text
    taken = re.findall(r"\\(?:input|includegraphics)\{([^#}]+)\}", latex.read_text("utf-8"))
    assert len([name for name in taken if name.endswith(".tex")]) == 3
    assert len([name for name in taken if name.endswith(".pdf")]) == 3
    with pytest.raises(InputError, match=r"run python notebooks/questions/learned_potentials\.py"):
        make_draft.write_draft(make_draft.KeptResults(tmp_path), tmp_path / "other")
