"""fold_constants: what the original makes of small graphs (TensorFlow 1.15 was asked), and where we mean to differ."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from folding import SUM, fold, lines, wiring
from pocketgraph.graph import Graph, Node, Shape, Tensor, const, opdefs
from pocketgraph.graph.dtype import FLOAT, QUINT8
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.runtime import Session
from pocketgraph.transforms import transform
from pocketgraph.transforms.original.node_hash import hash_order


def test_a_constant_sum_becomes_a_constant() -> None:
    result = fold(SUM, "x", "y")
    assert print_graph(result) == lines("""
        y = Add(x:0, c/_0__cf__0, T=float)
        c/_0__cf__0 = Const(float [4.0, 6.0])
        x = Placeholder(dtype=float, shape=[2])
    """)


def test_an_output_that_is_constant_keeps_its_nodes() -> None:
    assert wiring(fold(SUM, "x", "y,c")) == lines("""
        a = Const()
        b = Const()
        c = Add(a, b)
        y = Add(x:0, c/_0__cf__0)
        c/_0__cf__0 = Const()
        x = Placeholder()
    """)
    assert wiring(fold(SUM, "x", "c")) == lines("""
        a = Const()
        b = Const()
        c = Add(a, b)
        x = Placeholder()
    """)


def test_what_an_output_is_made_of_reads_the_new_constants_too() -> None:
    """The original points every reader of a replaced tensor to the constant, also those that are constant."""
    text = """
        v = Const(float [1, 5])
        axis = Const(int32 0)
        mean = Mean(v, axis, T=float, Tidx=int32)
        stop = StopGradient(mean, T=float)
        away = Sub(v, stop, T=float)
    """
    assert wiring(fold(text, "", "away,mean")) == lines("""
        v = Const()
        axis = Const()
        mean = Mean(v, axis)
        stop = StopGradient(mean/_1__cf__1)
        away = Sub(v, stop)
        mean/_1__cf__1 = Const()
    """)


@pytest.mark.parametrize("parameters", ["(exclude_op=Add)", "(exclude_op=Mul, exclude_op=Add)", "(exclude_node=c)"])
def test_excluded_nodes_stay(parameters: str) -> None:
    assert wiring(fold(SUM, "x", "y", parameters)) == lines("""
        a = Const()
        b = Const()
        c = Add(a, b)
        y = Add(x:0, c)
        x = Placeholder()
    """)


def test_results_over_the_size_limit_are_not_stored_but_what_comes_of_them_is() -> None:
    result = fold(
        """
        x = Placeholder(dtype=float, shape=[?])
        dims = Const(int32 [100])
        value = Const(float 1)
        big = Fill(dims, value, T=float)
        axes = Const(int32 [0])
        e = Neg(big, T=float)
        s = Sum(e, axes, T=float, Tidx=int32)
        y = Add(x, s, T=float)
        sn = Sqrt(big, T=float)
        z = Add(x, sn, T=float)
        """,
        "x", "y,z", "(max_constant_size_in_bytes=100)",
    )  # fmt: skip
    assert wiring(result) == lines("""
        dims = Const()
        value = Const()
        big = Fill(dims, value)
        y = Add(x:0, s/_0__cf__0)
        sn = Sqrt(big)
        z = Add(x:0, sn)
        s/_0__cf__0 = Const()
        x = Placeholder()
    """)
    assert result["s/_0__cf__0"].tensor.numpy() == -100


CONTROL = """
    x = Placeholder(dtype=float, shape=[2])
    w = Identity(x, T=float)
    one = Const(float [1, 1])
    p = PlaceholderWithDefault(one, dtype=float, shape=[2])
    a = Const(float [1, 2], ^w, ^x, ^p)
    b = Const(float [3, 4], ^w, ^x, ^p)
    c = Add(a, b, ^w, ^x, ^p, T=float)
    y = Add(x, c, T=float)
    z = Add(y, p, T=float)
