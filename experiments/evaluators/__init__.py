"""Durable assessment of responses, from text to posteriors, with cost estimates."""
