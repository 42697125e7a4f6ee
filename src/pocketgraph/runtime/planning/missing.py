"""Says which ops nothing can run, all at once, and what may help."""

from __future__ import annotations

from collections.abc import Iterable

from pocketgraph.errors import MissingKernelError, did_you_mean
from pocketgraph.graph import Node
from pocketgraph.kernels import registry
from pocketgraph.runtime.engines.builder import STRUCTURAL
from pocketgraph.runtime.engines.units import Functions

BETWEEN = (
    "TensorFlow makes it while it cuts a graph up for devices or calls a function; save the graph from before that"
)
WHY_NOT = {
    "SymbolicGradient": "TensorFlow looks the gradients of a function's ops up while it runs; "
    "build them with tf.gradients before you save the graph",
    **dict.fromkeys(("_Send", "_Recv", "_HostSend", "_HostRecv", "_Arg", "_Retval"), BETWEEN),
}
"""By op: why it has no kernel, and what to do."""


def check_kernels(nodes: Iterable[Node], library: Functions) -> None:
    """Makes sure that every node has a kernel, those of the functions that they call too.

    Raises:
        MissingKernelError: some have none; names every op with its nodes, and says what may help.
    """
    from pocketgraph.graph import opdefs

    missing: dict[str, list[str]] = {}
    for node in library.with_bodies(nodes):
        if node.op not in STRUCTURAL and not library.is_call(node) and registry.find(node.op) is None:
            missing.setdefault(node.op, []).append(node.name)
    if not missing:
        return
    lines = []
    for op, names in missing.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        lines.append(f"No OpKernel was registered to support Op '{op}' used by {', '.join(map(repr, names[:3]))}{more}")
    hints = []
    unknown = [op for op in missing if opdefs.find(op) is None]
    if unknown:
        near = [hint for op in unknown[:3] if (hint := did_you_mean(op, opdefs.names()))]
        told = f" ({' '.join(near)})" if near else ""
        hints.append(f"TensorFlow itself has no op called {', '.join(map(repr, unknown))}{told}")
    told_of: dict[str, list[str]] = {}
    for op in missing:
        if op in WHY_NOT:
            told_of.setdefault(WHY_NOT[op], []).append(op)
    hints += [f"{', '.join(ops)}: {why}" for why, ops in told_of.items()]
    hints.append(
        "feed the tensors behind these nodes, fetch tensors before them, or take them out with "
        "transform_graph --transforms='strip_unused_nodes' or 'remove_nodes(op=…)'"
    )
    raise MissingKernelError("; ".join(lines), hint="; ".join(hints))
