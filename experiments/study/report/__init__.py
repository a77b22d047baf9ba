"""From the tidy rows of a study to its scores, tests, tables, diagrams and sentences."""
