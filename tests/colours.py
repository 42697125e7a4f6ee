"""Photos of one colour each, in folders, and a "classifier" that sees colours."""

from __future__ import annotations

import pathlib

import numpy as np
from PIL import Image

from pocketgraph.graph import Graph, Node, Tensor
from pocketgraph.graph.text_format import parse

COLOURS = """
    x = Placeholder(dtype=float, shape=[1,4,4,3])
    axes = Const(int32 [1, 2])
    mean = Mean(x, axes, T=float, Tidx=int32, keep_dims=false)
    scores = Softmax(mean, T=float)
"""
"""Answers with how much of each colour there is in a picture of 4 x 4 pixels."""


def strongest_colour() -> Graph:
    """Answers with the strongest colour of a picture of 4 x 4 pixels."""
    return parse("""
        picture = Placeholder(dtype=float, shape=[1,4,4,3])
        axes = Const(int32 [1, 2])
        colour = Mean(picture, axes, T=float, Tidx=int32)
        w = Const(float [[8, 0, 0], [0, 8, 0], [0, 0, 8]])
        scores = MatMul(colour, w, T=float)
        y = Softmax(scores, T=float)
    """)


def base() -> Graph:
    """A "classifier" whose last layer takes six features of a picture: means of colours, as they are and squared."""
    graph = parse(
        """
        input = Placeholder(dtype=float, shape=[1,8,8,3])
        axes = Const(int32 [1, 2])
        mean = Mean(input, axes, T=float, Tidx=int32, keep_dims=false)
        squares = Square(mean, T=float)
        axis = Const(int32 1)
        features = ConcatV2(mean, squares, axis, T=float, N=2, Tidx=int32)
        weights = Const(float [1, 2])
        logits = MatMul(features, weights, T=float, transpose_a=false, transpose_b=false)
        scores = Softmax(logits, T=float)
        """
    )
    rng = np.random.default_rng(0)
    table = Tensor.from_numpy(rng.normal(size=(6, 4)).astype(np.float32))
    return graph.map_nodes(
        lambda node: Node(node.name, "Const", (), {**node.attrs, "value": table}) if node.name == "weights" else node
    )


def colour_photos(folder: pathlib.Path) -> pathlib.Path:
    """Thirty noisy photos of each of three colours."""
    rng = np.random.default_rng(1)
    for name, colour in (("Red things", (200, 40, 40)), ("green", (40, 200, 40)), ("blue", (40, 40, 200))):
        (folder / name).mkdir(parents=True)
        for number in range(30):
            pixels = np.clip(rng.normal(colour, 40, (8, 8, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder
