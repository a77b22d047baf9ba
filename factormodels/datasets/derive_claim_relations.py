"""Derive the relations between claims of embedded responses from their texts, leaving these out.

    python -m factormodels.datasets.derive_claim_relations DATASET TEXTS OUT

DATASET is factscore or selfcheck, and TEXTS the file that this was derived from: `ChatGPT.jsonl` of
FActScore's release, or `selfcheck_wikibio.jsonl`. The lexical model judges every two claims at most
`CLAIM_WINDOW` apart, in both orders.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from factormodels.datasets import CLAIM_WINDOW
from factormodels.datasets.deriving import run_derivation
from factormodels.encodings import KIND_CODES
from factormodels.errors import InputError
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.stages.claim_relations import claim_pairs, with_judged_claims
from factormodels.io.files import read_text, write_text
from factormodels.io.json_text import decode_lines
from factormodels.io.published.factscore import parse_factscore_record
from factormodels.io.published.self_judgements import parse_selfcheck
from factormodels.variants import between_claims

_READERS = {"factscore": parse_factscore_record, "selfcheck": parse_selfcheck}


def derive(dataset: str, texts: str | os.PathLike[str], out: str | os.PathLike[str]) -> int:
    """Write the relations of the responses in `texts` to `out`, and return their number.

    Raises:
        InputError: for another dataset, or if `texts` is malformed or `out` cannot be written.
    """
    if dataset not in _READERS:
        raise InputError(f"{dataset!r} is not one of {', '.join(_READERS)}; name one of them")
    model = LexicalRelations()
    lines = []
    for line, obj in decode_lines(read_text(texts), texts):
        graph = _READERS[dataset](obj, texts, line)
        if not graph.metadata.get("annotated", True):
            continue
        judged = with_judged_claims(graph, model, claim_pairs(graph, CLAIM_WINDOW))
        place = {atom: number for number, atom in enumerate(graph.atom_ids)}
        rows = [
            [place[one.source], place[one.target], KIND_CODES[one.kind], round(one.probability, 4)]
            for one in between_claims(judged)
            if one.kind in KIND_CODES
        ]
        lines.append(json.dumps({"id": graph.id, "relations": rows}, separators=(",", ":")))
    write_text(out, "".join(f"{each}\n" for each in lines))
    return len(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 2 for bad input."""
    return run_derivation(
        "factormodels.datasets.derive_claim_relations",
        "Derive relations between embedded claims, without text, from the owner's file.",
        {"dataset": "factscore or selfcheck", "texts": "the owner's file"},
        derive,
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
