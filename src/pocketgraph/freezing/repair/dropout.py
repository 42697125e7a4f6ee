"""Dropout and layers of noise are taken out of a graph: what went in comes out."""

from pocketgraph.passes.dropout_removal import without_dropout as repaired

__all__ = ["repaired"]
