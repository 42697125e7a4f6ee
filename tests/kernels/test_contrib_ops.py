"""Ops of TensorFlow 1's contrib libraries and TensorFlow 2's addons: signatures, inputs that do not fit, names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape, opdefs
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import KERNELS, evaluate
from pocketgraph.runtime import Session

INT32, INT64, FLOAT = DType.named("int32"), DType.named("int64"), DType.named("float")


def ints(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    "op",
    [
        "GatherTree", "Addons>GatherTree", "Resampler", "Addons>Resampler", "AdjustHsvInYiq", "Addons>AdjustHsvInYiq",
        "ImageProjectiveTransform", "Addons>ImageProjectiveTransformV2", "BipartiteMatch", "ImageConnectedComponents",
        "PeriodicResample", "ReduceSliceSum", "SparseFeatureCross", "SparseFeatureCrossV2",
        "BucketizeWithInputBoundaries", "SkipGramGenerateCandidates",
    ],
)  # fmt: skip
def test_has_a_signature_and_a_kernel(op: str) -> None:
    assert opdefs.definition(op).outputs
    assert op in KERNELS


def test_old_projective_transforms_have_no_fill_mode() -> None:
    definition = opdefs.definition("ImageProjectiveTransformV2")
    assert definition.attrs["fill_mode"].since == "2.x"
    assert definition.only != "2.x"


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "said"),
    [
        ("GatherTree", [ints([1]), ints([1]), ints(1), ints(1)[0]], {"T": INT32}, "3-tensor"),
        ("GatherTree", [ints([[1]]), ints([[1]], [[0]]), ints(1), ints(1)[0]], {"T": INT32}, "one shape"),
        ("GatherTree", [ints([[1]]), ints([[0]]), ints(1, 1), ints(1)[0]], {"T": INT32}, "max_sequence_lengths"),
        ("GatherTree", [ints([[1]], [[2]]), ints([[0]], [[1]]), ints(2), ints(0)[0]], {"T": INT32}, "parent 1"),
        ("GatherTree", [ints([[1]], [[2]]), ints([[0]], [[-1]]), ints(2), ints(0)[0]], {"T": INT32}, "parent -1"),
        ("Resampler", [floats(2, 2, 1), floats(2, 2)], {"T": FLOAT}, "rank 4"),
        ("Resampler", [floats(2, 2, 2, 1), floats(1, 2)], {"T": FLOAT}, "warp of shape"),
        ("Resampler", [floats(2, 2, 2, 1), floats(2, 3)], {"T": FLOAT}, "warp of shape"),
        ("BipartiteMatch", [floats(2), floats(1)], {}, "2-dimensional"),
        ("BipartiteMatch", [floats(2, 2), np.float32(3)], {}, "3 valid rows of 2"),
        ("ImageConnectedComponents", [floats(2, 2)], {"dtype": FLOAT}, "(N, H, W)"),
        ("ReduceSliceSum", [floats(2, 2), ints([0, 1]), np.int64(2)], {"T": FLOAT, "Tindices": INT32}, "axis 2"),
        ("ReduceSliceSum", [floats(2, 2), ints([-1, 1]), np.int64(0)], {"T": FLOAT, "Tindices": INT32}, "at -1"),
        ("ReduceSliceSum", [floats(2), ints([0, 1, 2]), np.int64(0)], {"T": FLOAT, "Tindices": INT32}, "no pairs"),
        ("PeriodicResample", [floats(2, 2)], {"T": FLOAT, "shape": Shape((2, 2))}, "one open axis"),
        ("PeriodicResample", [floats(2, 2)], {"T": FLOAT, "shape": Shape((1, None))}, "at least as large"),
        ("PeriodicResample", [floats(2)], {"T": FLOAT, "shape": Shape((2, None))}, "one open axis"),
        ("SkipGramGenerateCandidates", [ints(1, 2), *(np.int32(n) for n in (2, 1, 0, -1)), np.bool_(False)],
         {"T": INT32}, "2 to 1 skips"),
        ("SkipGramGenerateCandidates", [ints(1, 2), *(np.int32(n) for n in (1, 1, 3, -1)), np.bool_(False)],
         {"T": INT32}, "from 3 on"),
        ("AdjustHsvInYiq", [floats(2, 2, 4), *(np.float32(1),) * 3], {"T": FLOAT}, "3 colours"),
    ],
)  # fmt: skip
def test_says_what_does_not_fit(op: str, inputs: list[Any], attrs: dict[str, Any], said: str) -> None:
    node = Node("n", op, [f"i{number}" for number in range(len(inputs))], attrs)
    with pytest.raises(RunError, match=said.replace("(", r"\(").replace(")", r"\)")) as caught:
        evaluate(node, [np.asarray(value) for value in inputs])
    assert "n" in str(caught.value.where) or said in caught.value.what


def test_pixels_that_hang_together_have_one_number() -> None:
    picture = np.array([[[1, 1, 0, 2], [0, 1, 2, 2], [3, 0, 2, 1], [3, 3, 0, 1]],
                        [[0, 0, 0, 0], [1, 0, 1, 0], [1, 1, 1, 0], [0, 0, 0, 5]]])  # fmt: skip
    # TensorFlow 1.15's parts; which pixel gives a part its number is left open
    parts = [[[6, 6, 0, 11], [0, 6, 11, 11], [9, 0, 11, 16], [9, 9, 0, 16]],
             [[0, 0, 0, 0], [21, 0, 21, 0], [21, 21, 21, 0], [0, 0, 0, 32]]]  # fmt: skip
    (found,) = evaluate(Node("n", "ImageConnectedComponents", ["x"], {"dtype": INT64}), [picture])
    pairs = set(zip(found.ravel().tolist(), np.ravel(parts).tolist(), strict=True))
    assert len(pairs) == len({ours for ours, _ in pairs}) == len({theirs for _, theirs in pairs}) == 7
    assert (0, 0) in pairs


def test_a_spiral_is_one_part() -> None:
    picture = np.zeros((1, 31, 31), np.uint8)
    picture[0, ::2] = 1
    picture[0, 1::4, -1] = picture[0, 3::4, 0] = 1
    (found,) = evaluate(Node("n", "ImageConnectedComponents", ["x"], {"dtype": DType.named("uint8")}), [picture])
    assert set(found.ravel().tolist()) == {0, 1}


@pytest.mark.parametrize("op", ["GatherTree", "Addons>GatherTree"])
def test_beams_in_a_session(op: str) -> None:
    graph = parse("""
        ids = Placeholder(dtype=int32, shape=[3, 1, 2])
        parents = Placeholder(dtype=int32, shape=[3, 1, 2])
        lengths = Const(int32 [3])
        end = Const(int32 9)
        beams = GatherTree(ids, parents, lengths, end, T=int32)
    """)
    graph = graph.map_nodes(lambda node: node.replace(op=op) if node.name == "beams" else node)
    with Session(graph) as session:
        (found,) = session.run(
            ["beams"], {"ids": ints([[1, 2]], [[3, 9]], [[5, 6]]), "parents": ints([[0, 0]], [[1, 0]], [[0, 1]])}
        )
    assert found[:, 0].T.tolist() == [[2, 3, 5], [1, 9, 9]]
