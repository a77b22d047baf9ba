"""`python -m experiments.bench`: the same as `factormodels bench`."""

import sys

from experiments.cli import app

if __name__ == "__main__":
    app(["bench", *sys.argv[1:]], prog_name="factormodels")
