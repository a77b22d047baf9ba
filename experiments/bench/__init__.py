"""Benchmarks: accuracy against time, the project's algorithms beside those of other libraries.

Families of graphs and algorithms are tables (`families`, `algorithms`); every algorithm runs in a
process of its own (`worker`), all in turn on the same graphs (`measure`). Times of two machines are
not compared; the ratio of two algorithms within the same rounds is (`ratios`), and two runs on one
machine are compared with each other relative to a yardstick (`compare`). `python -m
experiments.bench` is `factormodels bench`.
"""
