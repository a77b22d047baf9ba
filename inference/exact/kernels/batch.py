"""Many graphs, or many settings of the tables of one, in one call (compiled).

Every function handles the models `first` to `last` and writes to their places in its results
alone, so that threads can share the models between them.
"""

from inference.exact.kernels.solve import TOO_LARGE, UNRUN, plant, run_tree
from inference.kernels.compiled import kernel


@kernel
def run_tree_for_each(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, places, state_starts,
    tree, first, last, codes, log_zs, marginals, scaled,
):  # fmt: skip
    """Run a cluster tree for each of many settings of the tables of one graph.

    Args:
        cardinalities, scope_starts, scope_variables, table_starts: the graph.
        log_values: float64, the entries of the tables of all settings, one after another.
        places: int64 (n_settings, 5, 2); `places[k, 4]` is where the entries of setting k begin
            and end.
        state_starts: int64 (n_settings + 1,), where each setting's marginals begin.
        tree: the cluster tree of the graph.
        codes: int64 (n_settings,), out: DONE or ZERO.
        log_zs: float64 (n_settings,), out.
        marginals: float64, out.
        scaled: bool (n_settings,), out: whether scaled arithmetic sufficed.
    """
    for k in range(first, last):
        values = log_values[places[k, 4, 0] : places[k, 4, 1]]
        codes[k], log_zs[k], found, _, scaled[k] = run_tree(
            cardinalities, scope_starts, scope_variables, table_starts, values, tree
        )
        marginals[state_starts[k] : state_starts[k + 1]] = found


@kernel
def solve_for_each(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, places, state_starts,
    seed, restarts, max_entries, own_entries, chunked_from,
    first, last, codes, log_zs, marginals, scaled, costs,
):  # fmt: skip
    """Plant and run the cluster tree of each of many graphs, unless it is too large for that.

    Args:
        cardinalities, scope_starts, scope_variables, table_starts, log_values: the arrays of the
            graphs, one after another, numbered in each graph for itself.
        places: int64 (n_graphs, 5, 2), where those of each graph begin and end; graphs may share
            them.
        state_starts: int64 (n_graphs + 1,), where each graph's marginals begin.
        seed, restarts, max_entries, chunked_from: as for `elimination.solve.solve`.
        own_entries: entries that one thread may hold; a larger graph is left UNRUN.
        codes: int64 (n_graphs,), out: DONE, ZERO, TOO_LARGE or UNRUN.
        log_zs: float64 (n_graphs,), out.
        marginals: float64, out.
        scaled: bool (n_graphs,), out: whether scaled arithmetic sufficed.
        costs: float64 (n_graphs, 4), out: induced width, log2 of the largest table, entries of all
            tables and messages, multiplications and additions.
    """
    for k in range(first, last):
        cards = cardinalities[places[k, 0, 0] : places[k, 0, 1]]
        scopes = scope_starts[places[k, 1, 0] : places[k, 1, 1]]
        variables = scope_variables[places[k, 2, 0] : places[k, 2, 1]]
        tables = table_starts[places[k, 3, 0] : places[k, 3, 1]]
        values = log_values[places[k, 4, 0] : places[k, 4, 1]]
        fits, tree, width, largest, entries, work = plant(
            cards, scopes, variables, seed, restarts, max_entries
        )
        costs[k, 0], costs[k, 1], costs[k, 2], costs[k, 3] = width, largest, entries, work
        if not fits:
            codes[k] = TOO_LARGE
        elif largest >= chunked_from or entries > own_entries:
            codes[k] = UNRUN
        else:
            codes[k], log_zs[k], found, _, scaled[k] = run_tree(
                cards, scopes, variables, tables, values, tree
            )
            marginals[state_starts[k] : state_starts[k + 1]] = found
