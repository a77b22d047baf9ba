"""Order of an evaluation's calls, rules for stopping, and the cost of all calls."""
