"""The engine's front: what it refuses and why, what goes straight through it, and how it runs."""

from __future__ import annotations

import numpy as np
import pytest

from litert.parts import compiled_part
from litert.single_ops import run_graph
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Graph, Node, Shape, const
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.shapes import infer
from pocketgraph.litert import engine
from pocketgraph.litert.part_lowering import Trial
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.program_record import split
from pocketgraph.runtime import Session
from support import assert_close, in_threads, lines_taken

FLOAT = DType.named("float")


def reasons(text: str, **shapes: tuple[int, ...]) -> dict[str, str]:
    graph = parse(text)
    inferred = infer(graph, {f"{name}:0": (FLOAT, Shape(shape)) for name, shape in shapes.items()})
    return Trial(graph, [node for node in graph if node.op != "Placeholder"], (), inferred, ()).reasons


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x = Placeholder(dtype=float)\ny = Relu(x, T=float)", "only known when running"),
        ("x = Placeholder(dtype=float, shape=[?,3])\ny = Relu(x, T=float)", "only known when running"),
        ("x = Placeholder(dtype=double, shape=[3])\ny = Relu(x, T=double)", "does not compute with double"),
        ("x = Placeholder(dtype=string, shape=[3])\ny = Identity(x, T=string)", "does not compute with string"),
        ("x = Placeholder(dtype=float, shape=[0,3])\ny = Relu(x, T=float)", "empty tensors"),
        ("x = Placeholder(dtype=float, shape=[3])\ny = Where(x, T=float)", "Where has no LiteRT lowering"),
        ("x = Placeholder(dtype=float, shape=[3])\ny = Relu(T=float)", "the Relu takes 1 input (features), not 0"),
        (
            "x = Placeholder(dtype=float, shape=[4])\ns = Placeholder(dtype=int32, shape=[2])\n"
            "z = Const(int32 [0])\ny = Tile(x, s, T=float, Tmultiples=int32)",
            "must be known beforehand",
        ),
        (
            "x = Placeholder(dtype=float, shape=[1,4,4,3])\nw = Const(float[3,3,3,2] 0.5)\n"
            'y = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME", data_format="NCHW_VECT_C")',
            "NCHW_VECT_C",
        ),
        (
            "x = Placeholder(dtype=float, shape=[1,4,4,3])\nw = Const(float[3,3,3,2] 0.5)\n"
            'y = Conv2D(x, w, T=float, strides=list[2,1,1,1], padding="SAME")',
            "over batch or channels",
        ),
        (
            "x = Placeholder(dtype=float, shape=[2,4])\nk = Const(int32 2)\ny = TopKV2(x, k, T=float, sorted=false)",
            "in no order",
        ),
        ("x = Placeholder(dtype=float, shape=[4])\ny = Cast(x, SrcT=float, DstT=uint16)", "does not convert to uint16"),
    ],
)
def test_reasons(text: str, part: str) -> None:
    assert part in reasons(text)["y"]


@pytest.mark.parametrize(
    "attributes",
    [
        "",
        'T=float, strides=list[1,1], padding="SAME"',
        'T=float, strides=list[1,1,1,1], padding="MAYBE"',
        'T=float, strides=list[0,0,0,0], padding="SAME"',
        "T=float, strides=3, padding=4",
        'T=float, strides=list[1,1,1,1], padding="EXPLICIT", explicit_paddings=list[1,2]',
        'T=float, strides=list[1,1,1,1], padding="VALID", dilations=list[1,9,9,1]',
    ],
)
def test_a_node_that_contradicts_itself_is_refused(attributes: str) -> None:
    text = (
        "x = Placeholder(dtype=float, shape=[1,4,4,3])\nw = Const(float[3,3,3,2] 0.5)\n"
        f"y = Conv2D(x, w{', ' if attributes else ''}{attributes})"
    )
    assert reasons(text)["y"]


