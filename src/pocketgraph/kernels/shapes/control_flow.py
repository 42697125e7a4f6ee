"""Shape rules of branches, loops and assertions."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import common
from pocketgraph.kernels.shapes.array.reshaping import placeholder
from pocketgraph.kernels.shapes.common_rules import no_outputs, of_input, scalar, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("Exit", "NextIteration", "RefExit", "RefNextIteration", "_Retval")(unchanged)
shape_rule("_Arg")(placeholder)
shape_rule("Switch", "RefSwitch")(of_input(0, times=2))
shape_rule("LoopCond")(scalar)


shape_rule("_SwitchN")(lambda call: [call.shape(0)] * int(call.attr("num_outs", 1)))


@shape_rule("Merge", "RefMerge")
def join(call: ShapeCall) -> Sequence[Shape]:
    """What holds whichever branch is taken; one that nothing is known of (a loop coming back) makes it unknown."""
    return [common(call.inputs), SCALAR]


@shape_rule("Enter", "RefEnter")
def enter(call: ShapeCall) -> Shape:
    """A loop's variable may change its shape while it goes round; its constants may not."""
    return call.shape(0) if call.attr("is_constant", False) else UNKNOWN


shape_rule("Assert", "NoOp", "ControlTrigger")(no_outputs)
