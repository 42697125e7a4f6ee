"""Arithmetic of single numbers, as loops count with: done by Python, which takes a third of NumPy's time for them.

Of float32 tensors of one shape, or of one and a number, it is NumPy's without asking for what other types need.

The same values: Python's integers are exact (what does not fit goes to the kernel, which wraps it around), and a sum,
difference, product or quotient of two float32 that is rounded to a double first and to float32 then is the one that is
rounded once (Figueroa, When is double rounding innocuous?, 1995).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.kernels.arrays import Array
from pocketgraph.runtime.engines.kernel_makers import Call, Constants, quickens

INT32, INT64, SINGLE, TRUTH = map(np.dtype, ("int32", "int64", "float32", "bool"))
TRUE, FALSE = np.asarray(True), np.asarray(False)
for _truth in (TRUE, FALSE):
    _truth.flags.writeable = False  # they are given again and again


def _arithmetic(
    compute: Callable[[Any, Any], Any], of_tensors: Call | None = None, *, floats: bool
) -> Callable[[Node, Constants, Call], Call]:
    def maker(node: Node, constants: Constants, call: Call) -> Call:
        asarray = np.asarray

        def run(x: Array, y: Array) -> Any:
            kind = x.dtype
            if y.dtype is not kind:
                return call(x, y)
            if x.ndim or y.ndim:
                if kind is SINGLE and of_tensors is not None and (x.shape == y.shape or not x.ndim or not y.ndim):
                    return of_tensors(x, y)
                return call(x, y)
            if kind is INT32 or kind is INT64 or (floats and kind is SINGLE):
                try:
                    return asarray(compute(x.item(), y.item()), kind)
                except (OverflowError, ZeroDivisionError):
                    pass
            return call(x, y)

        return run

    return maker


def _comparison(compare: Callable[[Any, Any], Any], of_tensors: Call) -> Callable[[Node, Constants, Call], Call]:
    def maker(node: Node, constants: Constants, call: Call) -> Call:
        def run(x: Array, y: Array) -> Any:
            kind = x.dtype
            if y.dtype is not kind or not (kind is INT32 or kind is SINGLE or kind is INT64):
                return call(x, y)
            if x.ndim or y.ndim:
                return of_tensors(x, y) if x.shape == y.shape or not x.ndim or not y.ndim else call(x, y)
            return TRUE if compare(x.item(), y.item()) else FALSE

        return run

    return maker


@quickens("LogicalAnd")
def _and(node: Node, constants: Constants, call: Call) -> Call:
    def both(x: Array, y: Array) -> Any:
        if x.ndim or y.ndim or x.dtype is not TRUTH or y.dtype is not TRUTH:
            return call(x, y)
        return TRUE if x and y else FALSE

    return both


quickens("Add", "AddV2")(_arithmetic(operator.add, np.add, floats=True))
quickens("Sub")(_arithmetic(operator.sub, np.subtract, floats=True))
quickens("Mul")(_arithmetic(operator.mul, np.multiply, floats=True))
quickens("Minimum")(_arithmetic(min, np.minimum, floats=False))
quickens("Maximum")(_arithmetic(max, np.maximum, floats=False))
quickens("FloorDiv")(_arithmetic(operator.floordiv, floats=False))
quickens("FloorMod")(_arithmetic(operator.mod, floats=False))
quickens("Equal")(_comparison(operator.eq, np.equal))
quickens("NotEqual")(_comparison(operator.ne, np.not_equal))
quickens("Less")(_comparison(operator.lt, np.less))
quickens("LessEqual")(_comparison(operator.le, np.less_equal))
quickens("Greater")(_comparison(operator.gt, np.greater))
quickens("GreaterEqual")(_comparison(operator.ge, np.greater_equal))
