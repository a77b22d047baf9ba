"""Files as they lie: opened through one gate that bounds their size, written whole, and named."""
