"""Stacks: what the gradient of a loop pushes in the loop forwards and pops in the loop backwards."""

from __future__ import annotations

from typing import Any

from pocketgraph.errors import RunError
from pocketgraph.kernels.registry import kernel


class Stack:
    """Values, last in first out, of at most ``limit`` (negative: no limit)."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.values: list[Any] = []


kernel("StackV2")(lambda max_size: Stack(int(max_size)))
kernel("Stack")(lambda: Stack(-1))


@kernel("StackPush", "StackPushV2")
def stack_push(handle: Stack, elem: Any) -> Any:
    if 0 <= handle.limit <= len(handle.values):
        raise RunError(f"Stack overflow: it holds its limit of {handle.limit} values")
    handle.values.append(elem)
    return elem


@kernel("StackPop", "StackPopV2")
def stack_pop(handle: Stack) -> Any:
    if not handle.values:
        raise RunError("Stack is empty when calling Pop()")
    return handle.values.pop()


@kernel("StackClose", "StackCloseV2")
def stack_close(handle: Stack) -> tuple[()]:
    handle.values.clear()
    return ()
