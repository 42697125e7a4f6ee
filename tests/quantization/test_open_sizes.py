"""What is said where the sizes of a model's inputs do not fit together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

import pocketgraph
from pocketgraph.errors import UsageError
from pocketgraph.graph.dtype import FLOAT, INT16, INT32
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.litert.sizes.open_batch import with_open_batch
from pocketgraph.litert.sizes.operator_sizes import NotCertain
from pocketgraph.litert.writing import writer
from pocketgraph.quantization import batch_proof
from pocketgraph.quantization.float_program import size_hint
from quantize_nets import float_program


def test_open_sizes_are_named_where_a_shape_is_not_known() -> None:
    """A state of another batch than the steps, as of a recurrent network whose batch is its second size."""
    graph = parse("""
        steps = Placeholder(dtype=float, shape=[?,?,3])
        state = Placeholder(dtype=float, shape=[1,?,4])
        axis = Const(int32 2)
        both = ConcatV2(steps, state, axis, T=float, Tidx=int32, N=2)
        y = Relu(both, T=float)
    """)
    with pytest.raises(UsageError, match="only known when running") as error:
        float_program(graph, ["y"], {"steps": (1, 20, 3), "state": (1, 1, 4)})
    asked = 'shapes={"steps": (N, N, 3), "state": (1, N, 4)}, with numbers for N'
    assert f"say how large its inputs are: {asked}" in str(error.value)
    assert float_program(graph, ["y"], {"steps": (1, 20, 3), "state": (1, 20, 4)}).outputs


@pytest.mark.parametrize(
    ("shape", "asked"), [((None, 8), "(N, 8)"), ((None, None), "(N, N)"), ((2, 8), ""), ((None,), ""), ((), "")]
)
def test_sizes_are_asked_for_where_rows_leave_one_open(shape: tuple[int | None, ...], asked: str) -> None:
    hint = size_hint({"x:0": shape})
    assert hint == (f'say how large its inputs are: shapes={{"x": {asked}}}, with numbers for N' if asked else "")


@pytest.mark.parametrize("form", ["tflite", "pb"])
def test_a_file_of_fixed_sizes_says_those_that_it_took_from_arrays(form: str) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,?,2,3])
        w = Const(float[1,1,3,4] {np.linspace(-1, 1, 12).reshape(1, 1, 3, 4).tolist()})
        y = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="VALID")
    """)
    samples, told = np.random.default_rng(0).normal(size=(12, 5, 2, 3)).astype(np.float32), list[str]()
    pocketgraph.quantize(graph, {"x": samples}, outputs=["y"], form=form, notify=told.append)
    said = [note for note in told if "open" in note]
    assert said == (
        ["the model leaves sizes open, and the file has [1, 5, 2, 3] for 'x' but for the batch, as samples have"]
        * (form != "pb")
    )


