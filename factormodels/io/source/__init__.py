"""Access to files: opened through one module that limits their size, written atomically, named."""
