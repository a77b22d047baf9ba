"""Keys of a response's metadata under which the stages of extraction record their work."""

from __future__ import annotations

from factormodels.metadata.evidence_source import RETRIEVAL_KEY

ATOMS_KEY = "atoms"
REVISION_KEY = "revision"
QUERIES_KEY = "queries"
SUMMARIES_KEY = "summaries"
SAMPLES_KEY = "samples"

STAGE_KEYS = (*(ATOMS_KEY, REVISION_KEY, QUERIES_KEY, RETRIEVAL_KEY, SUMMARIES_KEY, SAMPLES_KEY),)
"""Keys of the stages' records, each of which has a list `failures`."""

CONSUMPTION_KEY = "consumption"
"""Key of the calls, tokens and cost of a response, by stage."""

PROBE_KEY = "probe"
"""Key of the sentences on probes whose answers are no evidence, of the models that were asked."""
