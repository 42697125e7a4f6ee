"""Runs one node by itself on the LiteRT engine, with its operands fed wherever they may be computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from litert.parts import compiled_part
from pocketgraph.graph import DType, Graph, Node, Shape, canonical, const
from pocketgraph.graph.order import topological
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.registry import evaluate
from pocketgraph.kernels.shapes import infer
from pocketgraph.litert import engine
from pocketgraph.litert.part_lowering import Trial

STITCHES = ("DynamicStitch", "ParallelDynamicStitch")  # of two pairs each in the goldens
STATIC: dict[str, tuple[int, ...]] = {
    "ArgMax": (1,), "ArgMin": (1,), "BatchToSpace": (1,), "BatchToSpaceND": (1, 2), "BroadcastTo": (1,),
    "Concat": (0,), "ConcatV2": (-1,), "Conv2D": (1,), "Conv2DBackpropInput": (0, 1), "Conv3D": (1,), "Cumprod": (1,),
    "Cumsum": (1,), "DepthwiseConv2dNative": (1,), "ExpandDims": (1,), "FakeQuantWithMinMaxVars": (1, 2),
    "FakeQuantWithMinMaxVarsPerChannel": (1, 2), "Fill": (0,), "FusedPadConv2D": (1, 2),
    "FusedResizeAndPadConv2D": (1, 2, 3), "GatherV2": (2,), "MirrorPad": (1,), "OneHot": (1,), "Pad": (1,),
    "PadV2": (1, 2), "Reshape": (1,), "ResizeArea": (1,), "ResizeBicubic": (1,),
    "ResizeBilinear": (1,), "ResizeNearestNeighbor": (1,), "ReverseV2": (1,),
    "ScaleAndTranslate": (1, 2, 3), "ScatterNd": (2,),
    "Slice": (1, 2), "SpaceToBatch": (1,), "SpaceToBatchND": (1, 2), "Split": (0,), "SplitV": (1, 2),
    "StridedSlice": (1, 2, 3), "StridedSliceGrad": (0, 1, 2, 3), "AvgPoolGrad": (0,),
    "Conv2DBackpropFilter": (1,), "DepthwiseConv2dNativeBackpropInput": (0,),
    "DepthwiseConv2dNativeBackpropFilter": (1,), "Tile": (1,), "TopKV2": (1,), "Transpose": (1,),
    "Conv3DBackpropInputV2": (0, 1), "LSTMBlockCell": (3, 7), "GRUBlockCell": (2, 3, 4, 5),
    "MatrixBandPart": (1, 2), "MatrixDiagPartV2": (1, 2), "MatrixDiagPartV3": (1, 2), "MatrixDiagV2": (1, 2, 3, 4),
    "MatrixDiagV3": (1, 2, 3, 4), "MatrixSetDiagV2": (2,), "MatrixSetDiagV3": (2,), "Roll": (1, 2),
    "TensorScatterUpdate": (1,),
    **dict.fromkeys(("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum"), (2,)),
    **dict.fromkeys(("BlockLSTM", "BlockLSTMV2"), (0, 4, 8)),
    **dict.fromkeys(("SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum"), (1,)),
    **dict.fromkeys(STITCHES, (0, 1)),
    **dict.fromkeys(("All", "Any", "Max", "Mean", "Min", "Prod", "Sum"), (1,)),
}  # fmt: skip
"""For each op the inputs that say how to compute, which must be constants."""


@dataclass
class Outcome:
    """What came of a node: its outputs, or why LiteRT does not run it."""

    outputs: list[Array]
    reason: str = ""


def run_node(
    node: Node, inputs: tuple[Array, ...], outputs: int, *, constant: tuple[int, ...] | None = None
) -> Outcome:
    """Compiles and runs ``node`` on these inputs.

    Args:
        node: the node; its input names are replaced.
        inputs: its data inputs.
        outputs: how many of its outputs to compute.
        constant: which inputs are Const nodes; by default those that must be.
    """
    fixed = {position % len(inputs) for position in (STATIC.get(node.op, ()) if constant is None else constant)}
    fed = {f"x{i}:0": np.asarray(array) for i, array in enumerate(inputs) if i not in fixed}
    sources = [
        const(f"x{i}", array)
        if i in fixed
        else Node(f"x{i}", "Placeholder", (), {"dtype": DType.of_numpy(array.dtype), "shape": Shape(array.shape)})
        for i, array in enumerate(inputs)
    ]
    tested = node.replace(name="tested", inputs=[f"x{i}" for i in range(len(inputs))])
    graph = Graph([*sources, tested])
    specs = {name: (DType.of_numpy(array.dtype), array.shape) for name, array in fed.items()}
    inferred = infer(graph, {name: (dtype, Shape(shape)) for name, (dtype, shape) in specs.items()})
    reasons = Trial(graph, [tested], (), inferred, ()).reasons
    if reasons:
        return Outcome([], reasons["tested"])
    wanted = [f"tested:{port}" for port in range(outputs)]
    executable = engine.compile(graph, [tested], list(fed), wanted, specs, inferred)
    try:
        return Outcome(executable.run(list(fed.values())))
    finally:
        executable.close()


def run_graph(graph: Graph, feeds: dict[str, Array], outputs: list[str]) -> tuple[list[Array], list[str]]:
    """Runs a whole graph on LiteRT: the outputs, and the operators that it became."""
    specs = {name: (DType.of_numpy(array.dtype), array.shape) for name, array in feeds.items()}
    executable = compiled_part(graph, list(graph), list(feeds), outputs, specs)
    try:
        program = executable.program
        assert program is not None
        return executable.run(list(feeds.values())), [operation.code for operation in program.operations]
    finally:
        executable.close()


def run_reference(graph: Graph, feeds: dict[str, Array], outputs: list[str]) -> list[Array]:
    """Runs a whole graph node by node on the reference kernels."""
    values: dict[str, Array] = {canonical(name): array for name, array in feeds.items()}
    for node in topological(graph):
        if node.op == "Const":
            values[f"{node.name}:0"] = node.tensor.numpy()
        elif node.op != "Placeholder":
            results = evaluate(node, [values[canonical(i)] for i in node.data_inputs])
            values.update({f"{node.name}:{port}": result for port, result in enumerate(results)})
    return [values[canonical(name)] for name in outputs]
