"""The command line: commands, options and printed output."""
