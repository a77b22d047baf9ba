"""Responses made to score well, and what selection of subclaims does about it."""
