"""Pages about a run: a folder of HTML that needs neither a server nor a network."""
