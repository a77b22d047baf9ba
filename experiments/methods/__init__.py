"""Each paper's method on a user's data: a function returns what the command of its name prints."""
