"""From the text of a response to posteriors, durably, and what that costs."""
