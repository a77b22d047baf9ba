"""Many responses: side by side, durably, and on a cluster."""
