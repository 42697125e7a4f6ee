"""Kernels that a user registers: on both engines, in loops and functions, in tools, with errors that say what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pocketgraph
from function_text import with_functions
from loop_text import counted_loop
from pocketgraph.errors import GraphError, MissingKernelError, PocketgraphError, RunError, UsageError
from pocketgraph.graph import DType, Graph, Shape, Tensor, op_spec, opdefs
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.registry import KERNELS
from pocketgraph.kernels.shapes import infer
from pocketgraph.runtime import Session, remove_kernel
from support import in_threads

ENGINES = pytest.mark.parametrize("engine", ["reference", None])


@pytest.fixture(autouse=True)
def _nothing_is_left_registered() -> Iterator[None]:
    yield
    for op in KERNELS.given:
        remove_kernel(op)


def lowered(emit: Any, node: Any) -> None:
    x = emit.require(emit.input(0), "float")
    limit = emit.const(np.float32(node.attr("limit", 1.0)), np.float32)
    emit.result(emit.add("MINIMUM", [emit.add("RELU", [x], x.shape), limit], x.shape))


def clip_to(calls: list[int], **more: Any) -> Callable[..., Any]:
    """Registers Clip01, which notes its calls."""

    @pocketgraph.kernel(
        "Clip01", inputs=["x: T"], outputs=["y: T"], attrs=["T: {float, half} = float", "limit: float = 1.0"], **more
    )
    def clip01(x: Any, *, limit: float) -> Any:
        calls.append(1)
        return np.clip(x, x.dtype.type(0), x.dtype.type(limit))

    return clip01


SMALL = """
    x = Placeholder(dtype=float, shape=[3])
    clipped = Clip01(x, T=float, limit=0.5)
    y = Mul(clipped, clipped, T=float)
"""


@ENGINES
def test_an_op_of_the_users_own(engine: str | None) -> None:
    calls: list[int] = []
    clip_to(calls, shape=lambda call: call.shape(0))
    with Session(parse(SMALL), engine=engine) as session:
        for _ in range(3):
            assert session.run("y", {"x": [-1.0, 0.25, 3.0]})[0].tolist() == [0.0, 0.0625, 0.25]
    assert calls


def network() -> Graph:
    rng = np.random.default_rng(0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 32, 32, 8])
        w = Placeholder(dtype=float, shape=[3, 3, 8, 8])
        first = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
        clipped = Clip01(first, T=float, limit=0.75)
        y = Conv2D(clipped, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
    """)
    from pocketgraph.graph import const

    weights = rng.standard_normal((3, 3, 8, 8)).astype(np.float32)
    return graph.replace([const("w", weights) if node.name == "w" else node for node in graph])


def test_with_a_lowering_it_is_part_of_what_litert_runs() -> None:
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 32, 32, 8)).astype(np.float32)}
    calls: list[int] = []
    clip_to(calls, shape=lambda call: call.shape(0))
    with Session(network()) as session:
        expected = session.run("y", feeds)[0]
    assert calls
    remove_kernel("Clip01")
    calls.clear()
    clip_to(calls, shape=lambda call: call.shape(0), lowering=lowered)
    with Session(network(), engine="litert", check="never") as session:  # a check computes with the kernel
        np.testing.assert_allclose(session.run("y", feeds)[0], expected, rtol=1e-5, atol=1e-5)
    assert not calls


def test_a_lowering_may_give_back_its_output() -> None:
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 32, 32, 8)).astype(np.float32)}
    clip_to([], shape=lambda call: call.shape(0), lowering=lambda emit, _: emit.add("RELU", [emit.input(0)], [2]))
    with Session(network()) as session:
        assert "gives [2] for output 0" in str(session.plan("y", feeds))
    remove_kernel("Clip01")
    calls: list[int] = []

    def minimum(emit: Any, node: Any) -> Any:
        x, most = emit.input(0), emit.const(np.float32(node.attr("limit")), np.float32)
        return emit.add("MINIMUM", [emit.add("RELU", [x], x.shape), most], x.shape)

    clip_to(calls, shape=lambda call: call.shape(0), lowering=minimum)
    with Session(network(), engine="litert", check="never") as session:
        found = session.run("y", feeds)[0]
    assert not calls
    with Session(network(), engine="reference") as session:
        np.testing.assert_allclose(found, session.run("y", feeds)[0], rtol=1e-5, atol=1e-5)