def test_every_reason_is_collected() -> None:
    text = "x = Placeholder(dtype=float, shape=[3])\n" + "\n".join(
        f"n{i} = Betainc(x, x, x, T=float)" for i in range(5)
    )
    assert list(reasons(text)) == [f"n{i}" for i in range(5)]


def test_constants_and_what_follows_from_them_are_never_refused() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[2,3])
        words = Const(string ["a"])
        wide = Const(double [1.0, 2.0])
        narrow = Cast(wide, SrcT=double, DstT=float)
        s = Shape(x, T=float, out_type=int32)
    """
    assert reasons(text) == {}


def test_inputs_and_constants_go_straight_through() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        same = Identity(x, T=float)
        c = Const(float [3.0, 4.0])
        s = Shape(x, T=float, out_type=int32)
        y = Neg(x, T=float)
    """)
    x = np.array([1, 2], np.float32)
    outputs = ["y:0", "same:0", "c:0", "s:0", "y:0"]
    results, _ = run_graph(graph, {"x:0": x}, outputs)
    for actual, expected in zip(results, [-x, x, np.float32([3, 4]), np.int32([2]), -x], strict=True):
        np.testing.assert_array_equal(actual, expected)
    assert len({id(result) for result in results}) == 5
    assert all(not np.shares_memory(result, x) for result in results)


def test_a_graph_that_computes_nothing() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[2])\ny = Identity(x, T=float)")
    x = np.array([1, 2], np.float32)
    results, codes = run_graph(graph, {"x:0": x}, ["y:0"])
    assert codes == []
    np.testing.assert_array_equal(results[0], x)


def test_an_input_that_nothing_depends_on() -> None:
    graph = parse(
        "x = Placeholder(dtype=float, shape=[2])\nz = Placeholder(dtype=int32, shape=[])\ny = Neg(x, T=float)"
    )
    feeds = {"z:0": np.array(7, np.int32), "x:0": np.array([1, 2], np.float32)}
    results, _ = run_graph(graph, feeds, ["y:0"])
    np.testing.assert_array_equal(results[0], [-1, -2])


def test_a_fed_constant_is_not_folded() -> None:
    graph = parse("c = Const(float [1.0])\nd = Neg(c, T=float)\ny = Neg(d, T=float)")
    results, _ = run_graph(graph, {"c:0": np.array([5], np.float32)}, ["y:0"])
    np.testing.assert_array_equal(results[0], [5])
    results, _ = run_graph(graph, {"d:0": np.array([5], np.float32)}, ["y:0"])
    np.testing.assert_array_equal(results[0], [-5])


def test_a_concatenation_of_computed_and_constant_parts() -> None:
    graph = parse("""
        x = Placeholder(dtype=int32, shape=[2,2])
        c = Const(int32 [[7, 8]])
        axis = Const(int32 -2)
        j = ConcatV2(x, c, axis, T=int32, N=2, Tidx=int32)
        y = StopGradient(j, T=int32)
    """)
    x = np.arange(4, dtype=np.int32).reshape(2, 2)
    np.testing.assert_array_equal(run_graph(graph, {"x:0": x}, ["y:0"])[0][0], [[0, 1], [2, 3], [7, 8]])


def segment() -> engine.Executable:
    graph = parse("x = Placeholder(dtype=float, shape=[2,3])\ny = Exp(x, T=float)\nz = Neg(y, T=float)")
    return compiled_part(graph, list(graph), ["x:0"], ["y:0", "z:0"], {"x:0": (FLOAT, (2, 3))}, threads=2)


@pytest.mark.parametrize(
    ("inputs", "part"),
    [
        ([np.zeros((2, 3))], "x:0 must be float32[2, 3], not float64[2, 3]"),
        ([np.zeros((3, 2), np.float32)], "not float32[3, 2]"),
        ([], "takes 1 inputs, not 0"),
    ],
)
def test_wrong_inputs(inputs: list[np.ndarray], part: str) -> None:
    with pytest.raises(RunError) as caught:
        segment().run(inputs)
    assert part in str(caught.value)


