"""Work on many samples shared out over machines by Ray; results come in order, as one machine gives them."""

from pocketgraph.cluster.connection import connected, current
from pocketgraph.cluster.ordered_map import map_in_order, source_key

__all__ = ["connected", "current", "map_in_order", "source_key"]
