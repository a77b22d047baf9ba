"""Formats of other tools' files, one module each.

A module declares the records of its tool and two functions: `recognize` returns whether a JSON
value has the format, and `read` converts it to items. `registry` has a row for each format.
"""
