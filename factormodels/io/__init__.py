"""Files of models, told apart by their content rather than by their name.

`read` and `read_many` know fact-graph JSON, the datasets of `factormodels.io.published.formats`,
UAI models and BIF; any of them may be compressed with gzip, and `-` is standard input. `read_each`
holds one graph of JSON Lines at a time. `read_prompts` and `read_judged_pairs` read datasets that
hold no responses. `write` and `write_many` write fact-graph JSON and UAI. UAI evidence and results:
`factormodels.io.networks.uai_results`.
"""

from factormodels.io.reading import (
    read,
    read_any,
    read_each,
    read_judged_pairs,
    read_many,
    read_prompts,
)
from factormodels.io.writing import write, write_many

__all__ = [
    "read",
    "read_any",
    "read_each",
    "read_judged_pairs",
    "read_many",
    "read_prompts",
    "write",
    "write_many",
]
