"""A session that nobody holds is gone at once, however it ran: its models take much memory, and Python looks for
cycles seldom."""

from __future__ import annotations

import contextlib
import gc
import pathlib
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tests.loop_text import counted_loop

from pocketgraph.errors import RunError
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates import check_schedule
from pocketgraph.runtime.engines.step_codegen import StepCodegen

LAYERS = """
x = Placeholder(dtype=float, shape=[1,?,?,3])
k = Const(float[1, 1, 3, 4] [[[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]]])
conv = Conv2D(x, k, T=float, padding="SAME", strides=[1,1,1,1])
"""
OF_ALL = f"{LAYERS}y = Relu(conv, T=float)"
IN_STEPS = f"""{LAYERS}
where = Where(conv, T=float)
y = Cast(where, SrcT=int64, DstT=float)
"""
FAILING = f"""{LAYERS}
shape = Const(int32 [7, 11])
y = Reshape(conv, shape, T=float, Tshape=int32)
"""


@pytest.fixture(autouse=True)
def _nobody_looks_for_cycles() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def is_gone(text: str, feeds: Sequence[dict[str, Any]], folder: pathlib.Path, *, fails: bool = False) -> bool:
    session = Session(parse(text), cache_dir=folder)
    for values in feeds:
        with pytest.raises(RunError) if fails else contextlib.nullcontext():
            session.run("y", values)
    check_schedule.finish()
    held = [weakref.ref(each) for each in (session, session._plans, session.graph)]
    del session
    return [each() for each in held] == [None] * 3


def pictures(count: int) -> list[dict[str, Any]]:
    return [{"x": np.ones((1, 5 + n, 6 + n, 3), np.float32)} for n in range(count)]


@pytest.mark.parametrize("text", [OF_ALL, IN_STEPS, FAILING], ids=["a program for all sizes", "steps", "failing"])
@pytest.mark.parametrize("count", [1, 12])
def test_of_sizes(text: str, count: int, tmp_path: pathlib.Path) -> None:
    assert is_gone(text, pictures(count), tmp_path, fails=text is FAILING)


def test_of_loops_that_are_written_out(tmp_path: pathlib.Path) -> None:
    """What is written out holds its steps, and they what they call."""
    rounds = "n = Placeholder(dtype=int32, shape=[])\nx = Placeholder(dtype=float, shape=[4])\n"
    body = "a = Unique(v, T=float, out_idx=int32)\nb = Reverse(v, a:1)\nnext = Mul(v, v, T=float)"
    text = rounds + counted_loop("n", body.replace("b = Reverse(v, a:1)\n", ""))
    session = Session(parse(text), cache_dir=tmp_path)
    session.run("y", {"x": np.ones(4, np.float32), "n": np.int32(30)})
    assert written_out()
    del session
    assert not written_out()


def written_out() -> list[StepCodegen]:
    return [each for each in gc.get_objects() if isinstance(each, StepCodegen)]
