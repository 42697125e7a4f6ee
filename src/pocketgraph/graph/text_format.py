"""The text form: one short line a node, printed for people and read back by ``parse``.

::

    x = Placeholder(dtype=float, shape=[?,224,224,3])
    w = Const(float [[0.5, -1.0], [2.0, 0.25]])
    steps = Const(int32 3)
    y = MatMul(x, w, ^init, T=float, transpose_a=false) @"/cpu:0"
    first = Identity(split:1, T=float, _class=["loc:@split"])

* Inputs are spelled as in the file. A name with other characters than letters, digits and ``_ . / > \\ -`` is quoted,
  with its port and ``^`` inside the quotes.
* A ``Const`` whose ``dtype`` is that of its ``value`` shows both as ``TYPE VALUES``. Any other tensor is
  ``tensor(TYPE VALUES)``. ``TYPE[2,0] []`` states the shape, ``TYPE[64] 0.5`` fills it with one value, and ``TYPE[64]``
  alone is the abbreviation of a large tensor, which does not parse.
* Attributes: ``3`` int, ``3.0`` float, ``true`` bool, ``"SAME"`` string, ``float`` type, ``[1,2]`` list, ``[?,3]`` or
  ``<unknown>`` shape, ``func(name, T=float)`` function, ``$T`` parameter, ``opaque("…")`` bytes kept as they were.
  Under a key named ``shape`` or ``…_shape`` a list of integers is a shape; ``shape[1,2]`` and ``list[1,2]`` say so
  where the key does not.
* Float attributes have 32 bits, as in the file.
* Functions, versions and signatures have no text form.

>>> graph = parse("x = Placeholder(dtype=float)\\ny = Neg(x, T=float)")
>>> graph["y"].attrs["T"]
float
>>> print_node(graph["y"])
'y = Neg(x, T=float)'
"""

from __future__ import annotations

from collections.abc import Iterable

from pocketgraph.graph.graph import Graph
from pocketgraph.graph.node import Node
from pocketgraph.graph.text_parser import parse
from pocketgraph.graph.text_printer import node_line, print_attr, print_tensor

__all__ = ["parse", "print_attr", "print_graph", "print_node", "print_tensor"]


def print_graph(graph: Graph | Iterable[Node], *, full: bool = False) -> str:
    """The nodes of a graph in the text form, one a line, in order.

    Args:
        graph: a graph, or nodes.
        full: print every value of large tensors too, so that ``parse`` reads them back.
    """
    return "".join(print_node(node, full=full) + "\n" for node in graph)


def print_node(node: Node, *, full: bool = False) -> str:
    """One node as one line; see ``print_graph``."""
    return node_line(node.name, node.op, node.inputs, node.attrs, node.device, full=full)
