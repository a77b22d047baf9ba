"""Formats of the files of other tools, a file for each.

Such a file declares the records of its tool and two functions: `recognize` tells whether a JSON
value is of the format, `read` makes items of it. `registry` has a row for each format.
"""
