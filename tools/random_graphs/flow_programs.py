"""Programs of control flow: switches and loops of the first kind, If, While, Case and calls of the second."""

from __future__ import annotations

from typing import Any

from pocketgraph.graph import DType, Shape
from random_graphs.programs import BOOL, FLOAT, INT, NUMBERS, Body, Program, chain, ports, program, some_shape


def predicate(p: Program, fed: bool = True) -> str:
    if p.chance(0.3):
        return p.const(p.chance(), BOOL)
    number = p.new(FLOAT, (), fed and p.chance())
    return p.add(p.pick(["Less", "Greater"]), [number, p.const(0.0, FLOAT)], T=FLOAT)


def choice(p: Program, x: str, dtype: DType, shape: tuple[int, ...], depth: int = 0) -> str:
    """tf.cond as TensorFlow 1 writes it; a branch may hold another one."""
    test = predicate(p)
    switch = p.add("Switch", [x, test], T=dtype)
    ends = []
    for port in (0, 1):
        inside = p.add("Identity", [switch if port == 0 else f"{switch}:1"], T=dtype)
        inside = chain(p, inside, dtype, shape)
        if depth < 2 and p.chance(0.3):
            inside = choice(p, inside, dtype, shape, depth + 1)
        ends.append(inside)
    if p.chance():
        ends.reverse()
    return p.add("Merge", ends, T=dtype, N=2)


@program
def cond_v1(p: Program) -> None:
    dtype, shape = p.pick(NUMBERS), some_shape(p)
    merged = choice(p, p.new(dtype, shape, fed=True), dtype, shape)
    end = chain(p, merged, dtype, shape)
    p.step([end, f"{merged}:1"])
    p.step([end])


def loop(p: Program, starts: list[tuple[str, DType, tuple[int, ...]]], depth: int = 0) -> list[str]:
    """tf.while_loop as TensorFlow 1 writes it: a counter and some values, perhaps with a loop or a cond inside."""
    frame = f"frame{len(p.nodes)}".encode()
    common: dict[str, Any] = {"frame_name": frame, "parallel_iterations": p.pick([1, 10])}
    zero, least = p.const(0), p.const(p.int(0, 5))
    carried = [(zero, INT, ()), *starts]
    enters = [p.add("Enter", [x], T=dtype, is_constant=False, **common) for x, dtype, _ in carried]
    limit = p.add("Enter", [least], T=INT, is_constant=True, **common)
    merges = []
    for enter, (_, dtype, _) in zip(enters, carried, strict=True):
        merges.append(p.add("Merge", [enter, enter], T=dtype, N=2))  # the second input is set below
    less = p.add("Less", [merges[0], limit], T=INT)
    test = p.add("LoopCond", [less])
    exits, bodies = [], []
    for number, (merge, (_, dtype, shape)) in enumerate(zip(merges, carried, strict=True)):
        switch = p.add("Switch", [merge, test], T=dtype)
        exits.append(p.add("Exit", [switch], T=dtype))
        inside = p.add("Identity", [f"{switch}:1"], T=dtype)
        if number == 0:
            one = anchored(p, 1, INT, inside)
            inside = p.add("AddV2", [inside, one], T=INT)
        else:
            for _ in range(p.int(1, 3)):
                other = p.add("Enter", [p.new(dtype, shape)], T=dtype, is_constant=True, **common)
                inside = p.add(p.pick(["Maximum", "Minimum", "AddV2", "Sub"]), [inside, other], T=dtype)
            if dtype.numpy.kind == "f" and p.chance():
                inside = p.add(p.pick(["Tanh", "Sin", "Neg"]), [inside], T=dtype)
            if depth == 0 and p.chance(0.25):
                inside = nested(p, inside, dtype, shape)
        bodies.append(p.add("NextIteration", [inside], T=dtype))
    places = {node.name: place for place, node in enumerate(p.nodes)}
    for merge, body, enter in zip(merges, bodies, enters, strict=True):
        p.nodes[places[merge]] = p.nodes[places[merge]].replace(inputs=(enter, body))
    return exits[1:] if p.chance() else [*exits[1:], exits[0]]


def anchored(p: Program, value: Any, dtype: DType, inside: str) -> str:
    """A constant of the frame that ``inside`` is in."""
    name = p.const(value, dtype)
    p.nodes[-1] = p.nodes[-1].replace(inputs=(f"^{inside}",))
    return name


def nested(p: Program, x: str, dtype: DType, shape: tuple[int, ...]) -> str:
    """A loop within a loop that adds to ``x`` a few times."""
    common: dict[str, Any] = {"frame_name": f"inner{len(p.nodes)}".encode(), "parallel_iterations": 10}
    zero, three, one = (anchored(p, v, INT, x) for v in (0, p.int(0, 3), 1))
    step = anchored(p, 2, dtype, x)
    enters = [p.add("Enter", [v], T=k, is_constant=False, **common) for v, k in ((zero, INT), (x, dtype))]
    fixed = [p.add("Enter", [v], T=k, is_constant=True, **common) for v, k in ((three, INT), (one, INT), (step, dtype))]
    merges = [p.add("Merge", [e, e], T=k, N=2) for e, k in zip(enters, (INT, dtype), strict=True)]
    test = p.add("LoopCond", [p.add("Less", [merges[0], fixed[0]], T=INT)])
    switches = [p.add("Switch", [m, test], T=k) for m, k in zip(merges, (INT, dtype), strict=True)]
    end = p.add("Exit", [switches[1]], T=dtype)
    added = [
        p.add("AddV2", [f"{switches[0]}:1", fixed[1]], T=INT),
        p.add(p.pick(["Sub", "Minimum", "AddV2"]), [f"{switches[1]}:1", fixed[2]], T=dtype),
    ]
    backs = [p.add("NextIteration", [v], T=k) for v, k in zip(added, (INT, dtype), strict=True)]
    places = {node.name: place for place, node in enumerate(p.nodes)}
    for merge, enter, back in zip(merges, enters, backs, strict=True):
        p.nodes[places[merge]] = p.nodes[places[merge]].replace(inputs=(enter, back))
    return end


