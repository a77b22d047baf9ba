"""Numbers on the pages of findings equal the results of their commands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from calibration.self_knowledge import IntervalSettings, label_positions
from experiments import self_knowledge
from experiments.columns.placed_claims import load_claims
from tests.experiments.analyses.papers.conftest import bare_results, run_study, say_where
from tests.pages import findings

PAGE = findings()

Row = tuple[str, str, str]
"""What it is, the printed number, ours."""


def rows_of_study(study: str) -> list[Row]:
    """Return the rows of the page that name a study and have a number of ours."""
    rows = []
    for line in PAGE.splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 5 and cells[3] == f"`factormodels run {study}`":
            rows.append((cells[0], cells[1], cells[2]))
    return rows


@pytest.mark.parametrize(
    "study",
    ["papers/worked-numbers", "papers/factreasoner-printed-tests", "papers/datasets"],
)
def test_a_study_of_printed_numbers_gives_its_rows(study: str) -> None:
    frame = bare_results(study).tables["published"].frame
    made = list(zip(frame["source"], frame["printed"], frame["ours"], strict=True))
    # Decimals are those that hold on any machine: exact computations.
    assert rows_of_study(study) == made


@pytest.mark.parametrize(
    "study",
    ["papers/self-known-positions", "papers/fastfact-alignment", "papers/core-relation-models"],
)
@pytest.mark.slow
def test_a_study_of_an_owners_file_gives_its_rows(
    study: str, bare_folder: Path, shared_data: Path
) -> None:
    say_where(
        bare_folder,
        f"""
datasets:
  factscore-labelled: {shared_data}/factscore_chatgpt/ChatGPT.jsonl
  core-responses: {shared_data}/factscore_chatgpt/ChatGPT.jsonl
  fastfact-bench: {shared_data}/factcheck_bench/factcheck-GPT-benchmark.jsonl