def test_results_outlive_the_next_run_and_the_segment() -> None:
    running = segment()
    first = running.run([np.zeros((2, 3), np.float32)])
    second = running.run([np.ones((3, 2), np.float32).T])
    running.close()
    np.testing.assert_array_equal(first[0], np.ones((2, 3)))
    assert_close(second[0], np.full((2, 3), np.e, np.float32))
    with pytest.raises(RunError, match="closed"):
        running.run([np.zeros((2, 3), np.float32)])


def test_threads_may_share_a_segment() -> None:
    running = segment()
    wrong: list[int] = []

    def work(number: int) -> None:
        results = [running.run([np.full((2, 3), number, np.float32)])[0] for _ in range(50)]
        wrong.extend(number for result in results if not np.allclose(result, np.exp(number), rtol=1e-5))

    in_threads(work, [(number,) for number in range(4)])
    assert not wrong


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("FloorDiv", "T=int32"), ("FloorMod", "T=int32"), ("Div", "T=int32")],
)
def test_a_division_by_zero_is_an_error_and_no_crash(op: str, attributes: str) -> None:
    graph = parse(
        "x = Placeholder(dtype=int32, shape=[2])\nd = Placeholder(dtype=int32, shape=[2])\n"
        f"y = {op}(x, d, {attributes})"
    )
    feeds = {"x:0": np.array([1, 2], np.int32), "d:0": np.array([0, 1], np.int32)}
    with pytest.raises(RunError, match="LiteRT failed"):
        run_graph(graph, feeds, ["y:0"])


REVERSED = """
    x = Placeholder(dtype=float, shape=[{batch}, 3, 2])
    n = Placeholder(dtype={kind}, shape=[{batch}])
    y = ReverseSequence(x, n, T=float, Tlen={kind}, seq_dim=1, batch_dim=0)
"""


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("length", [4, -1, 50_000_000])
def test_a_length_beyond_its_sequence_is_an_error_and_no_crash(kind: str, length: int) -> None:
    """LiteRT's own check is of the first length, and what it reads for another one may be nobody's memory."""
    graph = parse(REVERSED.format(batch=2, kind=kind))
    feeds = {"x:0": np.arange(12, dtype=np.float32).reshape(2, 3, 2), "n:0": np.array([3, length], kind)}
    with pytest.raises(RunError, match="out of bounds"):
        run_graph(graph, feeds, ["y:0"])
    feeds["n:0"] = np.array([3, 2], kind)
    (found,), _ = run_graph(graph, feeds, ["y:0"])
    np.testing.assert_array_equal(found, [[[4, 5], [2, 3], [0, 1]], [[8, 9], [6, 7], [10, 11]]])


@pytest.mark.parametrize("length", [4, -1])
def test_a_constant_length_beyond_its_sequence_is_not_lowered(length: int) -> None:
    text = REVERSED.format(batch=2, kind="int32").replace(
        "n = Placeholder(dtype=int32, shape=[2])", f"n = Const(int32 [3, {length}])"
    )
    with pytest.raises(engine.Unsupported, match="a length that is none of 0 to 3"):
        run_graph(parse(text), {"x:0": np.zeros((2, 3, 2), np.float32)}, ["y:0"])


@pytest.mark.parametrize("axis", [3, -1])
def test_sequences_along_an_axis_that_is_not_there_are_not_lowered(axis: int) -> None:
    text = REVERSED.format(batch=2, kind="int32").replace("seq_dim=1", f"seq_dim={axis}")
    feeds = {"x:0": np.zeros((2, 3, 2), np.float32), "n:0": np.array([1, 2], np.int32)}
    with pytest.raises(engine.Unsupported, match=f"sequences along the axis {axis} of"):
        run_graph(parse(text), feeds, ["y:0"])