def test_a_lowering_that_refuses_leaves_the_op_to_numpy() -> None:
    def refuses(emit: Any, node: Any) -> None:
        raise emit.unsupported("not today")

    calls: list[int] = []
    clip_to(calls, shape=lambda call: call.shape(0), lowering=refuses)
    with Session(network()) as session:
        session.run("y", {"x": np.ones((1, 32, 32, 8), np.float32)})[0]
        assert "not today" in str(session.plan())
    assert calls


LOOP = """
    n = Placeholder(dtype=int32, shape=[])
    x = Placeholder(dtype=float, shape=[3])
""" + counted_loop("n", "doubled = AddV2(v, v, T=float)\nnext = Clip01(doubled, T=float, limit=4.0)")


@ENGINES
@pytest.mark.parametrize("count", [0, 2, 40])
def test_in_loops(engine: str | None, count: int) -> None:
    clip_to([], shape=lambda call: call.shape(0))
    expected = np.float32([-1, 0.5, 3])
    for _ in range(count):
        expected = np.clip(expected + expected, 0, 4)
    with Session(parse(LOOP), engine=engine) as session:
        for _ in range(2):
            np.testing.assert_array_equal(session.run("y", {"x": [-1.0, 0.5, 3.0], "n": count})[0], expected)


@ENGINES
def test_inside_of_functions(engine: str | None) -> None:
    clip_to([])
    graph = parse("""
        x = Placeholder(dtype=float, shape=[3])
        call = PartitionedCall(x, f=func(inner), Tin=[float], Tout=[float])
        y = Neg(call, T=float)
    """)
    graph = with_functions(graph, ["inner(a: float) -> c:y:0", "c = Clip01(a, T=float, limit=0.5)"])
    with Session(graph, engine=engine) as session:
        assert session.run("y", {"x": [-1.0, 0.25, 3.0]})[0].tolist() == [0.0, -0.25, -0.5]


@ENGINES
def test_lists_several_outputs_texts_and_the_state_of_a_session(engine: str | None) -> None:
    @pocketgraph.kernel("Ends", inputs=["values: N * T"], outputs=["first: T", "last: T", "count: int32"])
    def ends(*values: Any) -> Any:
        return values[0], values[-1], len(values)

    @pocketgraph.kernel("Shout", inputs=["text: string"], outputs=["loud: string"], attrs=["mark: string = '!'"])
    def shout(text: Any, *, mark: str) -> Any:
        return np.array([item.upper() + mark.encode() for item in text.ravel()], object).reshape(text.shape)

    @pocketgraph.kernel("Visits", inputs=[], outputs=["n: int64"], stateful=True)
    def visits(context: Any) -> Any:
        context.state["visits"] = context.state.get("visits", 0) + 1
        return context.state["visits"]

    graph = parse("""
        a = Placeholder(dtype=float, shape=[2])
        t = Placeholder(dtype=string, shape=[2])
        b = Neg(a, T=float)
        e = Ends(a, b, a, b, T=float, N=4)
        loud = Shout(t, mark="?!")
        n = Visits()
    """)
    fetches = ["e:0", "e:1", "e:2", "loud", "n"]
    with Session(graph, engine=engine) as session:
        for times in (1, 2, 3):
            first, last, count, loud, n = session.run(fetches, {"a": [1.0, 2.0], "t": [b"a", b"b"]})
            assert (first.tolist(), last.tolist(), int(count), int(n)) == ([1, 2], [-1, -2], 4, times)
            assert loud.tolist() == [b"A?!", b"B?!"]


