"""What metadata record of a response: the source of its evidence, verdicts, what it taught."""
