"""Ops that few graphs hold: printing texts, values that hold values, stand-ins, bounded normal numbers, eigenvalues."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Graph, Node, Shape, const
from pocketgraph.kernels import Context, evaluate

FLOAT, INT64 = DType.named("float"), DType.named("int64")


def run(op: str, *inputs: Any, **attrs: Any) -> tuple[Any, ...]:
    return evaluate(Node("node", op, (), attrs), [np.asarray(v) if np.isscalar(v) else v for v in inputs])


@pytest.mark.parametrize(
    ("stream", "out", "err"),
    [
        (b"stderr", "", "loss: 1\n"), (b"stdout", "loss: 1\n", ""), (b"log(info)", "", "I loss: 1\n"),
        (b"log(warning)", "", "W loss: 1\n"), (b"log(error)", "", "E loss: 1\n"),
    ],
)  # fmt: skip
def test_a_text_is_printed(stream: bytes, out: str, err: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("PrintV2", np.array(b"loss: 1", object), output_stream=stream) == ()
    assert capsys.readouterr() == (out, err)


def test_a_text_ends_as_said_and_goes_into_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    run("PrintV2", np.array(b"a", object), end=b"")
    run("PrintV2", np.array(b"b", object), end=b"|\n")
    assert capsys.readouterr().err == "ab|\n"
    with pytest.raises(RunError, match=r"node 'node': nothing is printed to 'file:///tmp/x'"):
        run("PrintV2", np.array(b"a", object), output_stream=b"file:///tmp/x")
    with pytest.raises(RunError, match="expected to be scalar"):
        run("PrintV2", np.array([b"a"], object))


def test_printing_runs_in_a_session(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [
        Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape([2])}),
        Node("text", "StringFormat", ("x",), {"T": (FLOAT,), "template": b"x = {}", "placeholder": b"{}"}),
        Node("print", "PrintV2", ("text",), {}),
        Node("y", "Neg", ("x", "^print"), {"T": FLOAT}),
    ]
    with Session(Graph(nodes)) as session:
        (found,) = session.run(["y"], {"x": np.float32([1, 2])})
    assert found.tolist() == [-1, -2]
    assert capsys.readouterr().err == "x = [1 2]\n"


SPLITS = np.array([0, 2, 2, 5]), np.array([0, 1, 3, 3, 4, 6])
VALUES = np.arange(6, dtype=np.float32) * 10


def test_a_ragged_tensor_in_one_piece_and_row_by_row() -> None:
    (whole,) = run("RaggedTensorToVariant", *SPLITS, VALUES, RAGGED_RANK=2, batched_input=False)
    assert whole.shape == ()
    back = run("RaggedTensorFromVariant", whole, input_ragged_rank=2, output_ragged_rank=2, Tvalues=FLOAT)
    assert [part.tolist() for part in back] == [SPLITS[0].tolist(), SPLITS[1].tolist(), VALUES.tolist()]
    (rows,) = run("RaggedTensorToVariant", *SPLITS, VALUES, RAGGED_RANK=2, batched_input=True)
    assert rows.shape == (3,)
    joined = {"output_ragged_rank": 2, "Tvalues": FLOAT, "Tsplits": DType.named("int32")}
    back = run("RaggedTensorFromVariant", rows, input_ragged_rank=1, **joined)
    assert [part.tolist() for part in back] == [SPLITS[0].tolist(), SPLITS[1].tolist(), VALUES.tolist()]
    assert back[0].dtype == np.int32
    turned = run("RaggedTensorFromVariant", rows[::-1], input_ragged_rank=-1, **joined)
    assert [part.tolist() for part in turned] == [[0, 3, 3, 5], [0, 0, 1, 3, 4, 6], [30, 40, 50, 0, 10, 20]]
    square = rows[np.array([[0, 2], [1, 1]])]
    deep = run("RaggedTensorFromVariant", square, input_ragged_rank=1, **{**joined, "output_ragged_rank": 3})
    assert [part.tolist() for part in deep] == [[0, 2, 4], [0, 2, 5, 5, 5], [0, 1, 3, 3, 4, 6], VALUES.tolist()]
    with pytest.raises(RunError, match="output_ragged_rank must be equal"):
        run("RaggedTensorFromVariant", rows, input_ragged_rank=1, **{**joined, "output_ragged_rank": 3})
    with pytest.raises(RunError, match="Invalid ragged splits"):
        run("RaggedTensorToVariant", np.array([0, 9]), VALUES, RAGGED_RANK=1, batched_input=True)
    with pytest.raises(RunError, match="doesn't hold a RaggedTensorVariant"):
        run(
            "RaggedTensorFromVariant",
            np.array([b"x"], object),
            input_ragged_rank=0,
            output_ragged_rank=1,
            Tvalues=FLOAT,
        )


def test_ragged_rows_pass_through_a_list_in_a_session() -> None:
    ragged = {"RAGGED_RANK": 1, "Tvalues": FLOAT, "Tsplits": INT64, "batched_input": True}
    variant = DType.named("variant")
    nodes = [
        const("splits", np.array([0, 2, 2, 3])), const("values", np.float32([1, 2, 3])),
        const("none", np.zeros(0, np.int32)), const("place", np.int32(2)),
        Node("rows", "RaggedTensorToVariant", ("splits", "values"), ragged),
        Node("list", "TensorListFromTensor", ("rows", "none"), {
            "element_dtype": variant, "shape_type": DType.named("int32")}),
        Node("row", "TensorListGetItem", ("list", "place", "none"), {"element_dtype": variant}),
        Node("back", "RaggedTensorFromVariant", ("row",), {
            "input_ragged_rank": 0, "output_ragged_rank": 0, "Tvalues": FLOAT, "Tsplits": INT64}),
        Node("whole", "RaggedTensorFromVariant", ("rows",), {
            "input_ragged_rank": 0, "output_ragged_rank": 1, "Tvalues": FLOAT, "Tsplits": INT64}),
    ]  # fmt: skip
    with Session(Graph(nodes)) as session:
        row, splits, values = session.run(["back:0", "whole:0", "whole:1"])
    assert (row.tolist(), splits.tolist(), values.tolist()) == ([3], [0, 2, 2, 3], [1, 2, 3])


def test_optionals_maps_and_composites() -> None:
    (some,) = run("OptionalFromValue", np.float32(1), np.array([2]))
    (nothing,) = run("OptionalNone")
    assert [run("OptionalHasValue", v)[0].tolist() for v in (some, nothing)] == [True, False]
    shapes = {"output_types": (FLOAT, INT64), "output_shapes": (Shape([]), Shape([1]))}
    assert [v.tolist() for v in run("OptionalGetValue", some, **shapes)] == [1, [2]]
    with pytest.raises(RunError, match="does not have a value"):
        run("OptionalGetValue", nothing, **shapes)
    (table,) = run("EmptyTensorMap")
    for key, value in ((1, 10.0), (2, 20.0), (1, 11.0)):
        (table,) = run("TensorMapInsert", table, np.array(key), np.float32(value))
    assert run("TensorMapSize", table)[0].tolist() == 2
    assert run("TensorMapLookup", table, np.array(1))[0].tolist() == 11
    assert sorted(run("TensorMapStackKeys", table, key_dtype=INT64)[0].tolist()) == [1, 2]
    (less,) = run("TensorMapErase", table, np.array(1))
    assert [run("TensorMapHasKey", t, np.array(1))[0].tolist() for t in (table, less)] == [True, False]
    for op in ("TensorMapLookup", "TensorMapErase"):
        with pytest.raises(RunError, match="non-existent"):
            run(op, less, np.array(1))
    (whole,) = run("CompositeTensorVariantFromComponents", np.array([1]), np.float32(2), metadata=b"m")
    parts = run("CompositeTensorVariantToComponents", whole, metadata=b"m", Tcomponents=(INT64, FLOAT))
    assert [part.tolist() for part in parts] == [[1], 2]
    with pytest.raises(RunError, match="2 tensor components; expected 1"):
        run("CompositeTensorVariantToComponents", whole, metadata=b"m", Tcomponents=(INT64,))


def test_time_locks_and_switches_without_effect() -> None:
    before = time.time()
    assert before <= float(run("Timestamp")[0]) <= time.time()
    node = Node("mutex", "MutexV2", (), {})
    context = Context(node)
    (mutex,) = evaluate(node, (), context)
    assert evaluate(node, (), context)[0] is mutex
    (held,) = run("MutexLock", mutex)
    assert run("ConsumeMutexLock", held) == ()
    assert run("DisableCopyOnRead", mutex) == ()


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (-8, 8), (0.5, 0.6), (3, 9), (-9, -4), (6, np.inf), (-0.1, np.inf)])
def test_bounded_normal_numbers(low: float, high: float) -> None:
    """Mean and deviation of normal numbers between two bounds, by integrating the density."""
    arguments = [np.array(v, np.float64) for v in ((0.0,), (1.0,), (low,), (high,))]
    node = Node("n", "ParameterizedTruncatedNormal", (), {"dtype": DType.named("double"), "seed": 1})
    (drawn,) = evaluate(node, [np.array([1, 20000]), *arguments])
    assert (drawn >= low).all()
    assert (drawn <= high).all()
    grid = np.linspace(max(low, -10), min(high, 12), 200001)
    density = np.exp(-(grid**2) / 2 + min(grid**2) / 2)
    mean = (grid * density).sum() / density.sum()
    deviation = np.sqrt(((grid - mean) ** 2 * density).sum() / density.sum())
    assert abs(drawn.mean() - mean) < 0.03 * deviation
    assert abs(drawn.std() - deviation) < 0.03 * deviation
    np.testing.assert_array_equal(drawn, evaluate(node, [np.array([1, 20000]), *arguments])[0])
    given = [np.array([20000]), np.array([3, 4]), *(v.reshape(()) for v in arguments)]
    (other,) = run("StatelessParameterizedTruncatedNormal", *given, dtype=DType.named("double"))
    assert abs(other.mean() - mean) < 0.03 * deviation


def test_each_batch_has_bounds_of_its_own() -> None:
    columns = [np.float32(v) for v in ((0, 5), (1, 2), (-1, 4), (1, 9))]
    (drawn,) = run("ParameterizedTruncatedNormal", np.array([2, 500]), *columns, dtype=FLOAT, seed=1)
    assert drawn.dtype == np.float32
    assert -1 <= drawn[0].min() < -0.9
    assert 4 <= drawn[1].min() < 4.2
    (wrong,) = run("ParameterizedTruncatedNormal", np.array([2, 3]), *columns[:2], columns[3], columns[2], dtype=FLOAT)
    assert np.isnan(wrong).all()
    with pytest.raises(RunError, match="means must be a scalar or a vector of 3"):
        run("ParameterizedTruncatedNormal", np.array([3, 3]), *columns, dtype=FLOAT)
    with pytest.raises(RunError, match="must end with broadcasted shape"):
        run("StatelessParameterizedTruncatedNormal", np.array([3]), np.array([1, 2]), *columns, dtype=FLOAT)


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("Area range", {"area_range": (0.5, 0.1)}), ("Aspect ratio", {"aspect_ratio_range": (0.0, 1.0)}),
        ("max_attempts", {"max_attempts": 0}), ("two ends", {"area_range": (0.5,)}),
        ("Min object covered", {"min_object_covered": -1.0}),
    ],
)  # fmt: skip
def test_crops_that_make_no_sense(message: str, change: dict[str, Any]) -> None:
    boxes = np.float32([[[0, 0, 1, 1]]])
    with pytest.raises(RunError, match=message):
        run("SampleDistortedBoundingBox", np.array([9, 9, 3]), boxes, seed=1, **change)


def test_boxes_that_lie_outside() -> None:
    for boxes, message in (
        (np.float32([[[0, 0, 2, 1]]]), r"in \[0.0, 1.0\]"),
        (np.zeros((1, 0, 4), np.float32), "No bounding boxes"), (np.zeros((4,), np.float32), "3-dimensional"),
    ):  # fmt: skip
        with pytest.raises(RunError, match=message):
            run("SampleDistortedBoundingBox", np.array([9, 9, 3]), boxes, seed=1)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.complex64, np.complex128])
def test_eigenvalues_of_a_matrix(kind: Any) -> None:
    """A matrix made of chosen eigenvalues: those come back, each with its vector of length 1."""
    random = np.random.default_rng(1)
    wanted = np.array([3.0, -2.0, 0.5, 1.25])
    basis = random.normal(size=(4, 4)) + (
        1j * random.normal(size=(4, 4)) if kind in (np.complex64, np.complex128) else 0
    )
    matrix = (basis @ np.diag(wanted) @ np.linalg.inv(basis)).astype(kind)
    complex_kind = DType.named(
        "complex64" if np.dtype(kind).itemsize in (4, 8) and kind != np.float64 else "complex128"
    )
    values, vectors = run("Eig", np.stack([matrix, 2 * matrix]), Tout=complex_kind)
    close = 1e-4 if complex_kind.name == "complex64" else 1e-10
    assert values.dtype == vectors.dtype == complex_kind.numpy
    np.testing.assert_allclose(np.sort(values.real), [sorted(wanted), sorted(2 * wanted)], atol=close)
    np.testing.assert_allclose(matrix @ vectors[0], vectors[0] * values[0], atol=10 * close)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), np.ones((2, 4)), atol=close)
    assert run("Eig", matrix, Tout=complex_kind, compute_v=False)[1].size == 0
    rotation = np.array([[0, -1], [1, 0]], kind)
    np.testing.assert_allclose(sorted(run("Eig", rotation, Tout=complex_kind)[0].imag), [-1, 1], atol=close)
    symmetric = (matrix + matrix.conj().T)[None]
    (both,) = run("SelfAdjointEig", symmetric.real.astype(np.float64))
    assert both.shape == (1, 5, 4)
    assert (np.diff(both[0, 0]) >= 0).all()
    np.testing.assert_allclose(symmetric.real @ both[:, 1:], both[:, 1:] * both[:, :1], atol=10 * close)
    with pytest.raises(RunError, match="square"):
        run("Eig", matrix[:3], Tout=complex_kind)


def test_the_conjugate_of_a_single_number_is_an_array() -> None:
    (found,) = run("Conj", np.array(1 + 2j, np.complex64), T=DType.named("complex64"))
    assert isinstance(found, np.ndarray)
    assert found == 1 - 2j
