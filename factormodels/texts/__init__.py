"""Texts of claims: their language, numbers and negations, and the words of two compared."""
