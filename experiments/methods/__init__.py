"""Each paper's method on one's own data: what a command of its name prints, a function gives."""
