"""Which shapes fold_constants refuses with ``compat="original"``: those that TensorFlow 1.15.5 refuses to import."""

from __future__ import annotations

import json
import lzma
import pathlib
from typing import Any

import pytest

from pocketgraph.errors import TransformError
from pocketgraph.formats import from_bytes
from pocketgraph.graph import Shape, opdefs
from pocketgraph.graph.text_format import parse
from pocketgraph.transforms import transform
from pocketgraph.transforms.original.import_shapes import ROWS, wrong_shapes

RECORDS = pathlib.Path(__file__).parent / "original" / "imports.jsonl.xz"

TAKEN_HERE = {
    "Betainc", "Bitcast", "BlockLSTM", "BroadcastTo", "DecodeCSV", "DynamicStitch", "MatrixDiagV2", "MaxPoolWithArgmax",
    "ParallelDynamicStitch", "RaggedGather", "RaggedRange", "ReverseSequence", "Roll", "ScatterNd",
    "SoftmaxCrossEntropyWithLogits", "SpaceToBatchND", "SparseConcat", "StringJoin", "Substr", "TensorScatterAdd",
    "TensorScatterSub", "TensorScatterUpdate", "UnsortedSegmentJoin",
}  # fmt: skip
"""Ops of which 1.15 refuses more: it compares sizes by other inputs' values or ranks, or, of Substr and SpaceToBatchND,
refuses what it does not know."""


def records() -> list[dict[str, Any]]:
    with lzma.open(RECORDS, "rt") as file:
        return [json.loads(line) for line in file]


def is_refused(record: dict[str, Any]) -> bool:
    graph = from_bytes(bytes.fromhex(record["graph"]))
    try:
        transform(graph, "fold_constants", record["inputs"], [record["output"]], compat="original")
    except TransformError:
        return True
    return False


def test_what_is_refused_is_what_1_15_refused() -> None:
    wrong = [
        r["op"] for r in records() if is_refused(r) != r["refused"] and not (r["refused"] and r["op"] in TAKEN_HERE)
    ]
    assert wrong == []
    assert sum(r["refused"] for r in records()) > 250


@pytest.mark.parametrize("op", ROWS)
def test_a_row_has_a_word_for_each_argument(op: str) -> None:
    assert len(ROWS[op]) == len(opdefs.definition(op).inputs)


def test_what_is_said() -> None:
    def said(node: str, *shapes: Any) -> str:
        return wrong_shapes(next(iter(parse(node))), [Shape(shape) for shape in shapes])

    losses = "y = CTCLoss(a, b, c, d)"
    assert said(losses, (5, 2, 4), (7, 2), (7,), (2,)) == ""
    assert said(losses, (5, None, 4), None, None, (2,)) == ""
    assert said(losses, (5, 2, 4), (7, 2), (7,), (3,)) == (
        "Dimensions must be equal, but are 3 and 2: input 3 has the shape [3]"
    )
    assert said(losses, (5, 2)) == "input 0 must have 3 dimensions, its shape is [5,2]"
    assert (
        said("y = RGBToHSV(a, T=float)", (2, 4))
        == "Dimensions must be equal, but are 4 and 3: input 0 has the shape [2,4]"
    )
    assert said("y = FFT2D(a)", (4,)) == "input 0 must have 2 or more dimensions, its shape is [4]"
    assert said("y = DecodeCSV(a, b, OUT_TYPE=[float])", (), (2, 2)) == (
        "input 1 must have fewer than 2 dimensions, its shape is [2,2]"
    )
    solve = "y = MatrixSolve(a, b, T=float)"
    assert said(solve, (2, 3, 3), (2, 3, 1)) == ""
    assert said(solve, (2, 3, 3), (3, 1)) == (
        "input 1 has another number of dimensions than an input before it, its shape is [3,1]"
    )
    assert said(solve, (2, 3, 3), (4, 3, 1)).startswith("Dimensions must be equal, but are 4 and 2")
