"""Order of an evaluation's calls, stopping rules, and costs."""
