"""`python -m experiments`: the same as the command `factormodels`."""

from experiments.cli.main import main

if __name__ == "__main__":
    main()
