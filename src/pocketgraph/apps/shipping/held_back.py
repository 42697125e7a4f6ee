"""The photos and recordings that a retrained model did not learn from judge it; those that taught it calibrate."""

from __future__ import annotations

import os

from pocketgraph.apps.retraining.example_lists import category_of
from pocketgraph.apps.retraining.retrained_graph import LAYER
from pocketgraph.datasets.file_lists import of_folder
from pocketgraph.errors import PocketgraphError
from pocketgraph.formats.files import write_atomically
from pocketgraph.graph import Graph

SAMPLES = "samples.txt"
HELD_BACK = 10.0  # percent, as retrain has them for testing and for validation unless it is told otherwise


def is_retrained(graph: Graph) -> bool:
    """Whether ``retrain`` gave a model its last layer."""
    return any(node.name.startswith(f"{LAYER}/") for node in graph)


def held_back_last(
    graph: Graph, source: str | os.PathLike[str] | None, folder: str, most_taught: int, most_held: int, fewest: int
) -> tuple[str | os.PathLike[str] | None, int]:
    """The samples for a model; of a retrained one and the folder of its files the list, written for it, of those that
    calibrate and judge: first some that retrain learns from, then some that it holds back, by the hash of their paths.

    Args:
        graph: the model.
        source: the samples.
        folder: where the list is written.
        most_taught, most_held: how many of each are taken.
        fewest: that must be held back.

    Returns:
        The samples, and how many of the list retrain learns from: 0 where there is no list.
    """
    given = source, 0
    if source is None or not is_retrained(graph) or not os.path.isdir(source):
        return given
    try:
        files, classes = of_folder(os.fspath(source), without_strays=True)
    except PocketgraphError:  # a folder of something else
        return given
    if not classes or any(set("\t\n\r") & set(file) for file in files):
        return given
    nearest = {name: _as_seen_from(folder, name) for name in {os.path.dirname(file) for file in files}}
    sides: tuple[list[str], list[str]] = [], []
    for file, name in zip(files, classes, strict=True):
        is_held = category_of(file, HELD_BACK, HELD_BACK) != "training"
        place, base = os.path.split(file)
        sides[is_held].append(f"{os.path.join(nearest[place], base)}\t{name}\n")
    taught, held = sides[0][:most_taught], sides[1][:most_held]
    if not taught or len(held) < fewest:
        return given
    path = os.path.join(folder, SAMPLES)
    try:
        listed = "".join((*taught, *held)).encode()
    except UnicodeEncodeError:  # names that are no text, which no list holds
        return given
    write_atomically(path, listed)
    return path, len(taught)


def _as_seen_from(folder: str, place: str) -> str:
    """The path of a place from a folder, whatever links lead to either; the whole path where it is on another drive."""
    real = os.path.realpath(place)
    try:
        return os.path.relpath(real, os.path.realpath(folder))
    except ValueError:
        return real
