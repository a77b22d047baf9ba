"""Ragas conversations, and samples with judged statements, read by `ragas`.

They have a separate row in the registry because they must be recognized before formats with a
response and claims, and samples of one turn after these.
"""

from __future__ import annotations

from factormodels.io.formats.format import Format, ToolVerdicts
from factormodels.io.formats.ragas import RagasSample, read, recognize_turns

FORMAT = Format(
    name="ragas-turns",
    title="Ragas, conversations and judged statements",
    owner="explodinggradients/ragas, Apache-2.0",
    holds="responses",
    keys=("user_input", "statements"),
    recognize=recognize_turns,
    read=read,
    record=RagasSample,
    also=("statements[].reason",),
    verdicts=ToolVerdicts(
        tool="Ragas",
        file="`statements` with a `verdict`",
        probability="1 or 0",
    ),
)
