"""Retrieval: queries in, passages of evidence out, from documents on this disk or from the web."""
