"""Ragas' conversations, and its samples with judged statements, which `ragas` reads as the others.

They are a row of their own because they are known before formats with a response and claims are,
and samples of one turn after them.
"""

from __future__ import annotations

from factormodels.io.formats.format import Format
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
)
