"""Assignments that a walk down a cluster tree makes: samples, or the most probable (compiled).

Given the states of its separator, the variables eliminated in a cluster depend on nothing above it.
So a pass from the roots to the leaves draws from the joint distribution, or reads the maximum off
(Dawid 1992, "Applications of a general propagation algorithm for probabilistic expert systems").
With s the states of the separator, r those of the variables eliminated in the cluster, numbered
from 0, b(s, r) its belief and u uniform on [0, 1),

    draw     r = min {k : sum_(j <= k) b(s, j) > u sum_j b(s, j)}
    maximum  r = argmax_k table(s, k), the table of the way up in `log_walk.py`

The list of all walks over a cluster tree is in `inference/exact/kernels/__init__.py`.
"""

from __future__ import annotations

from inference.kernels.compiled import inner_kernel, kernel
from inference.kernels.views import lent


@kernel
def assign(cardinalities, tree, tables, uniforms, choices, states):
    """Assign states to the variables of each cluster, roots first, for each row of `states`.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        tree: the `ClusterTree`.
        tables: float64, to draw: the beliefs of the clusters, as `propagate` leaves them.
        uniforms: float64 (n, n_clusters), to draw: independent and uniform on [0, 1).
        choices: int32, as `ascend_log` writes them; -1 for clusters that sum, whose variables get
            no state. Its length is 0 to draw.
        states: int32 (n, n_variables), written.
    """
    for i in range(len(states)):
        _assign_one(cardinalities, tree, tables, uniforms, i, choices, states[i])


@inner_kernel
def _assign_one(cardinalities, tree, tables, uniforms, i, choices, states):
    """Assign states to all variables, cluster by cluster, for row `i`; see `assign`."""
    # Lent, and a call for each assignment rather than each draw: references would be counted.
    cardinalities, tree, tables, uniforms, choices, states = lent(
        (cardinalities, tree, tables, uniforms, choices, states)
    )
    has_choices = len(choices) > 0
    for c in range(len(tree.parents) - 1, -1, -1):
        first = tree.starts[c] + tree.separator_sizes[c]
        message = tree.message_starts[c]
        if has_choices and choices[message] < 0:
            continue
        # The separator's states select an entry of the message, and a group of the table.
        row = 0
        for entry in range(tree.starts[c], first):
            variable = tree.variables[entry]
            row = row * cardinalities[variable] + states[variable]
        chosen = 0
        if has_choices:
            chosen = choices[message + row]
        else:
            group = (tree.table_starts[c + 1] - tree.table_starts[c]) // (
                tree.message_starts[c + 1] - message
            )
            start = tree.table_starts[c] + row * group
            total = 0.0
            for at in range(start, start + group):
                total += tables[at]
            threshold = uniforms[i, c] * total
            # An entry of zero never raises the sum above the threshold, so it is never drawn; the
            # last positive one is drawn if rounding has carried the threshold to the total.
            reached = 0.0
            for k in range(group):
                if tables[start + k] <= 0.0:
                    continue
                chosen = k
                reached += tables[start + k]
                if reached > threshold:
                    break
        # The place within the group is a number in mixed radix, the last variable its last digit.
        for entry in range(tree.starts[c + 1] - 1, first - 1, -1):
            variable = tree.variables[entry]
            states[variable] = chosen % cardinalities[variable]
            chosen //= cardinalities[variable]
