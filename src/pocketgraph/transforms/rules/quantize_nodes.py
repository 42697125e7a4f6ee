"""Makes operations compute in eight bits where there are kernels for that."""

from __future__ import annotations

import math

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT, QUINT8
from pocketgraph.graph.edit import rename_inputs
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.graph_verification import check_references
from pocketgraph.transforms.parts.quantize_passes.code_nodes import dequantize
from pocketgraph.transforms.parts.quantize_passes.fake_quants import (
    convert_fake_quants,
    hoist_fake_quants,
    merge_adjacent_requantizes,
)
from pocketgraph.transforms.parts.quantize_passes.ops import quantize_ops
from pocketgraph.transforms.parts.quantize_passes.redundant import remove_redundant_quantizations
from pocketgraph.transforms.rules.merge_duplicate_nodes import merge_duplicate_nodes
from pocketgraph.transforms.tool import transform

PENDING = "__RENAMED_PLACEHOLDER__"  # marks the one reference to a placeholder that must not be redirected


@transform
def quantize_nodes(
    graph: Graph,
    *,
    input_min: float | None = None,
    input_max: float | None = None,
    fallback_min: float | None = None,
    fallback_max: float | None = None,
    ignore_op: tuple[str, ...] = (),
    compat: Compat = Compat.FIXED,
) -> Graph:
    """Replaces float operations by eight-bit ones, with conversions where values go in and come out.

    Given:   x = Placeholder(dtype=float)
             y = Relu(x, T=float)
             z = Relu6(y, T=float)
             ; inputs=x outputs=z quantize_nodes(input_min=0, input_max=1) strip_unused_nodes
    Result:  x = Placeholder(dtype=quint8)
             x_eightbit/min = Const(float 0.0)
             x_eightbit/max = Const(float 1.0)
             y/eightbit = QuantizedRelu(x, x_eightbit/min, x_eightbit/max, Tinput=quint8)
             z/eightbit = QuantizedRelu6(y/eightbit:0, y/eightbit:1, y/eightbit:2, Tinput=quint8)
             z = Dequantize(z/eightbit:0, z/eightbit:1, z/eightbit:2, T=quint8, mode="MIN_FIRST")

    Replaces Add, AvgPool, BiasAdd, Concat, Conv2D, MatMul, MaxPool, Mul, Relu, Relu6, Reshape and ResizeBilinear on
    floats; run backport_concatv2 first for ConcatV2. Ranges are searched while the graph runs, where the graph does not
    say them: FakeQuantWithMinMaxVars becomes real quantization in its range and moves up to the operation before it.
    Operations that follow each other stay in eight bits; run strip_unused_nodes afterwards, which takes out the float
    nodes that are left over. sort_by_execution_order brings the nodes into an order that reads well.

    Differs from the original: control inputs move to the eight-bit operation (there, they are quantized like data, and
    the graph cannot be loaded); an operation may read one input twice, as in ``Mul(x, x)`` (there, an error); so may a
    FakeQuantWithMinMaxVars; attributes with a default may be missing (there, an error). Stay float, because the
    eight-bit form would compute something else: NCHW, dilated and explicitly padded operations, convolutions with
    different strides down and across, pools over batches or channels. Reshape keeps ``Tshape`` and ResizeBilinear
    ``half_pixel_centers``. Placeholders of other types than float stay as they are. A FakeQuantWithMinMaxVars of other
    than eight bits stays, and it moves up only over operations that preserve its range (there, over any with one input,
    even Softmax) and that are no outputs of the graph. Two quantizations cancel each other out only where they have the
    same type, mode and range. Ends of a range in the wrong order are an error (there, they go into the graph).

    Args:
        input_min: with ``input_max``, placeholders take eight-bit values in this range rather than floats.
        input_max: see ``input_min``.
        fallback_min: with ``fallback_max``, the range of 32-bit results of which the graph says none, so that it is not
            searched while the graph runs.
        fallback_max: see ``fallback_min``.
        ignore_op: op types to leave alone.

    Raises:
        TransformError: one of a pair is given without the other, or they are no range and ``compat`` is not "original".
        GraphError: an attribute that an op must have is missing, or an op is unknown.
    """
    strict = compat.original
    placeholder_range = _range("input", input_min, input_max, strict)
    fallback = _range("fallback", fallback_min, fallback_max, strict)
    if placeholder_range:
        graph = _checked(quantize_placeholders(graph, *placeholder_range, any_type=strict))
    graph = _checked(hoist_fake_quants(graph, over_any_op=strict))
    twice: set[str] = set()
    graph = _checked(convert_fake_quants(graph, twice, any_bits=strict))
    graph = _checked(quantize_ops(graph, ignore_op, fallback, strict=strict))
    parts = [_checked(merge_adjacent_requantizes(graph))]
    del graph  # so that the many nodes of this step can go while the next one replaces them
    graph = merge_duplicate_nodes(parts.pop(), compat=compat)
    if strict and any(name in graph for name in twice):  # the original has two of it, and cannot tell them apart
        name = next(name for name in sorted(twice) if name in graph)
        what = "a FakeQuantWithMinMaxVars reads it twice"
        raise TransformError(what, where=f"node '{name}'", hint="compat=fixed goes on")
    return remove_redundant_quantizations(graph, unproved=strict)


def _checked(graph: Graph) -> Graph:
    check_references(graph, "quantize_nodes")
    return graph


def _range(name: str, low: float | None, high: float | None, anything: bool) -> tuple[float, float] | None:
    if low is None and high is None:
        return None
    if low is None or high is None:
        raise TransformError(f"You must pass both {name}_min and {name}_max into quantize_nodes")
    if not anything and not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise TransformError(
            f"{name}_min must be less than {name}_max, and both finite numbers; {low:g} and {high:g} were given"
        )
    return low, high


def quantize_placeholders(graph: Graph, low: float, high: float, *, any_type: bool) -> Graph:
    """Makes every float ``Placeholder`` one of quint8 values in the range from ``low`` to ``high``.

    A Dequantize behind it gives its readers float values as before.

    Args:
        any_type: do this to placeholders of other types, too (they are float afterwards).
    """
    nodes: list[Node] = []
    readers: dict[str, str] = {}
    for node in graph:
        if node.op != "Placeholder" or not (any_type or node.attr("dtype") is FLOAT):
            nodes.append(node)
            continue
        scope = f"{node.name}_eightbit"
        parts = [const(f"{scope}/min", low, FLOAT), const(f"{scope}/max", high, FLOAT)]
        back = dequantize(f"{scope}/dequantize", [node.name + PENDING, *(part.name for part in parts)])
        readers[node.name] = back.name
        nodes += [node.with_attrs(dtype=QUINT8), *parts, back]
    if not readers:
        return graph
    redirected = rename_inputs(graph.replace(nodes), readers)
    return rename_inputs(redirected, {name + PENDING: name for name in readers})
