"""Variables, stacks, TensorArrays and optimizer steps as kernels: values, and what is refused."""

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.registry import Context, evaluate
from pocketgraph.kernels.state.tensor_array import TensorArray
from pocketgraph.kernels.state.variables import Variable
from pocketgraph.runtime import Session

FLOAT, INT32 = DType.named("float"), DType.named("int32")
FLOW = np.float32(0)


def array(size: int = 3, shape: Shape | None = None, **options: bool) -> TensorArray:
    return TensorArray("ta", FLOAT, size, Shape(None) if shape is None else shape, **options)


def vector(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_an_element_is_read_once_by_default() -> None:
    ta = array()
    ta.write(1, vector(1, 2))
    assert ta.read(1).tolist() == [1, 2]
    with pytest.raises(RunError, match=r"'ta': Could not read index 1 twice .*clear_after_read = false"):
        ta.read(1)
    with pytest.raises(RunError, match="index 1 because it has already been read"):
        ta.write(1, vector(1, 2))
    kept = array(clear_after_read=False)
    kept.write(1, vector(1, 2))
    assert kept.read(1) is kept.read(1)


@pytest.mark.parametrize(
    ("index", "value", "problem"),
    [
        (3, vector(1), "not resizeable and size is: 3"),
        (-1, vector(1), "write to index -1"),
        (0, np.array([1]), "value is int64, the array float"),
        (0, vector(1, 2, 3), r"value shape is \[3\] which is incompatible.*\[2\]"),
    ],
)
def test_wrong_writes(index: int, value: np.ndarray, problem: str) -> None:
    with pytest.raises(RunError, match=problem):
        array(shape=Shape((2,))).write(index, value)


def test_an_element_is_written_once_unless_it_is_a_gradient() -> None:
    ta = array()
    ta.write(0, vector(1, 2))
    with pytest.raises(RunError, match="already been written to"):
        ta.write(0, vector(1, 2))
    gradient = ta.gradient("g")
    assert ta.gradient("g") is gradient
    assert ta.gradient("h") is not gradient
    gradient.write(0, vector(1, 2))
    gradient.write(0, vector(10, 20))
    assert gradient.read(0).tolist() == [11, 22]
    ta.write(1, vector(5))
    assert ta.gradient("k").read(1).tolist() == [0]  # the shape of what it is the gradient of


def test_reading_what_was_never_written() -> None:
    assert array(shape=Shape((2,))).read(0).tolist() == [0, 0]
    with pytest.raises(RunError, match="element shape is not fully defined"):
        array(shape=Shape((None,))).read(0)
    with pytest.raises(RunError, match="read from index 3 but array size is: 3"):
        array().read(3)


def test_growing_costs_nothing_for_what_is_not_there() -> None:
    ta = array(0, dynamic=True)
    ta.write(2_000_000_000, vector(1))
    assert ta.size == 2_000_000_001
    with pytest.raises(RunError, match="Size should be >= 0"):
        array(-1)


def op(name: str, *inputs: object, **attrs: object) -> tuple[object, ...]:
    return evaluate(Node("n", name, (), attrs), inputs, Context(Node("n", name)))


def test_gather_scatter_split_concat() -> None:
    ta = array()
    op("TensorArrayScatterV3", ta, np.array([2, 0, 1]), np.arange(6, dtype=np.float32).reshape(3, 2), FLOW)
    (packed,) = op("TensorArrayGatherV3", ta, np.array([0, 2]), FLOW, dtype=FLOAT, element_shape=Shape((2,)))
    assert packed.tolist() == [[2, 3], [0, 1]]
    (none,) = op("TensorArrayGatherV3", ta, np.zeros(0, np.int32), FLOW, dtype=FLOAT, element_shape=Shape((2,)))
    assert none.shape == (0, 2)
    with pytest.raises(RunError, match="element shape <unknown> is not fully defined"):
        op("TensorArrayGatherV3", ta, np.zeros(0, np.int32), FLOW, dtype=FLOAT, element_shape=Shape(None))
    pieces = array()
    op("TensorArraySplitV3", pieces, vector(1, 2, 3, 4), np.array([1, 0, 3]), FLOW)
    joined, lengths = op("TensorArrayConcatV3", pieces, FLOW, dtype=FLOAT, element_shape_except0=Shape(None))
    assert joined.tolist() == [1, 2, 3, 4]
    assert lengths.tolist() == [1, 0, 3]
    assert lengths.dtype == np.int64
    with pytest.raises(RunError, match="do not add up"):
        op("TensorArraySplitV3", array(), vector(1, 2, 3, 4), np.array([1, 1, 1]), FLOW)
    with pytest.raises(RunError, match="2 indices for a value of shape"):
        op("TensorArrayScatterV3", array(), np.array([0, 1]), vector(1, 2, 3), FLOW)
    with pytest.raises(RunError, match="at least vectors"):
        scalars = array(1)
        scalars.write(0, np.float32(1).reshape(()))
        op("TensorArrayConcatV3", scalars, FLOW, dtype=FLOAT)


def test_a_closed_array() -> None:
    ta = array()
    op("TensorArrayCloseV3", ta)
    with pytest.raises(RunError, match="already been closed"):
        ta.read(0)


def test_stacks() -> None:
    (stack,) = op("StackV2", np.int32(2), elem_type=FLOAT)
    for value in (1.0, 2.0):
        assert op("StackPushV2", stack, vector(value))[0].tolist() == [value]
    with pytest.raises(RunError, match="Stack overflow"):
        op("StackPushV2", stack, vector(3.0))
    assert [op("StackPopV2", stack, elem_type=FLOAT)[0].tolist() for _ in range(2)] == [[2.0], [1.0]]
    with pytest.raises(RunError, match="Stack is empty"):
        op("StackPopV2", stack, elem_type=FLOAT)


def variable(value: object) -> Variable:
    made = Variable("v", FLOAT)
    made.assign(np.asarray(value, np.float32))
    return made


def test_what_was_read_does_not_change_with_the_variable() -> None:
    v = variable([1, 2])
    before = v.read()
    op("AssignAdd", v, vector(1, 1))
    assert before.tolist() == [1, 2]
    assert v.read().tolist() == [2, 3]


def test_wrong_assignments() -> None:
    v = variable([1, 2])
    with pytest.raises(RunError, match=r"lhs shape= \[2\] rhs shape= \[3\]"):
        op("Assign", v, vector(1, 2, 3))
    op("Assign", v, vector(1, 2, 3), validate_shape=False)
    with pytest.raises(RunError, match="does not fit"):
        op("AssignAdd", v, np.ones((2, 3), np.float32))
    with pytest.raises(RunError, match="uninitialized value w"):
        op("AssignSub", Variable("w"), vector(1))
    with pytest.raises(RunError, match="the variable has 3 rows"):
        op("ScatterAdd", v, np.array([3]), vector(1))


def test_scatters_add_up_and_the_last_update_wins() -> None:
    v = variable([[1, 1], [2, 2], [3, 3]])
    op("ScatterAdd", v, np.array([0, 2, 0]), np.array([[1, 2], [3, 4], [5, 6]], np.float32))
    assert v.read().tolist() == [[7, 9], [2, 2], [6, 7]]
    op("ResourceScatterUpdate", v, np.array([1, 1]), np.array([[8, 8], [9, 9]], np.float32))
    assert v.read().tolist() == [[7, 9], [9, 9], [6, 7]]
    op("ScatterMul", v, np.array([1]), np.float32(2))
    assert v.read().tolist() == [[7, 9], [18, 18], [6, 7]]


# Two steps from TensorFlow 1.15: var [1, -2], grad [0.5, 0.25] then [-1, 2], learning rate 0.1.
GRADIENTS = (vector(0.5, 0.25), vector(-1.0, 2.0))
RATE = np.float32(0.1)
OPTIMIZERS = {
    "GradientDescent": [1.05, -2.2250001],
    "MomentumFalse": [1.005, -2.2475002],
    "MomentumTrue": [1.0545, -2.4477499],
    "Adagrad": [1.0015508, -2.160046],
    "Adam": [0.9366102, -2.1821463],
    "RMSProp": [1.0255748, -2.220789],
    "Adadelta": [1.0012132, -2.0107489],
}


def test_optimizers_step_as_tensorflow_does() -> None:
    v = variable([1, -2])
    for g in GRADIENTS:
        op("ApplyGradientDescent", v, RATE, g)
    np.testing.assert_allclose(v.read(), OPTIMIZERS["GradientDescent"], rtol=1e-6)
    for nesterov in (False, True):
        v, m = variable([1, -2]), variable([0, 0])
        for g in GRADIENTS:
            op("ApplyMomentum", v, m, RATE, g, np.float32(0.9), use_nesterov=nesterov)
        np.testing.assert_allclose(v.read(), OPTIMIZERS[f"Momentum{nesterov}"], rtol=1e-6)
    v, a = variable([1, -2]), variable([0.1, 0.1])
    for g in GRADIENTS:
        op("ApplyAdagrad", v, a, RATE, g)
    np.testing.assert_allclose(v.read(), OPTIMIZERS["Adagrad"], rtol=1e-6)
    v, m, s = variable([1, -2]), variable([0, 0]), variable([0, 0])
    powers = [np.float32(0.9), np.float32(0.999)]
    for g in GRADIENTS:
        op("ApplyAdam", v, m, s, *powers, RATE, np.float32(0.9), np.float32(0.999), np.float32(1e-8), g)
        powers = [powers[0] * np.float32(0.9), powers[1] * np.float32(0.999)]
    np.testing.assert_allclose(v.read(), OPTIMIZERS["Adam"], rtol=1e-5)
    v, s, m = variable([1, -2]), variable([1, 1]), variable([0, 0])
    for g in GRADIENTS:
        op("ApplyRMSProp", v, s, m, RATE, np.float32(0.9), np.float32(0.5), np.float32(1e-10), g)
    np.testing.assert_allclose(v.read(), OPTIMIZERS["RMSProp"], rtol=1e-6)
    v, a, u = variable([1, -2]), variable([0, 0]), variable([0, 0])
    for g in GRADIENTS:
        op("ApplyAdadelta", v, a, u, np.float32(1.0), np.float32(0.95), np.float32(1e-6), g)
    np.testing.assert_allclose(v.read(), OPTIMIZERS["Adadelta"], rtol=1e-5)


def test_a_variable_shared_by_name_is_one() -> None:
    graph = parse("""
        a = VarHandleOp(dtype=float, shape=[], shared_name="same")
        b = VarHandleOp(dtype=float, shape=[], shared_name="same")
        one = Const(float 1.5)
        set = AssignVariableOp(a, one, dtype=float)
        get = ReadVariableOp(b, ^set, dtype=float)
        there = VarIsInitializedOp(b)
    """)
    session = Session(graph)
    assert not session.run("there")[0]
    assert session.run("get")[0] == 1.5
    with pytest.raises(RunError, match=r"'b:0' is a Variable and cannot be fetched.*fetch what reads it"):
        session.run("b")
    assert session.run("there")[0]


def test_a_chosen_variable_can_be_written_whichever_it_is() -> None:
    graph = parse("""
        which = Placeholder(dtype=int32, shape=[])
        one = Const(float 1)
        a = VariableV2(dtype=float, shape=[])
        b = VariableV2(dtype=float, shape=[])
        set_a = Assign(a, one, T=float)
        set_b = Assign(b, one, T=float)
        chosen = RefSelect(which, a, b, N=2, T=float)
        more = AssignAdd(chosen, one, T=float)
    """)
    for which, expected in ((0, [2.0, 1.0]), (1, [1.0, 2.0])):
        with Session(graph) as session:
            session.run([], targets=["set_a", "set_b"])
            session.run([], {"which": which}, targets=["more"])
            assert [float(value) for value in session.run(["a", "b"])] == expected


KEEPERS = {
    "a queue": """
        q = FIFOQueueV2(component_types=[{0}], shapes=[], capacity=9, container="", shared_name="q")
        put = QueueEnqueueV2(q, x, Tcomponents=[{0}], timeout_ms=-1)
        got = QueueDequeueV2(q, component_types=[{0}], timeout_ms=-1)
    """,
    "a staging area": """
        put = Stage(x, dtypes=[{0}], capacity=0, memory_limit=0, container="", shared_name="s")
        got = Unstage(dtypes=[{0}], capacity=0, memory_limit=0, container="", shared_name="s")
    """,
    "a variable": """
        v = VarHandleOp(dtype={0}, shape=[2], shared_name="v", container="")
        put = AssignVariableOp(v, x, dtype={0})
        got = ReadVariableOp(v, dtype={0})
    """,
    "a table": """
        t = MutableHashTableV2(key_dtype=int64, value_dtype={0}, container="", shared_name="t", \
            use_node_name_sharing=false)
        keys = Const(int64 [3, 4])
        none = Const({0} {1})
        put = LookupTableInsertV2(t, keys, x, Tin=int64, Tout={0})
        got = LookupTableFindV2(t, keys, none, Tin=int64, Tout={0})
    """,
}


@pytest.mark.parametrize("keeper", KEEPERS)
@pytest.mark.parametrize("kind", ["float", "string"])
def test_what_is_kept_is_not_the_callers_array(keeper: str, kind: str) -> None:
    placeholder = f"x = Placeholder(dtype={kind}, shape=[2])"
    graph = parse(placeholder + KEEPERS[keeper].format(kind, '""' if kind == "string" else "0.0"))
    given = np.array([b"a", b"b"], object) if kind == "string" else vector(1, 2)
    first, other = given.copy(), given[::-1].copy()
    with Session(graph) as session:
        for _ in range(3):
            session.run([], {"x": given}, targets=["put"])
            given[:] = other
            assert session.run("got")[0].tolist() == first.tolist()
            given[:] = first
