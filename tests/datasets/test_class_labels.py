"""Which class of a model's scores a sample's class is."""

from __future__ import annotations

from pocketgraph.datasets.class_labels import indices


def test_digits_that_are_no_numbers_are_names() -> None:
    assert indices(["²", "m²", "²"], None, 2) == [1, 0, 1]
    assert indices(["²", "0"], None, 3) is None
    assert indices(["²", "0"], ["0", "²"], 2) == [1, 0]
