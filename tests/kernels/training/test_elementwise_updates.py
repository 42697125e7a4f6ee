"""Variables that are updated where their values lie."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pocketgraph
from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.state.variables import Variable
from pocketgraph.kernels.training import elementwise_updates
from pocketgraph.kernels.training.elementwise_updates import update


def variable(value: Array) -> Variable:
    made = Variable("w")
    made.assign(value)
    return made


def subtract(now: Array, grad: Array) -> None:
    now -= grad


@pytest.fixture(autouse=True)
def few_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of more than four elements are large, and go in blocks of four."""
    monkeypatch.setattr(elementwise_updates, "LARGE", 4)
    monkeypatch.setattr(elementwise_updates, "BLOCK", 4)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises, also where a shell starts the tests in the background, which has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_blocks_cover_all() -> None:
    one, value = variable(np.arange(11, dtype=np.float32).reshape(11, 1)), np.arange(11, dtype=np.float32)
    update([one], value.reshape(11, 1), subtract)
    np.testing.assert_array_equal(one.read(), np.zeros((11, 1)))
    none = variable(np.empty((0, 3), np.float32))
    update([none], np.empty((0, 3), np.float32), subtract)
    assert none.read().shape == (0, 3)


def test_who_has_the_value_keeps_it() -> None:
    one = variable(np.ones(5, np.float32))
    had, part = one.read(), one.read()[1:]
    update([one], np.ones(5, np.float32), subtract)
    np.testing.assert_array_equal(had, np.ones(5))
    np.testing.assert_array_equal(part, np.ones(4))
    np.testing.assert_array_equal(one.read(), np.zeros(5))
    assert not one.read().flags.writeable


def test_a_value_that_nobody_has_stays_in_its_place() -> None:
    one = variable(np.ones(5, np.float32))
    place = one.read().ctypes.data
    update([one], np.ones(5, np.float32), subtract)
    assert one.read().ctypes.data == place


def test_a_gradient_of_another_shape_is_refused_and_changes_nothing() -> None:
    one = variable(np.ones((2, 3), np.float32))
    with pytest.raises(RunError, match=r"\[3\] does not fit the value's shape \[2, 3\].*"):
        update([one], np.ones(3, np.float32), subtract)
    np.testing.assert_array_equal(one.read(), np.ones((2, 3)))


def test_who_reads_meanwhile_waits_for_the_next_value() -> None:
    one, began, read = variable(np.ones(5, np.float32)), threading.Event(), []

    def slowly(now: Array, grad: Array) -> None:
        began.set()
        other.join(0.2)
        now -= grad

    other = threading.Thread(target=lambda: (began.wait(), read.append(one.read())))
    other.start()
    update([one], np.ones(5, np.float32), slowly)
    other.join()
    np.testing.assert_array_equal(read[0], np.zeros(5))


def test_a_step_that_fails_leaves_a_value() -> None:
    one = variable(np.ones(5, np.float32))

    def failing(now: Array, grad: Array) -> None:
        raise RunError("no")

    with pytest.raises(RunError):
        update([one], np.ones(5, np.float32), failing)
    np.testing.assert_array_equal(one.read(), np.ones(5))


@pytest.mark.parametrize("size", [3, 11])
def test_a_value_that_nobody_can_copy_stays(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = variable(np.ones(size, np.float32)), variable(np.ones(size, np.float32))
    had = two.read()

    def full(*arguments: object, **options: object) -> Array:
        raise MemoryError

    with monkeypatch.context() as patched, pytest.raises(MemoryError):
        patched.setattr(np, "array", full)
        update([one, two], np.ones(size, np.float32), lambda now, other, grad: None)
    np.testing.assert_array_equal(one.read(), np.ones(size))
    assert two.read() is had


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_comes_when_all_values_are_new(at: int) -> None:
    one, slot = variable(np.ones(11, np.float32)), variable(np.ones(11, np.float32))
    before, blocks = signal.getsignal(signal.SIGINT), []

    def step(now: Array, held: Array, grad: Array) -> None:
        held -= grad
        if len(blocks) == at:
            signal.raise_signal(signal.SIGINT)
        blocks.append(now.size)
        now -= held + grad

    with pytest.raises(KeyboardInterrupt):
        update([one, slot], np.ones(11, np.float32), step)
    assert blocks == [4, 4, 3]
    np.testing.assert_array_equal(one.read(), np.zeros(11))
    np.testing.assert_array_equal(slot.read(), np.zeros(11))
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_a_small_update_leaves_the_old_values() -> None:
    one = variable(np.ones(3, np.float32))

    def step(now: Array, grad: Array) -> None:
        now -= grad
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        update([one], np.ones(3, np.float32), step)
    np.testing.assert_array_equal(one.read(), np.ones(3))


def test_another_thread_is_not_interrupted() -> None:
    one, errors = variable(np.ones(5, np.float32)), []

    def run() -> None:
        try:
            update([one], np.ones(5, np.float32), subtract)
        except ValueError as error:  # a thread cannot set what handles signals
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not errors
    np.testing.assert_array_equal(one.read(), np.zeros(5))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no timer that signals")
@pytest.mark.usefixtures("interruptible")
def test_a_training_that_ctrl_c_ends_anywhere_has_whole_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise_updates, "BLOCK", 1 << 12)
    graph = parse("""
        w = VariableV2(dtype=float, shape=[400000])
        sizes = Const(int32 [400000])
        zero = Const(float 0)
        zeros = Fill(sizes, zero, T=float, index_type=int32)
        init = Assign(w, zeros, T=float)
        one = Const(float 1)
        ones = Fill(sizes, one, T=float, index_type=int32)
        step = ApplyGradientDescent(w, one, ones, T=float)
    """)
    before = signal.signal(signal.SIGALRM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    interrupted = 0
    try:
        with Session(graph) as session:
            session.run([], targets=["init"])
            session.run([], targets=["step"])
            for number in range(40):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 2e-4 * (1 + number % 10))
                    for _ in range(1000):
                        session.run([], targets=["step"])
                except KeyboardInterrupt:
                    interrupted += 1
                values = session.variables()["w"]
                assert (values == values[0]).all()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 20


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_training_is_the_same_without_the_pass(optimizer: str, tmp_path: Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,3])
        w = Const(float [[0.5, 1.0], [1.5, 2.0], [-1.0, 0.25]])
        y = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
    """)
    graph = pocketgraph.add_loss(pocketgraph.trainable(graph, "w"), "y", "mean_squared_error")
    graph = pocketgraph.minimize(graph, graph.outputs[0], optimizer, learning_rate=0.1)
    feeds = {"x": np.ones((2, 3), np.float32), "labels": np.zeros((2, 2), np.float32)}
    found, places = [], []
    for without in ([], ["updates_in_place"]):
        with Session(graph, without=without, engine="reference") as session:
            session.run([], targets=["init"])
            session.run(list(graph.outputs), feeds)
            held = session._state["variable /w"]
            place = held.read().ctypes.data
            for _ in range(4):
                session.run(list(graph.outputs), feeds)
            places.append(held.read().ctypes.data == place)
            found.append(session.variables()["w"])
    np.testing.assert_array_equal(*found)
    assert places[0], "the pass did nothing"
