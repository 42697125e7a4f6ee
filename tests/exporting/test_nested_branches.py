"""Branches in branches of the same condition: the side is taken that is decided around them, with NumPy's numbers."""

from __future__ import annotations

import itertools
import pathlib

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

import pocketgraph
from c_programs import needs_cc, results
from onnx_runs import exported, operators, run
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.float_program import simplified

X = np.float32([[-1, 0.5, 2, 0.25]])
START = """
    x = Placeholder(dtype=float, shape=[1,4])
    p = Placeholder(dtype=bool, shape=[])
    q = Placeholder(dtype=bool, shape=[])
    in = Switch(x, p, T=float)
    decided = Switch(p, p, T=bool)
    p_true = Identity(decided:1, T=bool)
    p_false = Identity(decided, T=bool)
"""
# tf.cond(p, lambda: tf.cond(p, sin, cos), abs); with q, or its index, it is not needed
TWICE = """
    again = Switch(in:1, p_true, T=float)
    sin = Sin(again:1, T=float)
    cos = Cos(again, T=float)
    inner = Merge(cos, sin, T=float, N=2)
    which = Cast(inner:1, SrcT=int32, DstT=float)
    sum = Add(inner, which, T=float)
    abs = Abs(in, T=float)
    y = Merge(abs, sum, T=float, N=2)
"""
# cond(p, lambda: cond(q, lambda: cond(p, sin, lambda: cond(p, exp, cos)), neg), lambda: cond(p, exp, abs))
BEHIND_ANOTHER = """
    of_q = Switch(q, p_true, T=bool)
    second = Switch(in:1, of_q:1, T=float)
    third = Switch(second:1, p_true, T=float)
    sin = Sin(third:1, T=float)
    fourth = Switch(third, p_true, T=float)
    exp = Exp(fourth:1, T=float)
    cos = Cos(fourth, T=float)
    never = Merge(cos, exp, T=float, N=2)
    inner = Merge(never, sin, T=float, N=2)
    neg = Neg(second, T=float)
    either = Merge(neg, inner, T=float, N=2)
    other = Switch(in, p_false, T=float)
    grown = Exp(other:1, T=float)
    abs = Abs(other, T=float)
    left = Merge(abs, grown, T=float, N=2)
    y = Merge(left, either, T=float, N=2)
"""
# tf.cond(p, lambda: tf.cond(p, constant, cos), lambda: tf.cond(p, abs, constant)), whose constants wait for their sides
CONSTANTS = """
    again = Switch(in:1, p_true, T=float)
    of_p = Switch(p_true, p_true, T=bool)
    inner_true = Identity(of_p:1, T=bool)
    first = Const(float [[1, 2, 3, 4]], ^inner_true)
    cos = Cos(again, T=float)
    inner = Merge(cos, first, T=float, N=2)
    tripled = Neg(inner, T=float)
    other = Switch(in, p_false, T=float)
    abs = Abs(other:1, T=float)
    of_not_p = Switch(p_false, p_false, T=bool)
    inner_false = Identity(of_not_p, T=bool)
    second = Const(float [[1, 2, 3, 4]], ^inner_false)
    last = Merge(second, abs, T=float, N=2)
    tanh = Tanh(last, T=float)
    y = Merge(tanh, tripled, T=float, N=2)
"""
KEPT = np.float32([[1, 2, 3, 4]])
CASES = {
    "twice": (TWICE, lambda p, q: np.sin(X) + 1 if p else np.abs(X)),
    "behind_another": (BEHIND_ANOTHER, lambda p, q: (np.sin(X) if q else -X) if p else np.abs(X)),
    "constants": (CONSTANTS, lambda p, q: -KEPT if p else np.tanh(KEPT)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_side_is_taken_that_is_decided_around_it(name: str, tmp_path: pathlib.Path) -> None:
    text, wanted = CASES[name]
    graph = parse(START + text + "    all = Cast(q, SrcT=bool, DstT=float)")  # which takes q in any case
    program = simplified(graph, ["y:0", "all:0"], {"x": (1, 4), "p": (), "q": ()}).lowered()
    proto = exported(graph, ["y", "all"])
    codes = [operation.code for each in program.programs() for operation in each.operations]
    assert codes.count("IF") == operators(proto)["If"] == (2 if name == "behind_another" else 1)
    assert "COS" not in codes
    assert not operators(proto)["Cos"]
    pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y", "all"])
    runner = Interpreter(str(tmp_path / "net.tflite")).get_signature_runner()
    for p, q in itertools.product((False, True), repeat=2):
        feeds = {"x": X, "p": np.array(p), "q": np.array(q)}
        for found in (runner(**feeds)["y"], run(proto, feeds)[0]):
            np.testing.assert_allclose(found, wanted(p, q), rtol=1e-5)


@needs_cc
def test_a_c_library_takes_it_too(tmp_path: pathlib.Path) -> None:
    program = simplified(parse(START + TWICE), ["y:0"], {"x": (1, 4), "p": ()}).lowered()
    for p in (False, True):
        found = results(program, [X, np.array(p)], tmp_path / str(p))[0]
        np.testing.assert_allclose(found, CASES["twice"][1](p, False), rtol=1e-5)
