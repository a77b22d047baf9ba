"""Variational inference with Pyro: a product guide and a forest-structured one."""

from __future__ import annotations

from inference.peers.pyro_variational.mean_field import MeanField
from inference.peers.pyro_variational.structured import Structured

__all__ = ["MeanField", "Structured"]
