"""Small texts of this project, which a real model is asked about."""

from __future__ import annotations

import json
from pathlib import Path

QUESTION = "Who was Marie Curie?"
RESPONSE = (
    "Marie Curie was born in Warsaw in 1867. She shared the Nobel Prize in Physics of 1903. "
    "She never worked in Paris."
)
NOTES = {
    "curie.txt": "Marie Curie was a physicist and chemist who was born in Warsaw on 7 November "
    "1867. She studied and worked in Paris, where she discovered polonium and radium.",
    "prize.txt": "The Nobel Prize in Physics of 1903 was shared by Henri Becquerel, Pierre Curie "
    "and Marie Curie for their research on radiation.",
}
CLAIMS = (
    ("Marie Curie was born in Warsaw.", True),
    ("Marie Curie shared the Nobel Prize in Physics of 1903.", True),
    ("Marie Curie never worked in Paris.", False),
)


def write_inputs(folder: Path) -> None:
    """Write a text, notes about it, and a response with labeled claims into a folder."""
    notes = folder / "notes"
    notes.mkdir(parents=True, exist_ok=True)
    for name, text in NOTES.items():
        (notes / name).write_text(text, encoding="utf-8")
    (folder / "answer.txt").write_text(RESPONSE, encoding="utf-8")
    graph = {
        "id": "curie",
        "query": QUESTION,
        "response": RESPONSE,
        "nodes": [
            {"id": f"a{number}", "type": "atom", "probability": 0.5, "text": text, "label": label}
            for number, (text, label) in enumerate(CLAIMS, start=1)
        ],
        "edges": [],
    }
    (folder / "claims.jsonl").write_text(json.dumps(graph) + "\n", encoding="utf-8")
