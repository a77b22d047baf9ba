"""What analyses of our own share: the shapes of synthetic graphs."""
