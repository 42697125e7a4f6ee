"""Numbers and tensor debug strings, against what TensorFlow 1.15 prints (tf.Print of the same values)."""

import numpy as np
import pytest

from pocketgraph.graph import DType, Tensor
from pocketgraph.inspect.value_text import debug_string, human_readable, summarize_values
from pocketgraph.pages.quantities import bytes_text

MIXED = [0.1234567891, 1 / 3, 1e-10 / 3, 1e30 / 3, float("nan"), float("inf"), -0.0, 16777216, 1e6, 1234567, 0.1, 1e-5]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.00k"),
        (1500, "1.50k"),
        (1234567, "1.23M"),
        (1999999, "2.00M"),
        (23885411, "23.89M"),
        (1234567 * 10**9, "1.23E+15"),
        (-1500, "-1.50k"),
    ],
)
def test_human_readable(number: int, text: str) -> None:
    assert human_readable(number) == text


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (
            "float",
            "0.123456791 0.333333343 3.33333326e-11 3.33333338e+29 nan inf -0 16777216 1e+06 1234567 0.1 1e-05",
        ),
        (
            "double",
            "0.1234567891 0.33333333333333331 3.3333333333333335e-11 3.3333333333333332e+29 nan inf -0 16777216 "
            "1000000 1234567 0.1 1e-05",
        ),
    ],
)
def test_floats_print_as_in_tensorflow(dtype: str, text: str) -> None:
    assert summarize_values(Tensor.from_numpy(np.array(MIXED), DType.named(dtype)), limit=30) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (np.arange(8).reshape(2, 4), "[0 1 2...]..."),
        (np.arange(8).reshape(2, 2, 2), "[[0 1][2...]]..."),
        (np.arange(3).reshape(3, 1), "[0][1][2]"),
        (np.arange(4).reshape(4, 1), "[0][1][2]..."),
        (np.arange(2).reshape(1, 2), "[0 1]"),
        (np.arange(6).reshape(2, 3), "[0 1 2]..."),
        (np.arange(12).reshape(2, 2, 3), "[[0 1 2]]..."),
        (np.arange(10), "0 1 2..."),
        (np.zeros((2, 0)), ""),
        (np.array([True, False]), "1 0"),
        (np.array([1 + 2j]), "?"),
        (np.array([1, 2], np.uint8), "1 2"),
        (np.array([[b"ab\n\"'\xff", b"c"], [b"", b"e"]], object), "[ab\\n\\\"\\'\\377 c][...]..."),
    ],
)
def test_brackets_are_tensorflows(values: np.ndarray, text: str) -> None:
    assert summarize_values(Tensor.from_numpy(values)) == text


def test_debug_string_names_type_and_shape() -> None:
    tensor = Tensor.from_numpy(np.zeros((2, 3), np.uint8), DType.named("quint8"))
    assert debug_string(tensor) == "Tensor<type: quint8 shape: [2,3] values: [0 0 0]...>"
    assert debug_string(Tensor.from_numpy(5)) == "Tensor<type: int64 shape: [] values: 5>"


def test_bytes_text() -> None:
    assert [bytes_text(n) for n in (0, 999, 1000, 1998252, 95_000_000)] == [
        "0 B",
        "999 B",
        "1.00 kB",
        "2.00 MB",
        "95.00 MB",
    ]
