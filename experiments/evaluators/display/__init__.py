"""Tables and pages of what evaluators leave in the graphs of responses."""
