"""The original's two tools beside freeze_graph, which ready a frozen graph for use: strip_unused, and
optimize_for_inference with the four rules that it runs."""

from __future__ import annotations

from pocketgraph.freezing.for_inference.optimize_for_inference import optimize_for_inference
from pocketgraph.freezing.for_inference.remove_training_nodes import remove_training_nodes
from pocketgraph.freezing.for_inference.strip import strip_unused

__all__ = ["optimize_for_inference", "remove_training_nodes", "strip_unused"]
