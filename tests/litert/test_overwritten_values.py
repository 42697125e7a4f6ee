"""Programs whose values LiteRT's own kernels overwrote while they were still to be read; the numbers are NumPy's."""

from __future__ import annotations

import itertools
import pathlib

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import pocketgraph
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value, reshaped, with_own_memory
from pocketgraph.runtime import Session

TURNED = (8, 4)


@pytest.mark.parametrize("dtype", ["float", "int32"])
def test_a_value_that_is_read_again_behind_its_reshape_is_not_overwritten(dtype: str, tmp_path: pathlib.Path) -> None:
    """Without the copy LiteRT 2.3 gives a - 2 * b with the memory of b in both, of int32 also beside XNNPACK."""
    graph = parse(f"""
        x = Placeholder(dtype={dtype}, shape=[4,8])
        two = Const({dtype} 2)
        turned = Const(int32 [8,4])
        order = Const(int32 [1,0])
        t = Mul(x, x, T={dtype})
        a = AddV2(t, two, T={dtype})
        b = Reshape(a, turned, T={dtype}, Tshape=int32)
        c = Mul(b, two, T={dtype})
        d = Transpose(c, order, T={dtype}, Tperm=int32)
        y = Sub(a, d, T={dtype})
    """)
    file = str(tmp_path / "model.tflite")
    pocketgraph.export(graph, file, target="tflite", outputs=["y"])
    x = np.arange(32).reshape(4, 8).astype("float32" if dtype == "float" else "int32")
    a = x * x + 2
    for resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        model = Interpreter(file, num_threads=1, experimental_op_resolver_type=resolver)
        (y,) = model.get_signature_runner()(x=x).values()
        np.testing.assert_array_equal(y, a - 2 * a.reshape(TURNED).T)


