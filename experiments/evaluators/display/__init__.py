"""Tables and pages of the evaluators' results in the graphs of responses."""
