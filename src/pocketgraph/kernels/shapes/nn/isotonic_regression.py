"""Shape rule of isotonic regression."""

from __future__ import annotations

from pocketgraph.kernels.shapes.common_rules import of_input
from pocketgraph.kernels.shapes.rules import shape_rule

shape_rule("IsotonicRegression")(of_input(0, times=2))