@program
def while_v1(p: Program) -> None:
    starts = []
    for _ in range(p.int(1, 3)):
        dtype, shape = p.pick(NUMBERS), some_shape(p)
        starts.append((p.new(dtype, shape, fed=p.chance()), dtype, shape))
    exits = loop(p, starts)
    p.step(exits)
    dtype, shape = starts[0][1:]
    after = chain(p, exits[0], dtype, shape)
    p.step([after, *exits])


# The second kind


def branch(p: Program, dtypes: list[DType], shapes: list[tuple[int, ...]], depth: int = 0) -> Any:
    def body(inner: Body, names: list[str]) -> list[tuple[str, DType]]:
        results = []
        for name, dtype, shape in zip(names, dtypes, shapes, strict=True):
            results.append((chain(inner, name, dtype, shape), dtype))
        if depth < 1 and p.chance(0.3):
            call = inner.add(
                "PartitionedCall", [ref for ref, _ in results], Tin=tuple(dtypes), Tout=tuple(dtypes),
                f=branch(p, dtypes, shapes, depth + 1),
            )  # fmt: skip
            results = [(f"{call[:-1]}{number}", dtype) for number, dtype in enumerate(dtypes)]
        return results

    return p.function([(f"a{number}", dtype) for number, dtype in enumerate(dtypes)], body)


def several(p: Program) -> tuple[list[str], list[DType], list[tuple[int, ...]]]:
    dtypes = [p.pick(NUMBERS) for _ in range(p.int(1, 3))]
    shapes = [some_shape(p) for _ in dtypes]
    return [p.new(d, s, fed=p.chance()) for d, s in zip(dtypes, shapes, strict=True)], dtypes, shapes


@program
def calls(p: Program) -> None:
    xs, dtypes, shapes = several(p)
    op = p.pick(["PartitionedCall", "StatefulPartitionedCall"])
    call = p.add(op, xs, Tin=tuple(dtypes), Tout=tuple(dtypes), f=branch(p, dtypes, shapes))
    again = p.add(op, ports(call, len(xs)), Tin=tuple(dtypes), Tout=tuple(dtypes), f=branch(p, dtypes, shapes))
    p.step(ports(again, len(xs)) + ports(call, len(xs)))


@program
def if_v2(p: Program) -> None:
    xs, dtypes, shapes = several(p)
    test = predicate(p)
    if p.chance(0.3):
        test = p.pick([p.const(p.int(-1, 1), INT), p.const(p.pick([0.0, 2.5]), FLOAT)])
    kind = next(node for node in p.nodes if node.name == test)
    given = kind.attrs["dtype"] if kind.op == "Const" else BOOL
    node = p.add(
        p.pick(["If", "StatelessIf"]), [test, *xs], Tcond=given, Tin=tuple(dtypes), Tout=tuple(dtypes),
        then_branch=branch(p, dtypes, shapes), else_branch=branch(p, dtypes, shapes),
        output_shapes=tuple(Shape(s) for s in shapes),
    )  # fmt: skip
    p.step([chain(p, ref, d, s, 1) for ref, d, s in zip(ports(node, len(xs)), dtypes, shapes, strict=True)])


@program
def case_v2(p: Program) -> None:
    xs, dtypes, shapes = several(p)
    count = p.int(1, 4)
    branches = tuple(branch(p, dtypes, shapes) for _ in range(count))
    node = p.add(
        p.pick(["Case", "StatelessCase"]), [p.const(p.int(-2, count + 1)), *xs], Tin=tuple(dtypes),
        Tout=tuple(dtypes), branches=branches, output_shapes=tuple(Shape(s) for s in shapes),
    )  # fmt: skip
    p.step(ports(node, len(xs)))


@program
def while_v2(p: Program) -> None:
    xs, dtypes, shapes = several(p)
    limit = p.int(0, 6)
    arguments = [("i", INT), *((f"a{number}", dtype) for number, dtype in enumerate(dtypes))]

    def condition(inner: Body, names: list[str]) -> list[tuple[str, DType]]:
        return [(inner.add("Less", [names[0], inner.const(limit)], T=INT), BOOL)]

    def body(inner: Body, names: list[str]) -> list[tuple[str, DType]]:
        results = [(inner.add("AddV2", [names[0], inner.const(1)], T=INT), INT)]
        for name, dtype, shape in zip(names[1:], dtypes, shapes, strict=True):
            results.append((chain(inner, name, dtype, shape), dtype))
        return results

    node = p.add(
        p.pick(["While", "StatelessWhile"]), [p.const(0), *xs], T=(INT, *dtypes), cond=p.function(arguments, condition),
        body=p.function(arguments, body), output_shapes=tuple(Shape(s) for s in ((), *shapes)), parallel_iterations=10,
    )  # fmt: skip
    p.step(ports(node, len(xs) + 1))
