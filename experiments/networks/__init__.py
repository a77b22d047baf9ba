"""Studies that compare backends on networks, read from files or generated."""
