"""The exceptions that every package raises for a person to read."""

from __future__ import annotations


class FactormodelsError(Exception):
    """Base of every error of this project whose message is written for its user.

    The command line prints the message of such an error as one line and exits with code 2.
    """


class InputError(FactormodelsError, ValueError):
    """Bad input: the message names the file or argument, the place, the value and the mend."""


class MissingDependencyError(FactormodelsError, ImportError):
    """An optional library is absent: the message names the command that installs it."""
