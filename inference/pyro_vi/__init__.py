"""Variational inference with Pyro: a product guide and a forest-structured one."""

from __future__ import annotations

from inference.pyro_vi.mean_field import MeanField
from inference.pyro_vi.structured import Structured

__all__ = ["MeanField", "Structured"]
