"""FACTOR: the beginning of a text, its true continuation and false ones.

Source: Muhlgay et al. 2024, "Generating Benchmarks for Factuality Evaluation of Language Models".
Relied on: eval_factuality.py of AI21Labs/factor, which reads data/wiki_factor.csv (columns
`turncated_prefixes`, spelled so, `doc_id`, `completion`, `contradiction_0` to `_2`), and the head
of news_factor.csv as ictnlp/TruthX keeps it (the same columns and `full_prefix`,
`longest_completions`). expert_factor.csv was not seen.
"""

from __future__ import annotations

import re

from factormodels.claims import Atom
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import (
    filled_field,
    first_key,
    record_at,
    record_id,
    text_field,
)
from factormodels.io.records import Source

PREFIXES = ("turncated_prefixes", "full_prefix")
"""Where the beginning of the text is; the first is cut to what a model may be shown."""

_CONTRADICTION = re.compile(r"contradiction_\d+")


def parse_factor(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Fact graph of a row: the true continuation and the false ones are atoms.

    The beginning of the text is the query. The metadata hold `doc_id` where there is one.

    Raises:
        InputError: if the row lacks a column or a text.
    """
    record, where = record_at(obj, source, line)
    prefix = first_key(record, [key for key in PREFIXES if record.get(key)] or PREFIXES)
    query = filled_field(record, prefix, where)
    keys = ["completion", *(key for key in record if _CONTRADICTION.fullmatch(key))]
    if len(keys) == 1:
        raise InputError(f"{where}: there is no 'contradiction_0'; add the false continuations")
    document = record.get("doc_id")
    return FactGraph(
        record_id(source, line),
        tuple(
            Atom(
                f"a{number}",
                filled_field(record, key, where).strip(),
                label=key == "completion",
                annotation=key,
            )
            for number, key in enumerate(keys, start=1)
        ),
        query=query,
        topic=text_field(record, "title", where, ""),
        metadata={} if document in (None, "") else {"doc_id": document},
    )