def test_wherever_ops_are_looked_up(tmp_path: Path) -> None:
    calls: list[int] = []
    clip_to(calls, shape=lambda call: call.shape(0))
    graph = parse(SMALL)
    assert opdefs.definition("Clip01").attrs["limit"].default == 1.0
    assert infer(graph).shape("y") == Shape((3,))
    assert infer(graph).dtype("clipped").name == "float"
    trained = parse("""
        w = VariableV2(dtype=float, shape=[3])
        read = Identity(w, T=float)
        y = Clip01(read, T=float)
    """)
    frozen = pocketgraph.freeze(trained, "y", {"w": Tensor.from_numpy(np.float32([-1.0, 0.5, 2.0]))})
    assert [node.op for node in frozen] == ["Const", "Identity", "Clip01"]
    known = parse("""
        c = Const(float [-1.0, 0.25, 3.0])
        x = Placeholder(dtype=float, shape=[3])
        clipped = Clip01(c, T=float)
        y = Mul(clipped, x, T=float)
    """)
    folded = pocketgraph.transform(known, "add_default_attributes fold_constants", inputs="x", outputs="y")
    (value,) = (node.tensor.numpy().tolist() for node in folded if node.op == "Const")
    assert value == [0.0, 0.25, 1.0]
    pocketgraph.save(graph, tmp_path / "graph.pb")
    assert ("Clip01", 1) in pocketgraph.summarize(pocketgraph.load(tmp_path / "graph.pb")).op_counts
    with Session(tmp_path / "graph.pb") as session:
        assert session.run("y", {"x": [0.0, 1.0, 2.0]})[0].tolist() == [0.0, 0.25, 0.25]


def test_what_is_stateful_is_not_computed_beforehand() -> None:
    count = iter(range(10))

    @pocketgraph.kernel("Tick", inputs=[], outputs=["n: int32"], stateful=True)
    def tick() -> Any:
        return next(count)

    graph = parse("n = Tick()\n y = Identity(n, T=int32)")
    with Session(graph) as session:
        assert [int(session.run("y")[0]) for _ in range(3)] == [0, 1, 2]


def test_without_a_shape_rule_the_shapes_are_found_in_the_run() -> None:
    @pocketgraph.kernel("Positive", inputs=["x: float"], outputs=["y: float"])
    def positive(x: Any) -> Any:
        return x[x > 0]

    graph = parse("""
        x = Placeholder(dtype=float, shape=[4])
        some = Positive(x)
        y = Relu(some, T=float)
    """)
    assert infer(graph).shape("some") == Shape(None)
    with Session(graph) as session:
        assert session.run("y", {"x": [1.0, -1.0, 2.0, -2.0]})[0].tolist() == [1.0, 2.0]


def test_nothing_of_such_a_graph_is_kept_on_the_disk(tmp_path: Path) -> None:
    model, cache = tmp_path / "net.pb", tmp_path / "cache"
    pocketgraph.save(network(), model)
    feeds = {"x": np.ones((1, 32, 32, 8), np.float32)}
    clip_to([], shape=lambda call: call.shape(0), lowering=lowered)
    with Session(model, cache_dir=str(cache)) as session:
        first = session.run("y", feeds)[0]
    assert not [path for path in cache.rglob("*") if path.is_file() and path.suffix in (".tflite", ".json", ".pb")]
    remove_kernel("Clip01")

    @pocketgraph.kernel("Clip01", inputs=["x: T"], outputs=["y: T"], attrs=["T: type", "limit: float = 1.0"])
    def nothing(x: Any) -> Any:
        return x * np.float32(0)

    with Session(model, cache_dir=str(cache)) as session:
        second = session.run("y", feeds)[0]
    assert first.any()
    assert not second.any()


