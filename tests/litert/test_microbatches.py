"""Batches of large pictures are computed some at a time where pictures are independent, and only there."""

from __future__ import annotations

import pathlib
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from litert.parts import lowered
from litert.test_optimize_for_latency import convolution, floats, graph
from pocketgraph import Session
from pocketgraph.graph import Graph
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert import program_building
from pocketgraph.litert.running import microbatch_runner
from pocketgraph.litert.running.microbatch_runner import MicrobatchRunner
from pocketgraph.litert.running.runner import Runner
from pocketgraph.litert.sizes import microbatches
from support import assert_close

BATCH = 6
SHAPE = (BATCH, 8, 8, 3)


@pytest.fixture(autouse=True)
def _small_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(microbatches, "LEAST_MICROBATCH_BYTES", 0)
    monkeypatch.setattr(microbatches, "MICROBATCH_READS", 1000)


def network(head: str, **constants: np.ndarray) -> Graph:
    """A convolution ``c`` of six pictures, of 4x4x4 each, and what follows, up to ``y``."""
    return graph(convolution("c", "x", "w", 2) + head, SHAPE, w=floats(3, 3, 3, 4), **constants)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


INDEPENDENT = {
    "elements": ("r = Relu(c, T=float)\ny = Mul(r, k, T=float)\n", {"k": floats(4)}),
    "a residual": ("r = Relu(c, T=float)\ny = AddV2(r, c, T=float)\n", {}),
    "a classifier": (
        "f = Reshape(c, sizes, T=float, Tshape=int32)\nm = MatMul(f, v, T=float)\ny = Softmax(m, T=float)\n",
        {"sizes": ints(-1, 64), "v": floats(64, 5)},
    ),
    "rows of pictures": ("y = Reshape(c, sizes, T=float, Tshape=int32)\n", {"sizes": ints(-1, 4)}),
    "means of pictures": ("y = Mean(c, axes, T=float, Tidx=int32)\n", {"axes": ints(1, 2)}),
    "channels": ("y = ConcatV2(c, c, axis, T=float, N=2, Tidx=int32)\n", {"axis": np.int32(3)}),
    "borders": ("y = Pad(c, p, T=float, Tpaddings=int32)\n", {"p": ints(0, 0, 1, 2, 0, 1, 0, 0).reshape(4, 2)}),
    "turned": ("y = Transpose(c, order, T=float, Tperm=int32)\n", {"order": ints(0, 3, 1, 2)}),
    "a corner": (
        "y = Slice(c, b, s, T=float, Index=int32)\n",
        {"b": ints(0, 1, 0, 2), "s": ints(-1, 2, 3, 1)},
    ),
    "every other pixel": (
        "y = StridedSlice(c, b, e, s, T=float, Index=int32)\n",
        {"b": ints(0, 1, 0, 0), "e": ints(6, 4, 4, 4), "s": ints(1, 2, 2, 1)},
    ),
    "halves": (
        "h = Split(axis, c, T=float, num_split=2)\ny = Sub(h, h:1, T=float)\n",
        {"axis": np.int32(3)},
    ),
    "attention": (
        "f = Reshape(c, sizes, T=float, Tshape=int32)\ny = BatchMatMulV2(f, f, T=float, adj_y=true)\n",
        {"sizes": ints(-1, 16, 4)},
    ),
    "pooled": ('y = MaxPool(c, T=float, ksize=[1,2,2,1], strides=[1,2,2,1], padding="VALID")\n', {}),
}
MIXED = {
    "a mean of pictures": ("y = Mean(c, axes, T=float, keep_dims=true, Tidx=int32)\n", {"axes": ints(0)}),
    "less their mean": (
        "m = Mean(c, axes, T=float, keep_dims=true, Tidx=int32)\ny = Sub(c, m, T=float)\n",
        {"axes": ints(0)},
    ),
    "one behind the other": ("y = ConcatV2(c, c, axis, T=float, N=2, Tidx=int32)\n", {"axis": np.int32(0)}),
    "a number for each": ("y = Mul(c, k, T=float)\n", {"k": floats(BATCH, 1, 1, 1)}),
    "turned": ("y = Transpose(c, order, T=float, Tperm=int32)\n", {"order": ints(1, 0, 2, 3)}),
    "pictures around": ("y = Pad(c, p, T=float, Tpaddings=int32)\n", {"p": ints(1, 1, 0, 0, 0, 0, 0, 0).reshape(4, 2)}),
    "a table of products": (
        "f = Reshape(c, sizes, T=float, Tshape=int32)\ny = MatMul(f, f, T=float, transpose_b=true)\n",
        {"sizes": ints(-1, 64)},
    ),
    "scores of all": ("f = Reshape(c, sizes, T=float, Tshape=int32)\ny = Softmax(f, T=float)\n", {"sizes": ints(-1)}),
    "the first two": (
        "y = Slice(c, b, s, T=float, Index=int32)\n",
        {"b": ints(0, 0, 0, 0), "s": ints(2, -1, -1, -1)},
    ),
    "all but the first": (
        "y = StridedSlice(c, b, e, s, T=float, Index=int32)\n",
        {"b": ints(1, 0, 0, 0), "e": ints(6, 4, 4, 4), "s": ints(1, 2, 2, 1)},
    ),
    "every other one": (
        "y = StridedSlice(c, b, e, s, T=float, Index=int32)\n",
        {"b": ints(0, 0, 0, 0), "e": ints(6, 4, 4, 4), "s": ints(2, 1, 1, 1)},
    ),
    "halves of the batch": (
        "h = Split(axis, c, T=float, num_split=2)\ny = Sub(h, h:1, T=float)\n",
        {"axis": np.int32(0)},
    ),
    "the other way round": ("y = ReverseV2(c, axes, T=float, Tidx=int32)\n", {"axes": ints(0)}),
}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", INDEPENDENT)
def test_parts_of_a_batch_give_what_the_whole_gives(name: str, threads: int, tmp_path: pathlib.Path) -> None:
    head, constants = INDEPENDENT[name]
    model, x = network(head, **constants), floats(*SHAPE)
    expected = Session(model, engine="reference").run("y:0", {"x:0": x})
    for _ in range(2):  # the second session finds it in the cache
        with Session(model, threads=threads, cache_dir=tmp_path) as session:
            assert "the batch is computed in 6 parts" in str(session.plan("y:0", {"x:0": x}))
            for _ in range(3):
                assert_close(session.run("y:0", {"x:0": x}), expected, 1e-5)