def test_int16_activations_that_are_read_again_behind_their_reshape_are_not_overwritten(tmp_path: pathlib.Path) -> None:
    """A residual around a group normalization and a sigmoid, in small; it had 11 dB, as a denoising network had."""
    random = np.random.default_rng(7)
    weights = random.normal(size=(8, 8)).astype(np.float32)
    scales = random.uniform(0.5, 2, (8, 1)).astype(np.float32)
    samples = random.normal(size=(16, 4, 8)).astype(np.float32)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[4,8])
        weights = Const(float {weights.tolist()})
        scales = Const(float {scales.tolist()})
        turned = Const(int32 [8,4])
        back = Const(int32 [4,8])
        m = MatMul(x, weights, T=float)
        s = Sigmoid(x, T=float)
        t = Mul(m, s, T=float)
        a = AddV2(t, x, T=float)
        b = Reshape(a, turned, T=float, Tshape=int32)
        c = Mul(b, scales, T=float)
        l = Sigmoid(c, T=float)
        d = Reshape(l, back, T=float, Tshape=int32)
        y = AddV2(a, d, T=float)
    """)
    file = str(tmp_path / "model.tflite")
    pocketgraph.quantize(graph, samples=samples, outputs=["y"], activations="int16").save(file)
    model = Interpreter(file, num_threads=1)
    model.allocate_tensors()
    x = samples.astype(np.float64)
    a = x @ weights / (1 + np.exp(-x)) + x
    expected = a + (1 / (1 + np.exp(-a.reshape(-1, *TURNED) * scales))).reshape(a.shape)
    errors = []
    for sample, each in zip(samples, expected, strict=True):
        model.set_tensor(model.get_input_details()[0]["index"], sample)
        model.invoke()
        errors.append(model.get_tensor(model.get_output_details()[0]["index"]) - each)
    assert 10 * np.log10((expected**2).sum() / np.square(errors).sum()) > 40


def program(*, again: bool = True, twice: bool = False, softmax: bool = False, larger: bool = False) -> Program:
    """t = tanh(x); a = t + s; b = reshape(a); c = b * w, or its softmax; y = a - 1 where a is read ``again``."""
    x, t, a, y = (Value(name, FLOAT, (4, 8)) for name in "xtay")
    b, c = Value("b", FLOAT, TURNED), Value("c", FLOAT, (2, *TURNED) if larger else TURNED)
    one = Value("one", FLOAT, (), Constant.of(np.array(1, np.float32)))
    w = Value("w", FLOAT, c.shape, Constant.of(np.ones(c.shape, np.float32)))
    operations = [
        Operation("TANH", [x], [t]),
        Operation("ADD", [t, one], [a], {"activation": ""}),
        reshaped(a, b, ()),
        Operation("SOFTMAX", [b], [c], {"beta": 1.0}) if softmax else Operation("MUL", [w, b], [c], {"activation": ""}),
        *([Operation("SUB", [a, one], [y], {"activation": ""})] if again else []),
    ]
    extra = [Value("z", FLOAT, (4, 8))] if twice else []
    operations += [Operation("TANH", [t], [z]) for z in extra]
    return Program([x], [c, *([y] if again else []), *extra], operations)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_session_that_never_checks_gives_the_integers(dtype: str) -> None:
    graph = parse(f"""
        x = Placeholder(dtype={dtype}, shape=[4,8])
        u = Placeholder(dtype={dtype}, shape=[8,4])
        two = Const({dtype} 2)
        turned = Const(int32 [8,4])
        order = Const(int32 [1,0])
        t = Mul(x, x, T={dtype})
        a = AddV2(t, two, T={dtype})
        b = Reshape(a, turned, T={dtype}, Tshape=int32)
        c = Mul(b, u, T={dtype})
        d = Transpose(c, order, T={dtype}, Tperm=int32)
        y = Sub(a, d, T={dtype})
    """)
    x = np.arange(32, dtype=dtype).reshape(4, 8)
    u = x.reshape(TURNED)
    a = x * x + 2
    with Session(graph, check="never", engine="litert") as session:
        (y,) = session.run("y", {"x": x, "u": u})
    np.testing.assert_array_equal(y, a - (a.reshape(TURNED) * u).T)


def test_what_the_program_gives_has_memory_of_its_own() -> None:
    for softmax in (False, True):
        made = program(softmax=softmax)
        assert with_own_memory(made) is made


@pytest.mark.parametrize(
    ("given", "copies"),
    [
        ({}, 1),
        ({"softmax": True}, 1),
        ({"again": False}, 0),  # nothing reads a any more
        ({"twice": True}, 0),  # t has another reader, so a has memory of its own
        ({"larger": True}, 0),  # c is larger than b
    ],
)
def test_only_what_would_be_overwritten_is_copied(given: dict[str, bool], copies: int) -> None:
    made = program(**given)
    c = made.outputs[0]
    last = Value("last", FLOAT, c.shape)
    made.operations.insert(4, Operation("TANH", [c], [last]))
    made.outputs[0] = last
    before = [*made.operations]
    written = with_own_memory(made)
    codes = [operation.code for operation in written.operations]
    assert codes.count("MAXIMUM") == copies
    assert made.operations == before
    assert (written is made) == (not copies)
    if copies:
        copying, reader = written.operations[codes.index("MAXIMUM") :][:2]
        assert copying.outputs[0] in reader.inputs
        assert copying.operands[0] not in reader.inputs
        assert with_own_memory(written) is written


def test_scalars_are_never_shared() -> None:
    x, t, a, b, c, y = (Value(name, INT32, ()) for name in "xtabcy")
    operations = [
        Operation("NEG", [x], [t]),
        Operation("ADD", [t, x], [a], {"activation": ""}),
        reshaped(a, b, ()),
        Operation("MUL", [b, x], [c], {"activation": ""}),
        Operation("SUB", [a, c], [y], {"activation": ""}),
    ]
    made = Program([x], [y], operations)
    assert with_own_memory(made) is made


def test_a_chain_in_one_memory_is_looked_through_once() -> None:
    """Each value is looked up a few times, however long the chain is."""
    asked = []

    class Counted(Value):
        def __hash__(self) -> int:
            asked.append(self.name)
            return id(self)

    x, y, *chain = (Counted(f"v{number}", FLOAT, (8,)) for number in range(302))
    operations = [
        Operation("TANH", [x], [chain[0]]),
        *(Operation("ADD", [a, x], [b], {"activation": ""}) for a, b in itertools.pairwise(chain)),
        Operation("TANH", [chain[-1]], [y]),
    ]
    made = Program([x], [y], operations)
    assert with_own_memory(made) is made
    assert len(asked) < 20 * len(operations)
