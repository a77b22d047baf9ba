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

What the general walk takes in place of each, as a multiple of its processor time, for a response of
31 claims and 93 passages, a chain of 500 variables of 8 states, grids of 5 by 5 of 4 states, and of
10 by 10 (`python -m tests.endurance walks`):

    propagation.py                3.3   4.9   8.6   12    the walk in log space
    ../parallel.py, one thread    0.5   0.9   0.8   0.9   one call: small graphs are not shared
    log_messages.py               0.8   0.7   0.6   0.7   division, which a zero message forbids
    removal.py                    5.4   8.7   0.2   0.07  a run without each variable's factors
    rows.py, pairs                16    6.0   1.0   0.3   a run for each state of each target
    rows.py, counts               13    -     -     1.2   a run with a variable for each partial sum
    assignments.py                2.5   14    20    31    a walk for each draw

So each walk stays for the graphs of claims, whose clusters are many and small. On grids, a run for
each question beats rows and removals. The stack of subtrees.py holds 1.7 to 84 times fewer numbers
than all rows.
"""
