"""`python -m experiments`: the same as the command `factormodels`."""

if __name__ == "__main__":
    # Processes that work for the command import this module too, and need nothing of it.
    from experiments.cli.main import main

    main()
