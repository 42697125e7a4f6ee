"""Loops that are recurrent cells become LSTM and GRU; what only looks like one stays a Loop."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import pocketgraph
from graph_files import graph_file
from onnx_runs import assert_same, onnx, operators, run
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from support import ROOT

KERAS = ROOT / "tests" / "runtime" / "recurrent"
UNITS, INPUTS, STEPS = 24, 5, 30
FRAME = 'frame_name="rnn", parallel_iterations=32'
LOOP = f"""
    x = Placeholder(dtype=float, shape=[1,{STEPS},{INPUTS}])
    swap = Const(int32 [1,0,2])
    by_time = Transpose(x, swap, T=float, Tperm=int32)
    n = Const(int32 {STEPS})
    zero = Const(int32 0)
    one = Const(int32 1)
    places = Range(zero, n, one, Tidx=int32)
    given = TensorArrayV3(n, dtype=float, dynamic_size=false, clear_after_read=true)
    filled = TensorArrayScatterV3(given, places, by_time, given:1, T=float)
    made = TensorArrayV3(n, dtype=float, dynamic_size=false, clear_after_read=true)
    t0 = Enter(zero, T=int32, is_constant=false, {FRAME})
    out0 = Enter(made:1, T=float, is_constant=false, {FRAME})
    h_begin = Const(float[1,{UNITS}] 0.1)
    h0 = Enter(h_begin, T=float, is_constant=false, {FRAME})
    most = Enter(n, T=int32, is_constant=true, {FRAME})
    source = Enter(given, T=resource, is_constant=true, {FRAME})
    content = Enter(filled, T=float, is_constant=true, {FRAME})
    goal = Enter(made, T=resource, is_constant=true, {FRAME})
    t = Merge(t0, t_next, T=int32, N=2)
    out = Merge(out0, out_next, T=float, N=2)
    h = Merge(h0, h_next, T=float, N=2)
    less = Less(t, most, T=int32)
    cond = LoopCond(less)
    t_switch = Switch(t, cond, T=int32)
    out_switch = Switch(out, cond, T=float)
    h_switch = Switch(h, cond, T=float)
    t_in = Identity(t_switch:1, T=int32)
    h_in = Identity(h_switch:1, T=float)
    step = Const(int32 1, ^t_in)
    axis = Const(int32 1, ^t_in)
    unit = Const(float 1.0, ^t_in)
    w_in = Enter(w, T=float, is_constant=true, {FRAME})
    b_in = Enter(b, T=float, is_constant=true, {FRAME})
    xt = TensorArrayReadV3(source, t_in, content, dtype=float)
    both = ConcatV2(xt, h_in, axis, T=float, N=2, Tidx=int32)
    product = MatMul(both, w_in, T=float)
    sums = BiasAdd(product, b_in, T=float)
    {{cell}}
    written = TensorArrayWriteV3(goal, t_in, h_new, out_switch:1, T=float)
    t_more = AddV2(t_in, step, T=int32)
    t_next = NextIteration(t_more, T=int32)
    out_next = NextIteration(written, T=float)
    h_next = NextIteration(h_new, T=float)
    out_end = Exit(out_switch, T=float)
    h_end = Exit(h_switch, T=float)
    y = TensorArrayGatherV3(made, places, out_end, dtype=float, element_shape=[1,{UNITS}])
    last = Identity(h_end, T=float)
"""
LSTM = f"""
    c_begin = Const(float[1,{UNITS}] -0.2)
    c0 = Enter(c_begin, T=float, is_constant=false, {FRAME})
    c = Merge(c0, c_next, T=float, N=2)
    c_switch = Switch(c, cond, T=float)
    gates = Split(axis, sums, T=float, num_split=4)
    i = Sigmoid(gates, T=float)
    j = Tanh(gates:1, T=float)
    kept = AddV2(gates:2, unit, T=float)
    f = Sigmoid(kept, T=float)
    o = Sigmoid(gates:3, T=float)
    old = Mul(c_switch:1, f, T=float)
    new = Mul(i, j, T=float)
    c_new = AddV2(old, new, T=float)
    squashed = {{squash}}(c_new, T=float)
    h_new = Mul(squashed, o, T=float)
    c_next = NextIteration(c_new, T=float)
