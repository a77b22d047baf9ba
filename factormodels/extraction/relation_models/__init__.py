"""Relation models: the probability that one text entails, contradicts or leaves open another."""
