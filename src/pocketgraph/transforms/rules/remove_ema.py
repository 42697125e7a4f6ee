"""Takes out the moving averages that training with fake quantization leaves in a frozen graph."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.edit import replace_matches
from pocketgraph.graph.groups import closure
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.parts.convolution_facts import copied
from pocketgraph.transforms.tool import transform

LEAST = Pattern("Min", ["*", Pattern("Range", ["*", "*", "*"])])


def _average(value: Pattern | str) -> Pattern:
    """The moving average of a value, assigned to what was a variable and is a constant now."""
    step = Pattern("Sub", ["Const", Pattern("Mul", ["Sub", Pattern("Sub", ["Const", "Const"])])])
    return Pattern("Assign", ["Const", Pattern("Merge", [Pattern("Switch", [value, "IsVariableInitialized"]), step])])


AVERAGED = Pattern("FakeQuantWithMinMaxVars", ["*", _average(LEAST), _average("Max")])


@transform
def remove_ema(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Gives FakeQuantWithMinMaxVars the ranges that training found, as constants.

    Given:   x = Placeholder(dtype=float)
             start = Const(int32 0)
             delta = Const(int32 1)
             rank = Rank(x, T=float)
             axes = Range(start, rank, delta, Tidx=int32)
             least = Min(x, axes, T=float)
             greatest = Max(x, axes, T=float)
             decay = Const(float 0.999)
             one = Const(float 1.0)
             share = Sub(one, decay, T=float)
             low = Const(float -1.0)
             low_known = IsVariableInitialized(low, dtype=float)
             low_switch = Switch(least, low_known, T=float)
             low_change = Sub(low, low_switch:1, T=float)
             low_update = Mul(low_change, share, T=float)
             low_average = Sub(low, low_update, T=float)
             low_merge = Merge(low_switch, low_average, T=float, N=2)
             low_assign = Assign(low, low_merge, T=float)
             high = Const(float 3.0)
             high_known = IsVariableInitialized(high, dtype=float)
             high_switch = Switch(greatest, high_known, T=float)
             high_change = Sub(high, high_switch:1, T=float)
             high_update = Mul(high_change, share, T=float)
             high_average = Sub(high, high_update, T=float)
             high_merge = Merge(high_switch, high_average, T=float, N=2)
             high_assign = Assign(high, high_merge, T=float)
             y = FakeQuantWithMinMaxVars(x, low_assign, high_assign, num_bits=8, narrow_range=false)
             ; outputs=y remove_ema
    Result:  y = FakeQuantWithMinMaxVars(x, low, high, narrow_range=false, num_bits=8)
             x = Placeholder(dtype=float)
             low = Const(float -1.0)
             high = Const(float 3.0)

    This undoes fake_quantize_training in a graph that was frozen after it. Run it before fold_constants and
    quantize_nodes.

    Differs from the original: the input keeps its port (there, it is lost), and what other nodes read as well stays
    (there, such averages are not removed at all).
    """

    def rewrite(match: Match, used: frozenset[str]) -> list[Node]:
        fake, source = match.node, match.inputs[0].node
        low, high = (match.inputs[place].inputs[0].node for place in (1, 2))
        value = source.name if compat.original else fake.data_inputs[0]
        control = () if compat.original else fake.control_inputs
        attrs = copied(fake, "narrow_range", "num_bits")
        new = [Node(fake.name, fake.op, [value, low.name, high.name, *control], attrs), source, low, high]
        return new if compat.original else [*new, *_still_needed(match, used, {node.name for node in new})]

    return replace_matches(graph, AVERAGED, rewrite, keep_ends=not compat.original).graph


def _still_needed(match: Match, used: frozenset[str], given: set[str]) -> list[Node]:
    """The matched nodes that others read, and what these need of the match."""
    matched = {node.name: node for node in match.nodes}
    own = matched.keys() - given
    needed = set(closure(used, lambda name: map(node_name, matched[name].inputs), own.__contains__))
    return [node for node in match.nodes if node.name in needed]
