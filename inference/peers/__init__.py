"""Backends that use other libraries, in one file or folder per library."""
