"""Which ops take long, and which take nothing, where all that is known of a node is its op."""

from pocketgraph.graph.op_traits import ops_with

HEAVY = ops_with("heavy")
"""What one call computes is worth the way into another engine."""
FREE = ops_with("passes", "view", "constant", "shape") | {"NoOp", "PlaceholderWithDefault"}
"""What gives on what it took, or what a plan has at hand."""
