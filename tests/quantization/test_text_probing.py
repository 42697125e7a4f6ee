"""Sizes of tensors for texts, in few runs."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph.text_format import parse
from pocketgraph.quantization import text_probing
from pocketgraph.quantization.text_cut import text_preprocessing_of
from pocketgraph.quantization.text_inputs import text_inputs
from pocketgraph.quantization.text_probing import TensorSizes, probed_where_possible

STEPS = 30


def test_a_chain_of_tensors_is_looked_at_in_few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = "".join(f"s{i} = Abs(s{i - 1}, T=int32)\n" for i in range(1, STEPS))
    graph = parse(f"words = Placeholder(dtype=string, shape=[?])\ns0 = StringLength(words)\n{steps}")
    texts = [[np.array([b"a"] * count, object)] for count in (2, 5)]
    runs = []
    own = text_probing.probed
    monkeypatch.setattr(text_probing, "probed", lambda *given: runs.append(1) or own(*given))
    names = [f"s{i}:0" for i in range(STEPS)]
    sizes = TensorSizes(graph, text_inputs(graph, ["s29"], ()), texts, set(graph.nodes), set(graph.nodes))
    found = [sizes.of([name])[0] for name in names]
    assert [[array.shape for array in arrays] for arrays in found] == [[(2,), (5,)]] * STEPS
    assert len(runs) <= text_probing.FEW_RUNS + -(-STEPS // text_probing.AHEAD)


def test_what_cannot_be_had_is_left_out() -> None:
    graph = parse("""
        words = Placeholder(dtype=string, shape=[?])
        lengths = StringLength(words)
        never = Const(bool false)
        branch = Switch(lengths, never, T=int32)
    """)
    texts = [[np.array([b"a", b"bcd"], object)]]
    found = probed_where_possible(graph, text_inputs(graph, ["lengths"], ()), ["branch:1", "lengths:0"], texts)
    assert list(found) == ["lengths:0"]
    np.testing.assert_array_equal(found["lengths:0"][0], [1, 3])


def test_short_texts_are_padded_as_the_whole_graph_pads_them() -> None:
    """What a row of one text has as a constant shape does not fit two, of which the longer one pads the other."""
    graph = parse("""
        words = Placeholder(dtype=string, shape=[?])
        space = Const(string [" "])
        delimiter = Reshape(space, scalar, T=string, Tshape=int32)
        scalar = Const(int32 [])
        split = StringSplit(words, delimiter, skip_empty=true)
        number = StringToHashBucketFast(split:1, num_buckets=5)
        none = Const(int64 -1)
        dense = SparseToDense(split, split:2, number, none, Tindices=int64, T=int64, validate_indices=true)
        depth = Const(int32 5)
        on = Const(float 1.0)
        off = Const(float 0.0)
        each = OneHot(dense, depth, on, off, T=float, TI=int64, axis=-1)
        axis = Const(int32 [1])
        counts = Sum(each, axis, T=float, Tidx=int32)
        rows = Shape(words, T=string, out_type=int32)
        one = Const(int32 [1])
        zero = Const(int32 0)
        shape = ConcatV2(rows, one, zero, T=int32, Tidx=int32, N=2)
        column = Reshape(words, shape, T=string, Tshape=int32)
        length = StringLength(column)
        long = Cast(length, SrcT=int32, DstT=float)
        last = Const(int32 1)
        both = ConcatV2(counts, long, last, T=float, Tidx=int32, N=2)
        w = Const(float[6, 2] 0.5)
        y = MatMul(both, w, T=float)
    """)
    texts = [[np.array([text], object)] for text in (b"a b c d e f", b"b a", b"a c c")]
    front = text_preprocessing_of(graph, ["y"], samples=texts)
    assert front is not None
    given = dict(zip(front.shapes, front([np.array([b"b a"], object)]), strict=True))
    (dense,) = [array for array in given.values() if array.shape == (1, 6)]
    assert (dense[0, 2:] == -1).all()
