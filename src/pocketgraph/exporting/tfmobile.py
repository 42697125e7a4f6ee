"""Whether TensorFlow Mobile's default library runs a graph: the kernels that its Android and iOS builds link.

Source: the file lists of TensorFlow 1.15's android_tensorflow_lib (android_core_ops and android_extended_ops), kept in
``tfmobile_ops.txt``, and the types that register_types.h keeps there: float, int32 and bool, where a kernel does not
list its own. A session places the whole graph when it is made, so that nodes nobody needs must have kernels too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate
from functools import cache

from pocketgraph.errors import command_on_model, option
from pocketgraph.exporting.required_ops import kernel_class
from pocketgraph.graph import DType, Graph, Node
from pocketgraph.package_data import section_beside
from pocketgraph.runtime.unsupported_help import help_with

NAME = "tfmobile"

QUANTIZED_TOO = re.compile(r"(Concat(V2)?|Fill|Gather(V2|Nd)?|Pack|Unpack|StridedSlice|Slice|Split)$")
"""Ops of the list ``listed`` that list the quantized types besides."""
TYPE_ATTRS = ("T", "Tparams", "dtype")
NUMBERS = ("float", "int32", "bool")


def lacking(graph: Graph) -> dict[str, str]:
    """Why the default library does not run a graph, by node; of every node, as it wants a kernel for each."""
    return {node.name: reason for node in graph if (reason := _reason(graph, node))}


def help_on_mobile(graph: Graph, name: str, needed: Mapping[str, str]) -> str:
    """What would help with a node that the default library has nothing for.

    Args:
        name: the node.
        needed: the nodes that the outputs need.
    """
    if name not in needed:
        return "nothing needs it: transform_graph's strip_unused_nodes takes it out"
    op = graph[name].op if name in graph else ""
    if re.match(r"(Decode(Jpeg|Png|Gif|Image|Raw)|ReadFile)", op):
        return f"feed what comes out of it, and strip it: strip_unused with {option('input_node_names')}"
    if op in graph.functions or re.match(r"(Stateful)?PartitionedCall$", op):
        return "transform_graph's inline_partitionedcall writes it out"
    return help_with(graph, name) or (
        f"build the library with it: {command_on_model('pocketgraph print_selective_registration_header {}')}, "
        "or export to tflite"
    )


def _reason(graph: Graph, node: Node) -> str:
    if node.op in graph.functions:
        return "the library runs no functions of the graph's own"
    if node.op.startswith(("tfl.", "onnx.")):
        return "this is an operator of another runtime's file"
    types = [value for name in TYPE_ATTRS if isinstance(value := node.attrs.get(name), DType)]
    for kind, pattern in _linked().items():
        if not pattern.fullmatch(node.op):
            continue
        if kind == "any":
            return "" if kernel_class(node) is not None or not types else f"it has no kernel for {types[0].base.name}"
        allowed = ("float",) if kind == "floating" else NUMBERS
        for dtype in types:
            name = dtype.base.name
            is_quantized = QUANTIZED_TOO.match(node.op) and name.lstrip("q").startswith(("int", "uint")) and "q" in name
            if name not in allowed and not is_quantized:
                return f"{name} is not among its types there ({', '.join(allowed)})"
        return ""
    return "it is not among the ops that mobile builds link"


@cache
def _linked() -> dict[str, re.Pattern[str]]:
    """The ops of each list in ``tfmobile_ops.txt``."""
    lists = {name: section_beside(__file__, "tfmobile_ops.txt", name) for name in ("any", "listed", "floating")}
    return {name: re.compile("|".join(map(translate, " ".join(lines).split()))) for name, lines in lists.items()}
