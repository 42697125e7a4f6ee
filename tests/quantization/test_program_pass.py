"""Constants of a program are computed once, and what was one constant stays one."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.program_pass import store_constants


@pytest.mark.parametrize("threads", [1, 2])
def test_constants_are_computed_once(threads: int) -> None:
    reads = []

    def read() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        reads.append(1)
        return np.arange(6, dtype=np.float32).reshape(2, 3)

    computed, kept = Constant(read, (3, 2), np.dtype(np.float32), (1, 0)), Constant.of(np.ones(3, np.float32))
    x, y, z = (Value(name, FLOAT, (1, 3)) for name in "xyz")
    weights = [Value(name, FLOAT, (3, 2), computed) for name in ("v", "w")]
    bias = Value("b", FLOAT, (3,), kept)
    layers = [
        Operation("FULLY_CONNECTED", [x, weights[0], bias], [y], {}),
        Operation("FULLY_CONNECTED", [x, weights[1], None], [z], {}),
    ]
    store_constants(Program([x], [y, z], layers), threads)
    assert weights[0].constant is weights[1].constant
    assert bias.constant is kept
    for _ in range(3):
        np.testing.assert_array_equal(weights[0].content.numpy(), [[0, 3], [1, 4], [2, 5]])
    assert len(reads) == 1
