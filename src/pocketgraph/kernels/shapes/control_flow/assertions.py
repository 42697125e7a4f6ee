"""Shape rules of assertions and of ops that do nothing."""

from __future__ import annotations

from pocketgraph.kernels.shapes.common_rules import no_outputs
from pocketgraph.kernels.shapes.rules import shape_rule

shape_rule("Assert", "NoOp", "ControlTrigger")(no_outputs)
