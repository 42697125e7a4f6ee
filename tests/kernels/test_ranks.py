"""The table of ranks: one row an op that there is, refusing on both engines what TensorFlow refuses."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from kernels.cases import FAMILIES, Case, cases
from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Graph, Node, Shape, const, opdefs
from pocketgraph.kernels import KERNELS, evaluate
from pocketgraph.kernels.ranks import RANKS, letters, wrong_input
from pocketgraph.runtime.planning import partitioning

FLOAT, INT32 = DType.named("float"), DType.named("int32")


@pytest.mark.parametrize("op", RANKS)
def test_a_row_has_a_letter_for_each_input(op: str) -> None:
    definition, row = opdefs.definition(op), RANKS[op]
    assert op in KERNELS
    lists = [bool(argument.number_attr or argument.type_list_attr) for argument in definition.inputs]
    assert [letter for letter in row if letter == "…"] == ["…"] * sum(lists)
    assert len(row.replace("…", "")) == len(lists)
    assert set(row) <= set("0123456789sv=#*…")


def test_letters_of_a_list_are_repeated() -> None:
    assert letters("AddN", 3) == "==="
    assert letters("ConcatV2", 4) == "***s"
    assert letters("Concat", 3) == "s**"
    assert letters("Identity", 1) == ""


def test_what_is_said() -> None:
    assert wrong_input("AdjustHue", [(2, 2, 3), (1,)]) == "delta must be a scalar, its shape is [1]"
    assert wrong_input("Conv2D", [(2, 2, 3), (1, 1, 3, 1)]) == "input must be 4-dimensional, its shape is [2, 2, 3]"
    assert wrong_input("EluGrad", [(2,), (2, 1)]) == "outputs must have the same shape as gradients: [2, 1] and [2]"
    assert wrong_input("TanhGrad", [(2,), (3,)]) == "dy must have as many elements as y: [3] and [2]"
    assert wrong_input("Fill", [(2, 1), ()]) == "dims must be a scalar or a vector, its shape is [2, 1]"
    assert wrong_input("AddN", [(2,), (2,), (3,)]) == "input 2 must have the same shape as input 0: [3] and [2]"
    assert wrong_input("Range", [(), (1, 1), ()]) == "limit must be a scalar, its shape is [1, 1]"
    assert wrong_input("Range", [(), (1,), ()]) == ""
    assert wrong_input("Add", [(2,), (3,)]) == ""


def test_a_number_of_numpy_is_looked_at_as_an_array_is() -> None:
    with pytest.raises(RunError, match="spectrogram must be 3-dimensional"):
        evaluate(Node("n", "Mfcc", ()), [np.ones((3, 4), np.float32), np.int32(8000)])


def first_goldens() -> Iterator[Case]:
    """The goldens of ops in the table, whose inputs TensorFlow took."""
    for family in FAMILIES:
        yield from (case for case in cases(family) if case.node.op in RANKS)


def test_nothing_that_tensorflow_computed_is_refused() -> None:
    count = 0
    for case in first_goldens():
        assert wrong_input(case.node.op, [value.shape for value in case.inputs]) == "", case.node.name
        count += 1
    assert count > 1500


REFUSED = [
    ("ArgMax", [np.ones((2, 3), np.float32), np.int32([1])], {"Tidx": INT32, "output_type": DType.named("int64")}),
    ("AddN", [np.ones((2, 3), np.float32), np.ones(3, np.float32)], {"N": 2}),
    ("BiasAdd", [np.ones((2, 3), np.float32), np.ones((1, 3), np.float32)], {}),
    ("Cumsum", [np.ones((2, 3), np.float32), np.int32([1])], {"Tidx": INT32}),
    ("MaxPool", [np.ones((4, 4, 2), np.float32)], {"ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": b"SAME"}),
    ("Reshape", [np.ones((2, 3), np.float32), np.int32([[3, 2]])], {"Tshape": INT32}),
    ("Tile", [np.ones((2, 3), np.float32), np.int32([[3, 2]])], {"Tmultiples": INT32}),
    ("GatherV2", [np.ones((2, 3), np.float32), np.int32([1]), np.int32([0])], {"Tparams": FLOAT, "Tindices": INT32,
                                                                             "Taxis": INT32}),
    # refused for other reasons
    ("Max", [np.ones((2, 3), np.float32), np.int32([0, -2])], {"Tidx": INT32}),
    ("BroadcastTo", [np.ones((2, 3), np.float32), np.int32([3])], {"Tidx": INT32}),
    ("ClipByValue", [np.ones((2, 3), np.float32), np.float32([0]), np.float32(1)], {}),
    ("FakeQuantWithMinMaxArgs", [np.ones((2, 3), np.float32)], {"min": 1.0, "max": -1.0}),
    ("EnsureShape", [np.ones((2, 3), np.float32)], {"shape": Shape([3, 2])}),
    ("Einsum", [np.ones((2, 3), np.float32), np.ones((1, 3), np.float32)], {"N": 2, "equation": b"ij,jk->ik"}),
    ("Split", [np.int32(2**31 - 1), np.ones((2, 3), np.float32)], {"num_split": 2}),
    ("Unpack", [np.ones((4, 3), np.float32)], {"num": 3, "axis": 0}),
    ("ConcatV2", [np.ones((4, 3), np.float32), np.ones((2, 3), np.float32), np.int32(-(2**31))], {"N": 2}),
    ("NonMaxSuppressionV3", [np.ones((2, 4), np.float32), np.ones(2, np.float32), np.int32(-1), np.float32(0.5),
                             np.float32(0)], {}),
    ("CropAndResize", [np.ones((1, 4, 4, 1), np.float32), np.float32([[0, 0, np.nan, 1]]), np.int32([0]),
                       np.int32([2, 2])], {}),
]  # fmt: skip


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize(("op", "inputs", "attrs"), REFUSED, ids=[row[0] for row in REFUSED])
def test_both_engines_refuse_naming_the_node(
    op: str, inputs: list[Any], attrs: dict[str, Any], engine: str | None, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(partitioning, "LEAST_PART_NODES", 0)
    types = {} if op == "GatherV2" or "FakeQuant" in op or op.startswith(("NonMax", "Crop")) else {"T": FLOAT}
    types |= {"T": FLOAT} if op.startswith(("NonMax", "Crop")) else {}
    values = [np.asarray(value) for value in inputs]
    sources = [
        const(f"x{n}", v) if v.dtype.kind == "i"
        else Node(f"x{n}", "Placeholder", (), {"dtype": FLOAT, "shape": Shape(v.shape)})
        for n, v in enumerate(values)
    ]  # fmt: skip
    node = Node("bad/node", op, tuple(source.name for source in sources), {**types, **attrs})
    with pytest.raises(RunError, match="bad/node"):
        evaluate(node, values)
    feeds = {source.name: v for source, v in zip(sources, values, strict=True) if source.op == "Placeholder"}
    with (
        pytest.raises(RunError, match="bad/node") as caught,
        Session(Graph([*sources, node]), engine=engine, cache_dir=str(tmp_path)) as session,
    ):
        session.run(["bad/node"], feeds)
    assert "\n" not in str(caught.value)


def test_a_negative_radius_brings_nobody_down(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(partitioning, "LEAST_PART_NODES", 0)
    x = Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape([1, 2, 2, 3])})
    y = Node("y", "LRN", ("x",), {"T": FLOAT, "depth_radius": -1})
    results: list[Callable[[], Any]] = []
    for engine in ("reference", None):
        with Session(Graph([x, y]), engine=engine, cache_dir=str(tmp_path)) as session:
            try:
                found = session.run(["y"], {"x": np.ones((1, 2, 2, 3), np.float32)})[0]
                results.append(found.tolist())
            except RunError as error:
                results.append(str(error))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "problem"),
    [
        ("SparseTensorDenseMatMul", [np.zeros((3, 4), np.int64), np.ones(3, np.float32), np.array([3, 4]),
                                     np.ones((4, 2), np.float32)], {}, r"indices of shape \[3, 4\]"),
        ("TridiagonalMatMul", [*(np.ones((n, 1, 4), np.float32) for n in (2, 2, 1)), np.ones((2, 4, 3), np.float32)],
         {}, r"for a right side of shape \[2, 4, 3\]"),
        ("UniqueV2", [np.ones(7), np.int32([0, 0])], {}, "one axis is wanted"),
        ("RaggedFillEmptyRows", [np.zeros(0, np.int64), np.ones(3), np.int64(5), np.float64(9)], {},
         "3 values and 0 row ids"),
        ("SparseCrossV2", [np.zeros((1, 2), np.int64), np.array([b"a"], object), np.array([2, 2, 2]),
                           np.array(b"_", object)], {"N": 1}, r"two numbers, not \[2, 2, 2\]"),
        ("Conv2DBackpropInput", [np.int32([2, 8, 9, 2]), np.ones((3, 3, 2, 3), np.float32),
                                 np.ones((1, 8, 9, 3), np.float32)], {"strides": (1, 1, 1, 1), "padding": b"SAME"},
         r"a batch of 2, out_backprop \[1, 8, 9, 3\] one of 1"),
        ("MaxPoolGradGrad", [np.ones((1, 4, 4, 2), np.float32), np.ones((1, 2, 2, 3), np.float32),
                             np.ones((1, 4, 4, 2), np.float32)],
         {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": b"VALID"}, r"\[1, 2, 2, 3\]"),
        ("SerializeManySparse", [np.zeros((3, 4), np.int64), np.ones(3, np.int32), np.array([3, 4])],
         {"T": INT32}, r"indices of shape \[3, 4\] for 3 values"),
        ("GRUBlockCellGrad", [np.ones((2, 4)), np.ones((2, 3)), np.ones((7, 6)), np.ones((7, 3)), np.ones(5),
                              np.ones(3), *[np.ones((2, 3))] * 4], {}, r"biases of shapes \[5\] and \[3\] for 3 cells"),
        ("GatherNd", [np.ones((3, 0, 5)), np.int64([[2], [0]])], {}, r"params is empty. Params shape: \[3, 0, 5\]"),
        ("QuantizedInstanceNorm", [np.ones((1, 2, 2, 3), np.uint8), np.float32(0), np.float32(1)],
         {"output_range_given": True, "given_y_min": 1.0, "given_y_max": 1.0}, "given_y_min must be less"),
        ("FractionalMaxPool", [np.ones((1, 4, 4, 1), np.float32)], {"pooling_ratio": (1, 2, 2, 1), "seed": 1},
         "seed and seed2 should be 0"),
        ("XlaPad", [np.ones((2, 3), np.float32), np.float32(0), np.int32([-1, -1]), np.int32([-2, -1]),
                    np.int32([0, 0])], {}, r"of \[2, 3\] give sizes of \[-1, 1\]"),
        ("DecodeBmp", [np.array([b"BM"], object)], {}, r"contents must be a scalar, its shape is \[1\]"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalnum() else "",
)  # fmt: skip
def test_shapes_that_would_be_taken_for_others(op: str, inputs: list[Any], attrs: dict[str, Any], problem: str) -> None:
    with pytest.raises(RunError, match=problem):
        evaluate(Node("bad", op, (), attrs), inputs)
