"""Studies whose data are networks: backends compared on factor graphs, in files or drawn."""
