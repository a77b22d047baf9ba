"""Blocks of variables that form a forest when all other variables are fixed (compiled).

Given the rest, such a block is drawn at once and exactly, which moves a chain much further than
one variable at a time (Hamze & de Freitas 2004, "From fields to trees"). With B a block and F the
factors on its variables,

    P(x_B | rest) proportional to prod_(f in F) f(x_B, rest)

and B and F, joined where a variable is in a factor, are a forest of T trees exactly if

    sum_(f in F) |variables of f in B| = |B| + |F| - T
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inner_kernel, kernel
from inference.kernels.random_numbers import shuffle


class Blocks(NamedTuple):
    """Rooted forests; a "member" is one variable in one block, a "link" one factor with more.

    Links are factors that hold two or more variables of the block: one parent and its children,
    which are consecutive members. Links come in the order of their parents, and their children in
    the order of links, so that members follow their parents.

    Attributes:
        starts: int64 (n_blocks + 1,), where the members of every block begin.
        variables: int64 (n_members,).
        own_slots: int64 (n_members,), the member's place in the scope of the link to its parent;
            -1 for a root.
        single_starts: int64 (n_members + 1,).
        single_slots: int64, places in scopes of the factors whose only variable in the block is
            the member.
        link_starts: int64 (n_members + 1,), the links to every member's children.
        factors: int64 (n_links,), the factor of every link.
        parent_slots: int64 (n_links,), the parent's place in its scope.
        child_starts, child_stops: int64 (n_links,), the members that are every link's children.
        table_starts: int64 (n_links + 1,), start of the link's conditional probabilities in an
            array, with the parent's state varying slowest.
    """

    starts: NDArray[np.int64]
    variables: NDArray[np.int64]
    own_slots: NDArray[np.int64]
    single_starts: NDArray[np.int64]
    single_slots: NDArray[np.int64]
    link_starts: NDArray[np.int64]
    factors: NDArray[np.int64]
    parent_slots: NDArray[np.int64]
    child_starts: NDArray[np.int64]
    child_stops: NDArray[np.int64]
    table_starts: NDArray[np.int64]


@kernel
def choose_blocks(
    scope_starts, scope_variables, factor_starts, factors, group_starts, group_variables, grown,
    random,
):  # fmt: skip
    """Choose blocks that cover all variables.

    Args:
        scope_starts, scope_variables: arrays as in `GraphArrays`.
        factor_starts, factors: int64 (n_variables + 1,) and (n_slots,), the factors at every
            variable.
        group_starts, group_variables: int64 (n_groups + 1,) and int64, groups of variables that
            should be in one block.
        grown: whether each block is grown until no variable can be added; otherwise only variables
            that no block has yet, and groups, are.
        random: uint64 (1,), state of the random numbers.

    Returns:
        member: bool (n_blocks, n_variables).
        together: bool (n_groups,), whether some block holds all of the group.
    """
    n = len(factor_starts) - 1
    n_groups = len(group_starts) - 1
    together = np.zeros(n_groups, dtype=np.bool_)
    covered = np.zeros(n, dtype=np.bool_)
    rows = np.zeros((4, n), dtype=np.bool_)
    n_blocks = 0
    hopeless = np.zeros(n_groups, dtype=np.bool_)
    # Nodes 0 to n - 1 are the variables, those from n on the factors.
    root = np.empty(n + len(scope_starts) - 1, dtype=np.int64)
    size = np.empty(len(root), dtype=np.int64)
    undo = np.empty(len(scope_variables) + 1, dtype=np.int64)
    groups = np.arange(n_groups)
    order = np.arange(n)
    while True:
        # It ends when every variable is in a block, and every group in one or in none that could
        # be.
        done = True
        for g in groups:
            done &= together[g] or hopeless[g]
        for v in range(n):
            done &= covered[v]
        if done:
            return rows[:n_blocks], together
        if n_blocks == len(rows):
            larger = np.zeros((2 * n_blocks, n), dtype=np.bool_)
            for b in range(n_blocks):
                for v in range(n):
                    larger[b, v] = rows[b, v]
            rows = larger
        member = rows[n_blocks]
        for node in range(len(root)):
            root[node] = node
            size[node] = 1
        shuffle(random, groups)
        shuffle(random, order)
        empty = True
        for g in groups:
            if together[g] or hopeless[g]:
                continue
            added = _add(
                group_variables[group_starts[g] : group_starts[g + 1]], member, n, factor_starts,
                factors, root, size, undo,
            )  # fmt: skip
            if added:
                empty = False
                together[g] = True
            # It closes a cycle by itself: no block can have it.
            elif empty:
                hopeless[g] = True
        # First variables that no block has yet, then, if blocks are grown, all others that fit.
        for turn in range(2 if grown else 1):
            for i in range(n):
                v = order[i]
                if not member[v] and covered[v] == (turn == 1):
                    _add(order[i : i + 1], member, n, factor_starts, factors, root, size, undo)
        for v in range(n):
            covered[v] |= member[v]
        n_blocks += 1


@kernel
def _find(root, node):
    """Root of the tree of a node; paths stay as they are, so that a union can be undone."""
    while root[node] != node:
        node = root[node]
    return node


@kernel
def _take_back(variables, last, member, root, size, undo):
    """Undo the unions of `_add`, the last first, and remove the variables that it added.

    Args:
        last: the variable that closed a cycle, which is not in the block yet.
        undo: int64, the roots that were put below others.
    """
    for i in range(len(undo) - 1, -1, -1):
        below = undo[i]
        size[root[below]] -= size[below]
        root[below] = below
    for u in variables:
        if u == last:
            break
        member[u] = False


@kernel
def _add(variables, member, n, factor_starts, factors, root, size, undo):
    """Add variables to a block if it stays a forest: all of them or none.

    Union by size without path compression, since that could not be taken back.

    Variables and factors are nodes of trees that are joined where a variable is in a factor; two
    nodes that are joined already would close a cycle.
    """
    count = 0
    for v in variables:
        for entry in range(factor_starts[v], factor_starts[v + 1]):
            # A factor that the block reaches twice would close a cycle of variables and factors.
            a = _find(root, v)
            b = _find(root, n + factors[entry])
            if a == b:
                _take_back(variables, v, member, root, size, undo[:count])
                return False
            upper, lower = (a, b) if size[a] >= size[b] else (b, a)
            root[lower] = upper
            size[upper] += size[lower]
            undo[count] = lower
            count += 1
        member[v] = True
    return True


@inner_kernel
def _slot_and_others(scope_starts, scope_variables, f, v, member):
    """Return the slot of a variable in a factor, and the number of other members of the block."""
    v_slot = -1
    others = 0
    for slot in range(scope_starts[f], scope_starts[f + 1]):
        if scope_variables[slot] == v:
            v_slot = slot
        elif member[scope_variables[slot]]:
            others += 1
    return v_slot, others


@inner_kernel
def _add_children(scope_starts, scope_variables, f, v, member, variables, own_slots, tail):
    """Append the other variables of the block in a factor's scope; return the new end."""
    for slot in range(scope_starts[f], scope_starts[f + 1]):
        u = scope_variables[slot]
        if u != v and member[u]:
            variables[tail] = u
            own_slots[tail] = slot
            tail += 1
    return tail


