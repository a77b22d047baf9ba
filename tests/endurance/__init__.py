"""Long trials of what must hold in the worst of days: modules to be run by hand, at full size."""

Row = dict[str, object]
"""Of a table that a scenario yields: cells by the heads of their columns."""
