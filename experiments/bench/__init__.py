"""Benchmarks: families of graphs x algorithms, compared by ratios within one run.

Times of two runs or two machines are not compared; the ratio of two algorithms that alternate on
the same graphs in one process is. `python -m experiments.bench` is `factormodels bench`.
"""
