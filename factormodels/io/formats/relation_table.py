"""Relations of passages to claims, one row per pair, the input of `factormodels fit`."""

from __future__ import annotations

from factormodels.io.formats.format import Format
from factormodels.io.relation_table import (
    gather_relations,
    looks_like_relation_row,
    parse_relation_row,
)

FORMAT = Format(
    name="relation-table",
    title="relations of passages to claims, a row per pair",
    owner="this project, as `factormodels fit` reads it",
    holds="responses",
    keys=("response", "claim", "passage", "relation"),
    recognize=looks_like_relation_row,
    read=parse_relation_row,
    also=("*",),
    gather=gather_relations,
)
