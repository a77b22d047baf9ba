"""Changes by hand, each of which makes something wrong, and the tests that must notice it."""
