"""Walks a graph once, producers first, and says what is known of every tensor before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pocketgraph.budgets import timed
from pocketgraph.errors import GraphError
from pocketgraph.graph import DType, Graph, Node, Shape, Tensor, node_name, opdefs, parse_ref
from pocketgraph.graph.groups import finishing
from pocketgraph.graph.model_file_graph import ONNX_PREFIX, PREFIX, SHAPES
from pocketgraph.graph.op_traits import MERGE, NEXT_ITERATION, ops_with
from pocketgraph.graph.shape import UNKNOWN
from pocketgraph.kernels.shapes import rules
from pocketgraph.kernels.shapes.algebra import UnknownRankError
from pocketgraph.kernels.shapes.partial_values import Known, Partial, comparable, known_outputs, of_tensor

HANDLE_PASSES = ops_with("passes", "enter", "switch") | {"IdentityN"}
"""Ops through which a variable's handle may go on its way to a read."""
MALFORMED = (TypeError, ValueError, IndexError, KeyError, OverflowError, AttributeError, ZeroDivisionError)
"""What a rule stumbles over when a node of an untrusted file has attributes of the wrong kind."""


class _TensorFacts(NamedTuple):
    """What is known of one node's outputs, in each of the three one entry an output."""

    shapes: tuple[Shape, ...]
    dtypes: tuple[DType | None, ...]
    known: tuple[Known, ...]


_Row: TypeAlias = tuple[Shape, DType | None, Known]
"""What is known of one tensor: its shape, its element type, its value."""
_Fed: TypeAlias = dict[str, dict[int, tuple[DType | None, Shape, Known]]]
"""What is known of what is fed, by node and port."""


class Inferred:
    """What is known of every tensor of a graph. Tensors are named ``node:0``; ``node`` means ``node:0``.

    Attributes:
        problems: for each node whose inputs certainly do not fit together, what is wrong with it.
    """

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._facts = walk.facts
        self._rows: dict[str, _Row] = {}  # a tensor is asked for ten times while a graph is planned
        self.problems: Mapping[str, str] = walk.problems

    def shape(self, ref: str) -> Shape:
        """The shape, as far as known; that of unknown rank for a tensor nobody knows."""
        return (self._rows.get(ref) or self._row(ref))[0]

    def shapes(self, node: str) -> tuple[Shape, ...]:
        """The shapes of all outputs of a node."""
        return self._facts[node].shapes if node in self._facts else ()

    def dtype(self, ref: str) -> DType | None:
        """The element type, or None where the op is unknown."""
        return (self._rows.get(ref) or self._row(ref))[1]

    def value(self, ref: str) -> np.ndarray[Any, Any] | None:
        """The value when it is the same in every run, small (values.LARGEST), and could be computed; else None."""
        found = (self._rows.get(ref) or self._row(ref))[2]
        return found if isinstance(found, np.ndarray) else None

    def has_value(self, node: str) -> bool:
        """Whether the value of any of a node's outputs is known, as ``value`` gives it."""
        facts = self._facts.get(node)
        return facts is not None and any(isinstance(known, np.ndarray) for known in facts.known)

    def numbers(self, ref: str) -> list[int | None] | None:
        """The elements of an integer vector (or scalar) of which some are known, e.g. ``[None, 7, 7, 64]``."""
        found = (self._rows.get(ref) or self._row(ref))[2]
        known = found.known if isinstance(found, Partial) else found
        return self.elements(ref) if known is not None and known.ndim <= 1 else None

    def elements(self, ref: str) -> list[int | None] | None:
        """As ``numbers``, of an integer tensor of any rank."""
        found = (self._rows.get(ref) or self._row(ref))[2]
        if isinstance(found, Partial):
            pairs = zip(found.numbers.reshape(-1), found.known.reshape(-1), strict=True)
            return [int(n) if k else None for n, k in pairs]
        is_whole = isinstance(found, np.ndarray) and found.dtype.kind in "iu"
        return [int(n) for n in found.reshape(-1)] if is_whole and found is not None else None

    def _row(self, ref: str) -> _Row:
        name, port = (ref[:-2], 0) if ref.endswith(":0") else parse_ref(ref)[:2]
        facts = self._facts.get(name)
        found: _Row = (UNKNOWN, None, None)
        if facts is not None and 0 <= port < len(facts[0]):
            found = facts.shapes[port], facts.dtypes[port], facts.known[port]
        self._rows[ref] = found
        return found


