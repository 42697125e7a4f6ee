"""How variables and what reads them are rewritten, stated in the text form."""

import numpy as np
import pytest

from function_text import with_functions
from pocketgraph.errors import FreezeError
from pocketgraph.freezing import extract_sub_graph, variables_to_constants
from pocketgraph.graph import DType, Graph, Shape, Tensor
from pocketgraph.graph.text_format import parse, print_graph

PAIR = Tensor.from_numpy(np.array([1.0, 2.0], np.float32))


def frozen(text: str, **values: Tensor) -> str:
    return print_graph(variables_to_constants(parse(text), values or {"v": PAIR}))


def freezes(given: str, expected: str) -> None:
    assert frozen(given) == print_graph(parse(expected))


def test_a_reference_variable() -> None:
    freezes(
        """
            v = VariableV2(container="", dtype=float, shape=[2], shared_name="", _class=["loc:@v"]) @"/cpu:0"
            v/read = Identity(v, T=float, _class=["loc:@v"])
            y = Relu(v/read, T=float)
        """,
        """
            v = Const(float [1.0, 2.0])
            v/read = Identity(v, T=float, _class=["loc:@v"])
            y = Relu(v/read, T=float)
        """,
    )


def test_a_resource_variable_read_under_any_name() -> None:
    freezes(
        """
            v = VarHandleOp(dtype=float, shape=[2], shared_name="v")
            any/name = ReadVariableOp(v, ^c, dtype=float, _class=["loc:@v"])
            c = NoOp()
        """,
        """
            v = Const(float [1.0, 2.0])
            any/name = Identity(v, T=float, _class=["loc:@v"])
            c = NoOp()
        """,
    )


def test_gathers_and_the_shape() -> None:
    freezes(
        """
            v = VarHandleOp(dtype=float, shape=[2])
            i = Placeholder(dtype=int64)
            g = ResourceGather(v, i, Tindices=int64, dtype=float, batch_dims=0, validate_indices=true)
            b = ResourceGather(v, i, Tindices=int64, dtype=float, batch_dims=1)
            n = ResourceGatherNd(v, i, Tindices=int64, dtype=float)
            s = VariableShape(v, out_type=int64)
            t = VariableShape(v)
        """,
        """
            v = Const(float [1.0, 2.0])
            i = Placeholder(dtype=int64)
            g/axis = Const(int64 0)
            g = GatherV2(v, i, g/axis, Tparams=float, Tindices=int64, Taxis=int64)
            b/axis = Const(int64 1)
            b = GatherV2(v, i, b/axis, Tparams=float, Tindices=int64, Taxis=int64, batch_dims=1)
            n = GatherNd(v, i, Tparams=float, Tindices=int64)
            s = Shape(v, T=float, out_type=int64)
            t = Shape(v, T=float, out_type=int32)
        """,
    )


def test_the_axis_finds_a_free_name() -> None:
    text = frozen("""
        v = VarHandleOp(dtype=float, shape=[2])
        i = Placeholder(dtype=int32)
        g/axis = NoOp()
        g = ResourceGather(v, i, Tindices=int32, dtype=float)
    """)
    assert "g = GatherV2(v, i, g/axis_1, " in text


def test_handles_go_through_control_flow() -> None:
    freezes(
        """
            v = VarHandleOp(dtype=float, shape=[2])
            p = Placeholder(dtype=bool)
            e = Enter(v, T=resource, frame_name="f", is_constant=true, _output_shapes=[[]])
            s = Switch(v, p, T=resource)
            a = Identity(s, T=resource)
            m = Merge(a, s:1, N=2, T=resource)
            r = ReadVariableOp(m, dtype=float)
            q = ReadVariableOp(e, dtype=float)
            index = Identity(m:1, T=int32)
        """,
        """
            v = Const(float [1.0, 2.0])
            p = Placeholder(dtype=bool)
            e = Enter(v, T=float, frame_name="f", is_constant=true)
            s = Switch(v, p, T=float)
            a = Identity(s, T=float)
            m = Merge(a, s:1, N=2, T=float)
            r = Identity(m, T=float)
            q = Identity(e, T=float)
            index = Identity(m:1, T=int32)
        """,
    )


def test_a_handle_as_a_loop_variable() -> None:
    text = frozen("""
        v = VarHandleOp(dtype=float, shape=[2])
        c = Placeholder(dtype=bool)
        e = Enter(v, T=resource, frame_name="f")
        m = Merge(e, n, N=2, T=resource)
        s = Switch(m, c, T=resource)
        r = ReadVariableOp(s:1, dtype=float)
        n = NextIteration(s:1, T=resource)
        x = Exit(s, T=resource)
        last = ReadVariableOp(x, dtype=float)
    """)
    assert "resource" not in text
    assert "last = Identity(x, T=float)" in text


