"""Inputs for a program of which there are no samples: pictures of overlapping discs, and noise for all else.

Discs of all sizes that cover each other have edges and even areas as photographs have (the dead leaves model of Lee,
Mumford and Huang, "Occlusion Models for Natural Images", 2001); noise has neither, and layers answer to it otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.datasets.inferred_scaling import inferred_scaling
from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Program, Value
from pocketgraph.quantization.core import step_limits
from pocketgraph.quantization.core.program_runner import Sample

DISCS = 200  # a picture; enough to cover it
SMALLEST_RADIUS, LARGEST_RADIUS = 0.02, 0.5  # of the shorter side
COLOUR = 0.35  # deviation of a disc's channels from its brightness
GRAIN = 0.03  # deviation of each pixel
SMALLEST_PICTURE = 8  # pixels a side


def synthetic_inputs(program: Program, graphs: Sequence[Graph] = ()) -> list[Sample]:
    """As many as are worth their time; none where an input is no float, since nobody knows what integers stand for.

    Pictures and noise lie between -1 and 1; pictures between 0 and 255, or 0 and 1, where a graph shows that it takes
    those.
    """
    if not program.inputs or any(value.dtype is not FLOAT for value in program.inputs):
        return []
    work = max(step_limits.total_multiplications(program.operations), 1)
    count = min(max(step_limits.SYNTHETIC_WORK // work, step_limits.FEWEST_SYNTHETIC), step_limits.MOST_SYNTHETIC)
    random = np.random.default_rng(0)
    scales = [_scale(value, graphs) for value in program.inputs]
    return [
        [
            made * slope + offset
            for made, (slope, offset) in zip(
                (_synthetic(value, random) for value in program.inputs), scales, strict=True
            )
        ]
        for _ in range(count)
    ]


def is_picture(value: Value) -> bool:
    """Whether a tensor has the shape of one or several pictures, channels last, gray or in colour."""
    shape = value.shape
    return len(shape) == 4 and shape[3] in (1, 3) and min(shape[1:3]) >= SMALLEST_PICTURE and value.dtype is FLOAT


def _scale(value: Value, graphs: Sequence[Graph]) -> tuple[np.float32, np.float32]:
    """By which pixels between -1 and 1 become those that an input takes: a factor, and what is added."""
    for graph in graphs:
        if is_picture(value) and node_name(value.name) in graph:
            found = inferred_scaling(graph, value.name)
            if found is not None:
                return np.float32(127.5 / found.std), np.float32((127.5 - found.mean) / found.std)
    return np.float32(1), np.float32(0)


def _synthetic(value: Value, random: np.random.Generator) -> Array:
    if len(value.shape) != 4 or min(value.shape[1:3]) < SMALLEST_PICTURE:
        return np.clip(random.normal(0, 0.5, value.shape), -1, 1).astype(np.float32)
    return np.stack([_discs(value.shape[1:], random) for _ in range(value.shape[0])]).astype(np.float32)


def _discs(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """One picture, float64 [height, width, channels]."""
    height, width, channels = shape
    rows, columns = np.ogrid[:height, :width]
    picture = np.zeros(shape)
    narrowest = (LARGEST_RADIUS / SMALLEST_RADIUS) ** 2 - 1
    for _ in range(DISCS):
        radius = min(height, width) * LARGEST_RADIUS / np.sqrt(1 + narrowest * random.uniform())
        y, x = random.uniform(0, height), random.uniform(0, width)
        colour = random.uniform(-1, 1) + random.normal(0, COLOUR, channels)
        picture[(rows - y) ** 2 + (columns - x) ** 2 < radius**2] = colour
    result: Array = np.clip(picture + random.normal(0, GRAIN, shape), -1, 1)
    return result
