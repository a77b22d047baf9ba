"""The report of a run: a folder of HTML pages that need neither a server nor a network."""
