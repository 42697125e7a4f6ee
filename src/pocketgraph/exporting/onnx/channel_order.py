"""The two orders of an image's axes: channels last, as TensorFlow has them, and channels second, as ONNX wants them."""

from __future__ import annotations

from pocketgraph.graph import Shape


def to_first(rank: int) -> list[int]:
    """The permutation that moves the last axis to the second place."""
    return [0, rank - 1, *range(1, rank - 1)]


def to_last(rank: int) -> list[int]:
    """The permutation that moves the second axis to the last place."""
    return [0, *range(2, rank), 1]


def first_axis(axis: int, rank: int) -> int:
    """Where an axis is in the channels-first form."""
    return to_first(rank).index(axis % rank)


def shape_first(shape: Shape) -> Shape:
    """A shape in the channels-first form."""
    return Shape([shape[axis] for axis in to_first(len(shape))])


def shape_last(shape: Shape) -> Shape:
    """The shape of what has this shape in the channels-first form."""
    return Shape([shape[axis] for axis in to_last(len(shape))])