@kernel
def root_blocks(cardinalities, scope_starts, scope_variables, factor_starts, factors, member):
    """Return the blocks as rooted forests.

    Args:
        cardinalities, scope_starts, scope_variables: arrays as in `GraphArrays`.
        factor_starts, factors: int64 (n_variables + 1,) and (n_slots,), the factors at every
            variable.
        member: bool (n_blocks, n_variables), forests.
    """
    n_blocks, n = member.shape
    n_members = 0
    n_slots = 0
    for b in range(n_blocks):
        for v in range(n):
            if member[b, v]:
                n_members += 1
                n_slots += factor_starts[v + 1] - factor_starts[v]
    starts = np.zeros(n_blocks + 1, dtype=np.int64)
    variables = np.empty(n_members, dtype=np.int64)
    own_slots = np.full(n_members, -1, dtype=np.int64)
    single_starts = np.zeros(n_members + 1, dtype=np.int64)
    single_slots = np.empty(n_slots, dtype=np.int64)
    link_starts = np.zeros(n_members + 1, dtype=np.int64)
    links = np.empty(n_slots, dtype=np.int64)
    parent_slots = np.empty(n_slots, dtype=np.int64)
    child_starts = np.empty(n_slots, dtype=np.int64)
    child_stops = np.empty(n_slots, dtype=np.int64)
    table_starts = np.zeros(n_slots + 1, dtype=np.int64)
    # The last block in which a variable was reached, and in which a factor became a link.
    reached = np.full(n, -1, dtype=np.int64)
    linked = np.full(len(scope_starts) - 1, -1, dtype=np.int64)
    tail = 0
    head = 0
    n_singles = 0
    n_links = 0
    # One block after another, and in each one tree after another.
    for number in range(n_blocks * n):
        b, start = number // n, number % n
        starts[b + 1] = tail
        if not member[b, start] or reached[start] == b:
            continue
        reached[start] = b
        variables[tail] = start
        tail += 1
        while head < tail:
            v = variables[head]
            for entry in range(factor_starts[v], factor_starts[v + 1]):
                f = factors[entry]
                if linked[f] == b:
                    continue
                v_slot, others = _slot_and_others(scope_starts, scope_variables, f, v, member[b])
                # All other variables of the factor are fixed: it is a table of v alone.
                if others == 0:
                    single_slots[n_singles] = v_slot
                    n_singles += 1
                    continue
                linked[f] = b
                links[n_links] = f
                parent_slots[n_links] = v_slot
                # The factor links v to its other variables of the block, which become its children.
                child_starts[n_links] = tail
                first, entries = tail, cardinalities[v]
                tail = _add_children(
                    scope_starts, scope_variables, f, v, member[b], variables, own_slots, tail
                )
                for child in range(first, tail):
                    reached[variables[child]] = b
                    entries *= cardinalities[variables[child]]
                child_stops[n_links] = tail
                n_links += 1
                table_starts[n_links] = table_starts[n_links - 1] + entries
            head += 1
            single_starts[head] = n_singles
            link_starts[head] = n_links
        starts[b + 1] = tail
    return Blocks(
        starts,
        variables,
        own_slots,
        single_starts,
        single_slots[:n_singles],
        link_starts,
        links[:n_links],
        parent_slots[:n_links],
        child_starts[:n_links],
        child_stops[:n_links],
        table_starts[: n_links + 1],
    )
