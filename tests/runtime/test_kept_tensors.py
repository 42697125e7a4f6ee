"""What a session keeps from run to run is its own: neither what was fed nor what was fetched changes it afterwards."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import DType, Node, Shape
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import Context, evaluate
from pocketgraph.runtime import Session

FED = """
    x = Placeholder(dtype=float, shape=[2, 2])
    z = AddV2(x, x, T=float)
"""
QUEUE = "q = {}(component_types=[float], shapes=[{}], capacity=10)\n"
AREA = 'dtypes=[float, float], shared_name="s", capacity=4, memory_limit=0'
TABLE = """
    keys = Const(int64[2] [5, 6])
    other = Const(float[2] [0, 0])
    put = LookupTableInsertV2(t, keys, z, Tin=int64, Tout=float)
    got = LookupTableFindV2(t, keys, other, Tin=int64, Tout=float)
"""
LIST = """
    sizes = Const(int32[1] [2])
    list = TensorListFromTensor(z, sizes, element_dtype=float, shape_type=int32)
    v = VarHandleOp(dtype=variant, shape=[], shared_name="v")
    put = AssignVariableOp(v, list, dtype=variant)
    read = ReadVariableOp(v, dtype=variant)
    got = TensorListStack(read, sizes, element_dtype=float, num_elements=2)