def test_what_else_an_operator_refuses_names_the_engine_that_says_why() -> None:
    graph = parse("""
        x = Placeholder(dtype=int32, shape=[2])
        d = Placeholder(dtype=int32, shape=[2])
        y = FloorDiv(x, d, T=int32)
    """)
    feeds = {"x:0": np.array([1, 2], np.int32), "d:0": np.array([0, 1], np.int32)}
    with pytest.raises(RunError, match=r"LiteRT failed") as caught:
        run_graph(graph, feeds, ["y:0"])
    assert "engine=reference says which node does not take what was fed" in str(caught.value)


@pytest.mark.parametrize("index", [-1, 3, 2_000_000_000])
def test_an_index_out_of_range_is_an_error_and_no_crash(index: int) -> None:
    graph = parse(
        "x = Placeholder(dtype=float, shape=[3,2])\ni = Placeholder(dtype=int32, shape=[1])\na = Const(int32 0)\n"
        "y = GatherV2(x, i, a, Tparams=float, Tindices=int32, Taxis=int32)"
    )
    feeds = {"x:0": np.zeros((3, 2), np.float32), "i:0": np.array([index], np.int32)}
    with pytest.raises(
        RunError, match=r"out of bounds; node number 0 \(GATHER\) failed .* feed values that the model takes"
    ):
        run_graph(graph, feeds, ["y:0"])


def test_a_scalar_result_is_an_array() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[3])\na = Const(int32 [0])\ny = Sum(x, a, T=float, Tidx=int32)")
    (result,), _ = run_graph(graph, {"x:0": np.ones(3, np.float32)}, ["y:0"])
    assert isinstance(result, np.ndarray)
    assert result.shape == ()


def test_tensors_beyond_reason_are_refused() -> None:
    text = (
        "x = Placeholder(dtype=float, shape=[1])\nm = Const(int32 [2000000000])\n"
        "y = Tile(x, m, T=float, Tmultiples=int32)"
    )
    assert "larger than LiteRT can address" in reasons(text)["y"]


def test_a_loop_of_static_looking_nodes_is_refused() -> None:
    graph = Graph([Node("a", "Neg", ["b"], {"T": FLOAT}), Node("b", "Neg", ["a"], {"T": FLOAT})])
    with pytest.raises(engine.Unsupported):
        engine.compile(graph, list(graph), [], ["a:0"], {}, infer(Graph([const("c", 1.0)])))


@pytest.mark.parametrize("name", ["uint8", "int8", "int16"])
def test_floats_too_large_for_a_small_integer_wrap_around_as_on_the_reference_engine(name: str) -> None:
    x = np.array([-300.7, -256, -1.5, 0, 1.9, 127.5, 128, 255.9, 256, 300, 70000, 2e9], np.float32)
    graph = parse(f"x = Placeholder(dtype=float, shape=[12])\ny = Cast(x, SrcT=float, DstT={name})")
    (actual,), codes = run_graph(graph, {"x:0": x}, ["y:0"])
    assert codes == ["CAST", "CAST"]
    np.testing.assert_array_equal(actual, x.astype(np.int32).astype(name))


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@pytest.mark.parametrize("pads", [((0, 0), (1, 1), (2, 1), (0, 0)), ((0, 1), (0, 3), (1, 0), (2, 2)), ((0, 0),) * 4])
def test_thin_mirrored_borders_are_put_together_from_strips(mode: str, pads: tuple[tuple[int, int], ...]) -> None:
    x = np.arange(2 * 5 * 4 * 3, dtype=np.float32).reshape(2, 5, 4, 3)
    spelled = str([list(pair) for pair in pads])
    text = f"""
        x = Placeholder(dtype=float, shape=[2,5,4,3])
        p = Const(int32 {spelled})
        y = MirrorPad(x, p, T=float, Tpaddings=int32, mode="{mode}")
    """
    (actual,), codes = run_graph(parse(text), {"x:0": x}, ["y:0"])
    assert "MIRROR_PAD" not in codes
    np.testing.assert_array_equal(actual, np.pad(x, pads, mode.lower()))  # type: ignore[call-overload]


