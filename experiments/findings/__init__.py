"""Findings of commands: sentences, tables and figures, on a terminal, on a page and in files."""