"""


def test_what_a_constant_had_to_wait_for_it_still_waits_for() -> None:
    """A placeholder with default is constant itself, so that nothing waits for it."""
    assert wiring(fold(CONTROL, "x,p", "y")) == lines("""
        w = Identity(x:0)
        p = Placeholder()
        y = Add(x:0, c/_0__cf__0)
        c/_0__cf__0 = Const(^x, ^w)
        x = Placeholder()
    """)


def test_a_placeholder_with_default_is_its_default_unless_fed() -> None:
    assert wiring(fold(CONTROL, "x", "z")) == lines("""
        w = Identity(x:0)
        y = Add(x:0, c/_0__cf__0)
        z = Add(y, p/_1__cf__1)
        c/_0__cf__0 = Const(^x, ^w)
        p/_1__cf__1 = Const()
        x = Placeholder()
    """)
    fed = fold(CONTROL, "x,p", "z")
    assert fed["p"].op == "Placeholder"
    assert fed["p"].inputs == ()
    assert fed["z"].inputs == ("y", "p:0")


def test_denormal_numbers_are_zero_in_arithmetic_and_stay_in_moves() -> None:
    result = fold(
        """
        x = Placeholder(dtype=float, shape=[])
        v = Const(float [1e-40, 1, 1e-30, 1e-40])
        w = Const(float [1, 1, 1e-12, 1e10])
        m = Mul(v, w, T=float)
        one = Const(int32 [1, 4])
        r = Reshape(v, one, T=float, Tshape=int32)
        y = Mul(m, x, T=float)
        z = Mul(r, x, T=float)
        """,
        "x", "y,z",
    )  # fmt: skip
    np.testing.assert_array_equal(result["m/_0__cf__0"].tensor.numpy(), np.float32([0, 1, 0, 0]))
    np.testing.assert_array_equal(result["r/_1__cf__1"].tensor.numpy(), np.float32([[1e-40, 1, 1e-30, 1e-40]]))


def test_default_attributes_are_written_but_only_those_of_tensorflow_1() -> None:
    result = fold(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,1])
        w = Const(float[1,1,1,1] 2.0)
        y = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        s = Split(axis, y, T=float, num_split=1)
        axis = Const(int32 0)
        b = MatMul(m, m, T=float)
        m = Const(float [[1]])
        """,
        "x", "s",
    )  # fmt: skip
    conv = result["y"].attrs
    assert conv["dilations"] == (1, 1, 1, 1)
    assert conv["explicit_paddings"] == ()
    assert conv["data_format"] == b"NHWC"
    newer = [name for name, attr in opdefs.definition("MatMul").attrs.items() if attr.since == opdefs.NEW]
    grads = fold("x = Placeholder(dtype=float)\ny = MatMul(x, x, T=float)", "x", "y")["y"].attrs
    assert newer
    assert not set(newer) & set(grads)


def test_untouched_weights_are_the_same_tensor_and_are_not_read() -> None:
    def read() -> np.ndarray:
        raise AssertionError("the weights were read")

    weights = Tensor(FLOAT, (300, 300), read=read)
    graph = Graph(
        [
            Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((None, 300))}),
            Node("w", "Const", (), {"dtype": FLOAT, "value": weights}),
            Node("w/read", "Identity", ("w",), {"T": FLOAT}),
            Node("y", "MatMul", ("x", "w/read"), {"T": FLOAT}),
        ]
    )
    result = transform(graph, "fold_constants", "x", "y")
    assert [node.name for node in result] == ["y", "w/read/_0__cf__0", "x"]
    assert result["w/read/_0__cf__0"].tensor is weights


def test_quantized_types_stay_what_they_are() -> None:
    graph = Graph(
        [
            Node("x", "Placeholder", (), {"dtype": QUINT8, "shape": Shape((2,))}),
            const("w", [1, 2, 3, 4], QUINT8),
            const("dims", np.int32([2, 2])),
            Node("r", "Reshape", ("w", "dims"), {"T": QUINT8}),
            const("axis", np.int32(0)),
            Node("y", "GatherV2", ("r", "i", "axis"), {"Tparams": QUINT8}),
            Node("i", "Placeholder", (), {"dtype": parse("c = Const(int32 0)")["c"].tensor.dtype}),
        ]
    )
    graph = graph.map_nodes(
        lambda n: (
            n.with_attrs(Tindices=n.attrs.get("Tindices"), Taxis=None)
            if n.name != "y"
            else n.with_attrs(
                Tindices=parse("c = Const(int32 0)")["c"].tensor.dtype,
                Taxis=parse("c = Const(int32 0)")["c"].tensor.dtype,
            )
        )
    )
    result = transform(graph, "fold_constants", "x,i", "y")
    assert result["r/_0__cf__0"].tensor.dtype is QUINT8
    assert result["r/_0__cf__0"].attrs["dtype"] is QUINT8


