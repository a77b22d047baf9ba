"""Questions to language models: the table of stages, and the loop that asks."""
