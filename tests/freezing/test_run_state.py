"""Variables in which a model keeps what it was given are named when it is frozen; those of training are not."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.freezing.run_state import begun_anew, forgotten, run_state, zero_states
from pocketgraph.freezing.tool import freeze_with_report
from pocketgraph.graph import Tensor
from pocketgraph.graph.text_format import parse

WINDOW = """
    frame = Placeholder(dtype=float, shape=[1, 2])
    window = VarHandleOp(dtype=float, shape=[3, 2], shared_name="window")
    earlier = ReadVariableOp(window, dtype=float)
    axis = Const(int32 0)
    one = Const(int32 [1, 0])
    all = Const(int32 [-1, -1])
    rest = Slice(earlier, one, all, T=float, Index=int32)
    later = ConcatV2(rest, frame, axis, N=2, T=float, Tidx=int32)
    kept = AssignVariableOp(window, later, dtype=float)
    {result}
"""
READS = "y = Mean(later, axis, ^kept, T=float, Tidx=int32)"
DOES_NOT = "y = Relu(frame, ^kept, T=float)"


@pytest.mark.parametrize(("result", "found"), [(READS, ["window"]), (DOES_NOT, [])])
def test_what_a_run_sets_and_the_outputs_are_made_of_is_state(result: str, found: list[str]) -> None:
    assert run_state(parse(WINDOW.format(result=result)), ["y"]) == found


def test_rows_that_a_run_puts_into_a_variable_are_state() -> None:
    graph = parse("""
        frame = Placeholder(dtype=float, shape=[1, 2])
        window = VarHandleOp(dtype=float, shape=[3, 2])
        place = Const(int32 [[0]])
        put = ResourceScatterNdUpdate(window, place, frame, T=float, Tindices=int32)
        y = ReadVariableOp(window, ^put, dtype=float)
    """)
    assert run_state(graph, ["y"]) == ["window"]


def test_what_a_loop_leaves_in_a_variable_is_state() -> None:
    """As language models of TensorFlow 1 keep the state of their cells from one piece of text to the next."""
    graph = parse("""
        words = Placeholder(dtype=float, shape=[2])
        cell = VariableV2(dtype=float, shape=[2])
        begin = Identity(cell, T=float)
        state = Enter(begin, T=float, frame_name="words")
        word = Enter(words, T=float, frame_name="words", is_constant=true)
        round = Merge(state, again, T=float)
        goes = Const(bool true, ^round)
        on = LoopCond(goes)
        way = Switch(round, on, T=float)
        next = Add(way:1, word, T=float)
        again = NextIteration(next, T=float)
        last = Exit(way, T=float)
        kept = Assign(cell, last, T=float)
        y = Relu(last, ^kept, T=float)
    """)
    assert run_state(graph, ["y"]) == ["cell"]


def test_averages_that_a_repaired_batch_norm_takes_are_no_state() -> None:
    """As tf.contrib.layers.batch_norm(updates_collections=None) keeps them, without a branch."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4, 2, 2, 3])
        gamma = Const(float [1, 1, 1])
        beta = Const(float [0, 0, 0])
        mean = VariableV2(dtype=float, shape=[3])
        variance = VariableV2(dtype=float, shape=[3])
        mean_read = Identity(mean, T=float)
        variance_read = Identity(variance, T=float)
        norm = FusedBatchNorm(x, gamma, beta, mean_read, variance_read, T=float, is_training=false)
        change = Sub(mean_read, norm:1, T=float)
        kept = AssignSub(mean, change, T=float)
        y = Identity(norm, ^kept, T=float)
    """)
    assert run_state(graph, ["y"]) == []


def test_a_scale_that_a_batch_norm_takes_behind_its_averages_is_state() -> None:
    """BatchNormWithGlobalNormalization takes mean and variance before what shifts and scales."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4, 2, 2, 3])
        ones = Const(float [1, 1, 1])
        mean = VariableV2(dtype=float, shape=[3])
        gamma = VariableV2(dtype=float, shape=[3])
        axes = Const(int32 [0, 1, 2])
        batch = Mean(x, axes, T=float, Tidx=int32)
        average = Assign(mean, batch, T=float)
        scale = Assign(gamma, batch, T=float)
        y = BatchNormWithGlobalNormalization(x, average, ones, ones, scale, T=float, variance_epsilon=0.001)
    """)
    assert run_state(graph, ["y"]) == ["gamma"]


@pytest.mark.parametrize("repair", [False, True])
def test_freezing_says_once_what_is_forgotten(repair: bool) -> None:
    graph = parse(WINDOW.format(result=READS)).replace(outputs=["y"])
    frozen = freeze_with_report(
        graph, ["y"], {"window": Tensor.from_numpy(np.zeros((3, 2), np.float32))}, repair=repair
    )
    assert frozen.forgets == ("window",)
    assert sum("remembers earlier runs in 'window'" in line for line in frozen.warnings) == 1


def test_the_range_of_a_fake_quantization_is_no_state() -> None:
    """As contrib.quantize keeps those of weights, which batch norms of training scale by the batch."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4, 2])
        axes = Const(int32 [0, 1])
        lowest = Min(x, axes, T=float, Tidx=int32)
        highest = Max(x, axes, T=float, Tidx=int32)
        min = VariableV2(dtype=float, shape=[])
        max = VariableV2(dtype=float, shape=[])
        last_min = Assign(min, lowest, T=float)
        last_max = Assign(max, highest, T=float)
        rounded = FakeQuantWithMinMaxVars(x, last_min, last_max, num_bits=8, narrow_range=false)
        y = Relu(rounded, T=float)
        z = Add(rounded, last_min, T=float)
    """)
    assert run_state(graph, ["y"]) == []
    assert run_state(graph, ["z"]) == ["min"]


def test_ranges_that_quantized_training_averages_are_no_state() -> None:
    """As create_training_graph makes them: the rounding takes what the assignment gives."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4, 2])
        axes = Const(int32 [0, 1])
        seen = Max(x, axes, T=float, Tidx=int32)
        low = Const(float 0.0)
        high = VariableV2(dtype=float, shape=[])
        change = Sub(high, seen, T=float)
        average = AssignSub(high, change, T=float)
        y = FakeQuantWithMinMaxVars(x, low, average)
    """)
    assert run_state(graph, ["y"]) == []
    assert run_state(graph, ["average"]) == ["high"]


def test_a_sentence_names_few_of_many_states() -> None:
    assert "earlier runs in 'a', 'b' and 3 more, and a frozen" in forgotten(list("abcde"))


def test_moving_averages_are_no_state() -> None:
    """Of a branch, and of a batch norm that trains, whose result is made of the batch alone."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4, 2])
        axis = Const(int32 0)
        mean = Mean(x, axis, T=float, Tidx=int32)
        average = VariableV2(dtype=float, shape=[2])
        update = AssignSub(average, mean, T=float)
        y = Sub(x, mean, ^update, T=float)
        is_training = Placeholder(dtype=bool, shape=[])
        switched = Switch(mean, is_training, T=float)
        branch = AssignSub(average, switched:1, T=float)
        z = Sub(x, average, ^branch, T=float)
    """)
    assert run_state(graph, ["y"]) == []
    assert run_state(graph, ["z"]) == []


def test_a_counter_is_no_state() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[])
        steps = VariableV2(dtype=float, shape=[])
        one = Const(float 1)
        counted = AssignAdd(steps, one, T=float)
        y = Add(x, counted, T=float)
    """)
    assert run_state(graph, ["y"]) == []


CELL = """
    x = Placeholder(dtype=float, shape=[1,2])
    CellZeroState/zeros = Const(float[1,2] 0)
    w = Const(float[4,2] 0.5)
    axis = Const(int32 1)
    first = ConcatV2(x, CellZeroState/zeros, axis, T=float, N=2, Tidx=int32)
    one = MatMul(first, w, T=float)
    next = Tanh(one, T=float)
"""


def test_a_network_of_one_step_begins_each_run_with_zeros() -> None:
    graph = parse(CELL)
    assert zero_states(graph.replace(outputs=["next"])) == ["CellZeroState/zeros"]
    assert "a state of zeros ('CellZeroState/zeros')" in begun_anew(["CellZeroState/zeros"])


def test_a_network_of_several_steps_begins_with_zeros_as_it_should() -> None:
    graph = parse(f"""{CELL}
        second = ConcatV2(x, next, axis, T=float, N=2, Tidx=int32)
        two = MatMul(second, w, T=float)
        last = Tanh(two, T=float)
    """)
    assert zero_states(graph.replace(outputs=["last"])) == []