@pytest.mark.parametrize("mode", ["static", "dynamic", "weights"])
def test_a_file_of_few_bits_takes_any_batch(mode: str) -> None:
    """Given: a picture's windows, then a layer over all of it. Result: seven pictures give what each gives alone."""
    rng = np.random.default_rng(0)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,6,6,3])
        kernel = Const(float {rng.normal(size=(3, 3, 3, 4)).round(2).tolist()})
        sums = Conv2D(x, kernel, T=float, strides=[1,2,2,1], padding="SAME")
        sizes = Const(int32 [-1, 36])
        rows = Reshape(sums, sizes, T=float, Tshape=int32)
        weights = Const(float {rng.normal(size=(36, 5)).round(2).tolist()})
        y = MatMul(rows, weights, T=float)
    """)
    samples = rng.normal(size=(12, 6, 6, 3)).astype(np.float32)
    made = pocketgraph.quantize(graph, {"x": samples}, outputs=["y"], mode=mode)
    runner = PlainRunner(made.to_bytes(), 1, is_bare=False)
    alone = [runner.run([samples[at : at + 1]])[0] for at in range(7)]
    runner.resize({0: (7, 6, 6, 3)})
    np.testing.assert_allclose(runner.run([samples[:7]])[0], np.concatenate(alone), rtol=1e-5, atol=1e-5)
    assert "the batch is open: several samples give together what each gives alone" in made.report.notes


def test_what_takes_no_open_batch_is_said() -> None:
    """Given: a transposed convolution, which LiteRT tells the batch of its result. Result: it is named, once."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4,4,2])
        kernel = Const(float[3,3,2,2] 0.5)
        all = Shape(x, T=float, out_type=int32)
        none = Const(int32 [0])
        one = Const(int32 [1])
        batch = StridedSlice(all, none, one, one, T=int32, Index=int32)
        rest = Const(int32 [8, 8, 2])
        axis = Const(int32 0)
        sizes = ConcatV2(batch, rest, axis, T=int32, Tidx=int32, N=2)
        y = Conv2DBackpropInput(sizes, kernel, x, T=float, strides=[1,2,2,1], padding="SAME")
    """)
    samples = np.random.default_rng(0).normal(size=(12, 4, 4, 2)).astype(np.float32)
    made = pocketgraph.quantize(graph, {"x": samples}, outputs=["y"])
    assert not any("batch" in note for note in made.notes)
    made.to_bytes()
    said = [note for note in made.report.notes if "batch" in note]
    assert said == ["the batch is fixed: TRANSPOSE_CONV takes no open batch (y)"]


@pytest.mark.parametrize(("start", "count"), [(0, 2), (1, 2), (2, 2), (0, 4)])
def test_a_slice_takes_all_rows_of_an_open_batch(start: int, count: int) -> None:
    """Given: SLICE of one row. Result: the same of three, and of no type that XNNPACK leaves to LiteRT."""
    numbers = [Value("", INT32, (3,), Constant.of(np.array(each, np.int32))) for each in ([0, 0, start], [1, 5, count])]
    x, y = Value("x", FLOAT, (1, 5, 4)), Value("y", FLOAT, (1, 5, count))
    program, shapes = with_open_batch(Program([x], [y], [Operation("SLICE", [x, *numbers], [y])]), [True])
    rows = np.arange(60, dtype=np.float32).reshape(3, 5, 4)
    runner = PlainRunner(b"".join(writer.pieces(program, open_shapes=shapes)), 1, is_bare=False)
    runner.resize({0: rows.shape})
    np.testing.assert_array_equal(runner.run([rows])[0], rows[:, :, start : start + count])
    x, y = Value("x", INT16, x.shape), Value("y", INT16, y.shape)
    with pytest.raises(NotCertain):
        with_open_batch(Program([x], [y], [Operation("SLICE", [x, *numbers], [y])]), [True])


@pytest.mark.parametrize("size", [0, 5])
def test_a_slice_of_nothing_takes_no_open_batch(size: int) -> None:
    """Written from 0 to 0, it would take all of the axis."""
    numbers = [Value("", INT32, (2,), Constant.of(np.array(each, np.int32))) for each in ([0, 0], [1, 0])]
    x, y = Value("x", FLOAT, (1, size)), Value("y", FLOAT, (1, 0))
    with pytest.raises(NotCertain):
        with_open_batch(Program([x], [y], [Operation("SLICE", [x, *numbers], [y])]), [True])


def test_steps_are_behind_an_open_batch() -> None:
    """Given: three steps a row, turned to come first, which a batch of 1 shows no trace of. Result: rows as alone."""
    rng = np.random.default_rng(0)
    taken, kept = (rng.normal(size=(4, 4)).round(2).tolist() for _ in range(2))
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,3,4])
        order = Const(int32 [1, 0, 2])
        turned = Transpose(x, order, T=float, Tperm=int32)
        steps = Unpack(turned, T=float, num=3, axis=0)
        taken = Const(float {taken})
        kept = Const(float {kept})
        a = MatMul(steps, taken, T=float)
        state = Tanh(a, T=float)
        b = MatMul(steps:1, taken, T=float)
        b_kept = MatMul(state, kept, T=float)
        b_sum = Add(b, b_kept, T=float)
        b_state = Tanh(b_sum, T=float)
        c = MatMul(steps:2, taken, T=float)
        c_kept = MatMul(b_state, kept, T=float)
        c_sum = Add(c, c_kept, T=float)
        c_state = Tanh(c_sum, T=float)
        states = Pack(state, b_state, c_state, T=float, N=3, axis=0)
        y = Transpose(states, order, T=float, Tperm=int32)
    """)
    samples = rng.normal(size=(12, 3, 4)).astype(np.float32)
    runner = PlainRunner(pocketgraph.quantize(graph, {"x": samples}, outputs=["y"]).to_bytes(), 1, is_bare=False)
    alone = [runner.run([samples[at : at + 1]])[0] for at in range(5)]
    runner.resize({0: (5, 3, 4)})
    np.testing.assert_allclose(runner.run([samples[:5]])[0], np.concatenate(alone), rtol=1e-5, atol=1e-5)


