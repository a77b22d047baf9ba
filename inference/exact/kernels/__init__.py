"""Exact elimination: orders, cluster trees and message propagation, compiled over flat arrays."""