def infer(
    graph: Graph,
    feeds: Mapping[str, tuple[DType, Shape]] | None = None,
    values: Mapping[str, np.ndarray[Any, Any]] | None = None,
    outputs: Iterable[str] | None = None,
    *,
    strict: bool = False,
    complete: bool | None = None,
    by_values: bool = True,
    kind: type[Walk] | None = None,
    before: Inferred | None = None,
    nodes: Iterable[Node] | None = None,
) -> Inferred:
    """Infers shapes, element types and small values.

    Args:
        graph: any graph; where a loop goes round, what comes back is taken as unknown.
        feeds: dtype and shape of tensors that will be fed, by tensor name; interior tensors too.
        values: values that tensors are certain to have, by tensor name.
        outputs: look only at what these nodes or tensors need; at every node by default.
        complete: whether nothing but ``feeds`` (and ``values``) will be fed, so that a placeholder with a default that
            is not among them is its default; by default when ``feeds`` is given.
        by_values: whether a value that is known tells its shape where the op's rule does not, as for Unique.
        kind: a walk that knows less.
        strict: raise for inputs that certainly do not fit; else such a node's outputs have unknown shapes.
        before: what was inferred of this graph before some of its nodes were changed, or with other feeds; nodes that
            are the same, and take what they took, are not looked at again.
        nodes: those that ``outputs`` need, where the caller has them in order.

    Raises:
        GraphError: with ``strict``, a node's inputs do not fit together; the message names the node and the shapes.
    """
    complete = feeds is not None if complete is None else complete
    walk = (kind or Walk)(graph, _facts_of(feeds, values), strict, complete, by_values)
    for node in timed(postorder(graph, outputs) if nodes is None else nodes):
        walk.look_at(node, before)
    return Inferred(walk)


def infer_while(
    holds: Callable[[Node, Inferred], bool],
    graph: Graph,
    feeds: Mapping[str, tuple[DType, Shape]],
    values: Mapping[str, np.ndarray[Any, Any]],
    nodes: Iterable[Node],
    before: Inferred,
) -> tuple[Inferred, bool]:
    """As ``infer``, up to the first node for which something does not hold; and whether it holds for all.

    Args:
        holds: is given a node, and what is known of it and of those before it.
        nodes: those to look at, as ``postorder`` gives them.
    """
    walk = Walk(graph, _facts_of(feeds, values), strict=False, complete=True)
    found = Inferred(walk)
    for node in timed(nodes):
        walk.look_at(node, before)
        if not holds(node, found):
            return found, False
    return found, True


def infer_again(feeds: Mapping[str, tuple[DType, Shape]], nodes: Iterable[Node], before: Inferred) -> Inferred:
    """What was inferred ``before``, with more ``feeds``; ``nodes`` follow from them, as ``postorder`` gives them."""
    earlier = before._walk
    walk = Walk(earlier.graph, {**earlier.fed, **_facts_of(feeds, None)}, earlier.strict, earlier.complete)
    walk.facts, walk.handles, walk.problems = dict(earlier.facts), dict(earlier.handles), dict(earlier.problems)
    for node in timed(nodes):
        walk.problems.pop(node.name, None)
        walk.visit(node)
    return Inferred(walk)


def _facts_of(
    feeds: Mapping[str, tuple[DType, Shape]] | None, values: Mapping[str, np.ndarray[Any, Any]] | None
) -> _Fed:
    """What is known of what is fed, by node and port."""
    fed: _Fed = {}
    for ref, (dtype, shape) in (feeds or {}).items():
        name, port, _ = parse_ref(ref)
        fed.setdefault(name, {})[port] = (dtype, shape, None)
    for ref, value in (values or {}).items():
        name, port, _ = parse_ref(ref)
        array = np.asarray(value)
        known = array if array.dtype.kind != "O" else None
        fed.setdefault(name, {})[port] = (DType.of_numpy(array.dtype), Shape(array.shape), known)
    return fed


def postorder(graph: Graph, outputs: Iterable[str] | None = None) -> list[Node]:
    """The nodes (that ``outputs`` need, or all), producers first, depth first; loops' closing edges do not count."""
    nodes = graph.nodes
    starts = list(nodes) if outputs is None else [node_name(o) for o in outputs]

    def needs(name: str) -> list[str]:
        node = nodes[name]
        before = [node_name(ref) if ":" in ref or ref[:1] == "^" else ref for ref in node.inputs]
        if node.op in MERGE:
            back = [name for name in before if name in nodes and nodes[name].op in NEXT_ITERATION]
            starts.extend(back)  # while it is walked through
            before = [name for name in before if name not in back]
        return before

    return [nodes[name] for name in finishing(starts, needs, nodes.__contains__)]