def test_a_constant_among_packed_rows_leaves_the_batch_fixed() -> None:
    """Given: zeros and a state of a row, packed along the first axis. Result: TensorFlow's, for a row."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float[4,4] 0.25)
        sums = MatMul(x, w, T=float)
        state = Tanh(sums, T=float)
        shape = Shape(state, T=float, out_type=int32)
        nothing = Const(float 0)
        zeros = Fill(shape, nothing, T=float, index_type=int32)
        rows = Pack(zeros, state, T=float, N=2, axis=0)
        order = Const(int32 [1, 0, 2])
        y = Transpose(rows, order, T=float, Tperm=int32)
    """)
    samples = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    runner = PlainRunner(pocketgraph.quantize(graph, {"x": samples}, outputs=["y"]).to_bytes(), 1, is_bare=False)
    (found,) = runner.run([samples[:1]])
    wanted = np.tanh(samples[:1].sum(axis=1, keepdims=True) / 4).repeat(4, axis=1)
    np.testing.assert_allclose(found, np.stack([np.zeros_like(wanted), wanted], axis=1), atol=0.03)


@pytest.mark.parametrize("mode", ["weights", "dynamic"])
@pytest.mark.parametrize("of", ["nothing", "a sample", "alike samples"])
def test_rows_that_are_weighed_against_each_other_leave_the_batch_fixed(of: str, mode: str) -> None:
    """Given: one number a row, less the mean of all rows. Result: a file of one row, with what samples there are."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,1])
        w = Const(float[1,4] 0.25)
        sums = MatMul(x, w, T=float)
        first = Const(int32 [0])
        mean = Mean(sums, first, T=float, Tidx=int32, keep_dims=true)
        y = Sub(sums, mean, T=float)
    """)
    count = {"nothing": 0, "a sample": 1, "alike samples": 4}[of]
    samples = {"x": np.full((count, 1), 0.5, np.float32)} if count else None
    made = pocketgraph.quantize(graph, samples, outputs=["y"], mode=mode)
    assert Interpreter(model_content=made.to_bytes()).get_input_details()[0]["shape_signature"].tolist() == [1, 1]
    assert any(note.startswith("the batch is fixed: ") for note in made.notes)


@pytest.mark.parametrize(("apart", "batch"), [(1, -1), (3, 1)])
def test_rows_may_be_a_code_apart(apart: int, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given: a tanh with a peak of some 0.2 in codes of 1/128, which among others are so many apart."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float[4,4] 0.25)
        sums = MatMul(x, w, T=float)
        y = Tanh(sums, T=float)
    """)

    class Apart(PlainRunner):
        def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
            return [found + apart / 128 * (len(found) > 1) for found in super().run(inputs)]

    monkeypatch.setattr(batch_proof, "PlainRunner", Apart)
    samples = {"x": np.random.default_rng(0).uniform(0, 0.2, size=(12, 4)).astype(np.float32)}
    made = pocketgraph.quantize(graph, samples, outputs=["y"])
    assert Interpreter(model_content=made.to_bytes()).get_input_details()[0]["shape_signature"].tolist() == [batch, 4]
