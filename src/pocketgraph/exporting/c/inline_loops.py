"""Loops and branches in C: the operations of conditions, rounds and branches stand in line, between marks that become
``for``, ``if`` and ``}``.

    h, y = WHILE(h, y, x)       LOOP(h, y) -> state of h, state of y
                                the condition's operations
                                LOOP_TEST(holds)
                                the round's operations
                                END(next h, state of h, …)

    z = IF(holds, x)            IF(holds) -> z
                                one branch's operations
                                ELSE(its z, z)
                                the other's operations
                                END(its z, z)

A variable lies in one place for all rounds, and what only goes round, such as ``x``, stays where it was. What a branch
gives is made in its place where it is made there at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pocketgraph.litert.program import Operation, Program, Value

LOOP, TEST, IF, ELSE, END = "LOOP", "LOOP_TEST", "IF", "ELSE", "END"
UPDATE = "DYNAMIC_UPDATE_SLICE"
PLACED = ("RESHAPE", "WHILE")
"""Not a trait: operators whose results lie where their operands or their variables do."""


def in_line(program: Program) -> Program:
    """The program without operations that run others; itself where there are none."""
    if all(not operation.bodies for operation in program.operations):
        return program
    now: dict[Value, Value] = {}
    operations = _in_line(program.operations, now)
    return Program(list(program.inputs), [_now(value, now) for value in program.outputs], operations)


def _now(value: Value, now: Mapping[Value, Value]) -> Value:
    while value in now:
        value = now[value]
    return value


def _in_line(operations: Sequence[Operation], now: dict[Value, Value]) -> list[Operation]:
    """The operations, reading what stands for each value ``now``."""
    done: list[Operation] = []
    for operation in operations:
        inputs = [None if value is None else _now(value, now) for value in operation.inputs]
        if operation.code == IF:
            done += _branch(operation, [value for value in inputs if value is not None], now)
        elif operation.bodies:
            done += _loop(operation, [value for value in inputs if value is not None], now)
        else:
            done.append(operation.replace(inputs=inputs))
    return done


def _loop(operation: Operation, given: Sequence[Value], now: dict[Value, Value]) -> list[Operation]:
    test, turn = operation.bodies
    states: list[Value] = []
    starts: list[Value] = []
    changing: list[tuple[Value, Value]] = []
    for start, before, tested, after, last in zip(
        given, turn.inputs, test.inputs, turn.outputs, operation.outputs, strict=True
    ):
        state = start
        if after is not before:
            state = Value(last.name, last.dtype, last.shape)
            states.append(state)
            starts.append(start)
            changing.append((before, after))
        now.update((value, state) for value in (before, tested, last))
    condition = _in_line(test.operations, now)
    readers, tested_values = turn.consumers(), {value for each in test.operations for value in each.inputs}
    for place, (before, after) in enumerate(changing):  # an array that is only written to is changed in its place
        maker = next((each for each in turn.operations if after in each.outputs), None)
        if (
            maker is not None
            and maker.code == UPDATE
            and maker.inputs[0] is before
            and len(readers[before]) == 1
            and turn.outputs.count(after) == 1
            and after not in readers
            and before not in tested_values
            and before not in turn.outputs
        ):
            now[after] = states[place]
    body = _in_line(turn.operations, now)
    for each in body:
        if each.code == UPDATE:
            each.outputs = [_now(each.outputs[0], now)]
    nodes = operation.nodes
    following = [_now(after, now) for _, after in changing]
    return [
        Operation(LOOP, list(starts), states, nodes=nodes),
        *condition,
        Operation(TEST, [_now(test.outputs[0], now)], [], nodes=nodes),
        *body,
        Operation(END, [*following, *states, *given], [], {"count": len(states)}, nodes),
    ]


def _branch(operation: Operation, given: Sequence[Value], now: dict[Value, Value]) -> list[Operation]:
    results = [_now(value, now) for value in operation.outputs]
    done = [Operation(IF, [given[0]], results, nodes=operation.nodes)]
    for body, mark in zip(operation.bodies, (ELSE, END), strict=True):
        now.update(zip(body.inputs, given[1:], strict=True))
        makers = body.producers()
        for made, result in zip(body.outputs, results, strict=True):
            if made in makers and makers[made].code not in PLACED:
                now.setdefault(made, result)
        each = _in_line(body.operations, now)
        for one in each:
            one.outputs = [_now(value, now) for value in one.outputs]
        ends = [_now(value, now) for value in body.outputs]
        done += [*each, Operation(mark, [*ends, *results], [], {"count": len(results)}, operation.nodes)]
    return done