def test_an_op_of_tensorflows_without_a_kernel() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        y = Batch(x, T=[float], num_batch_threads=1, max_batch_size=1, batch_timeout_micros=0, grad_timeout_micros=0)
    """)
    with pytest.raises(MissingKernelError), Session(graph) as session:
        session.run("y", {"x": [1.0, 2.0]})[0]
    with pytest.raises(UsageError, match="leave out inputs"):
        pocketgraph.kernel("Batch", inputs=["x: float"], outputs=["y: float"])

    @pocketgraph.kernel("Batch")
    def batch(*in_tensors: Any) -> Any:
        return (*in_tensors, np.zeros((1, 3), np.int64), np.int64(0))

    with Session(graph) as session:
        assert session.run("y", {"x": [1.0, 2.0]})[0].tolist() == [1.0, 2.0]
    remove_kernel("Batch")
    assert opdefs.find("Batch") is not None


def test_another_kernel_in_its_place() -> None:
    clip_to([])
    with pytest.raises(UsageError, match="override=True"):
        clip_to([])
    more: list[int] = []
    clip_to(more, override=True)
    with Session(parse(SMALL), engine="reference") as session:
        session.run("y", {"x": [0.0, 0.0, 0.0]})[0]
    assert more


def two(a: Any, b: Any) -> Any:
    return a


def with_size(a: Any, *, size: int) -> Any:
    return a


@pytest.mark.parametrize(
    ("arguments", "function", "said"),
    [
        (("Relu",), None, "computes Relu itself.*another name"),
        (("Mine",), None, "nobody knows the signature of Mine.*inputs="),
        (("Mine", "x: float", ["y: float"]), None, "not a list"),
        (("a b", ["x: float"], ["y: float"]), None, "cannot be the name of an op"),
        (("Mine", ["x"], ["y: float"]), None, "has 'x'.*NAME: TYPE"),
        (("Mine", ["x: float_ref"], ["y: float"]), None, "reference to a variable"),
        (("Mine", ["x: N * M * T"], ["y: float"]), None, "N \\* M"),
        (("Mine", ["x: T", "x: T"], ["y: T"]), None, "of one name: x, x"),
        (("Mine", ["x: T"], ["y: T"], ["T: int"]), None, "'T' of Mine, the type of 'x', is int"),
        (("Mine", ["x: N * float"], ["y: float"], ["N: float"]), None, "counts 'x', is float"),
        (("Mine", ["x: T"], ["y: T"], ["a: nonsense"]), None, "'a: nonsense'.*NAME: KIND"),
        (("Mine", ["x: T"], ["y: T"], ["a: int = 1.5"]), None, "'a: int = 1.5'"),
        (("Mine", ["x: T"], ["y: T"], ["a: int", "a: int"]), None, "two attributes called 'a'"),
        (("Mine", ["x: T"], ["y: T"], ["T: {float, half} = int32"]), None, "none of those it allows"),
        (("Mine", ["x: T"], ["y: T"]), two, "Mine\\(x: T\\) -> \\(y: T\\) takes 2 inputs, not 1"),
        (("Mine", ["x: T"], ["y: T"]), with_size, "takes the attribute 'size', which Mine does not have"),
        (("Mine", ["x: N * T"], ["y: T"]), two, "as \\*inputs"),
    ],
)
def test_bad_registrations(arguments: tuple[Any, ...], function: Any, said: str) -> None:
    op, *rest = arguments
    signature = dict(zip(("inputs", "outputs", "attrs"), rest, strict=False))
    with pytest.raises((UsageError, GraphError)) as caught:
        pocketgraph.kernel(op, **signature)(function or (lambda x: x))
    assert __import__("re").search(said, f"{caught.value}", 16), f"{caught.value}"
    assert not KERNELS.given
    assert opdefs.find("Mine") is None
    with pytest.raises(UsageError, match="no kernel was registered"):
        remove_kernel("Mine")


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (lambda x: x.astype(np.float64), "gave float64 for output 0, which is float.*float32"),
        (lambda x: (x, x), "gave 2 outputs, its signature has 1"),
        (lambda x: x.fill(0), "read-only"),
        (lambda x: x[5], "Mine"),
    ],
)
@ENGINES
def test_kernels_that_do_not_do_what_they_said(result: Any, said: str, engine: str | None) -> None:
    pocketgraph.kernel("Mine", inputs=["x: float"], outputs=["y: float"])(result)
    graph = parse("x = Placeholder(dtype=float, shape=[2])\n y = Mine(x)")
    with Session(graph, engine=engine) as session, pytest.raises(PocketgraphError) as caught:
        session.run("y", {"x": np.ones(2, np.float32)})[0]
    assert isinstance(caught.value, RunError)
    assert __import__("re").search(said, f"{caught.value}", 16), f"{caught.value}"
    assert "'y'" in str(caught.value)


@ENGINES
def test_what_a_kernel_keeps_is_not_handed_out(engine: str | None) -> None:
    kept = np.ones(3, np.float32)
    again = (kept,)
    for results in (kept, again, kept[:]):
        pocketgraph.kernel("Clip01", inputs=["x: float"], outputs=["y: float"], override=True)(lambda x, r=results: r)
        with Session(parse(SMALL.replace(", T=float, limit=0.5", "")), engine=engine) as session:
            for _ in range(2):
                fetched, y = session.run(["clipped", "y"], {"x": np.zeros(3, np.float32)})
                assert y.tolist() == [1, 1, 1]
                fetched[:] = 5
                assert kept.tolist() == [1, 1, 1]


@ENGINES
def test_an_array_that_a_kernel_made_is_fetched_without_a_copy(engine: str | None) -> None:
    made: list[int] = []

    def fresh(x: Any) -> Any:
        result = x + np.float32(1)
        made.append(result.ctypes.data)
        return result

    pocketgraph.kernel("Clip01", inputs=["x: float"], outputs=["y: float"])(fresh)
    with Session(parse("x = Placeholder(dtype=float, shape=[3])\nclipped = Clip01(x)"), engine=engine) as session:
        assert session.run("clipped", {"x": np.zeros(3, np.float32)})[0].ctypes.data == made[-1]


def test_a_kernel_without_a_return_is_told_of() -> None:
    clip_to([])
    pocketgraph.kernel("Clip01", inputs=["x: float"], outputs=["y: float"], override=True)(lambda x: None)
    graph = parse(SMALL.replace(", T=float, limit=0.5", ""))
    with Session(graph, engine="reference") as session, pytest.raises(RunError, match="gave None for output 0"):
        session.run("y", {"x": np.zeros(3, np.float32)})


def test_a_shape_rule_gives_shapes() -> None:
    clip_to([], shape=lambda call: [3])
    with pytest.raises(UsageError, match=r"the shape rule of Clip01 gives \[3\]"), Session(parse(SMALL)) as session:
        session.run("y", {"x": np.zeros(3, np.float32)})


def unknown_operator(emit: Any, node: Any) -> None:
    x = emit.input(0)
    emit.result(emit.add("CLIP", [x], x.shape))


def no_type(emit: Any, node: Any) -> None:
    x = emit.input(0)
    emit.result(emit.add("RELU", [x], x.shape, "float"))


def wrong_form(code: str, count: int, **options: Any) -> Callable[..., None]:
    """A lowering that gives an operator the input so many times."""

    def lowering(emit: Any, node: Any) -> None:
        x = emit.input(0)
        emit.result(emit.add(code, [x] * count, x.shape, x.dtype, **options))

    return lowering


WRONG_FORMS = {
    "ADD with 1 operand, and it takes 2": wrong_form("ADD", 1, activation=""),
    "ADD with 3 operands, and it takes 2": wrong_form("ADD", 3, activation=""),
    "RELU with 0 operands, and it takes 1": wrong_form("RELU", 0),
    "BATCH_MATMUL with 1 operand, and it takes 2": wrong_form("BATCH_MATMUL", 1),  # killed the process
    "SPLIT without num_splits": wrong_form("SPLIT", 2),  # likewise
    "SPLIT with a first operand that is no axis": wrong_form("SPLIT", 2, num_splits=1),
    "SELECT_V2 with 2 operands, and it takes 3": wrong_form("SELECT_V2", 2),
    "CONV_2D with an operand 0 of shape [3], and it takes 4 dimensions": wrong_form("CONV_2D", 2),
    "ADD with activation='SIGMOID'": wrong_form("ADD", 2, activation="SIGMOID"),
    "ADD with the option factor, and it has activation": wrong_form("ADD", 2, factor=2),
}


def of_type(code: str, dtype: DType) -> Callable[..., None]:
    """A lowering whose one operator is said to give elements of a type."""

    def lowering(emit: Any, node: Any) -> None:
        x = emit.input(0)
        emit.result(emit.add(code, [x, x], x.shape, dtype))

    return lowering


def too_short(emit: Any, node: Any) -> None:
    x = emit.input(0)
    emit.result(emit.add("SUM", [x, emit.const([0], np.int32)], (1,), keep_dims=True))


WRONG_RESULTS = {
    "emits GREATER with a result of float, and it gives bool": of_type("GREATER", FLOAT),
    "emits MUL with a result of int32, and it gives float": of_type("MUL", INT32),
    "gives bool for output 0, its signature float": of_type("GREATER", BOOL),
    "gives [1] for output 0, its shape rule [3]": too_short,
}


@pytest.mark.parametrize("said", WRONG_RESULTS)
@pytest.mark.parametrize("check", ["first", "never"])
def test_a_lowering_with_another_result_is_told_of(said: str, check: str) -> None:
    clip_to([], shape=lambda call: call.shape(0), lowering=WRONG_RESULTS[said])
    with Session(parse(SMALL), check=check) as session:
        assert session.run("y", {"x": np.float32([-1, 0.25, 3])})[0].tolist() == [0, 0.0625, 0.25]
    with pytest.raises(RunError) as raised, Session(parse(SMALL), engine="litert", check=check) as session:
        session.run("y", {"x": np.zeros(3, np.float32)})
    assert f"the lowering of Clip01 {said}" in str(raised.value)


@pytest.mark.parametrize("said", WRONG_FORMS)
def test_an_operator_of_another_form_is_told_of(said: str) -> None:
    calls: list[int] = []
    clip_to(calls, shape=lambda call: call.shape(0), lowering=WRONG_FORMS[said])
    with Session(parse(SMALL)) as session:
        assert session.run("y", {"x": np.float32([-1, 0.25, 3])})[0].tolist() == [0, 0.0625, 0.25]
    assert calls
    with pytest.raises(RunError) as raised, Session(parse(SMALL), engine="litert") as session:
        session.run("y", {"x": np.zeros(3, np.float32)})
    assert f"the lowering of Clip01 emits {said}" in str(raised.value)


def test_what_passes_cannot_make_of_a_lowering_is_told_of() -> None:
    def lowering(emit: Any, node: Any) -> None:
        x = emit.reshape(emit.input(0), (1, 3))
        emit.result(emit.reshape(emit.add("TRANSPOSE", [x, emit.const([1, 5], np.int32)], (3, 1)), (3,)))

    clip_to([], shape=lambda call: call.shape(0), lowering=lowering)
    with pytest.raises(RunError, match="what its lowering emits cannot be compiled: IndexError"):
        Session(parse(SMALL), engine="litert").run("y", {"x": np.zeros(3, np.float32)})


@pytest.mark.parametrize("lowering", [unknown_operator, no_type])
def test_a_lowering_that_fails_leaves_the_op_to_numpy(lowering: Callable[..., None]) -> None:
    calls: list[int] = []
    clip_to(calls, shape=lambda call: call.shape(0), lowering=lowering)
    with Session(parse(SMALL)) as session:
        assert session.run("y", {"x": np.float32([-1, 0.25, 3])})[0].tolist() == [0, 0.0625, 0.25]
    assert calls


def test_many_threads_register_and_run() -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            op = f"Plus{number}"
            pocketgraph.kernel(op, inputs=["x: float"], outputs=["y: float"])(lambda x: x + np.float32(number))
            graph = parse(f"x = Placeholder(dtype=float, shape=[1])\n y = {op}(x)")
            with Session(graph) as session:
                for _ in range(20):
                    assert session.run("y", {"x": [1.0]})[0].tolist() == [1.0 + number]
        except BaseException as error:
            failures.append(error)

    in_threads(work, [(number,) for number in range(8)])
    assert not failures
    assert len(KERNELS.given) == 8


def test_one_op_registered_by_many_threads_at_once_has_one_kernel() -> None:
    outcomes: list[str] = []

    def work() -> None:
        try:
            pocketgraph.kernel("Once", inputs=["x: float"], outputs=["y: float"])(lambda x: x)
            outcomes.append("registered")
        except UsageError:
            outcomes.append("refused")

    in_threads(work, [()] * 8)
    assert sorted(outcomes) == ["refused"] * 7 + ["registered"]


def test_signatures_read_as_they_are_written() -> None:
    found = op_spec.define(
        "Many>Op",
        ["x: T", "rest: N * float", "others: L"],
        ["y: T"],
        [
            "T: {float, half}", "N: int >= 2", "L: list(type) = [float, int32]", "mode: {'a', 'b'} = 'b'",
            "dims: list(int) = [1, 2]", "flag: bool = true", "size: shape = [1, 2]", "kind: type = int8",
        ],
    )  # fmt: skip
    assert op_spec.text_of(found) == "Many>Op(x: T, rest: N * float, others: L) -> (y: T)"
    assert [found.attrs[name].default for name in ("mode", "dims", "flag")] == [b"b", (1, 2), True]
    assert found.attrs["size"].default == Shape((1, 2))
    assert found.attrs["N"].minimum == 2
    assert [dtype.name for dtype in found.attrs["T"].allowed] == ["float", "half"]
