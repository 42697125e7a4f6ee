"""Prints what nodes give while the graph runs."""

from __future__ import annotations

from itertools import count

from pocketgraph.errors import TransformError
from pocketgraph.graph import AttrValue, DType, Graph, Node, parse_ref
from pocketgraph.graph.edit import rename_inputs
from pocketgraph.graph.op_traits import SWITCH, ops_with
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.original.node_types import output_types
from pocketgraph.transforms.rule_parameters import Int32
from pocketgraph.transforms.tool import transform

SUFFIX = "__print__"
INLINE = 4
"""Types that the original's list holds in place. A node without outputs reads what the last such list left there."""
READ_DIRECTLY = ops_with("enter", "next_iteration", "loop_condition")
"""Ops whose outputs a loop's Merge and Switch must read themselves, with nothing in between."""


@transform
def insert_logging(
    graph: Graph,
    *,
    op: tuple[str, ...] = (),
    prefix: tuple[str, ...] = (),
    message: str = "",
    show_op: bool = False,
    show_name: bool = False,
    first_n: Int32 = -1,
    summarize: Int32 = 1024,
    compat: Compat = Compat.FIXED,
) -> Graph:
    """Puts a ``Print`` behind the nodes that others read.

    Given:   x = Placeholder(dtype=float)
             y = Relu(x, T=float)
             z = Neg(y, T=float)
             ; insert_logging(op=Relu, show_name=true)
    Result:  x = Placeholder(dtype=float)
             y = Relu(x, T=float)
             y__print__ = Print(y:0, y:0, message=";y__print__;", first_n=-1, summarize=1024, T=float, U=[float])
             z = Neg(y__print__:0, T=float)

    Without ``op`` and ``prefix`` all nodes that others read are chosen, with both those that fit both. What nobody
    reads, such as an output of the graph, is not printed.

    Differs from the original: the attribute ``U`` has the types of the printed tensors (there, of all that the node
    gives); a type that is an op's default may be left out of a node (there, it is an error); a node that gives no
    tensor is passed over. With ``Compat.ORIGINAL`` it gets a print of an output that is not there, as in the original,
    whose type is that of what was printed last; where nothing was, it is passed over as well (there, the type is what
    happens to stand in memory: another number in every run). Where a print of a node is there already, another one gets
    a number behind its name (there, it gets the same name, and TensorFlow does not load the graph; with
    ``Compat.ORIGINAL``, that is an error). Enter, NextIteration and LoopCond, whose outputs the loop itself must read,
    are passed over, and of a Switch only the first output is printed (there, the graph cannot be loaded, or gives
    nothing); calls of the library's functions are passed over (there, an error).

    Args:
        op: op types of the nodes to print.
        prefix: how their names begin.
        message: what to print in front of the values.
        show_op: print ``;op;`` before the message.
        show_name: print ``;name__print__;`` before the message.
        first_n: how often to print; -1 is always.
        summarize: how many values to print.

    Raises:
        GraphError: an op is unknown, or an attribute that says a type is missing.
    """
    ports = _read_ports(graph)
    nodes: list[Node] = []
    prints: list[str] = []
    renames: dict[str, str] = {}
    last: DType | None = None
    for node in graph:
        nodes.append(node)
        if node.name not in ports or (op and node.op not in op) or (prefix and not node.name.startswith(prefix)):
            continue
        if not compat.original and (node.op in READ_DIRECTLY or node.op in graph.functions):
            continue
        types = output_types(node, strict=compat.original)
        first = types[0] if types else last
        if first is None or not (types or compat.original):
            continue
        last = first if len(types) <= INLINE else None
        listed = sorted(ports[node.name])
        if not compat.original and node.op in SWITCH:
            listed = [0]  # the others have no value whenever this one has
        if not compat.original and listed[-1] >= len(types):
            raise TransformError(
                f"'{node.name}:{listed[-1]}' is read, but there is no such output", where="insert_logging"
            )
        name = _free_name(graph, node.name + SUFFIX, compat)
        shown = (f";{node.op};" if show_op else "") + (f";{name};" if show_name else "") + message
        attrs: dict[str, AttrValue] = {
            "message": shown.encode(),
            "first_n": first_n,
            "summarize": summarize,
            "T": first,
            "U": types if compat.original else tuple(types[port] for port in listed),
        }
        nodes.append(Node(name, "Print", [f"{node.name}:0", *(f"{node.name}:{port}" for port in listed)], attrs))
        prints.append(name)
        renames[f"{node.name}:0"] = f"{name}:0"
    return rename_inputs(graph.replace(nodes), renames, untouched=frozenset(prints)) if prints else graph


def _free_name(graph: Graph, name: str, compat: Compat) -> str:
    if compat.original or name not in graph:
        return name
    return next(other for number in count(1) if (other := f"{name}_{number}") not in graph)


def _read_ports(graph: Graph) -> dict[str, set[int]]:
    """Which outputs of each node others refer to; a control input counts as the first."""
    ports: dict[str, set[int]] = {}
    for node in graph:
        for ref in node.inputs:
            name, port, control = parse_ref(ref)
            ports.setdefault(name, set()).add(0 if control else port)
    return ports
