"""Parts whose shapes only the run tells: one program serves all shapes, also of texts that are filled up."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.planning.sizes import resizable_calls, served_calls
from pocketgraph.runtime.planning.sizes.open_sizes import SizedCalls
from pocketgraph.runtime.planning.sizes.sized_executables import SizedExecutables

WEIGHTS = np.random.default_rng(8).standard_normal((2, 64, 64)).astype(np.float32).round(2) / 8
PICKED = """
    x = Placeholder(dtype=float, shape=[40, 64])
    marks = Placeholder(dtype=float, shape=[40])
    zero = Const(float 0)
    is_kept = Greater(marks, zero, T=float)
    places = Where(is_kept, T=bool)
    axis = Const(int32[1] [1])
    rows = Squeeze(places, T=int64, squeeze_dims=[1])
    first = Const(int32 0)
    kept = GatherV2(x, rows, first, Tparams=float, Tindices=int64, Taxis=int32, batch_dims=0)
    w = Const(float[64, 64] {})
    v = Const(float[64, 64] {})
    {}
    y = Softmax(b4, T=float)
""".format(
    *WEIGHTS.tolist(),
    "\n    ".join(
        f"a{k} = MatMul({'kept' if k == 0 else f'b{k - 1}'}, {'wv'[k % 2]}, T=float, transpose_a=false, "
        f"transpose_b=false)\n    b{k} = Tanh(a{k}, T=float)"
        for k in range(5)
    ),
)
"""The rows that are marked: the feeds' shapes are always the same."""

FILLED_UP = f"""
    words = Placeholder(dtype=int32, shape=[?])
    splits = Placeholder(dtype=int64, shape=[?])
    shape = Const(int32[2] [-1, -1])
    none = Const(int32 0)
    table = Const(float[64, 64] {WEIGHTS[0].tolist()})
    ids = RaggedTensorToTensor(shape, words, none, splits, T=int32, Tindex=int64, Tshape=int32,
        num_row_partition_tensors=1, row_partition_types=["ROW_SPLITS"])
    first = Const(int32 0)
    x = GatherV2(table, ids, first, Tparams=float, Tindices=int32, Taxis=int32, batch_dims=0)
    w = Const(float[1, 64, 64] {WEIGHTS[1:].tolist()})
    lines = ExpandDims(x, one, T=float, Tdim=int32)
    one = Const(int32 1)
    kernel = ExpandDims(w, first, T=float, Tdim=int32)
    a = Conv2D(lines, kernel, T=float, strides=[1, 1, 1, 1], padding="SAME")
    b = Relu(a, T=float)
    axes = Const(int32[2] [1, 2])
    y = Max(b, axes, T=float, Tidx=int32, keep_dims=false)
"""


@pytest.fixture(autouse=True)
def _runs_take_less_than_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a busy machine's times decide."""
    monkeypatch.setattr(SizedCalls, "price", 1e9)
    monkeypatch.setattr(resizable_calls, "SECOND_SHARE", 1e9)


def picked(count: int) -> dict[str, Array]:
    random = np.random.default_rng(count)
    marks = np.full(40, -1, np.float32)
    marks[random.permutation(40)[:count]] = 1
    return {"x": random.standard_normal((40, 64)).astype(np.float32), "marks": marks}


def softmax_of(fed: dict[str, Array]) -> Array:
    """In doubles."""
    kept = fed["x"][fed["marks"] > 0].astype(np.float64)
    for layer in range(5):
        kept = np.tanh(kept @ WEIGHTS[layer % 2])
    found = np.exp(kept)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def texts(words: int) -> dict[str, Array]:
    ids = np.random.default_rng(words).integers(1, 64, words).astype(np.int32)
    return {"words": ids, "splits": np.array([0, words // 3, words // 2, words], np.int64)}


def most_of(fed: dict[str, Array]) -> Array:
    """In doubles; what texts are filled up with counts as the first row."""
    bounds = fed["splits"].tolist()
    rows = [fed["words"][start:end] for start, end in itertools.pairwise(bounds)]
    longest = max(map(len, rows))
    filled = np.stack([np.pad(row, (0, longest - len(row))) for row in rows])
    return np.asarray(np.maximum(WEIGHTS[0][filled].astype(np.float64) @ WEIGHTS[1], 0).max(axis=1))


def programs(session: Session) -> list[Any]:
    """The programs for all shapes."""
    used = {id(each): each for plan in session._calls.plans.values() for each in plan.executables}
    return [each for each in used.values() if isinstance(each, SizedExecutables)]


def test_rows_whose_number_values_tell_have_one_program() -> None:
    with Session(parse(PICKED), cache_dir="") as session:
        for count in (10, 11, 12, 5, 40, 12, 33, 7, 21, 22, 23, 24, 25):
            (found,) = session.run(["y"], picked(count))
            np.testing.assert_allclose(found, softmax_of(picked(count)), rtol=1e-4, atol=1e-6)
        (program,) = programs(session)
        assert program.takes(((17, 1), (40, 64)))


def test_one_row_and_none_are_computed() -> None:
    with Session(parse(PICKED), cache_dir="") as session:
        for count in (10, 11, 12, 1, 0, 13, 1, 0):
            (found,) = session.run(["y"], picked(count))
            np.testing.assert_allclose(found, softmax_of(picked(count)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("without", [(), ("resizable_programs",)])
def test_texts_that_are_filled_up(without: tuple[str, ...]) -> None:
    with Session(parse(FILLED_UP), cache_dir="", without=without) as session:
        for count in (20, 24, 28, 15, 90, 28, 12, 33, 36):
            (found,) = session.run(["y"], texts(count))
            np.testing.assert_allclose(found, most_of(texts(count)), rtol=1e-4, atol=1e-6)
        assert len(programs(session)) == (0 if without else 1)


def test_shapes_that_wait_for_others_get_a_plan_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_calls, "WAITED", -1.0)
    with Session(parse(PICKED), cache_dir="") as session:
        for count in (10, 11, 12, 13, 14, 14, 14):
            (found,) = session.run(["y"], picked(count))
            np.testing.assert_allclose(found, softmax_of(picked(count)), rtol=1e-4, atol=1e-6)
        assert len(programs(session)) == 1
        (plan,) = session._calls.plans.values()
        assert plan.program is not None
        (part,) = plan.program.dynamic_parts
        assert part.call.plans[(14, 1), (40, 64)].ran is None  # type: ignore[attr-defined]
