"""Which class of a model's scores a sample's class is."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.datasets.class_labels import classes_and_numbers, indices
from pocketgraph.errors import UsageError


def test_digits_that_are_no_numbers_are_names() -> None:
    assert indices(["²", "m²", "²"], None, 2) == [1, 0, 1]
    assert indices(["²", "0"], None, 3) is None
    assert indices(["²", "0"], ["0", "²"], 2) == [1, 0]


def test_folders_are_found_by_the_labels_that_retrain_gives_them() -> None:
    assert indices(["Golden_Retriever", "Grün & Blau", "cat"], ["cat", "golden retriever", "grün blau"], 3) == [1, 2, 0]
    assert indices(["Grün", "rot"], ["gr n", "rot"], 2) == [0, 1]  # as retrain.py calls it
    with pytest.raises(UsageError, match="does not have the class 'c#'"):  # which would be the same as c++
        indices(["C++", "C#"], ["c", "d"], 2)
    with pytest.raises(UsageError, match="the class 'c' 2 times"):
        indices(["C++"], ["c", "c#"], 2)


def test_samples_of_no_other_class_are_told_what_their_label_is() -> None:
    """As ``_unknown_`` is, which nobody guesses of a folder called other."""
    with pytest.raises(
        UsageError, match="class 'other'; '_unknown_' is the class of samples that are none of the others"
    ):
        indices(["up", "other"], ["_silence_", "_unknown_", "up"], 3)


def test_labels_of_bytes_are_texts() -> None:
    """NumPy makes an array of bytes of what TensorFlow's datasets call texts."""
    assert classes_and_numbers(np.array([b"cat", "Grün".encode(), b"\xff"]))[0] == ["cat", "Grün", "\\xff"]
    assert classes_and_numbers(np.array([[b"a"], [b"b"]]))[0] == ["a", "b"]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_floats_too_large_to_tell_whole_numbers_apart_are_no_classes() -> None:
    classes, numbers = classes_and_numbers(np.array([1e20, 2.0]))
    assert classes == []
    assert numbers is not None
    assert numbers.tolist() == [[1e20], [2.0]]
