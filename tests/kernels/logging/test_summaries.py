"""Summaries are TensorFlow's, byte for byte; what it refuses is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.cases import Case, cases
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Tensor
from pocketgraph.kernels import evaluate
from pocketgraph.protobuf.wire import payloads

FLOAT = DType.named("float")


@pytest.mark.parametrize("case", [pytest.param(case, id=case.node.name) for case in cases("summaries")])
def test_a_summary_is_tensorflows(case: Case) -> None:
    (actual,) = evaluate(case.node, case.inputs)
    assert actual.shape == ()
    assert actual.item() == case.expected[0].item()


def strings(*values: bytes) -> Any:
    return np.array(values, object)


@pytest.mark.parametrize(
    ("op", "inputs", "problem"),
    [
        ("ScalarSummary", (strings(b"a", b"b"), np.float32([1])), r"not the same shape: \[2\] != \[1\]"),
        ("HistogramSummary", (strings(b"a", b"b"), np.float32([1])), "tags must be scalar"),
        ("HistogramSummary", (strings(b"a"), np.float32([1, np.nan])), "Nan in summary histogram for: it"),
        ("HistogramSummary", (strings(b"a"), np.float64([-np.inf])), "Infinity in summary histogram for: it"),
        ("MergeSummary", (strings(b"\x0a\x03\x0a\x01a"), strings(b"\x0a\x03\x0a\x01a")), "Duplicate tag a found"),
        ("MergeSummary", (strings(b"\x0a\x7f"),), "Could not parse one of the summary inputs"),
        ("MergeSummary", (strings(b"\xff"),), "Could not parse one of the summary inputs"),
        ("MergeSummary", (strings(b"\x0a\x02\x0b\x01"),), "Could not parse one of the summary inputs"),
    ],
)
def test_what_is_refused(op: str, inputs: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(RunError, match=problem):
        evaluate(Node("it", op, (), {"T": FLOAT, "N": len(inputs)}), inputs)


def pictures(data: bytes) -> list[tuple[list[bytes], bytes]]:
    """Of each Value: tag, height, width and color space as they are stored, and the PNG file."""
    found = []
    for _, _, value in payloads(data):
        fields = {number: payload for number, _, payload in payloads(value)}
        image = {number: payload for number, _, payload in payloads(fields[4])}
        found.append(([fields[1], *(image[number] for number in (1, 2, 3))], image[4]))
    return found


@pytest.mark.parametrize("case", [pytest.param(case, id=case.node.name) for case in cases("pictures")])
def test_a_picture_has_tensorflows_pixels(case: Case) -> None:
    (actual,) = evaluate(case.node, case.inputs)
    mine, theirs = pictures(actual.item()), pictures(case.expected[0].item())
    assert [said for said, _ in mine] == [said for said, _ in theirs]
    for (_, one), (_, other) in zip(mine, theirs, strict=True):
        decoded = [evaluate(Node("png", "DecodePng"), (strings(file).reshape(()),))[0] for file in (one, other)]
        np.testing.assert_array_equal(*decoded)


def test_what_is_no_picture() -> None:
    with pytest.raises(RunError, match="4-D with last dim 1, 3, or 4"):
        evaluate(Node("it", "ImageSummary"), (strings(b"t"), np.zeros((1, 2, 2, 2), np.float32)))
    color = Tensor.from_numpy(np.uint8([1]), DType.named("uint8"))
    with pytest.raises(RunError, match="bad_color must have 3 channels"):
        evaluate(
            Node("it", "ImageSummary", (), {"bad_color": color}), (strings(b"t"), np.zeros((1, 2, 2, 3), np.float32))
        )
