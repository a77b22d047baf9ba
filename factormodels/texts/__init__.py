"""Texts of claims: their language, numbers and negations, and comparison of their words."""