def test_a_variable_that_is_left_alone_keeps_its_reads() -> None:
    text = """
        w = VarHandleOp(dtype=float, shape=[2])
        r = ReadVariableOp(w, dtype=float)
        u = VariableV2(dtype=float, shape=[2])
    """
    freezes(text, text)


def test_variables_that_meet() -> None:
    text = """
        v = VarHandleOp(dtype=float, shape=[2])
        w = VarHandleOp(dtype={}, shape=[2])
        m = Merge(v, w, N=2, T=resource)
        r = ReadVariableOp(m, dtype=float)
    """
    assert "r = Identity(m, T=float)" in frozen(text.format("float"), v=PAIR, w=PAIR)
    with pytest.raises(FreezeError, match="node 'm': a variable that is frozen and one that is not"):
        frozen(text.format("float"))
    with pytest.raises(FreezeError, match="variables of types"):
        frozen(text.format("int32"), v=PAIR, w=Tensor.from_numpy(np.zeros(2, np.int32)))


def test_values_are_not_read() -> None:
    def fail() -> np.ndarray:
        raise AssertionError("somebody read the value")

    lazy = Tensor(PAIR.dtype, (2,), read=fail)
    graph = variables_to_constants(parse("v = VariableV2(dtype=float, shape=[2])"), {"v": lazy})
    assert graph["v"].tensor is lazy


def test_an_op_with_a_function_that_nobody_knows() -> None:
    with pytest.raises(FreezeError, match=r"node 'd': a variable is passed to a function by an op \(MapDataset\)"):
        frozen("""
            x = Placeholder(dtype=variant)
            v = VarHandleOp(dtype=float, shape=[2])
            d = MapDataset(x, v, f=func(g))
        """)


def test_a_function_that_is_missing() -> None:
    text = "v = VarHandleOp(dtype=float, shape=[2])\nc = PartitionedCall(v, Tin={}, Tout=[float], f=func(g))"
    with pytest.raises(FreezeError, match="the graph's library has no function 'g'"):
        frozen(text.format("[resource]"))
    with pytest.raises(FreezeError, match="node 'c': its 'Tin' does not fit its inputs"):
        frozen(text.format("[]"))


GRAPH = """
    x = Placeholder(dtype=float)
    w = VariableV2(dtype=float, shape=[2])
    near = Relu(x, T=float, _class=["loc:@w", "loc:@gone"])
    y = Identity(near, ^after, T=float)
    after = NoOp()
    aside = Relu(x, T=float)
"""


def names(graph: Graph) -> list[str]:
    return list(graph.nodes)


def test_the_sub_graph_keeps_order_controls_and_colocated_nodes() -> None:
    assert names(extract_sub_graph(parse(GRAPH), ["y"])) == ["x", "w", "near", "y", "after"]
    assert names(extract_sub_graph(parse(GRAPH), ["aside:0"])) == ["x", "aside"]


def test_an_unknown_output_is_said_with_near_ones() -> None:
    with pytest.raises(FreezeError, match="asid is not in graph; did you mean 'aside'"):
        extract_sub_graph(parse(GRAPH), ["asid"])


def test_an_input_that_does_not_exist() -> None:
    with pytest.raises(FreezeError, match="node 'y': its input 'gone:1' is not in the graph"):
        extract_sub_graph(parse("y = Relu(gone:1, T=float)"), ["y"])


def test_a_loop_that_gives_back_a_variables_value_does_not_call_it_a_scalar() -> None:
    graph = with_functions(
        parse("""
            h = VarHandleOp(dtype=float, shape=[2], shared_name="h", container="")
            n = Const(int32 0)
            loop = While(n, h, T=list[int32,resource], cond=func(more), body=func(round), output_shapes=[[],[]])
            s = VariableShape(loop:1, out_type=int32)
        """),
        [
            "more(i: int32, h: resource) -> more: bool = less:z:0", "less = Less(i, i, T=int32)",
            "round(i: int32, h: resource) -> i: int32 = add:z:0, h: resource = h", "add = AddV2(i, i, T=int32)",
        ],
    )  # fmt: skip
    loop = variables_to_constants(graph, {"h": PAIR})["loop"]
    assert loop.attr("T") == (DType.named("int32"), DType.named("float"))
    assert loop.attr("output_shapes") == (Shape(()), Shape(None))  # TensorFlow refuses `s` of a scalar
