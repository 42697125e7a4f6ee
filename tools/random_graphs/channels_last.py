"""A graph with channels first as TensorFlow's CPU kernels can run it: transposes around what wants them last."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Graph, Node, const

LAID_OUT = {
    "Conv2D": (0,), "DepthwiseConv2dNative": (0,), "Conv2DBackpropInput": (2,), "MaxPool": (0,), "AvgPool": (0,),
    "FusedBatchNorm": (0,), "FusedBatchNormV2": (0,), "FusedBatchNormV3": (0,),
}  # fmt: skip
"""By op: the inputs that have the layout that the attribute names; the first output has it too."""
SIZED = {"Conv2DBackpropInput": 0}
"""By op: the input that holds the sizes of the output."""
TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def channels_last(graph: Graph) -> Graph:
    """The same graph without NCHW convolutions, pools and batch norms; node names keep their values."""
    nodes: list[Node] = []
    for node in graph:
        if node.op not in LAID_OUT or node.attrs.get("data_format") != b"NCHW":
            nodes.append(node)
            continue
        kind, inputs, prefix = node.attrs["T"], list(node.inputs), f"{node.name}/layout"
        last, first = (
            const(f"{prefix}/last", np.array(TO_LAST, np.int32)),
            const(f"{prefix}/first", np.array(TO_FIRST, np.int32)),
        )
        nodes += [last, first]
        for place in LAID_OUT[node.op]:
            turned = Node(
                f"{prefix}/in", "Transpose", (inputs[place], last.name), {"T": kind, "Tperm": last.attrs["dtype"]}
            )
            inputs[place] = turned.name
            nodes.append(turned)
        if node.op in SIZED:
            place = SIZED[node.op]
            axis = const(f"{prefix}/axis", np.array(0, np.int32))
            types = {"Tparams": axis.attrs["dtype"], "Tindices": axis.attrs["dtype"], "Taxis": axis.attrs["dtype"]}
            sizes = Node(f"{prefix}/sizes", "GatherV2", (inputs[place], last.name, axis.name), types)
            inputs[place] = sizes.name
            nodes += [axis, sizes]
        attrs = dict(node.attrs) | {"data_format": b"NHWC"}
        for name in ("strides", "dilations", "ksize"):
            if name in attrs:
                attrs[name] = tuple(attrs[name][i] for i in TO_LAST)
        pads = attrs.get("explicit_paddings")
        if pads:
            attrs["explicit_paddings"] = tuple(v for i in TO_LAST for v in pads[2 * i : 2 * i + 2])
        inner = node.replace(name=f"{prefix}/op", inputs=tuple(inputs), attrs=attrs)
        back = Node(node.name, "Transpose", (inner.name, first.name), {"T": kind, "Tperm": first.attrs["dtype"]})
        nodes += [inner, back]
    return graph.replace(nodes)
