"""The page of a study of networks."""

from __future__ import annotations

from pathlib import Path

from experiments.findings.artefacts import Artefacts
from experiments.findings.findings import Findings
from experiments.findings.page import findings_page, write_page


def write_networks_page(path: Path, study: str, artefacts: Artefacts) -> None:
    """Write the page of what a study of networks found: its sentences, tables and figure.

    Args:
        path: the file.
        study: name of the study.
        artefacts: its tables and figures.
    """
    findings = Findings(
        source=study,
        sentences=artefacts.remarks,
        tables=artefacts.tables,
        draw=lambda: artefacts.figures,
        command="run",
    )
    write_page(path, findings_page(findings))