"""
GRU = f"""
    v_in = Enter(v, T=float, is_constant=true, {FRAME})
    d_in = Enter(d, T=float, is_constant=true, {FRAME})
    open = Sigmoid(sums, T=float)
    gates = Split(axis, open, T=float, num_split=2)
    reset = Mul(gates, h_in, T=float)
    again = ConcatV2(xt, reset, axis, T=float, N=2, Tidx=int32)
    inner = MatMul(again, v_in, T=float)
    biased = BiasAdd(inner, d_in, T=float)
    candidate = Tanh(biased, T=float)
    old = Mul(gates:1, h_in, T=float)
    rest = Sub(unit, gates:1, T=float)
    new = Mul(rest, candidate, T=float)
    h_new = AddV2(old, new, T=float)
"""


def loop(cell: str, gates: int) -> Graph:
    drawn = np.random.default_rng(7)
    rows = INPUTS + UNITS
    weights = {
        "w": drawn.normal(size=(rows, gates * UNITS)) / 4, "b": drawn.normal(size=gates * UNITS),
        "v": drawn.normal(size=(rows, UNITS)) / 4, "d": drawn.normal(size=UNITS),
    }  # fmt: skip
    graph = parse(LOOP.format(cell=cell.replace("\n    ", "\n    ").strip()))
    return graph.replace([*graph, *(const(name, value.astype(np.float32)) for name, value in weights.items())])


FEEDS = {"x": np.random.default_rng(8).normal(size=(1, STEPS, INPUTS)).astype(np.float32)}


def test_an_lstm() -> None:
    found = operators(assert_same(loop(LSTM.format(squash="Tanh"), 4), FEEDS, ["y", "last"]))
    assert found["LSTM"] == 1
    assert found["Loop"] == found["MatMul"] == 0


def test_a_gru() -> None:
    found = operators(assert_same(loop(GRU, 2), FEEDS, ["y", "last"]))
    assert found["GRU"] == 1
    assert found["Loop"] == found["MatMul"] == 0


def test_another_cell_stays_a_loop() -> None:
    found = operators(assert_same(loop(LSTM.format(squash="Sin"), 4), FEEDS, ["y", "last"]))
    assert found["LSTM"] == 0
    assert found["Loop"] == 1


@pytest.mark.parametrize("clip", [0.0, 0.4])
@pytest.mark.parametrize("peephole", ["true", "false"])
def test_block_lstm(clip: float, peephole: str) -> None:
    drawn = np.random.default_rng(9)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[6,2,{INPUTS}])
        n = Const(int64 6)
        s = Const(float[2,{UNITS}] 0.3)
        h = Const(float[2,{UNITS}] -0.1)
        a = BlockLSTM(n, x, s, h, w, p0, p1, p2, b, T=float, forget_bias=1.0, cell_clip={clip}, use_peephole={peephole})
        y = Identity(a:6, T=float)
    """)
    weights = {
        "w": drawn.normal(size=(INPUTS + UNITS, 4 * UNITS)) / 4, "b": drawn.normal(size=4 * UNITS),
        **{f"p{at}": drawn.normal(size=UNITS) for at in range(3)},
    }  # fmt: skip
    graph = graph.replace([*graph, *(const(name, value.astype(np.float32)) for name, value in weights.items())])
    found = operators(assert_same(graph, {"x": drawn.normal(size=(6, 2, INPUTS)).astype(np.float32)}))
    assert found["LSTM"] == (clip == 0)


@pytest.mark.parametrize("name", ["keras_lstm", "keras_gru", "keras_two_ways"])
def test_a_batch_stays_open(name: str, tmp_path: pathlib.Path) -> None:
    """TensorFlow's numbers for one sequence and for three; a layer that gives its last state keeps a list of one."""
    golden = dict(np.load(KERAS / f"{name}.npz"))
    [fed], [output] = ([key[len(side) :] for key in golden if key.startswith(side)] for side in ("in_0_", "out_0_"))
    made = pocketgraph.export(graph_file(KERAS, name), tmp_path / "net.onnx", outputs=[output])
    assert made.notes == ()
    for number in (0, 1):
        feeds = {fed.removesuffix(":0"): golden[f"in_{number}_{fed}"]}
        [found] = run(onnx.load(str(tmp_path / "net.onnx")), feeds)
        np.testing.assert_allclose(found, golden[f"out_{number}_{output}"], atol=2e-6)
