"""The model in memory: values only. Nothing here knows a file format or an engine."""

from pocketgraph.graph.attr import AttrValue, Func, Opaque, Parameter
from pocketgraph.graph.dtype import DType
from pocketgraph.graph.graph import Function, Graph, Signature, Versions, check_graph
from pocketgraph.graph.node import Node, Ref, canonical, const, node_name, parse_ref
from pocketgraph.graph.shape import Shape
from pocketgraph.graph.tensor import Tensor

__all__ = [
    "AttrValue", "DType", "Func", "Function", "Graph", "Node", "Opaque", "Parameter", "Ref", "Shape", "Signature",
    "Tensor", "Versions", "canonical", "check_graph", "const", "node_name", "parse_ref",
]  # fmt: skip
