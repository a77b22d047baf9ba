"""To and from the objects of other libraries.

Fact graphs as data frames and networkx graphs; factor graphs as models of pgmpy, pyAgrum and
PGMax. A library is imported by the function that needs it.
"""

from factormodels.interchange.frames import FactGraphFrames, from_frames, to_frames
from factormodels.interchange.networkx_graphs import from_networkx, to_networkx
from factormodels.interchange.pgmax_graphs import from_pgmax, to_pgmax
from factormodels.interchange.pgmpy_models import from_pgmpy, to_pgmpy
from factormodels.interchange.pyagrum_models import from_pyagrum, to_pyagrum

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
