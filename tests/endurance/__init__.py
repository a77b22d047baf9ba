"""Long trials of what must hold in the worst of days: modules to be run by hand, at full size."""
