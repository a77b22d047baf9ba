"""Relation models: probabilities that a text entails, contradicts or is neutral to another."""
