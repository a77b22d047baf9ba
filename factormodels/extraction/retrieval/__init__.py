"""Retrieval of passages of evidence for queries, from local documents or from the web."""
