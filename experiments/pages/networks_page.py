"""The page of a study of networks."""

from __future__ import annotations

from pathlib import Path

from experiments.findings.artifacts import Artifacts
from experiments.findings.findings import Findings
from experiments.findings.page import findings_page, write_page


def write_networks_page(path: Path, study: str, artifacts: Artifacts) -> None:
    """Write the page of a study of networks: its sentences, tables and figure.

    Args:
        path: the file.
        study: name of the study.
        artifacts: its tables and figures.
    """
    findings = Findings(
        source=study,
        sentences=artifacts.remarks,
        tables=artifacts.tables,
        draw=lambda: artifacts.figures,
        command="run",
    )
    write_page(path, findings_page(findings))
