"""Settings of the probe of a language model before its answers are used."""

from __future__ import annotations

from experiments.settings import Settings


class FirstProbeSettings(Settings):
    """Language model."""

    probe: bool | None = None
    """Ask the language model questions with known answers first, and say whether its answers are
    evidence. By default where its answers are kept. In Python not of a model that is an object."""
