"""Settings of the probe of a language model before its answers are used."""

from __future__ import annotations

from experiments.settings import Settings


class FirstProbeSettings(Settings):
    """Language model.

    Options that probe the language model before it is asked.
    """

    probe: bool | None = None
    """First ask the language model questions with known answers, and report whether its answers are
    evidence. On by default if answers are cached, except for model objects in Python."""
