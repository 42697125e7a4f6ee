"""The k largest of long rows are those of a full stable sort, whatever ties and NaN there are."""

import numpy as np
import pytest

from pocketgraph.graph import Node
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.array.sorting import largest


@pytest.mark.parametrize("kind", ["plain", "ties", "not numbers", "integers", "unsigned", "all equal"])
@pytest.mark.parametrize(
    ("size", "k"), [(0, 0), (64, 1), (65, 0), (69, 1), (500, 1), (500, 100), (500, 109), (500, 500)]
)
def test_largest(size: int, k: int, kind: str) -> None:
    rng = np.random.default_rng(size + k)
    values = rng.normal(0, 3, size).astype(np.float32)
    if kind in ("ties", "not numbers"):
        values = np.round(values)
    if kind == "not numbers":
        values[::50] = np.nan
    elif kind == "integers":
        values = values.astype(np.int32)
    elif kind == "unsigned":
        values = np.abs(values).astype(np.uint8)
    elif kind == "all equal":
        values[:] = 1
    ranked = sorted(range(size), key=lambda i: (not np.isnan(values[i]), -float(np.nan_to_num(values[i])), i))[:k]
    found, places = largest(values, k)
    ties = np.isnan(values[ranked])
    np.testing.assert_array_equal(found, values[ranked])
    assert places[~ties].tolist() == np.array(ranked, np.int64)[~ties].tolist()


def test_bounds_among_what_compares_with_nothing() -> None:
    """What TensorFlow 2.21 gives."""
    nan = np.nan
    rows = np.array([[1, 2, nan, nan], [1, 2, 3, 4], [nan] * 4], np.float32)
    values = np.array([[0, 2, 3, nan, np.inf]] * 3, np.float32)
    (lower,) = evaluate(Node("n", "LowerBound", ()), (rows, values))
    assert lower.tolist() == [[0, 1, 2, 0, 2], [0, 1, 2, 0, 4], [0, 0, 0, 0, 0]]
    (upper,) = evaluate(Node("n", "UpperBound", ()), (rows, values))
    assert upper.tolist() == [[4, 4, 4, 4, 4], [0, 2, 3, 4, 4], [4, 4, 4, 4, 4]]


def test_bounds_in_rows_that_are_not_sorted() -> None:
    rows = np.array([[5, 0, 4, 1, 3, 2, 5, 1], [2, 2, 1, 0, 6, 6, 3, 4]], np.int32)
    values = np.array([[0, 1, 2, 3, 4, 5, 6]] * 2, np.int32)
    lower = [[0, 2, 2, 2, 6, 6, 8], [0, 0, 4, 4, 4, 4, 4]]  # as TensorFlow 2.21 has it
    upper = [[2, 2, 2, 6, 6, 8, 8], [0, 4, 4, 4, 4, 4, 8]]
    for op, right in (("LowerBound", lower), ("UpperBound", upper)):
        for dtype in (np.int32, np.float32):
            (found,) = evaluate(Node("n", op, ()), (rows.astype(dtype), values.astype(dtype)))
            assert found.tolist() == right