def test_threads_share_pictures_of_light_operators_too(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are told of each batch, not of each operator."""
    given: list[int] = []

    def noted(opened: Callable[[], Runner], threads: int, count: int) -> MicrobatchRunner:
        given.append(threads)
        return MicrobatchRunner(opened, threads, count)

    monkeypatch.setattr(microbatch_runner, "MicrobatchRunner", noted)
    model, x = network("y = Relu(c, T=float)\n"), floats(*SHAPE)
    with Session(model, threads=2, cache_dir=tmp_path) as session:
        session.run("y:0", {"x:0": x})
    assert given == [2]


@pytest.mark.parametrize("name", MIXED)
def test_pictures_that_depend_on_each_other_stay_together(name: str, tmp_path: pathlib.Path) -> None:
    head, constants = MIXED[name]
    model, x = network(head, **constants), floats(*SHAPE)
    expected = Session(model, engine="reference").run("y:0", {"x:0": x})
    with Session(model, threads=2, cache_dir=tmp_path) as session:
        assert "parts" not in str(session.plan("y:0", {"x:0": x}))
        assert_close(session.run("y:0", {"x:0": x}), expected, 1e-5)


@pytest.mark.parametrize(
    ("batch", "threads", "weights", "count"),
    [
        (1, 1, 1 << 30, None),
        (32, 1, 1 << 30, 32),
        (32, 2, 1 << 30, 32),
        (8, 2, 100, None),  # weights of 448 bytes: five pictures at least
        (32, 2, 100, 4),
        (7, 2, 1 << 30, None),  # one thread would compute four of seven
        (7, 1, 1 << 30, 7),
        (3, 2, 1 << 30, None),
        (13, 4, 100, None),
    ],
)
def test_there_are_as_many_parts_as_weights_and_threads_allow(
    batch: int, threads: int, weights: int, count: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(microbatches, "MICROBATCH_WEIGHTS", weights)
    shape = (batch, *SHAPE[1:])
    model = graph(convolution("y", "x", "w", 1), shape, w=floats(3, 3, 3, 4))
    program = lowered(model, [model["y"]], ["x:0"], ["y:0"], {"x:0": (FLOAT, shape)})
    found = microbatches.in_microbatches(program, threads)
    assert (found[1] if found else None) == count
    if found and count:
        assert found[0].inputs[0].shape == found[0].outputs[0].shape[:1] + SHAPE[1:]
        assert found[0].inputs[0].shape[0] * count == batch


@pytest.mark.parametrize(("batch", "threads", "count"), [(8, 2, 4), (6, 2, 6), (14, 2, 14), (2, 2, 2), (3, 3, 3)])
def test_weights_are_read_seldom_where_the_batch_allows_it(
    batch: int, threads: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(microbatches, "MICROBATCH_READS", 0.1)  # 448 bytes for 6,912 multiplications: 0.065
    shape = (batch, 10, 10, 3)
    model = graph(convolution("y", "x", "w", 1), shape, w=floats(3, 3, 3, 4))
    program = lowered(model, [model["y"]], ["x:0"], ["y:0"], {"x:0": (FLOAT, shape)})
    found = microbatches.in_microbatches(program, threads)
    assert (found[1] if found else 1) == count


def test_small_pictures_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    model = network("y = Relu(c, T=float)\n")
    nodes = [model["c"], model["y"]]
    program = lowered(model, nodes, ["x:0"], ["y:0"], {"x:0": (FLOAT, SHAPE)})
    assert microbatches.in_microbatches(program, 1) is None


def test_weights_that_each_picture_uses_once_are_read_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of 32 took 2.9 times as long picture by picture, with 59 MB for a product behind one convolution."""
    monkeypatch.setattr(microbatches, "MICROBATCH_READS", 1.0)
    head = "f = Reshape(c, sizes, T=float, Tshape=int32)\ny = MatMul(f, v, T=float)\n"
    counts = {}
    for outputs in (1, 500):  # beside 1,728 multiplications of the convolution
        model = network(head, sizes=ints(-1, 64), v=floats(64, outputs))
        nodes = [model[name] for name in ("c", "f", "y")]
        program = lowered(model, nodes, ["x:0"], ["y:0"], {"x:0": (FLOAT, SHAPE)})
        found = microbatches.in_microbatches(program, 1)
        counts[outputs] = found[1] if found else 1
    assert counts == {1: 6, 500: 1}


@pytest.mark.parametrize("without", ["microbatches", "packed_weights", "direct_packing"])
def test_it_can_be_switched_off(without: str, tmp_path: pathlib.Path) -> None:
    model, x = network("y = Relu(c, T=float)\n"), floats(*SHAPE)
    expected = Session(model, engine="reference").run("y:0", {"x:0": x})
    with Session(model, cache_dir=tmp_path, without=[without]) as session:
        assert ("parts" in str(session.plan("y:0", {"x:0": x}))) == (without == "direct_packing")
        assert_close(session.run("y:0", {"x:0": x}), expected, 1e-5)


def test_a_cache_without_room_does_not_keep_a_batch_from_being_computed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_building.cache, "store", lambda *_, **__: None)
    model, x = network("y = Relu(c, T=float)\n"), floats(*SHAPE)
    expected = Session(model, engine="reference").run("y:0", {"x:0": x})
    with Session(model, threads=2, cache_dir=tmp_path) as session:
        assert_close(session.run("y:0", {"x:0": x}), expected, 1e-5)


