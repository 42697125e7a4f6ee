"""A dropout around a cell that keeps everything: the loop draws no numbers and is written out."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session


def loop(rounds: int) -> Graph:
    """state -> dropout(state * 2, keep), as often as asked; as TensorFlow 1.15 exports a DropoutWrapper."""
    return parse(f"""
        x = Placeholder(dtype=float, shape=[?, 3])
        keep = Placeholder(dtype=float, shape=[])
        zero = Const(int32 0)
        i = Enter(zero, T=int32, frame_name="w")
        s = Enter(x, T=float, frame_name="w")
        rate_in = Enter(keep, T=float, frame_name="w", is_constant=true)
        i/merge = Merge(i, i/next, T=int32, N=2)
        s/merge = Merge(s, s/next, T=float, N=2)
        count = Const(int32 {rounds}, ^i/merge)
        less = Less(i/merge, count, T=int32)
        go = LoopCond(less)
        i/switch = Switch(i/merge, go, T=int32)
        s/switch = Switch(s/merge, go, T=float)
        i/body = Identity(i/switch:1, T=int32)
        s/body = Identity(s/switch:1, T=float)
        one = Const(int32 1, ^i/body)
        add = AddV2(i/body, one, T=int32)
        two = Const(float 2, ^i/body)
        state = Mul(s/body, two, T=float)
        whole = Const(float 1, ^i/body)
        rate = Sub(whole, rate_in, T=float)
        shape = Shape(state, T=float, out_type=int32)
        drawn = RandomUniform(shape, dtype=float, T=int32)
        kept = Sub(whole, rate, T=float)
        scale = RealDiv(whole, kept, T=float)
        ge = GreaterEqual(drawn, rate, T=float)
        scaled = Mul(state, scale, T=float)
        mask = Cast(ge, SrcT=bool, DstT=float)
        dropped = Mul(scaled, mask, T=float)
        i/next = NextIteration(add, T=int32)
        s/next = NextIteration(dropped, T=float)
        i/exit = Exit(i/switch, T=int32)
        y = Exit(s/switch, T=float)
    """)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_nothing_is_dropped_and_nothing_drawn() -> None:
    with Session(loop(5)) as session:
        (y,) = session.run("y", {"x": X, "keep": np.float32(1)})
        np.testing.assert_array_equal(y, X * 32)
        ops = {timing.op for timing in session.profile("y", {"x": X, "keep": np.float32(1)}).nodes}
    assert "RandomUniform" not in ops
    assert "Enter" not in ops


@pytest.mark.parametrize("engine", [None, "reference"])
def test_the_number_of_rounds_stays(engine: str | None) -> None:
    for rounds in (0, 1, 7):
        with Session(loop(rounds), engine=engine) as session:
            y, turns = session.run(["y", "i/exit"], {"x": X, "keep": np.float32(1)})
        assert int(turns) == rounds
        np.testing.assert_array_equal(y, X * 2**rounds)


def test_what_drops_still_drops() -> None:
    with Session(loop(2), seed=3) as session:
        (y,) = session.run("y", {"x": np.ones((200, 3), np.float32), "keep": np.float32(0.5)})
    assert set(np.unique(y)) == {0, 16}
    assert 0.15 < np.mean(y > 0) < 0.35  # a quarter survives both rounds
