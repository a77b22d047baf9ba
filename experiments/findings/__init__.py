"""What a command found: sentences, tables and figures, on a terminal, a page and in files."""
