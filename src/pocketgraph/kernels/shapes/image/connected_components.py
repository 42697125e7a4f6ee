"""Shape rule of numbered pixels."""

from __future__ import annotations

from pocketgraph.kernels.shapes.common_rules import unchanged
from pocketgraph.kernels.shapes.rules import shape_rule

shape_rule("ImageConnectedComponents")(unchanged)