"""
KEEPERS = {
    "queue": QUEUE.format("FIFOQueueV2", "[2, 2]")
    + "put = QueueEnqueueV2(q, z, Tcomponents=[float])\ngot = QueueDequeueV2(q, component_types=[float])",
    "queue of rows": QUEUE.format("RandomShuffleQueueV2", "[2]")
    + "put = QueueEnqueueManyV2(q, z, Tcomponents=[float])\nn = Const(int32 2)\n"
    + "rows = QueueDequeueManyV2(q, n, component_types=[float])\n"
    + "axis = Const(int32 1)\nall = Const(int32 0)\ngot = Sum(rows, axis, T=float, Tidx=int32, keep_dims=true)",
    "staging area": f"put = Stage(z, x, {AREA})\ngot = Unstage({AREA})",
    "map": "key = Const(int64 1)\nat = Const(int32[2] [0, 1])\n"
    + f"put = MapStage(key, at, z, x, fake_dtypes=[float, float], {AREA})\ngot = MapUnstage(key, at, {AREA})",
    "barrier": 'b = Barrier(component_types=[float], shapes=[[2]], shared_name="b", capacity=-1)\n'
    + 'keys = Const(string[2] ["a", "b"])\nput = BarrierInsertMany(b, keys, z, T=float, component_index=0)\n'
    + "n = Const(int32 2)\ntaken = BarrierTakeMany(b, n, component_types=[float])\ngot = Identity(taken:2, T=float)",
    "table": 't = MutableHashTableOfTensorsV2(key_dtype=int64, value_dtype=float, value_shape=[2], shared_name="t")'
    + TABLE,
    "dense table": "none = Const(int64 -1)\ngone = Const(int64 -2)\n"
    + "t = MutableDenseHashTableV2(none, gone, key_dtype=int64, value_dtype=float, value_shape=[2])"
    + TABLE,
    "session handle": "handle = GetSessionHandle(z, T=float)\nname = VariableV2(dtype=string, shape=[])\n"
    + "put = Assign(name, handle, T=string)\ngot = GetSessionTensor(name, dtype=float)",
    "list in a variable": LIST,
}
X = np.array([[1, 2], [3, 4]], np.float32)


@pytest.mark.parametrize("keeper", KEEPERS)
@pytest.mark.parametrize("engine", [None, "reference"])
def test_what_was_fetched_is_the_callers(keeper: str, engine: str | None) -> None:
    with Session(parse(FED + KEEPERS[keeper]), engine=engine) as session:
        fed = X.copy()
        (fetched,) = session.run("z", {"x": fed}, targets="put")
        fetched[...] = fed[...] = -1
        (got,) = session.run("got")
        expected = np.sort((2 * X).sum(1, keepdims=True), 0) if keeper == "queue of rows" else 2 * X
        np.testing.assert_array_equal(np.sort(got, 0), expected)


@pytest.mark.parametrize("keeper", KEEPERS)
def test_what_was_fed_is_the_callers(keeper: str) -> None:
    with Session(
        parse((FED + KEEPERS[keeper]).replace("z = AddV2(x, x, T=float)", "z = Identity(x, T=float)"))
    ) as session:
        fed = X.copy()
        session.run([], {"x": fed}, targets="put")
        fed[...] = -1
        (got,) = session.run("got")
        expected = np.sort(X.sum(1, keepdims=True), 0) if keeper == "queue of rows" else X
        np.testing.assert_array_equal(np.sort(got, 0), expected)


@pytest.mark.parametrize(
    "text",
    [
        KEEPERS["session handle"],
        f"at = Const(int32 0)\nput = Stage(z, x, {AREA})\ngot = StagePeek(at, {AREA})",
        "key = Const(int64 1)\nat = Const(int32[2] [0, 1])\n"
        f"put = MapStage(key, at, z, x, fake_dtypes=[float, float], {AREA})\ngot = MapPeek(key, at, {AREA})",
    ],
    ids=["session handle", "staging area", "map"],
)
def test_what_is_looked_at_stays_as_it_is(text: str) -> None:
    with Session(parse(FED + text)) as session:
        session.run([], {"x": X}, targets="put")
        for _ in range(2):
            (got,) = session.run("got")
            np.testing.assert_array_equal(got, 2 * X)
            got[...] = -1


def test_variables_that_hold_lists_are_not_listed() -> None:
    with Session(parse(FED + LIST)) as session:
        session.run([], {"x": X}, targets="put")
        assert session.variables() == {}


def test_handles_of_sparse_tensors_are_not_given_twice() -> None:
    text = """
        at = Const(int64[1,1] [[0]])
        value = Const(float[1] [1])
        sizes = Const(int64[1] [2])
        put = AddSparseToTensorsMap(at, value, sizes, T=float, shared_name="m")
        handles = Placeholder(dtype=int64, shape=[?])
        take = TakeManySparseFromTensorsMap(handles, dtype=float, shared_name="m")
    """
    with Session(parse(text)) as session:
        assert session.run("put")[0] == 0
        session.run("take", {"handles": np.array([0])})
        assert session.run("put")[0] == 1  # as TensorFlow 2.21 counts


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads that give way to each other all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(call: Callable[[], Any], times: int, threads: int = 4) -> list[Any]:
    """What a call gives that many threads make so often at once."""
    found: list[Any] = []
    begin = threading.Barrier(threads)

    def work() -> None:
        begin.wait(60)
        found.extend(call() for _ in range(times))

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert len(found) == threads * times, "a call failed"
    return found


@pytest.mark.usefixtures("hurried")
def test_threads_draw_different_numbers() -> None:
    text = "size = Const(int32[1] [2])\ny = RandomUniform(size, T=int32, dtype=float, seed=3, seed2=4)"
    with Session(parse(text), engine="reference") as session:
        drawn = at_once(lambda: session.run("y")[0].tobytes(), 1000)
    assert len(set(drawn)) == len(drawn)


def evaluated(op: str, *inputs: Any, state: dict[str, Any] | None = None, **attrs: Any) -> tuple[Any, ...]:
    """What a kernel gives, with what a session keeps."""
    node = Node("node", op, (), attrs)
    return evaluate(node, inputs, Context(node, state))


def test_no_gradient_of_a_worker_is_lost() -> None:
    class Slow(np.ndarray):  # type: ignore[type-arg]
        """Lets other threads compute while it is added to."""

        def __add__(self, other: Any) -> Any:
            time.sleep(0.02)
            return np.asarray(self) + other

    attrs = {"dtype": DType.named("float"), "shape": Shape([1]), "reduction_type": b"SUM"}
    (accumulator,) = evaluated("ConditionalAccumulator", **attrs)
    one, step = np.ones(1, np.float32), np.int64(0)
    evaluated("AccumulatorApplyGradient", accumulator, step, one)
    accumulator.total = accumulator.total.view(Slow)
    at_once(lambda: evaluated("AccumulatorApplyGradient", accumulator, step, one), 1)
    np.testing.assert_array_equal(evaluated("AccumulatorTakeGradient", accumulator, np.int32(1))[0], [5])


MADE: dict[str, dict[str, Any]] = {
    "FIFOQueueV2": {"component_types": (DType.named("float"),), "capacity": 9},
    "Barrier": {"component_types": (DType.named("float"),)},
    "MutableHashTableV2": {"key_dtype": DType.named("int64"), "value_dtype": DType.named("float")},
    "ConditionalAccumulator": {"dtype": DType.named("float"), "shape": Shape([1]), "reduction_type": b"SUM"},
}


@pytest.mark.parametrize("op", MADE)
def test_threads_that_make_a_resource_share_it(op: str) -> None:
    class Racing(dict[str, Any]):
        """What is kept; all look for it before the first has put it in."""

        def get(self, key: str, default: Any = None) -> Any:
            found = super().get(key, default)
            looked.wait(60)
            return found

    looked, state = threading.Barrier(4), Racing()
    made = at_once(lambda: evaluated(op, state=state, **MADE[op])[0], 1)
    assert len(set(map(id, made))) == 1


def test_a_queue_by_priority_is_filled_and_emptied_at_once() -> None:
    class Pausing:
        """A lock; who has held it lets others have it before going on."""

        lock = threading.Lock()

        def __enter__(self) -> None:
            self.lock.acquire()

        def __exit__(self, *error: object) -> None:
            self.lock.release()
            time.sleep(0.005)

    attrs = {"component_types": (DType.named("float"),), "shapes": (Shape([]),), "capacity": 99}
    (queue,) = evaluated("PriorityQueueV2", state={}, **attrs)
    queue.lock = Pausing()

    takes = iter((False, True))

    def work() -> None:
        is_taking = next(takes)
        for _ in range(20):
            while is_taking and not queue.elements:
                time.sleep(0.001)
            if is_taking:
                evaluated("QueueDequeueV2", queue)
            else:
                evaluated("QueueEnqueueV2", queue, np.array(1), np.array(1, np.float32))

    at_once(work, 1, threads=2)
