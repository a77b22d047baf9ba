"""Backends that stand on other people's libraries, one file or folder for each library."""
