"""Backends that stand on libraries by other hands, one file or folder for each library."""
