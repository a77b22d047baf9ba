"""Experiments: from a configuration to tidy rows, tables and figures, and the command line.

The only place that wires models, inference and calibration together.
"""