def test_random_numbers_and_variables_are_not_constant() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[2])
        dims = Const(int32 [2])
        r = RandomUniform(dims, T=int32, dtype=float)
        y = Add(x, r, T=float)
        v = VariableV2(dtype=float, shape=[2])
        z = Add(y, v, T=float)
    """
    assert [node.name for node in fold(text, "x", "z")] == ["dims", "r", "y", "v", "z", "x"]


def test_a_loop_stays_and_its_constant_parts_are_folded() -> None:
    text = """
        x = Placeholder(dtype=int32, shape=[])
        enter = Enter(x, T=int32, frame_name="f")
        merge = Merge(enter, next, T=int32, N=2)
        a = Const(int32 2)
        b = Const(int32 3)
        product = Mul(a, b, T=int32)
        limit = Enter(product, T=int32, frame_name="f", is_constant=true)
        less = Less(merge, limit, T=int32)
        cond = LoopCond(less)
        switch = Switch(merge, cond, T=int32)
        body = Identity(switch:1, T=int32)
        one = Const(int32 1, ^body)
        add = Add(body, one, T=int32)
        next = NextIteration(add, T=int32)
        exit = Exit(switch, T=int32)
    """
    result = fold(text, "x", "exit")
    assert result["limit"].inputs == ("product/_0__cf__0",)
    assert result["product/_0__cf__0"].tensor.numpy() == 6
    assert {"merge", "next", "one", "switch", "exit"} <= set(result.nodes)
    assert result["one"].inputs == ("^body",)


def test_an_op_without_kernel_stays_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    text = """
        x = Placeholder(dtype=float, shape=[2])
        key = Const(int32 2)
        d = SobolSample(key, key, key, dtype=float)
        y = Add(x, d, T=float)
    """
    with caplog.at_level(logging.WARNING, "pocketgraph.transforms"):
        result = fold(text, "x", "y")
    assert [node.name for node in result] == ["key", "d", "y", "x"]
    assert "no kernel computes the op 'SobolSample' (node 'd')" in caplog.text


def test_nothing_to_fold_still_drops_and_orders() -> None:
    text = """
        y = Add(x, a, T=float)
        unused = Neg(y, T=float)
        a = Const(float 1)
        x = Placeholder(dtype=float, shape=[2])
    """
    assert wiring(fold(text, "x:0", "y:0")) == lines("""
        a = Const()
        y = Add(x:0, a)
        x = Placeholder()
    """)


def test_a_folded_graph_can_be_folded_again() -> None:
    once = fold(SUM, "x", "y,c")
    again = transform(once, "fold_constants", "x", "y,c")
    assert len(again.nodes) == len(set(again.nodes))
    assert again["y"].inputs[1] in again


def test_inputs_come_in_the_order_of_the_originals_hash_set() -> None:
    """What TensorFlow 1.15.5 gave for these lists of inputs."""
    names = [f"in_{i}" for i in range(12)]
    assert hash_order(names) == [f"in_{i}" for i in (11, 10, 9, 8, 7, 1, 0, 2, 3, 6, 4, 5)]
    given = [f"in_{i}" for i in (3, 1, 7, 0, 2, 11, 4, 5, 6, 8, 9, 10)]
    assert hash_order(given) == [f"in_{i}" for i in (10, 9, 8, 5, 6, 4, 1, 3, 7, 2, 11, 0)]
    assert hash_order(names[:3]) == ["in_2", "in_0", "in_1"]
    assert sorted(hash_order(f"n{i}" for i in range(500))) == sorted(f"n{i}" for i in range(500))


def test_the_argument_is_not_changed() -> None:
    graph = parse(SUM, inputs=["x"], outputs=["y"])
    before = print_graph(graph, full=True)
    transform(graph, "fold_constants")
    assert print_graph(graph, full=True) == before


def test_a_long_graph_takes_a_short_time() -> None:
    """40,000 nodes and a deep chain; a quadratic step would take minutes."""
    nodes = [Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((None, 2))}), const("c", np.float32([1, 2]))]
    deep = "c"
    for i in range(10_000):
        nodes.append(Node(f"deep{i}", "Neg", (deep,), {"T": FLOAT}))
        nodes.append(const(f"w{i}", np.float32([i, i])))
        nodes.append(Node(f"read{i}", "Identity", (f"w{i}",), {"T": FLOAT}))
        nodes.append(Node(f"y{i}", "Mul", (f"y{i - 1}" if i else "x", f"read{i}"), {"T": FLOAT}))
        deep = f"deep{i}"
    nodes.append(Node("out", "Add", ("y9999", deep), {"T": FLOAT}))
    result = transform(Graph(nodes), "fold_constants", "x", "out")
    assert len(result) == 20_003


def test_a_list_that_changes_stays_nodes() -> None:
    """A frozen Keras layer reserves a list of a length that is worked out from constants."""
    before = parse("""
        x = Placeholder(dtype=float, shape=[2])
        one = Const(int32 1)
        two = Const(int32 2)
        count = Add(one, two, T=int32)
        shape = Const(int32 [2])
        list = TensorListReserve(shape, count, element_dtype=float, shape_type=int32)
        held = TensorListSetItem(list, one, x, element_dtype=float)
        y = TensorListStack(held, shape, element_dtype=float)
    """)
    x = np.array([1, 2], np.float32)
    for compat, kept in (("fixed", 1), ("original", 0)):
        folded = transform(before, "fold_constants", inputs=["x"], outputs=["y"], compat=compat)
        assert [node.op for node in folded].count("TensorListReserve") == kept
        assert "Add" not in [node.op for node in folded], "what is a number is folded"
        np.testing.assert_array_equal(Session(folded).run("y", {"x": x})[0], [[0, 0], [1, 2], [0, 0]])


@pytest.mark.parametrize(
    ("ends", "narrow", "given", "expected"),
    [
        ((-6.0, 6.0), True, "-0x1.8b754ep-2", "-0x1.83060p-2"),
        ((-6.0, 6.0), False, "0x1.56b6b8p-1", "0x1.51515p-1"),
        ((-0.3, 0.7), True, "-0x1.dfe178p-3", "-0x1.e3c79p-3"),
    ],
)
@pytest.mark.parametrize("op", ["Args", "Vars", "VarsPerChannel"])
def test_fake_quant_has_the_last_bits_of_the_original(
    op: str, ends: tuple[float, float], narrow: bool, given: str, expected: str
) -> None:
    """The numbers are TensorFlow 1.15.5's."""
    attrs = {"num_bits": 8, "narrow_range": narrow}
    values = const("c", np.array([[float.fromhex(given)]], np.float32))
    low, high = (
        const(name, np.array([end] if op == "VarsPerChannel" else end, np.float32))
        for name, end in zip(("low", "high"), ends, strict=True)
    )
    node = Node("q", f"FakeQuantWithMinMax{op}", ["c", "low", "high"], attrs)
    if op == "Args":
        node = node.replace(inputs=["c"], attrs={**attrs, "min": ends[0], "max": ends[1]})
    rest = [
        Node("x", "Placeholder", [], {"dtype": FLOAT, "shape": Shape((1, 1))}),
        Node("y", "Add", ["x", "q"], {"T": FLOAT}),
    ]
    result = transform(Graph([values, low, high, node, *rest]), "fold_constants", ["x"], ["y"], compat="original")
    folded = result["q/_0__cf__0"].tensor.numpy().item()
    assert folded.hex() == float.fromhex(expected).hex()
