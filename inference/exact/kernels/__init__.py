"""Exact elimination: orders, cluster trees and message propagation, compiled over flat arrays.

The walks over a cluster tree, all of them runs of one `TreeProgram`:

    log_walk.py                   the general one: sums or maxima, in log space, up and down
    propagation.py, products.py   sums of scaled potentials
    ../parallel.py                the kernels of propagation.py and products.py, by ranges of large
                                  tables that threads share; it adds no arithmetic but the sum of
                                  what the ranges give
    ../../tasks/kernels/
        log_messages.py           messages both ways with nothing divided out, by log_tables.py
        removal.py                the same, in the part of a tree that a removed factor changes
        rows.py                   counts and pairs of targets, in the order of subtrees.py
        assignments.py            draws, and the states of a maximum, from the roots down

Processor time of the general walk as a multiple of the special one's, for a response of
31 claims and 93 passages (a; density .02), a chain of 500 variables of 8 states (b), grids of 5 by
5 of 4 states (c) and of 10 by 10 (d), a response of 26 claims and 130 passages (e; density .05), a
noisy-or network of 22 causes and 30 findings (f), and a deterministic network of 26 variables, of
whose entries three tenths are zero (g) (`python -m tests.endurance walks`):

                          a     b     c     d     e     f     g
    propagation.py        3.3   4.9   8.6   12    13    11    5.4   the walk in log space
    ../parallel.py        0.5   0.9   0.8   0.9   1.0   0.9   0.9   one thread; one call instead
    log_messages.py       0.8   0.7   0.6   0.7   0.7   0.7   0.6   division, but no zero messages
    removal.py            2.8   28    0.4   0.6   6.5   0.1   0.3   a run without its factors
    rows.py, pairs        16    15    2.4   0.9   2.4   2.7   16    a run for each state
    rows.py, counts       17    -     -     2.2   8.4   5.7   -     a variable for each partial sum
    assignments.py        1.0   14    19    31    161   30    21    a walk for each draw

At density .15, where the largest table of 26 claims and 130 passages has 2^24 entries, the first
two rows are 10 and 0.8.

So each walk stays. Where parts are large (c, d, f and g), `inference.tasks.removals` predicts that
a run without the factors of each variable takes less time, and takes those runs. The stack of
subtrees.py holds 1.7 to 84 times fewer numbers than all rows.
"""
