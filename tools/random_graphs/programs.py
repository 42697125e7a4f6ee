"""Random graphs that are run whole, step by step in one session: what programs are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pocketgraph import formats
from pocketgraph.graph import DType, Func, Graph, Node, Shape, const, opdefs
from pocketgraph.graph.graph import Versions
from pocketgraph.graph.tensor import Array
from pocketgraph.protobuf import wire
from random_graphs import values
from random_graphs.choices import Choices

FLOAT, INT, LONG, BOOL, TEXT = (DType.named(name) for name in ("float", "int32", "int64", "bool", "string"))

NUMBERS = tuple(DType.named(name) for name in ("float", "float", "float", "double", "int32", "int64", "half"))


@dataclass
class Program(Choices):
    """A graph that grows, and what is run of it.

    Attributes:
        rng: where all choices come from.
        nodes: the nodes so far.
        functions: the encoded definitions of its functions.
        steps: for each run the tensors that are fetched and the nodes that are run without a value.
        feeds: what the placeholders are given, in every step.
    """

    rng: np.random.Generator
    nodes: list[Node] = field(default_factory=list)
    functions: list[bytes] = field(default_factory=list)
    steps: list[tuple[list[str], list[str]]] = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)

    def add(self, op: str, inputs: Sequence[str] = (), /, **attrs: Any) -> str:
        """Puts a node in; types that follow from nothing else are attributes. Its name."""
        name = f"n{len(self.nodes)}_{op}"
        self.nodes.append(Node(name, op, tuple(inputs), attrs))
        return name

    def const(self, value: Any, dtype: DType = INT) -> str:
        name = f"c{len(self.nodes)}"
        array = np.asarray(value, object if dtype.name == "string" else dtype.numpy)
        self.nodes.append(const(name, array, dtype))
        return name

    def new(self, dtype: DType, shape: Sequence[int], fed: bool = False) -> str:
        """A constant of ordinary numbers, or a placeholder."""
        array = values.array(self.rng, dtype, tuple(shape))
        if not fed:
            return self.const(array, dtype)
        name = f"p{len(self.nodes)}"
        known = Shape(array.shape) if self.chance() else Shape([None] * array.ndim)
        self.nodes.append(Node(name, "Placeholder", (), {"dtype": dtype, "shape": known}))
        self.feeds[name] = array
        return name

    def step(self, fetches: Sequence[str] = (), targets: Sequence[str] = ()) -> None:
        self.steps.append((list(fetches), list(targets)))

    def graph(self) -> Graph:
        graph = Graph(self.nodes, versions=Versions(producer=987))
        if not self.functions:
            return graph
        library = wire.bytes_field(2, b"".join(wire.bytes_field(1, f) for f in self.functions))
        return graph.replace(functions=formats.from_bytes(library).functions)

    def function(
        self, inputs: Sequence[tuple[str, DType]], body: Callable[[Body, list[str]], list[tuple[str, DType]]]
    ) -> Func:
        """Defines a function; ``body`` is given the argument names and gives back the results."""
        name = f"f{len(self.functions)}"
        self.functions.append(b"")  # the place is taken, because a body may define functions too
        place = len(self.functions) - 1
        inner = Body(self.rng)
        results = body(inner, [argument for argument, _ in inputs])
        signature = wire.bytes_field(1, name)
        for argument, dtype in inputs:
            signature += wire.bytes_field(2, wire.bytes_field(1, argument) + wire.number_field(3, dtype.number))
        for number, (_, dtype) in enumerate(results):
            signature += wire.bytes_field(3, wire.bytes_field(1, f"r{number}") + wire.number_field(3, dtype.number))
        nodes = formats.to_bytes(Graph(inner.nodes))
        payloads = [nodes[a:b] for _, number, _, a, b in wire.fields(nodes, 0, len(nodes)) if number == 1]
        definition = wire.bytes_field(1, signature) + b"".join(wire.bytes_field(3, node) for node in payloads)
        for number, (ref, _) in enumerate(results):
            definition += wire.bytes_field(4, wire.bytes_field(1, f"r{number}") + wire.bytes_field(2, ref))
        self.functions[place] = definition
        return Func(name)


class Body(Program):
    """A function's body: what its nodes are called by others is ``node:output:0``."""

    def add(self, op: str, inputs: Sequence[str] = (), /, **attrs: Any) -> str:
        name = super().add(op, inputs, **attrs)
        return f"{name}:{opdefs.definition(op).outputs[0].name}:0" if opdefs.definition(op).outputs else name

    def const(self, value: Any, dtype: DType = INT) -> str:
        return super().const(value, dtype) + ":output:0"


PROGRAMS: dict[str, Callable[[Program], None]] = {}


def program(function: Callable[[Program], None]) -> Callable[[Program], None]:
    PROGRAMS[function.__name__] = function
    return function


def grown(rng: np.random.Generator, name: str) -> Program:
    """A random program of this kind."""
    made = Program(rng)
    PROGRAMS[name](made)
    return made


def chain(p: Program, x: str, dtype: DType, shape: Sequence[int], length: int | None = None) -> str:
    """A few ops one behind the other that keep type and shape and let no number grow far."""
    for _ in range(p.int(1, 4) if length is None else length):
        binary = ["AddV2", "Sub", "Mul", "Maximum", "Minimum"]
        unary = ["Neg", "Abs"] if dtype.numpy.kind != "u" else ["Identity"]
        if dtype.numpy.kind == "f":
            unary += ["Tanh", "Sigmoid", "Sin", "Relu", "Softplus"]
        if p.chance(0.2) and len(shape) == 2 and dtype == FLOAT:
            weights = p.new(dtype, (shape[1], shape[1]))
            x = p.add("Tanh", [p.add("MatMul", [x, weights], T=dtype)], T=dtype)
        elif p.chance():
            op = p.pick(binary)
            pair = [x, p.new(dtype, p.pick([shape, (), shape[-1:]]))]
            x = p.add(op, pair[::-1] if p.chance(0.3) else pair, T=dtype)
            if op == "Mul":
                x = p.add("Minimum", [p.add("Maximum", [x, p.const(-50, dtype)], T=dtype), p.const(50, dtype)], T=dtype)
        else:
            x = p.add(p.pick(unary), [x], T=dtype)
    return x


def ports(node: str, count: int) -> list[str]:
    """The tensors that a node gives."""
    return [node if number == 0 else f"{node}:{number}" for number in range(count)]


def some_shape(p: Program) -> tuple[int, ...]:
    return tuple(p.int(1, 4) for _ in range(p.int(0, 3)))
