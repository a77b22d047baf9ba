"""What is asked of a language model: the table of stages, and the loop that asks."""
