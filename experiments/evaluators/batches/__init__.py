"""Assessment of many responses: concurrent, durable, and on a cluster."""