class Walk:
    """What is known of the nodes that were looked at."""

    def __init__(self, graph: Graph, fed: _Fed, strict: bool, complete: bool, by_values: bool = True) -> None:
        self.graph, self.fed = graph, fed
        self.strict, self.complete, self.by_values = strict, complete, by_values
        self.facts: dict[str, _TensorFacts] = {}
        self.handles: dict[str, Shape] = {}
        self.problems: dict[str, str] = {}
        self._alike: dict[tuple[Any, ...], tuple[Node, _TensorFacts]] = {}  # layers repeat each other

    def look_at(self, node: Node, before: Inferred | None) -> None:
        """Notes what is known of a node, whose producers were looked at."""
        if before is None:
            self.visit(node)
        else:
            self.visit_again(node, before._walk)

    def visit_again(self, node: Node, before: Walk) -> None:
        """As ``visit``; takes over what was found ``before`` where it is the same."""
        name = node.name
        earlier = before.facts.get(name)
        if earlier is None:
            self.visit(node)
            return
        is_same = before.graph.nodes.get(name) is node
        if is_same and (name in self.fed or name in before.fed):
            is_same = self._is_fed_the_same(name, before)
        if is_same and (node.op == "Const" or self._takes_the_same(node, before)):
            self.facts[name] = earlier
            if name in before.handles:
                self.handles[name] = before.handles[name]
            if name in before.problems:
                self.problems[name] = before.problems[name]
            return
        self.visit(node)
        is_same = _equal(self.facts[name], earlier) and name not in self.handles and name not in before.handles
        if is_same:  # so that who takes it need not be looked at
            self.facts[name] = earlier

    def _is_fed_the_same(self, name: str, before: Walk) -> bool:
        now, then = self.fed.get(name, {}), before.fed.get(name, {})
        return now.keys() == then.keys() and all(
            now[port][:2] == then[port][:2] and now[port][2] is then[port][2] for port in now
        )

    def _takes_the_same(self, node: Node, before: Walk) -> bool:
        now, then = self.facts, before.facts
        for ref in node.inputs:
            source = node_name(ref) if ":" in ref else ref
            found = now.get(source)
            if (found is None or found is not then.get(source)) and ref[:1] != "^":
                return False
        return True

    def visit(self, node: Node) -> None:
        """Notes what follows for a node from what is known of its inputs."""
        if self.is_constant_or_copy(node):  # most nodes are such
            return
        refs = [parse_ref(ref)[:2] if ":" in ref else (ref, 0) for ref in node.data_inputs]
        inputs, known = [], []
        for name, port in refs:
            source = self.facts.get(name)
            if source is not None and port < len(source.shapes):
                inputs.append(source.shapes[port])
                known.append(source.known[port])
            else:
                inputs.append(UNKNOWN)
                known.append(None)
        unread, computable = self.read(node, [name for name, _ in refs], known)
        form = None if self.handles or node.name in self.fed or unread else _form(node, inputs, known)
        alike = self._alike.get(form) if form is not None else None
        if alike is not None:
            self.facts[node.name] = alike[1]
            return
        dtypes = opdefs.known_output_dtypes(node)
        handles = tuple([self.handles.get(name) for name, _ in refs]) if self.handles else (None,) * len(refs)
        outputs = None if dtypes is None else len(dtypes)
        call = rules.ShapeCall(
            node, tuple(inputs), tuple(known), handles, outputs, self.graph.versions.producer, unread
        )
        shapes, found = self._shapes_and_values(call, computable)
        self._note_handle(call)
        types: list[DType | None] = list(dtypes) if dtypes is not None else [None] * len(shapes)
        if node.name in self.fed:
            self._put_fed(node.name, shapes, types, found)
        self.facts[node.name] = facts = _TensorFacts(tuple(shapes), tuple(types), tuple(found))
        if form is not None and node.name not in self.handles and node.name not in self.problems:
            self._alike[form] = node, facts

    def read(self, node: Node, sources: list[str], known: list[Known]) -> tuple[list[int], list[Known]]:
        """The inputs whose values the node's shape rule reads as shapes only, and what its own values are made of."""
        return [], known

    def is_constant_or_copy(self, node: Node) -> bool:
        """Whether a node is a constant or an Identity of which nothing has to be worked out: it is noted then."""
        if node.op == "Const" and node.name not in self.fed:
            constant, of_type = node.attrs.get("value"), node.attrs.get("dtype")
            if isinstance(constant, Tensor) and isinstance(of_type, DType):
                self.facts[node.name] = _TensorFacts((Shape(constant.shape),), (of_type,), (of_tensor(constant),))
                return True
        elif node.op == "Identity" and len(node.inputs) == 1 and not self.handles and node.name not in self.fed:
            source, of_type = self.facts.get(node.inputs[0]), node.attrs.get("T")  # of a first output, as of constants
            if source is not None and source.shapes and isinstance(of_type, DType):
                self.facts[node.name] = _TensorFacts(source.shapes[:1], (of_type,), source.known[:1])
                return True
        return False

    def _shapes_and_values(self, call: rules.ShapeCall, computable: list[Known]) -> tuple[list[Shape], list[Known]]:
        """What the op's rule and the known values of a node's inputs tell of its outputs."""
        shapes = self._shapes(call)
        try:
            found = known_outputs(call.node, computable, call.inputs, shapes, is_complete=self.complete)
        except (GraphError, *MALFORMED):
            found = []
        if not found:
            return shapes, [None] * len(shapes)
        found = (found + [None] * len(shapes))[: len(shapes)]
        if self.by_values or rules.SHAPE_RULES.row(call.node.op) is None:
            pairs = zip(shapes, found, strict=True)
            shapes = [Shape(value.shape) if isinstance(value, np.ndarray) else shape for shape, value in pairs]
        return shapes, found

    def _note_handle(self, call: rules.ShapeCall) -> None:
        """Notes which shape the variable or array behind a handle has."""
        node = call.node
        if node.op == "VarHandleOp":
            self.handles[node.name] = call.declared()
        elif node.op in ("TensorArrayV2", "TensorArrayV3"):
            self.handles[node.name] = call.declared("element_shape")
        elif node.op in HANDLE_PASSES and call.handles and call.handles[0] is not None:
            self.handles[node.name] = call.handles[0]

    def _put_fed(self, name: str, shapes: list[Shape], types: list[DType | None], found: list[Known]) -> None:
        """Puts what is fed in the place of what a node gives."""
        for port, (dtype, shape, value) in self.fed[name].items():
            while len(shapes) <= port <= len(types):
                shapes.append(UNKNOWN)
                types.append(None)
                found.append(None)
            if port < len(shapes):
                shapes[port], types[port], found[port] = shape, dtype or types[port], value

    def _shapes(self, call: rules.ShapeCall) -> list[Shape]:
        """The output shapes, one for each output the signature has."""
        op = call.node.op
        rule = rules.SHAPE_RULES.row("Identity" if op == "PlaceholderWithDefault" and self.complete else op)
        shapes: list[Shape] = []
        if rule is not None:
            try:
                given = rule(call)
                shapes = [given] if isinstance(given, Shape) else list(given)
            except UnknownRankError:
                shapes = [UNKNOWN]
            except GraphError as error:
                self._problem(call, error.what)
            except MALFORMED as error:
                self._problem(call, f"its attributes or inputs make no sense ({error})")
        if op.startswith((PREFIX, ONNX_PREFIX)):
            shapes = [shape for shape in call.attr(SHAPES, ()) if isinstance(shape, Shape)]
        wanted = (1 if rule is None else len(shapes)) if call.outputs is None else call.outputs
        return shapes[:wanted] + [UNKNOWN] * (wanted - len(shapes))

    def _problem(self, call: rules.ShapeCall, what: str) -> None:
        shapes = ", ".join(map(str, call.inputs))
        self.problems[call.node.name] = text = f"{call.node.op} cannot take inputs of shapes {shapes}: {what}"
        if self.strict:
            raise GraphError(text, where=f"node '{call.node.name}'")


def _form(node: Node, inputs: list[Shape], known: list[Known]) -> tuple[Any, ...] | None:
    """What the facts of a node follow from, for nodes that share their attributes; None where it cannot be compared."""
    values = [comparable(value) for value in known]
    return None if None in values else (node.op, id(node.attrs), tuple([shape.dims for shape in inputs]), tuple(values))


def _equal(one: _TensorFacts, other: _TensorFacts) -> bool:
    """Whether just the same is known; what is known of some elements only counts as different."""
    if one.shapes != other.shapes or one.dtypes != other.dtypes:
        return False
    for left, right in zip(one.known, other.known, strict=True):
        if left is right:
            continue
        if not isinstance(left, np.ndarray) or not isinstance(right, np.ndarray) or left.dtype != right.dtype:
            return False
        if left.dtype.hasobject or left.shape != right.shape or left.tobytes() != right.tobytes():
            return False
    return True
