"""Studies: configuration, design and data."""
