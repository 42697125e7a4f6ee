"""The sign bit of floats, which tells -0 from 0, and the refusal of other bits."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph.text_format import parse

KERAS_ARGMAX = """
    x = Placeholder(dtype=float, shape=[2,4])
    zero = Const(float 0)
    tiny = Const(float -1.1754943508222875e-38)
    mask = Const(int32 {mask})
    none = Const(int32 0)
    axis = Const(int32 1)
    is_zero = Equal(x, zero, T=float)
    bits = Bitcast(x, T=float, type=int32)
    sign = BitwiseAnd(bits, mask, T=int32)
    is_negative = Less(sign, none, T=int32)
    is_negative_zero = LogicalAnd(is_zero, is_negative)
    ordered = SelectV2(is_negative_zero, tiny, x, T=float)
    y = ArgMax(ordered, axis, T=float, Tidx=int32, output_type=int64)
"""


def test_argmax_of_keras_runs_as_a_whole_and_puts_zero_above_negative_zero() -> None:
    """keras.ops.argmax of Keras 3.15 with TensorFlow 2.21 gives [1, 2] here."""
    feed = np.array([[-0.0, 0.0, -0.0, -1.0], [-3.0, -np.inf, 5.0, 1e-39]], np.float32)
    with Session(parse(KERAS_ARGMAX.format(mask=-(2**31))), threads=1, engine="litert") as session:
        assert session.run(["y"], {"x": feed})[0].tolist() == [1, 2]


def test_bits_other_than_the_sign_are_refused() -> None:
    with (
        Session(parse(KERAS_ARGMAX.format(mask=7)), threads=1, engine="litert") as session,
        pytest.raises(RunError, match="bits other than the sign"),
    ):
        session.run(["y"], {"x": np.zeros((2, 4), np.float32)})