def test_wide_mirrored_borders_are_left_to_the_operator() -> None:
    x = np.arange(40, dtype=np.float32)
    text = """
        x = Placeholder(dtype=float, shape=[40])
        p = Const(int32 [[20, 20]])
        y = MirrorPad(x, p, T=float, Tpaddings=int32, mode="SYMMETRIC")
    """
    (actual,), codes = run_graph(parse(text), {"x:0": x}, ["y:0"])
    assert codes == ["MIRROR_PAD"]
    np.testing.assert_array_equal(actual, np.pad(x, 20, "symmetric"))


def test_operation_times_name_the_nodes_and_add_up() -> None:
    text = (
        "x = Placeholder(dtype=float, shape=[1,8,8,3])\nw = Const(float[3,3,3,4] 0.5)\n"
        'c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME")\nr = Relu(c, T=float)\n'
        "a = Const(int32 [1, 2])\ny = Mean(r, a, T=float, Tidx=int32)"
    )
    graph = parse(text)
    running = compiled_part(graph, list(graph), ["x:0"], ["y:0"], {"x:0": (FLOAT, (1, 8, 8, 3))})
    found = running.op_times([np.zeros((1, 8, 8, 3), np.float32)])
    assert found is not None
    times, how = found
    assert "its own profile" in how or "each was timed alone" in how
    assert [(nodes, code) for nodes, code, _ in times] == [(("c", "r"), "CONV_2D"), (("y",), "MEAN")]
    assert all(microseconds >= 0 for _, _, microseconds in times)
    assert sum(microseconds for _, _, microseconds in times) > 0


def test_stderr_is_left_alone(capfd: pytest.CaptureFixture[str]) -> None:
    segment().run([np.zeros((2, 3), np.float32)])
    assert capfd.readouterr() == ("", "")


def test_an_empty_result_keeps_its_type() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,0])
        a = Const(int32 0)
        y = ConcatV2(x, x, a, T=float, N=2, Tidx=int32)
    """)
    (result,), _ = run_graph(graph, {"x:0": np.zeros((1, 0), np.float32)}, ["y:0"])
    assert (result.shape, result.dtype) == ((2, 0), np.float32)


def test_what_is_known_of_many_outputs_is_work_in_proportion_to_them() -> None:
    def lines_of_splitting(count: int) -> int:
        x = Value("x", FLOAT, (2,))
        inputs = [x, *(Value(f"i{n}", FLOAT, (2,)) for n in range(count))]
        made = [Value(f"y{n}", FLOAT, (2,)) for n in range(count)]
        operations = [Operation("NEG", [x], [value]) for value in made]
        outputs = [*made, *inputs[1:], *made]
        program, names = Program(inputs, outputs, operations), [value.name for value in inputs]
        about, _ = split(program, names, ["float32"] * len(names))
        assert about["fed"] == [0]
        assert about["sources"][count - 1 : count + 1] == [("computed", count - 1), ("input", 1)]
        assert about["sources"][2 * count :] == about["sources"][:count]
        return lines_taken(lambda: split(program, names, ["float32"] * len(names)))

    assert lines_of_splitting(1600) < 12 * lines_of_splitting(200)  # 64 times as many pairs


def test_a_part_of_more_operators_than_open_in_time_runs_on_the_reference_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = parse(
        "x = Placeholder(dtype=float, shape=[999, 999])\na = Sin(x, T=float)\nb = Cos(a, T=float)\ny = Sin(b, T=float)"
    )
    monkeypatch.setattr(engine, "MOST_OPERATORS", 2)
    x = np.full((999, 999), -2.0, np.float32)
    with Session(graph) as session:
        assert_close(session.run(["y"], {"x": x})[0], np.sin(np.cos(np.sin(x))))
        told = session.plan(["y"], {"x": x}).reasons
    assert set(told.values()) == {"it would be 3 operators, more than LiteRT opens in time"}