def test_a_batch_that_stays_whole_has_one_file_for_all_threads(tmp_path: pathlib.Path) -> None:
    model = graph("y = MatMul(x, w, T=float)\n", (8, 64), w=floats(64, 1024))
    expected = Session(model, engine="reference").run("y:0", {"x:0": (x := floats(8, 64))})
    for threads in (1, 2, 3, 2):
        with Session(model, threads=threads, cache_dir=tmp_path, engine="litert") as session:
            assert_close(session.run("y:0", {"x:0": x}), expected, 1e-5)
    assert len(list(tmp_path.rglob("*.tflite"))) == 1


def test_weights_that_are_packed_once_serve_all_threads(tmp_path: pathlib.Path) -> None:
    shape = (4, 6, 6, 64)
    weights = {"w": floats(3, 3, 64, 512), "v": floats(3, 3, 512, 512)}  # 10 MB, which are packed directly
    model = graph(convolution("a", "x", "w", 3) + convolution("y", "a", "v", 1), shape, **weights)
    x = floats(*shape)
    expected = Session(model, engine="reference").run("y:0", {"x:0": x})
    for _ in range(2):
        with Session(model, threads=2, cache_dir=tmp_path) as session:
            assert_close(session.run("y:0", {"x:0": x}), expected, 1e-5)


def test_what_fails_in_another_thread_is_raised() -> None:
    class Failing:
        def run(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
            if inputs[0][0, 0] == 5:
                raise RuntimeError("of the last one")
            return inputs

        def close(self) -> None:
            pass

    runner = MicrobatchRunner(Failing, threads=3, count=6)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="of the last one"):
        runner.run([np.arange(6).reshape(6, 1)])
    (result,) = runner.run([np.arange(6, 12).reshape(6, 1)])
    assert result.tolist() == [[6], [7], [8], [9], [10], [11]]


def test_an_interruption_waits_for_the_parts_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    main, go_on = threading.current_thread(), threading.Event()
    running: list[str] = []
    join = threading.Thread.join

    class Slow:
        def run(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
            if threading.current_thread() is not main:
                running.append("a part")
                go_on.wait(10)
                running.clear()
            while not running and not go_on.is_set():
                time.sleep(0.001)
            return inputs

        def close(self) -> None:
            pass

    def interrupted(thread: threading.Thread, timeout: float | None = None) -> None:
        monkeypatch.setattr(threading.Thread, "join", join)
        go_on.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    runner = MicrobatchRunner(Slow, threads=2, count=2)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        runner.run([np.zeros((2, 1))])
    assert not running