""",
    )
    frame = run_study(study, bare_folder).tables["published"].frame
    made = dict(zip(frame["source"], frame["ours"], strict=True))
    rows = rows_of_study(study)
    assert rows
    for source, _, ours in rows:
        assert made[source.removesuffix(", Factcheck-bench")] == ours


def test_supported_claims_by_position_are_those_of_the_owners_file(shared_data: Path) -> None:
    loaded = load_claims(shared_data / "factscore_chatgpt" / "ChatGPT.jsonl")
    table = label_positions(loaded.records, intervals=IntervalSettings(n_bootstrap=20))
    match = re.search(r"are counted too,([\d.,\sand]+) are\s+supported", PAGE)
    assert match is not None
    shares = [f"{share:.3f}" for share in table["supported_share"].estimate[:5]]
    assert re.findall(r"0\.\d+", match[1]) == shares


@pytest.mark.parametrize("name", ["nq", "MATH"])
def test_self_knowledge_of_a_real_model_is_what_one_counts(name: str, shared_data: Path) -> None:
    path = shared_data / "self_judged" / f"{name}_subclaims_with_scores.jsonl"
    # `data`, a list of answers with `claims`, each with the model's `gpt-score` and a person's
    # `annotation`, Y if it is right.
    every = [
        (claim["annotation"].strip() == "Y", float(claim["gpt-score"]) >= 0.9)
        for answer in json.loads(path.read_text(encoding="utf-8"))["data"]
        for claim in answer["claims"]
    ]
    frame = self_knowledge(path, threshold=0.9)["quantities"]
    estimates = frame[frame["position"] == "overall"].set_index("quantity")["estimate"]
    known = [sure for right, sure in every if right]
    unknown = [not sure for right, sure in every if not right]
    self_known, self_unknown = sum(known) / len(known), sum(unknown) / len(unknown)
    # The same quotients of whole numbers, to rounding.
    assert estimates["self_known"] == pytest.approx(self_known, abs=1e-12)
    assert estimates["self_unknown"] == pytest.approx(self_unknown, abs=1e-12)
    assert estimates["factuality"] == pytest.approx(len(known) / len(every), abs=1e-12)
    sigma = (1 - self_unknown) / (2 - self_unknown - self_known)
    assert estimates["sigma"] == pytest.approx(sigma, abs=1e-12)
    if name == "nq":
        row = next(line for line in PAGE.splitlines() if "nq.jsonl --threshold 0.9" in line)
        assert "| other data |" in row
        assert f"which gives {self_unknown:.3f}," in row


def test_counts_of_fastfact_are_those_of_its_file(shared_data: Path) -> None:
    file = json.loads((shared_data / "fastfact" / "annotation_stats.json").read_text("utf-8"))
    names = ("factcheck-bench", "hellobench", "longfact", "expertqa", "factscore_bio")
    parts = [*(file["grouped"]["by_prompt_source"][name] for name in names), file["overall"]]
    text = PAGE.partition("<!-- fastfact: annotation_stats.json -->")[2]
    lines = [line for line in text.partition("\n\n")[0].splitlines() if "| counted |" in line]
    assert len(lines) == 10
    labels = ("supported", "refuted", "not enough evidence", "conflicting evidence")
    for line in lines:
        what, _, *cells = (cell.strip() for cell in line.split("|")[1:-1])
        name = what.partition(",")[0]
        for cell, part in zip(cells, parts, strict=True):
            given, agreed = part["annotator_labels"], part["agreements"]
            n = sum(given.get(label, 0) for label in (*labels, "unsupported", "irrelevant"))
            if name in labels:
                value = 100 * given[name] / n
            elif name in part["operations"]:
                value = part["operations"][name] / part["count"]
            elif name == "claims a response":
                value = n / part["count"]
            else:
                left = agreed["agreed"]
                value = 100 * left / (left + agreed["disagreed_corrected"])
            assert cell == f"{value:.{len(cell.partition('.')[2])}f}", what


def test_operations_are_printed_per_as_many_responses_as_the_text_says(shared_data: Path) -> None:
    file = json.loads((shared_data / "fastfact" / "annotation_stats.json").read_text("utf-8"))
    text = PAGE.partition("<!-- fastfact: annotation_stats.json -->")[2]
    table, _, prose = text.partition("\n\n")
    numbers = {}
    for line in table.strip().splitlines():
        what, by, *cells = (cell.strip() for cell in line.split("|")[1:-1])
        numbers[what, by] = cells
    operations = ("unchanged", "revised", "removed", "added")
    names = ("factcheck-bench", "hellobench", "longfact", "expertqa", "factscore_bio")
    responses: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        counted = file["grouped"]["by_prompt_source"][name]["operations"]
        for operation in operations:
            printed = numbers[f"{operation}, a response", "printed"][at]
            # The whole numbers of responses that give the printed digits.
            gives = [n for n in range(75, 85) if f"{counted[operation] / n:.3f}" == printed]
            responses.setdefault(name, []).extend(gives)
    assert responses == {
        "factcheck-bench": [78] * 4, "hellobench": [80, 80], "longfact": [76] * 4,
        "expertqa": [81], "factscore_bio": [76] * 4,
    }  # fmt: skip
    prose = " ".join(prose.split())
    assert re.search(r"by 78, 76 and 76 responses .* one of ExpertQA's \(divided by 81\)", prose)
    assert "two of Hellobench's (by 80)" in prose
    gaps = {
        what: [
            float(counted) - float(printed)
            for printed, counted in zip(
                numbers[what, "printed"], numbers[what, "counted"], strict=True
            )
        ]
        for what in ("supported, %", "verdicts left alone, %")
    }  # fmt: skip
    assert [round(gaps["supported, %"][at]) for at in (4, 3)] == [11, 6]
    assert "11 points lower for FActScore and 6 points lower for ExpertQA" in prose
    apart = [round(gap, 1) for gap in gaps["verdicts left alone, %"][:5]]
    assert (min(apart), apart.index(min(apart))) == (0.7, 1)
    assert (max(apart), apart.index(max(apart))) == (9.7, 0)
    assert "by 0.7 (Hellobench) to 9.7 points (Factcheck-bench)" in prose
