"""Conversion to and from the objects of other libraries.

Fact graphs convert to data frames and networkx graphs, factor graphs to models of pgmpy, pyAgrum
and PGMax. A library is imported by the function that needs it.
"""

from factormodels.interchange.fact_graphs import (
    FactGraphFrames,
    from_frames,
    from_networkx,
    to_frames,
    to_networkx,
)
from factormodels.interchange.factor_graphs import (
    from_pgmax,
    from_pgmpy,
    from_pyagrum,
    to_pgmax,
    to_pgmpy,
    to_pyagrum,
)

__all__ = [
    "FactGraphFrames",
    "from_frames",
    "from_networkx",
    "from_pgmax",
    "from_pgmpy",
    "from_pyagrum",
    "to_frames",
    "to_networkx",
    "to_pgmax",
    "to_pgmpy",
    "to_pyagrum",
]
