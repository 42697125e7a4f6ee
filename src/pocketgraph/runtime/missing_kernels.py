"""Says which ops nothing can run, all at once, and what may help."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pocketgraph.errors import MissingKernelError, did_you_mean
from pocketgraph.graph import Node
from pocketgraph.graph.groups import by_key
from pocketgraph.graph.op_traits import CALLS_PYTHON, FEEDS_TRAINING
from pocketgraph.kernels.registry import KERNELS
from pocketgraph.runtime.engines.compilation_units import STRUCTURAL, Functions

BETWEEN = (
    "TensorFlow makes it while it cuts a graph up for devices or calls a function; save the graph from before that"
)
DATA = "it brings in training data; feed what comes out of it instead"
GPU = "it runs on GPUs only; save the model from Python with the layer that runs anywhere"
DEVICE = "it is made for other devices or by another compiler; export the model for CPUs"
EVENTS = "it writes event files while training; fetch or run only what the model computes"
LEARNING = "it belongs to training; fetch what the model predicts"
WHY_NOT = {
    "SymbolicGradient": "TensorFlow looks the gradients of a function's ops up while it runs; "
    "build them with tf.gradients before you save the graph",
    **dict.fromkeys(("_Send", "_Recv", "_HostSend", "_HostRecv", "_Arg", "_Retval", "_DeviceArg", "_DeviceRetval",
                     "_ScopedAllocator", "_ParallelConcatStart", "_ParallelConcatUpdate", "_VarHandlesOp",
                     "_ReadVariablesOp", "_If", "_While"), BETWEEN),
    **dict.fromkeys(("Batch", "Unbatch", "UnbatchGrad"),
                    "a server gathers the requests of several clients with it; save the graph without batching"),
    "DecodeJxl": "JPEG XL files are not read here; feed the decoded picture",
    **dict.fromkeys(("RecordInput", "FakeQueue", "GetElementAtIndex", "ComputeBatchSize", "CompressElement",
                     "UncompressElement", "InitializeTableFromDataset"), DATA),
    **dict.fromkeys(CALLS_PYTHON,
                    "it calls a Python function that is not in the file; feed what comes out of it instead"),
    **dict.fromkeys(("DebugIdentity", "DebugIdentityV2", "DebugIdentityV3", "DebugNanCount", "DebugNumericSummary",
                     "DebugNumericSummaryV2", "DumpTensor"), "a debugger put it there; save the graph without it"),
    **dict.fromkeys(("SummaryWriter", "CreateSummaryFileWriter", "CreateSummaryDbWriter", "CloseSummaryWriter",
                     "FlushSummaryWriter", "ImportEvent"), EVENTS),
    "EncodeProto": "messages are read here and not written; fetch what goes into it instead",
}  # fmt: skip
"""What is said of ops without a kernel."""
FAMILIES = (
    (r"Dataset|Iterator|Reader(V2)?$|^Reader[A-Z]|^StatsAggregator|SeedGenerator|MemoryCache", DATA),
    (r"^(Cudnn|_?Nccl)", GPU),
    (r"^_?Xla|TPU|Tpu|^_*Mkl|^Collective|^DTensor|^Risc|SparseCore|^Infeed|^Outfeed", DEVICE),
    (r"^Quantized(Conv2D|DepthwiseConv2D|MatMul).", DEVICE),
    (r"^Write.*Summary$", EVENTS),
    (r"^(BoostedTrees|Sdca)", LEARNING),
)
"""The same for ops whose names are of a kind."""


def why_not(op: str) -> str:
    """Why an op has no kernel and what to do about it; "" when there is nothing special to say."""
    return WHY_NOT.get(op) or next((why for kind, why in FAMILIES if re.search(kind, op)), "")


def _outputs(node: Node) -> list[str]:
    """The node's outputs, as they are fed: name, type and what is known of the shape."""
    from pocketgraph.graph import opdefs

    shapes = node.attrs.get("output_shapes", ())
    shapes = shapes if isinstance(shapes, tuple) else ()
    found = []
    for port, dtype in enumerate(opdefs.output_dtypes(node)):
        shape = f" {shapes[port]}" if port < len(shapes) else ""
        found.append(f"'{node.name}:{port}' ({dtype.name if dtype else 'any type'}{shape})")
    return found


def help_with_unknown(ops: Sequence[str]) -> str:
    """What helps with ops that TensorFlow does not have."""
    from pocketgraph.graph import opdefs

    public = [name for name in opdefs.names() if not name.startswith("_")]
    near = [hint for op in ops[:3] if (hint := did_you_mean(op, public))]
    suggestion = f" ({' '.join(near)})" if near else ""
    return (
        f"TensorFlow itself has no op called {', '.join(map(repr, ops))}{suggestion}: for one of your own, "
        "register what computes it in Python (pocketgraph help custom-kernels)"
    )


def check_kernels(nodes: Iterable[Node], library: Functions) -> None:
    """Makes sure that every node has a kernel, those of the functions that they call too.

    Raises:
        MissingKernelError: some have none; names every op with its nodes, and says what may help.
    """
    from pocketgraph.graph import opdefs

    missing: dict[str, list[str]] = {}
    incoming: list[str] = []
    for node in library.with_bodies(nodes):
        if node.op not in STRUCTURAL and not library.is_call(node) and node.op not in KERNELS:
            missing.setdefault(node.op, []).append(node.name)
            if node.op in FEEDS_TRAINING:
                incoming += _outputs(node)
    if not missing:
        return
    from pocketgraph.pages.quantities import listed

    lines = []
    for op, names in missing.items():
        lines.append(f"No OpKernel was registered to support Op '{op}' used by {listed(names, 3, quoted=True)}")
    hints = []
    unknown = [op for op in missing if not opdefs.find(op)]
    hints += [help_with_unknown(unknown)] * bool(unknown)
    told_of = by_key((why, op) for op in missing if (why := why_not(op)))
    hints += [
        f"{', '.join(ops)}: {why}" + (f": {', '.join(incoming[:8])}" if why == DATA and incoming else "")
        for why, ops in told_of.items()
    ]
    hints.append(
        "feed the tensors behind these nodes, fetch tensors before them, or take them out with the transforms "
        "strip_unused_nodes or remove_nodes"
    )
    raise MissingKernelError("; ".join(lines), hint="; ".join(hints))
