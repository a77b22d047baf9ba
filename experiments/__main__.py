"""`python -m experiments`: the same as the command `factormodels`."""

if __name__ == "__main__":
    # Worker processes of the command import this module too, and use nothing from it.
    from experiments.cli.main import main

    main()
